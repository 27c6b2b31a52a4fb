import type { Env } from '../env.ts'
import { forgetCalls } from '../store/traces/traces.ts'
import { forgetEvents } from '../store/events.ts'
import { archiveDays, leavingFor } from '../store/packs/archived.ts'
import type { PackedEvent } from '../store/packs/format.ts'
import { forgetPacks, forgetPacksBeyond, oldestPacked } from '../store/packs/merge.ts'
import { forgetQueued } from '../store/queued.ts'
import { forgetEntitlements } from '../store/artifacts/entitlements.ts'
import { forgetScopes } from '../store/scopes.ts'
import { packDatabases, storeOf } from '../store/store.ts'
import { warn } from '../base/warn.ts'

/** A step of the sweep that deletes old rows of an agent's own table in D1. */
export type RetentionStep = {
  name: string
  /** Deletes at most `limit` rows that ended before `before` (ms), and returns how many. */
  forget: (db: D1Database, before: number, limit: number) => Promise<number>
}

/** `kept`: longer than events, or `by age`, which the feature knows. */
export type FeatureRetention = RetentionStep & { kept?: 'a year' | 'by age' }

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
const MOST_DAYS = 3650
/** A scope and its metrics are kept for a year after its last report. */
const SCOPE_DAYS = 365
const BATCH = 1000
const PACKS_AT_ONCE = 100
/** Packs that move to the archive are read and written one by one. */
const MOVED_AT_ONCE = 10
/** The cron runs every minute, the sweeper's alarm every 30 s. */
const BUDGET_MS = 15_000
/** Bounds the loop where the clock does not advance, as in tests. */
const MOST_STATEMENTS = 1000

type Forgotten = { events: number; steps: Record<string, number> }

/**
 * The time for which D1 keeps ended events. An invalid value deletes nothing: a longer time may be
 * meant.
 */
export function retentionDays({ REFLEX_RETENTION_DAYS: text }: Pick<Env, 'REFLEX_RETENTION_DAYS'>): number {
  if (text === undefined || text === '') return DEFAULT_DAYS
  const days = Number(text)
  if (Number.isFinite(days) && days > 0 && days <= MOST_DAYS) return days
  throw new TypeError(`REFLEX_RETENTION_DAYS is "${text}"; it must be a number of days, more than 0 and at most ${MOST_DAYS}`)
}

const DEFAULT_BYTES = 6_000_000_000

/** The bytes of packs that D1 keeps. An invalid value deletes nothing. */
export function eventsBytes({ REFLEX_EVENTS_BYTES: text }: Pick<Env, 'REFLEX_EVENTS_BYTES'>): number {
  if (text === undefined || text === '') return DEFAULT_BYTES
  const bytes = Number(text)
  if (Number.isFinite(bytes) && bytes > 0) return bytes
  throw new TypeError(`REFLEX_EVENTS_BYTES is "${text}"; it must be a number of bytes, more than 0`)
}

/** Runs one step of the sweep and returns its count. A failure is logged, not thrown. */
type RunStep = (name: string, work: () => Promise<number>) => Promise<number>
type RetentionRun = { now: number; step: RunStep; retention: readonly FeatureRetention[] }

/**
 * Deletes expired rows in bounded batches until the time budget is spent. Dead letters, versions
 * and keys are kept.
 */
export async function forgetOld(env: Env, { now, step, retention }: RetentionRun): Promise<Forgotten> {
  const db = storeOf(env)
  const before = () => now - retentionDays(env) * DAY_MS
  const long_before = () => Math.min(before(), now - SCOPE_DAYS * DAY_MS)
  const until = Date.now() + BUDGET_MS
  let statements = 0
  const goesOn = () => statements < MOST_STATEMENTS && Date.now() < until
  const repeat = async (forget: () => Promise<number>): Promise<number> => {
    let sum = 0
    for (let gone = BATCH; gone > 0 && goesOn(); statements += 1) sum += gone = await forget()
    return sum
  }
  const steps: Record<string, number> = {}
  const forgetAll = async (some: readonly FeatureRetention[]) => {
    for (const { name, kept, forget } of some) {
      const time = () => (kept === 'by age' ? now : kept === 'a year' ? long_before() : before())
      const forgetting = `forgetting ${name}`
      steps[forgetting] = await step(forgetting, () => repeat(() => forget(db, time(), BATCH)))
    }
  }
  // Small tables first: statistics and events may use up the budget.
  const small = retention.filter(({ kept }) => kept !== 'by age')
  const large = retention.filter(({ kept }) => kept === 'by age')
  await forgetAll(small)
  await step('forgetting scopes', () => repeat(() => forgetScopes(db, long_before(), BATCH)))
  await step('forgetting queued events', () => repeat(() => forgetQueued(db, before(), BATCH)))
  await step('forgetting calls', () => repeat(() => forgetCalls(db, before(), BATCH)))
  await step('forgetting entitlements', () => repeat(() => forgetEntitlements(db, long_before(), BATCH)))
  await forgetAll(large)
  const bucket = env.ARCHIVE
  let packed = 0
  for (const { name, db: one } of packDatabases(db)) {
    const leaving = bucket && leavingFor(db, bucket, { name, db: one })
    const at_once = bucket ? MOVED_AT_ONCE : PACKS_AT_ONCE
    packed += await step(`forgetting packs in ${name}`, () => repeat(() => forgetPacks(one, before(), at_once, leaving)))
    const most_bytes = () => eventsBytes(env)
    const beyond = await step(`forgetting packs in ${name} beyond the bytes`, () =>
      repeat(() => forgetPacksBeyond(one, most_bytes(), at_once, leaving)),
    )
    if (beyond > 0 && !bucket)
      warn({ message: 'the oldest events left D1: they took more than REFLEX_EVENTS_BYTES', database: name, events: beyond })
    packed += beyond
  }
  const events = await step('forgetting events', async () => {
    let sum = 0
    const oldest = await oldestPacked(db)
    for (let after: string | null = '-1'; after !== null && goesOn(); statements += 1) {
      const leaving = bucket && ((rows: readonly PackedEvent[]) => archiveDays(db, bucket, rows))
      const { forgotten, next }: Batch = await forgetEvents(db, { before: before(), after, limit: BATCH, packed: oldest, leaving })
      sum += forgotten
      after = next
    }
    return sum
  })
  return { events: packed + events, steps }
}

type Batch = Awaited<ReturnType<typeof forgetEvents>>
