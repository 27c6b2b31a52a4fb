import { and, eq, gt, inArray, lt, lte, ne, not, or, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { JsonFields } from '../../../base/json.ts'
import { iso } from '../../../base/time.ts'
import type { DecidedBy } from '../../../contract/principal.ts'
import type { StoredApproval, ApprovalRequest, ApprovalStatus } from '../../../contract/approval.ts'
import type { Refused } from '../../../base/result.ts'
import { listByAge, type AgeQuery, type PageOf } from '../../../store/page-by-bytes.ts'
import { artifactVersions } from '../../../store/artifacts/tables.ts'
import { approvals } from './tables.ts'

/** Idempotent: a decision made in the meantime stays. */
export async function insertApproval(db: D1Database, request: ApprovalRequest): Promise<void> {
  await drizzle(db)
    .insert(approvals)
    .values({ ...request, status: 'pending' })
    .onConflictDoNothing()
}

export type Withdrawal = { id: string; withdrawn: { at: number; reason: string } }

/**
 * A question that its scope no longer asks. Only the scope applies decisions: one that was taken in
 * the meantime had no effect.
 */
export async function withdrawApproval(db: D1Database, { id, withdrawn: { at, reason } }: Withdrawal): Promise<void> {
  await drizzle(db)
    .update(approvals)
    .set({ status: 'withdrawn', decided_at: at, reason })
    .where(and(eq(approvals.id, id), inArray(approvals.status, ['pending', 'approved'])))
}

/** Its state at `now`, in ms. */
export async function findApproval(db: D1Database, id: string, now: number): Promise<StoredApproval | null> {
  const row = await drizzle(db).select().from(approvals).where(eq(approvals.id, id)).get()
  return row ? asOf(row, now) : null
}

/** The approvals that exist among at most a hundred ids, in their state at `now`. */
export async function findApprovals(db: D1Database, ids: readonly string[], now: number): Promise<StoredApproval[]> {
  const listed = sql`(SELECT value FROM json_each(${JSON.stringify(ids)}))`
  const rows = await drizzle(db).select().from(approvals).where(inArray(approvals.id, listed))
  return rows.map((row) => asOf(row, now))
}

/** A page, newest first. */
export async function listApprovals(
  db: D1Database,
  { status, now, ...query }: AgeQuery & { status?: ApprovalStatus | undefined; now: number },
): Promise<PageOf<StoredApproval>> {
  const list = {
    from: approvals,
    at: approvals.created_at,
    long: [approvals.inputs, approvals.why, approvals.reason, approvals.edits, approvals.run],
    by_scope: true,
    indexed: status && status !== 'expired' ? eq(approvals.status, status) : undefined,
  }
  const { items, more } = await listByAge(db, list, query, status && isAt(status, now))
  return { items: items.map((row) => asOf(row, now)), more }
}

type ApprovalUpdate = {
  id: string
  status: 'approved' | 'rejected'
  by: DecidedBy
  reason: string | null
  edits?: JsonFields | null
  traceparent?: string | null
  now: number
}
export type DecisionTaken = { ok: true; approval: StoredApproval } | Refused<'not_found' | 'decided' | 'expired' | 'own' | 'skill_inactive'>

/**
 * The first decision wins. A proposer may approve only as an admin or if the manifest allows it.
 * Inactive versions can only be rejected.
 */
export async function decideApproval(
  db: D1Database,
  { id, status, by, reason, edits = null, traceparent, now }: ApprovalUpdate,
): Promise<DecisionTaken> {
  const may = status === 'rejected' ? undefined : and(isActive(), not(isUnpaid), by.is_admin ? undefined : not(isOwnOf(by)))
  const [decided] = await drizzle(db)
    .update(approvals)
    .set({ status, decided_by: by.name, decided_at: now, reason, edits, traceparent })
    .where(and(eq(approvals.id, id), isAt('pending', now), may))
    .returning()
  if (decided) return { ok: true, approval: decided }
  const found = await findApproval(db, id, now)
  return { ok: false, ...whyNot(found, { id, now, by }) }
}

function whyNot(
  found: StoredApproval | null,
  { id, now, by }: Pick<ApprovalUpdate, 'id' | 'now' | 'by'>,
): Omit<Extract<DecisionTaken, { ok: false }>, 'ok'> {
  if (!found) return { reason: 'not_found', detail: `There is no approval ${id}.` }
  const { kind, status, requested_key, self_approval, expires_at, decided_by, decided_at, skill_id, version } = found
  if (status === 'expired')
    return {
      reason: 'expired',
      detail: `It expired at ${iso(expires_at)}: ${AFTER_EXPIRY[kind]}.`,
    }
  if (status === 'withdrawn') return { reason: 'decided', detail: `It was withdrawn at ${iso(decided_at ?? now)}: ${found.reason}.` }
  if (status !== 'pending') return { reason: 'decided', detail: `It was ${status} by ${decided_by} at ${iso(decided_at ?? now)}.` }
  if (!by.is_admin && !self_approval && requested_key === by.key_id) {
    const detail = `${by.name} proposed this run and cannot approve it: use another key, or one with the role admin. It can withdraw the run by rejecting it.`
    return { reason: 'own', detail }
  }
  if (requested_key?.startsWith(CONTRACTS))
    return { reason: 'skill_inactive', detail: 'It was a call under a contract, which has ended unpaid. It may be rejected.' }
  const detail = `${skill_id}@${version} is no longer active: propose another version. It may be rejected.`
  return { reason: 'skill_inactive', detail }
}

const AFTER_EXPIRY: Readonly<Record<StoredApproval['kind'], string>> = {
  run: 'the skill has to be proposed again',
  promotion: 'the scope will ask again',
  payment: 'the agent has to try to pay again',
  call: 'the agent has to call the tool again',
  calls: 'the agent has to call the tools again',
  activation: 'set the state of the skill to active instead',
}

type RunReport = { approval_id: string; run: string }

/** Records the runs of approvals. An ended run stays: later reports are stale. */
async function recordApprovedRuns(db: D1Database, reports: readonly RunReport[]): Promise<void> {
  const update = db.prepare(`UPDATE approvals SET run = ?2 WHERE id = ?1 AND (run IS NULL OR run->>'status' = 'running')`)
  await db.batch(reports.map(({ approval_id, run }) => update.bind(approval_id, run)))
}

/** Marks expired approvals, of all or of these; returns the number. */
export async function expireApprovals(db: D1Database, now: number, ids?: readonly string[]): Promise<number> {
  const listed = ids && sql`${approvals.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
  const { meta } = await drizzle(db)
    .update(approvals)
    .set({ status: 'expired' })
    .where(and(isOverdue(now), listed))
    .run()
  return meta.changes
}

/** Deletes at most `limit` decided or expired approvals older than `before`; returns the number. */
export async function forgetApprovals(db: D1Database, before: number, limit: number): Promise<number> {
  const old = drizzle(db)
    .select({ id: approvals.id })
    .from(approvals)
    .where(and(lt(approvals.created_at, before), ne(approvals.status, 'pending')))
    .limit(limit)
  const { meta } = await drizzle(db).delete(approvals).where(inArray(approvals.id, old)).run()
  return meta.changes
}

const asOf = (row: StoredApproval, now: number): StoredApproval =>
  row.status === 'pending' && row.expires_at <= now ? { ...row, status: 'expired' } : row

function isAt(status: ApprovalStatus, now: number): SQL | undefined {
  const written = eq(approvals.status, status)
  if (status === 'pending') return and(written, gt(approvals.expires_at, now))
  return status === 'expired' ? or(written, isOverdue(now)) : written
}

const isOverdue = (now: number): SQL | undefined => and(eq(approvals.status, 'pending'), lte(approvals.expires_at, now))

/** Versions are never deleted, so an unknown version was never registered here. */
function isActive(): SQL {
  const { kind, id, version, state } = artifactVersions
  const isNew = and(eq(approvals.kind, 'activation'), eq(state, 'draft'))
  const same = and(eq(kind, 'skill'), eq(id, approvals.skill_id), eq(version, approvals.version), ne(state, 'active'), not(sql`(${isNew})`))
  return sql`(${approvals.kind} = 'promotion' OR NOT EXISTS (SELECT 1 FROM ${artifactVersions} WHERE ${same}))`
}

const CONTRACTS = 'contract:'
/** A call under a contract is paid while its caller waits: a later run would be unpaid. */
const isUnpaid = sql`coalesce(substr(${approvals.requested_key}, 1, ${CONTRACTS.length}) = ${CONTRACTS}, false)`

const isOwnOf = ({ key_id }: DecidedBy): SQL => sql`(${approvals.requested_key} IS ${key_id} AND NOT ${approvals.self_approval})`

/** Pending approvals requested before `before`, oldest first. */
export async function waitingApprovals(
  db: D1Database,
  { before, now, limit }: { before: number; now: number; limit: number },
): Promise<{ id: string; scope: string; created_at: number }[]> {
  const sql = `SELECT id, scope, created_at FROM approvals WHERE status = 'pending' AND created_at < ?1 AND expires_at > ?2 ORDER BY created_at LIMIT ?3`
  return (await db.prepare(sql).bind(before, now, limit).all<{ id: string; scope: string; created_at: number }>()).results
}

type Items = readonly { key: string; value: unknown }[]

/** Writes what a scope's outbox has about approvals. */
export const approvalTopics = (db: D1Database) => ({
  approvals: async (items: Items): Promise<void> => {
    for (const { value } of items) {
      const item = value as ApprovalRequest | Withdrawal
      await ('withdrawn' in item ? withdrawApproval(db, item) : insertApproval(db, item))
    }
  },
  'approved-runs': (items: Items): Promise<void> =>
    recordApprovedRuns(
      db,
      items.map(({ key, value }) => ({ approval_id: key, run: JSON.stringify(value) })),
    ),
})
