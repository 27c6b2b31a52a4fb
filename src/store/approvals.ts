import { and, desc, eq, gt, lt, lte, or, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Approval, ApprovalRequest, ApprovalStatus } from '../protocol/approval.ts'
import type { Refused } from '../protocol/scope-api.ts'
import { within } from './events.ts'
import { approvals } from './schema.ts'

/** Repeated, it changes nothing: a decision that was made meanwhile stays. */
export async function insertApproval(db: D1Database, request: ApprovalRequest): Promise<void> {
  await drizzle(db)
    .insert(approvals)
    .values({ ...request, status: 'pending' })
    .onConflictDoNothing()
}

/** As it is at `now`, in ms. */
export async function findApproval(db: D1Database, id: string, now: number): Promise<Approval | null> {
  const row = await drizzle(db).select().from(approvals).where(eq(approvals.id, id)).get()
  return row ? asOf(row, now) : null
}

/** `patterns` are the scopes that may be seen; `before` is the last one of the page before. */
export type ApprovalQuery = {
  patterns: readonly string[]
  status?: ApprovalStatus | undefined
  scope?: string | undefined
  before?: { at: number; id: string } | undefined
  limit: number
  now: number
}

/** Newest first. */
export async function listApprovals(db: D1Database, { patterns, status, scope, before, limit, now }: ApprovalQuery): Promise<Approval[]> {
  const rows = await drizzle(db)
    .select()
    .from(approvals)
    .where(
      and(
        within(approvals.scope, patterns),
        status === undefined ? undefined : isAt(status, now),
        scope === undefined ? undefined : eq(approvals.scope, scope),
        before === undefined ? undefined : isBefore(before),
      ),
    )
    .orderBy(desc(approvals.created_at), desc(approvals.id))
    .limit(limit)
  return rows.map((row) => asOf(row, now))
}

/** Exactly one decision is taken, and none of what has expired. */
export async function decideApproval(
  db: D1Database,
  { id, status, by, reason, now }: { id: string; status: 'approved' | 'rejected'; by: string; reason: string | null; now: number },
): Promise<{ ok: true; approval: Approval } | Refused<'not_found' | 'decided' | 'expired'>> {
  const [decided] = await drizzle(db)
    .update(approvals)
    .set({ status, decided_by: by, decided_at: now, reason })
    .where(and(eq(approvals.id, id), isAt('pending', now)))
    .returning()
  if (decided) return { ok: true, approval: decided }
  const found = await findApproval(db, id, now)
  if (!found) return { ok: false, reason: 'not_found', detail: `There is no approval ${id}.` }
  if (found.status === 'expired') {
    return { ok: false, reason: 'expired', detail: `It expired at ${iso(found.expires_at)}: the skill has to be proposed again.` }
  }
  return { ok: false, reason: 'decided', detail: `It was ${found.status} by ${found.decided_by} at ${iso(found.decided_at ?? now)}.` }
}

/** Writes down what has expired; says how many. */
export async function expireApprovals(db: D1Database, now: number): Promise<number> {
  const { meta } = await drizzle(db).update(approvals).set({ status: 'expired' }).where(isOverdue(now)).run()
  return meta.changes
}

const asOf = (row: Approval, now: number): Approval =>
  row.status === 'pending' && row.expires_at <= now ? { ...row, status: 'expired' } : row

function isAt(status: ApprovalStatus, now: number): SQL | undefined {
  const written = eq(approvals.status, status)
  if (status === 'pending') return and(written, gt(approvals.expires_at, now))
  return status === 'expired' ? or(written, isOverdue(now)) : written
}

const isOverdue = (now: number): SQL | undefined => and(eq(approvals.status, 'pending'), lte(approvals.expires_at, now))

function isBefore({ at, id }: { at: number; id: string }): SQL | undefined {
  return or(lt(approvals.created_at, at), and(eq(approvals.created_at, at), lt(approvals.id, id)))
}

const iso = (ms: number): string => new Date(ms).toISOString()
