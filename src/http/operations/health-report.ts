import { and, count, desc, gt, isNotNull, max, min, sql, type SQL, sum } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { countSeenBy, sizeSeenBy } from '../../contract/principal.ts'
import { messageOf } from '../../base/error-text.ts'
import { isoOrNull } from '../../base/time.ts'
import type { ModelCallReport } from '../../contract/reports/health.ts'
import type { Env } from '../../env.ts'
import { eventsBytes, retentionDays } from '../../events/retention.ts'
import { retentionBacklog, within, withinBounds } from '../../store/events.ts'
import { overduePacks } from '../../store/packs/merge.ts'
import { deadLetters, IS_ELSEWHERE, scopes } from '../../store/schema.ts'
import { IS_OPEN, IS_PARKED } from '../../store/scopes.ts'
import { packDatabases, storeOf, type PackDatabase } from '../../store/store.ts'
import { databaseBytes } from './schema-check.ts'

const LARGEST = 5

/** Events without an outcome, as last replicated by the scopes. */
export async function inboxDepths(db: D1Database, patterns: readonly string[]) {
  const seen = within(scopes.scope, patterns)
  const [all, totals, largest] = await Promise.all([
    drizzle(db).select({ scopes: count() }).from(scopes).where(withinBounds(scopes.scope, patterns)).get(),
    drizzle(db)
      .select({ open: sum(scopes.open) })
      .from(scopes)
      .where(and(seen, IS_OPEN))
      .get(),
    drizzle(db)
      .select({ scope: scopes.scope, agent: scopes.agent, open: scopes.open })
      .from(scopes)
      .where(and(seen, IS_OPEN))
      .orderBy(desc(scopes.open))
      .limit(LARGEST),
  ])
  return { scopes: all?.scopes ?? 0, open: Number(totals?.open ?? 0), largest }
}

/** So many failures in a row, in all scopes together, are no accident of one request. */
const FAILURES = 3

/**
 * The results of real model calls, as last replicated by the scopes. `silent`: nobody was answered
 * since the newest scope's failures began, and events wait or failures are many.
 */
export const modelCallReport = (db: D1Database, patterns: readonly string[]): Promise<ModelCallReport> =>
  callsOf(db, patterns, { failures: scopes.model_failures, answered_at: sql`${scopes.model_answered_at}` })

/** It judges the deployment's model alone. An earlier version wrote when any model answered. */
const OF_DEPLOYMENT: Counted = {
  failures: scopes.model_lost,
  answered_at: sql`coalesce(${scopes.model_served_at}, ${scopes.model_answered_at})`,
}

type Counted = { failures: typeof scopes.model_failures | typeof scopes.model_lost; answered_at: SQL<number | null> }

/** The results of scopes that have failures of the counted kind. */
async function callsOf(db: D1Database, patterns: readonly string[], { failures: counted, answered_at }: Counted): Promise<ModelCallReport> {
  const { scope, model_failing_since: since, model_error, model_ask_at } = scopes
  const failing = and(within(scope, patterns), isNotNull(since), gt(counted, 0))
  const [sums, newest, answers] = await Promise.all([
    drizzle(db)
      .select({
        failing: count(),
        first: min(since),
        last: max(since),
        failures: sum(counted),
        waiting: count(model_ask_at),
        ask_at: min(model_ask_at),
      })
      .from(scopes)
      .where(failing)
      .get(),
    drizzle(db).select({ error: model_error }).from(scopes).where(failing).orderBy(desc(since)).limit(1).get(),
    drizzle(db)
      .select({ at: sql<number | null>`nullif(max(${answered_at}), 0)` })
      .from(scopes)
      .where(withinBounds(scope, patterns))
      .get(),
  ])
  const answered = answers?.at ?? null
  const failures = Number(sums?.failures ?? 0)
  const waiting = sums?.waiting ?? 0
  const last = sums?.last ?? null
  const is_silent = last !== null && (answered === null || answered < last) && (waiting > 0 || failures >= FAILURES)
  return {
    status: is_silent ? 'silent' : failures > 0 ? 'failing' : answered === null ? 'unknown' : 'answering',
    last_answer_at: isoOrNull(answered),
    failing_since: isoOrNull(sums?.first ?? null),
    failures,
    scopes_failing: sums?.failing ?? 0,
    scopes_waiting: waiting,
    asks_at: isoOrNull(sums?.ask_at ?? null),
    error: newest?.error ?? null,
  }
}

/**
 * Since when, and why, the deployment's model answers nobody, or null. Calls of another model or
 * key, which a scope or a caller chose, say nothing of it. Without failures it reads one index.
 */
export async function modelSilence(db: D1Database): Promise<{ since: string; summary: string } | null> {
  const { scope, model_failing_since: since } = scopes
  if ((await drizzle(db).select({ scope }).from(scopes).where(isNotNull(since)).limit(1).get()) === undefined) return null
  const { status, failing_since, last_answer_at, failures, scopes_waiting } = await callsOf(db, ['*'], OF_DEPLOYMENT)
  if (status !== 'silent' || failing_since === null) return null
  const answer = last_answer_at === null ? 'it never answered' : `its last answer was at ${last_answer_at}`
  const waiting = scopes_waiting === 1 ? '1 scope waits' : `${scopes_waiting} scopes wait`
  const summary = `the model does not answer since ${failing_since}: ${failures} calls failed, ${waiting}, ${answer}`
  return { since: failing_since, summary }
}

/** Spans that scopes have exported and dropped, as last replicated. */
export async function spanCounts(db: D1Database, patterns: readonly string[]) {
  const totals = await drizzle(db)
    .select({ exported: sum(scopes.spans_exported), dropped: sum(scopes.spans_dropped) })
    .from(scopes)
    .where(withinBounds(scopes.scope, patterns))
    .get()
  return { exported: Number(totals?.exported ?? 0), dropped: Number(totals?.dropped ?? 0) }
}

/** Work that scopes have parked, as last replicated. */
export async function parkedCounts(db: D1Database, patterns: readonly string[]) {
  const totals = await drizzle(db)
    .select({ scopes: count(), work: sum(scopes.parked) })
    .from(scopes)
    .where(and(within(scopes.scope, patterns), IS_PARKED))
    .get()
  return { scopes: totals?.scopes ?? 0, work: Number(totals?.work ?? 0) }
}

export async function deadLetterCounts(db: D1Database, patterns: readonly string[]) {
  const { origin, scope } = deadLetters
  const seen = withinBounds(scope, patterns)
  const elsewhere = drizzle(db).select({ origin, letters: count() }).from(deadLetters).where(and(seen, IS_ELSEWHERE))
  const [all, others] = await Promise.all([
    drizzle(db).select({ letters: count() }).from(deadLetters).where(seen).get(),
    elsewhere.groupBy(origin),
  ])
  const of = (one: 'queue' | 'market') => others.find((row) => row.origin === one)?.letters ?? 0
  const total = (all?.letters ?? 0) - of('market')
  return { total, by_origin: { scope: total - of('queue'), queue: of('queue') } }
}

const DAY_MS = 86_400_000

/**
 * The rows that D1 has retained for longer than configured. A key of some scopes learns the day of
 * the oldest event, which may be in another scope, and thousands of them.
 */
export async function retentionReport(env: Env, now: number, patterns: readonly string[] = ['*']) {
  const days = valid(() => retentionDays(env))
  const { events, oldest } = await retentionBacklog(storeOf(env), days === null ? 0 : now - days * DAY_MS)
  const shown = oldest === null || patterns.includes('*') ? oldest : Math.floor(oldest / DAY_MS) * DAY_MS
  const most_bytes = valid(() => eventsBytes(env))
  const databases = await Promise.all(packDatabases(storeOf(env)).map((one) => packReport(one, { now, most_bytes, patterns })))
  const times = databases.flatMap(({ kept_days }) => kept_days ?? [])
  const bytes = databases.reduce((sum, one) => sum + (one.bytes ?? 0), 0)
  const rests = databases.flatMap((one) =>
    most_bytes === null || one.bytes === null || one.bytes_per_day === null ? [] : (most_bytes - one.bytes) / one.bytes_per_day,
  )
  const least = (numbers: readonly number[]) => (numbers.length === 0 ? null : Math.max(0, Math.round(10 * Math.min(...numbers)) / 10))
  const packs = { bytes, most_bytes, kept_days: least(times), leave_in_days: least(rests) }
  return { days, backlog: countSeenBy(patterns, events), oldest: isoOrNull(shown), packs, databases }
}

type PackReporting = { now: number; most_bytes: number | null; patterns: readonly string[] }

/**
 * The packs in one database. A day at least tells a rate: for a key of some scopes it is made of
 * the size and the age that the key sees, or it would tell the others' events.
 */
async function packReport({ name, db }: PackDatabase, { now, most_bytes, patterns }: PackReporting) {
  try {
    const [kept, size] = await Promise.all([overduePacks(db, 0), databaseBytes(db)])
    const bytes = sizeSeenBy(patterns, kept.bytes)
    const database_bytes = size === null ? null : sizeSeenBy(patterns, size)
    const age = kept.oldest === null ? 0 : (now - kept.oldest) / DAY_MS
    const age_days = patterns.includes('*') ? age : Math.floor(age)
    const has_rate = age_days >= 1 && bytes > 0
    const kept_days = most_bytes === null || !has_rate ? null : Math.round(((most_bytes * age_days) / bytes) * 10) / 10
    return { name, error: null, bytes, database_bytes, bytes_per_day: has_rate ? Math.round(bytes / age_days) : null, kept_days }
  } catch (error) {
    return { name, error: messageOf(error), bytes: null, database_bytes: null, bytes_per_day: null, kept_days: null }
  }
}

function valid(read: () => number): number | null {
  try {
    return read()
  } catch {
    return null
  }
}
