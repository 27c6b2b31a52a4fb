import { and, desc, eq, getTableColumns, gt, inArray, lte, ne, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { iso } from '../../../base/time.ts'
import type { Refused } from '../../../base/result.ts'
import type { StoredPromotion, PromotionStatus } from '../contract/promotion.ts'
import { bytesOf, keysOfPage, olderThan, pageOf, type PageOf, type PagePosition } from '../../../store/page-by-bytes.ts'
import { promotions } from './tables.ts'
import { isPattern, patternsSeenBy } from '../../../store/artifacts/patterns.ts'
import { artifactPatterns, artifactVersions } from '../../../store/artifacts/tables.ts'

type NewRow = Omit<StoredPromotion, 'status' | 'decided_by' | 'decided_key' | 'decided_at' | 'reason'> & { status: 'failed' | 'pending' }

export async function insertPromotion(db: D1Database, row: NewRow): Promise<void> {
  await drizzle(db).insert(promotions).values(row)
}

/** The environments to which this version was promoted. */
export async function promotedTo(db: D1Database, { skill_id, version }: { skill_id: string; version: string }): Promise<string[]> {
  const rows = await drizzle(db)
    .select({ to_env: promotions.to_env })
    .from(promotions)
    .where(and(eq(promotions.skill_id, skill_id), eq(promotions.version, version), eq(promotions.status, 'approved')))
  return [...new Set(rows.flatMap(({ to_env }) => to_env))]
}

/** Its state at `now`, in ms; null outside of the key's scopes. */
export async function findPromotion(
  db: D1Database,
  id: string,
  { key_scopes, now }: { key_scopes: readonly string[]; now: number },
): Promise<StoredPromotion | null> {
  const row = await drizzle(db)
    .select()
    .from(promotions)
    .where(and(eq(promotions.id, id), await seenBy(db, key_scopes)))
    .get()
  return row ? asOf(row, now) : null
}

type PromotionQuery = {
  key_scopes: readonly string[]
  skill_id?: string | undefined
  status?: PromotionStatus | undefined
  before?: PagePosition | undefined
  limit: number
  now: number
}

/** A page, newest first. */
export async function listPromotions(
  db: D1Database,
  { key_scopes, skill_id, status, before, limit, now }: PromotionQuery,
): Promise<PageOf<StoredPromotion>> {
  const { id: key, created_at: at } = promotions
  const where = and(
    await seenBy(db, key_scopes),
    skill_id === undefined ? undefined : eq(promotions.skill_id, skill_id),
    status && isAt(status, now),
    olderThan(before, at, key),
  )
  const bytes = bytesOf(promotions.reports, promotions.reason, promotions.request_reason)
  const rows = await drizzle(db)
    .select({ ...getTableColumns(promotions), bytes })
    .from(promotions)
    .where(inArray(key, keysOfPage({ from: promotions, where, key, at, bytes, limit })))
    .orderBy(desc(at), desc(key))
  const { items, more } = pageOf(rows, limit)
  return { items: items.map((row) => asOf(row, now)), more }
}

type Decider = { key_id: string; name: string }
type PromotionUpdate = { status: 'approved' | 'rejected'; by: Decider; reason: string | null; now: number }
type PromotionDecided = { ok: true; promotion: StoredPromotion } | Refused<'decided' | 'expired' | 'own' | 'skill_inactive'>

/**
 * The first decision wins. Whoever requested a promotion never approves it, not even as an admin,
 * and a key of the same name counts as the same person.
 */
export async function decidePromotion(
  db: D1Database,
  found: StoredPromotion,
  { status, by, reason, now }: PromotionUpdate,
): Promise<PromotionDecided> {
  const { id } = found
  const may =
    status === 'rejected' ? undefined : and(ne(promotions.requested_key, by.key_id), ne(promotions.requested_by, by.name), isActive)
  const [decided] = await drizzle(db)
    .update(promotions)
    .set({ status, decided_by: by.name, decided_key: by.key_id, decided_at: now, reason })
    .where(and(eq(promotions.id, id), isAt('pending', now), may))
    .returning()
  if (decided) return { ok: true, promotion: decided }
  const row = await drizzle(db).select().from(promotions).where(eq(promotions.id, id)).get()
  return { ok: false, ...whyNot(row ? asOf(row, now) : found, by) }
}

function whyNot({ status, ...found }: StoredPromotion, by: Decider): Omit<Extract<PromotionDecided, { ok: false }>, 'ok'> {
  if (status === 'expired') return { reason: 'expired', detail: `It expired at ${iso(found.expires_at)}: request it again.` }
  if (status === 'failed') return { reason: 'decided', detail: 'Its tests failed: correct the skill, and promote the next version.' }
  if (status !== 'pending')
    return { reason: 'decided', detail: `It was ${status} by ${found.decided_by} at ${iso(found.decided_at ?? 0)}.` }
  if (found.requested_key === by.key_id || found.requested_by === by.name) {
    const detail = `${by.name} requested this promotion and cannot approve it: it takes a second person with a key of another name.`
    return { reason: 'own', detail }
  }
  return { reason: 'skill_inactive', detail: `${found.skill_id}@${found.version} is no longer active. The promotion may be rejected.` }
}

const asOf = <Row extends { status: PromotionStatus; expires_at: number }>(row: Row, now: number): Row & { status: PromotionStatus } =>
  row.status === 'pending' && row.expires_at <= now ? { ...row, status: 'expired' } : row

function isAt(status: PromotionStatus, now: number): SQL | undefined {
  if (status === 'expired') return and(eq(promotions.status, 'pending'), lte(promotions.expires_at, now))
  return and(eq(promotions.status, status), status === 'pending' ? gt(promotions.expires_at, now) : undefined)
}

const isActive = sql`EXISTS (SELECT 1 FROM ${artifactVersions} WHERE ${artifactVersions.kind} = 'skill' AND ${artifactVersions.id} = ${promotions.skill_id}
  AND ${artifactVersions.version} = ${promotions.version} AND ${artifactVersions.hash} = ${promotions.hash} AND ${artifactVersions.state} = 'active')`

async function seenBy(db: D1Database, key_scopes: readonly string[]): Promise<SQL | undefined> {
  const patterns = await patternsSeenBy(db, key_scopes)
  if (patterns === null) return undefined
  return sql`${promotions.skill_id} IN (SELECT ${artifactPatterns.id} FROM ${artifactPatterns}
    WHERE ${artifactPatterns.kind} = 'skill' AND ${isPattern(patterns)})`
}
