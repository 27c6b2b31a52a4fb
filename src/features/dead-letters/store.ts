import { drizzle } from 'drizzle-orm/d1'
import { and, count, eq, isNull } from 'drizzle-orm'
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { DeadLetterRow } from '../../store/dead-letters.ts'
import { forgetByAge, type PagePosition } from '../../store/page-by-bytes.ts'

type Which = { scope?: string | undefined; type?: string | undefined; error?: string | undefined; ids?: readonly string[] | undefined }

/** Jobs on many dead letters. A job without an end is continued by the sweep. */
export const letterJobs = sqliteTable(
  'letter_jobs',
  {
    id: text().primaryKey(),
    verb: text({ enum: ['retry', 'discard'] }).notNull(),
    which: text({ mode: 'json' }).$type<Which>().notNull(),
    patterns: text({ mode: 'json' }).$type<readonly string[]>().notNull(),
    key_id: text().notNull(),
    by: text().notNull(),
    traceparent: text(),
    started_at: integer().notNull(),
    ended_at: integer(),
    /** The letters before this one are still to do. */
    before: text({ mode: 'json' }).$type<PagePosition>().notNull(),
    total: integer().notNull(),
    done: integer().notNull().default(0),
    failed: integer().notNull().default(0),
    error: text(),
    /** The letters of the page that it does now: no other job takes them. */
    taken: text({ mode: 'json' }).$type<readonly string[]>(),
    /** Another run of the job may not begin until then. Once the run is over: its end. */
    leased_until: integer().notNull().default(0),
  },
  (table) => [index('letter_jobs_open').on(table.ended_at, table.started_at)],
)
export type LetterJobRow = typeof letterJobs.$inferSelect

export async function insertJob(db: D1Database, job: typeof letterJobs.$inferInsert): Promise<LetterJobRow> {
  return drizzle(db).insert(letterJobs).values(job).returning().get()
}

export async function findJob(db: D1Database, id: string): Promise<LetterJobRow | undefined> {
  return drizzle(db).select().from(letterJobs).where(eq(letterJobs.id, id)).get()
}

const MOST_AT_ONCE = 20
/** A lease that ends later was taken by a clock that was ahead. */
const LONGEST_LEASE_MS = 600_000
const isLeased = (until: string, now: string): string => `${until} > ${now} AND ${until} <= ${now} + ${LONGEST_LEASE_MS}`
/**
 * Open jobs that nobody runs: one of each key first, and of a key the one whose last run is the
 * longest ago. No key has to wait for all jobs of another one.
 */
export async function openJobs(db: D1Database, now: number): Promise<string[]> {
  const sql = `SELECT id FROM (SELECT id, leased_until, started_at,
      row_number() OVER (PARTITION BY key_id ORDER BY leased_until, started_at) AS nth
    FROM letter_jobs WHERE ended_at IS NULL AND NOT (${isLeased('leased_until', '?1')})) ORDER BY nth, leased_until, started_at LIMIT ?2`
  return (await db.prepare(sql).bind(now, MOST_AT_ONCE).all<{ id: string }>()).results.map(({ id }) => id)
}

export async function countOpenJobs(db: D1Database, key_id: string): Promise<number> {
  const isOpen = and(isNull(letterJobs.ended_at), eq(letterJobs.key_id, key_id))
  return (await drizzle(db).select({ jobs: count() }).from(letterJobs).where(isOpen).get())?.jobs ?? 0
}

/** The job, if nobody else runs it. */
export async function leaseJob(db: D1Database, id: string, { now, until }: { now: number; until: number }): Promise<boolean> {
  const sql = `UPDATE letter_jobs SET leased_until = ?3 WHERE id = ?1 AND ended_at IS NULL AND NOT (${isLeased('leased_until', '?2')})`
  return (await db.prepare(sql).bind(id, now, until).run()).meta.changes > 0
}

/**
 * Takes the letters that are still there and that no other job has taken: each counts in one job.
 * The letters of a job that died are free once its lease is over.
 */
export async function takeLetters(db: D1Database, id: string, letters: readonly DeadLetterRow[], now: number): Promise<DeadLetterRow[]> {
  const named = JSON.stringify(letters.map(({ id, dead_lettered_at: at }) => ({ id, at })))
  const row = await db.prepare(TAKE).bind(id, named, now).first<{ taken: string }>()
  const taken = new Set(JSON.parse(row?.taken ?? '[]') as string[])
  return letters.filter((letter) => taken.has(letter.id))
}

const TAKE = `UPDATE letter_jobs SET taken = (SELECT json_group_array(letters.id)
    FROM json_each(?2) AS named JOIN dead_letters AS letters ON letters.id = value->>'id' AND letters.dead_lettered_at = value->>'at'
    WHERE letters.id NOT IN (SELECT value FROM letter_jobs AS other, json_each(other.taken)
      WHERE other.ended_at IS NULL AND ${isLeased('other.leased_until', '?3')} AND other.id <> ?1))
  WHERE id = ?1 RETURNING taken`

type Progress = Pick<LetterJobRow, 'before' | 'done' | 'failed' | 'error' | 'ended_at' | 'leased_until'>
export async function updateJob(db: D1Database, id: string, progress: Progress): Promise<void> {
  await drizzle(db).update(letterJobs).set(progress).where(eq(letterJobs.id, id)).run()
}

/** A job that has not ended has no age. */
export const forgetJobs = (db: D1Database, before: number, limit: number): Promise<number> =>
  forgetByAge(db, { from: letterJobs, at: letterJobs.ended_at }, before, limit)
