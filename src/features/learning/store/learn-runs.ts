import { eq, lt } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { StoredRun } from '../contract/runs.ts'
import { listByAge, type AgeQuery, type PageOf } from '../../../store/page-by-bytes.ts'
import { learnRuns } from './tables.ts'

/** Writes a run as its learner has it. An older copy changes nothing. */
export async function writeRun(db: D1Database, run: StoredRun, revision: number): Promise<void> {
  const { run_id: id, scope, status, started_at, ended_at, candidates, rejected, reach, ...rest } = run
  const row = {
    id,
    scope,
    status,
    started_at,
    ended_at,
    revision,
    summary: rest,
    findings: { candidates, rejected, ...(reach && { reach }) },
  }
  await drizzle(db)
    .insert(learnRuns)
    .values(row)
    .onConflictDoUpdate({ target: learnRuns.id, set: row, setWhere: lt(learnRuns.revision, revision) })
}

export async function findRun(db: D1Database, id: string): Promise<StoredRun | null> {
  const row = await drizzle(db).select().from(learnRuns).where(eq(learnRuns.id, id)).get()
  return row ? runOf(row) : null
}

/** A page, newest first. */
export async function listRuns(
  db: D1Database,
  { status, ...query }: AgeQuery & { status?: StoredRun['status'] | undefined },
): Promise<PageOf<StoredRun>> {
  const list = { from: learnRuns, at: learnRuns.started_at, long: [learnRuns.summary, learnRuns.findings], by_scope: true }
  const { items, more } = await listByAge(db, list, query, status && eq(learnRuns.status, status))
  return { items: items.map(runOf), more }
}

/** Deletes at most `limit` ended runs that started before `before`; returns the number. */
export async function forgetRuns(db: D1Database, before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM learn_runs WHERE id IN (SELECT id FROM learn_runs WHERE started_at < ?1 AND status <> 'running' LIMIT ?2)`
  return (await db.prepare(sql).bind(before, limit).run()).meta.changes
}

const runOf = ({ id, scope, status, started_at, ended_at, summary, findings }: typeof learnRuns.$inferSelect): StoredRun => ({
  run_id: id,
  scope,
  status,
  started_at,
  ended_at,
  ...summary,
  ...findings,
})
