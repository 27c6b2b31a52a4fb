import type { TrialReport } from '../contract/trial.ts'

/** Finished trials are kept this long, for repeated requests. */
const KEPT_MS = 7 * 86_400_000
const MOST_FORGOTTEN = 100

type TrialRow = { listing_id: string; scope: string; id: string; since: number }

type Begun = { since: number; report: TrialReport | null }

export async function findTrial(db: D1Database, { listing_id, scope, id }: TrialRow): Promise<Begun | null> {
  const found = `SELECT since, report FROM trials WHERE listing_id = ?1 AND scope = ?2 AND id = ?3`
  const row = await db.prepare(found).bind(listing_id, scope, id).first<{ since: number; report: string | null }>()
  return row && begunOf(row)
}

const begunOf = ({ since, report }: { since: number; report: string | null }): Begun => ({
  since,
  report: report === null ? null : (JSON.parse(report) as TrialReport),
})

/** Notes that a trial began. Returns the one that has this id, which may be an earlier one. */
export async function beginTrial(db: D1Database, { listing_id, scope, id, since }: TrialRow, now: number): Promise<Begun> {
  const forgotten = `DELETE FROM trials WHERE (listing_id, scope, id) IN (SELECT listing_id, scope, id FROM trials WHERE started_at < ?1 LIMIT ?2)`
  const begun = `INSERT INTO trials (listing_id, scope, id, since, started_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET since = since RETURNING since, report`
  const [, row] = await db.batch<{ since: number; report: string | null }>([
    db.prepare(forgotten).bind(now - KEPT_MS, MOST_FORGOTTEN),
    db.prepare(begun).bind(listing_id, scope, id, since, now),
  ])
  const found = row?.results[0]
  return begunOf(found ?? { since, report: null })
}

export async function endTrial(db: D1Database, { listing_id, scope, id }: TrialRow, report: TrialReport): Promise<void> {
  const ended = `UPDATE trials SET report = ?4 WHERE listing_id = ?1 AND scope = ?2 AND id = ?3`
  await db.prepare(ended).bind(listing_id, scope, id, JSON.stringify(report)).run()
}
