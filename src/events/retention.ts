import type { Env } from '../env.ts'
import { forgetApprovals } from '../store/approvals.ts'
import { forgetEvents } from '../store/events.ts'
import { forgetQueued } from '../store/queued.ts'
import { forgetReflexMetrics } from '../store/reflex-metrics.ts'
import { forgetScopes } from '../store/scopes.ts'
import { storeOf } from '../store/store.ts'

/** A step of the sweep that deletes old rows of an agent's own table in D1. */
export type RetentionStep = {
  /** As the log names it, such as "incidents". */
  name: string
  /** Deletes at most `limit` rows that ended before `before` (ms), and returns how many. */
  forget: (db: D1Database, before: number, limit: number) => Promise<number>
}

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
const MOST_DAYS = 3650
/** What describes a scope, not an event, is kept for a year after the scope last told of it. */
const SCOPE_DAYS = 365
const BATCH = 1000
/** A cron comes each minute, the sweeper's alarm each half minute. */
const BUDGET_MS = 15_000
/** Where the clock stands still, this ends it. */
const MOST_STATEMENTS = 1000

type Forgotten = { events: number; approvals: number }

/** How long D1 keeps what has ended. A value that cannot be read forgets nothing: it might have been meant to be longer. */
export function retentionDays({ REFLEX_RETENTION_DAYS: text }: Pick<Env, 'REFLEX_RETENTION_DAYS'>): number {
  if (text === undefined || text === '') return DEFAULT_DAYS
  const days = Number(text)
  if (Number.isFinite(days) && days > 0 && days <= MOST_DAYS) return days
  throw new TypeError(`REFLEX_RETENTION_DAYS is "${text}"; it must be a number of days, more than 0 and at most ${MOST_DAYS}`)
}

/** Does one step of the sweep and says how much it did; a failure of it is reported, not thrown. */
type Step = (name: string, work: () => Promise<number>) => Promise<number>
type Asked = { now: number; step: Step; retention: readonly RetentionStep[] }

/**
 * Forgets what D1 has kept for long enough: batch after batch until nothing is left or the time is
 * over, so that it keeps up with whatever comes in. Each batch is one bounded statement, each table
 * a step by itself. Dead letters, versions of reflexes and skills, and keys are never forgotten here.
 */
export async function forgetOld(env: Env, { now, step, retention }: Asked): Promise<Forgotten> {
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
  // The small ones first: the events must not keep them from theirs.
  const approvals = await step('forgetting approvals', () => repeat(() => forgetApprovals(db, before(), BATCH)))
  for (const { name, forget } of retention) await step(`forgetting ${name}`, () => repeat(() => forget(db, before(), BATCH)))
  await step('forgetting scopes', () => repeat(() => forgetScopes(db, long_before(), BATCH)))
  await step('forgetting queued events', () => repeat(() => forgetQueued(db, before(), BATCH)))
  await step('forgetting metrics', () => repeat(() => forgetReflexMetrics(db, long_before(), BATCH)))
  const events = await step('forgetting events', async () => {
    let sum = 0
    for (let after: string | null = '-1'; after !== null && goesOn(); statements += 1) {
      const { forgotten, next }: Batch = await forgetEvents(db, { before: before(), after, limit: BATCH })
      sum += forgotten
      after = next
    }
    return sum
  })
  return { events, approvals }
}

type Batch = Awaited<ReturnType<typeof forgetEvents>>
