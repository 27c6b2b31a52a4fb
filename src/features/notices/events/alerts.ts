import { withDeadline } from '../../../base/deadline.ts'
import { messageOf } from '../../../base/error-text.ts'
import { logError } from '../../../base/warn.ts'
import { LEDGER } from '../../market/contract/ledger-api.ts'
import type { Alert } from '../contract/notice.ts'
import { bucketStart, bucketSteps } from '../../statistics/contract/statistics.ts'
import type { Env } from '../../../env.ts'
import { waitingApprovals } from '../../approvals/store/approvals.ts'
import { countDeadLetters } from '../../../store/dead-letters.ts'
import { sumByScope } from '../../statistics/store/query.ts'
import { storeOf } from '../../../store/store.ts'

const HOUR_MS = bucketSteps.hour
const MINUTE_MS = bucketSteps.minute
const PATIENCE_MS = 10_000
const MOST_NAMED = 20
const DEFAULT_DEAD_LETTERS = 10
const DEFAULT_APPROVAL_MINUTES = 60

/** An object holds at most 10 GB. */
const DEFAULT_LEDGER_MB = 5000
const MB = 1_000_000

type Limits = { dead_letters: number; approval_ms: number; ledger_bytes: number }
type HourSeen = { start: number; dead_letters: number; demoted: Record<string, number>; spent: Record<string, number> }
/** `unavailable`: the database did not answer. */
export type MarketObserved =
  | { ok: true; ledger_bytes: number; hours: readonly HourSeen[]; approvals: readonly { id: string; scope: string; created_at: number }[] }
  | { ok: false; unavailable: string }

/** Raises the deployment's alerts in the scope that the deployment names, if it names one. */
export async function raiseAlerts(env: Env, now: number): Promise<number> {
  const scope = env.REFLEX_ALERT_SCOPE
  if (scope === undefined || scope === '') return 0
  const limits = limitsOf(env)
  const seen = await observe(env, { now, approval_ms: limits.approval_ms })
  const stub = env.SCOPE.getByName(scope)
  const raised = await Promise.all(alertsOf(seen, { ...limits, now }).map((alert) => stub.raise(alert)))
  return raised.filter(Boolean).length
}

async function observe(env: Env, { now, approval_ms }: { now: number; approval_ms: number }): Promise<MarketObserved> {
  const db = storeOf(env)
  const look = async (): Promise<MarketObserved> => {
    const ledger_bytes = await env.LEDGER.getByName(LEDGER)
      .size()
      // An alert about the database must not depend on it.
      .catch(() => 0)
    const approvals = await waitingApprovals(db, { before: now - approval_ms, now, limit: MOST_NAMED })
    const start = bucketStart('hour', now)
    // The end of the previous hour is reported with a delay.
    return { ok: true, ledger_bytes, approvals, hours: await Promise.all([start - HOUR_MS, start].map((hour) => hourSeen(db, hour))) }
  }
  try {
    return await withDeadline(look, { timeout_ms: PATIENCE_MS, what: 'the database' })
  } catch (error) {
    logError({ message: 'the database is unavailable', error })
    return { ok: false, unavailable: messageOf(error) }
  }
}

async function hourSeen(db: D1Database, start: number): Promise<HourSeen> {
  const range = { family: 'scope' as const, bucket: 'hour' as const, since: start, until: start + 1, patterns: ['*'] }
  const [dead_letters, sums] = await Promise.all([
    countDeadLetters(db, { since: start, until: start + HOUR_MS }),
    sumByScope(db, { ...range, keys: ['evictions', 'refused'], by: 'scope' }),
  ])
  const of = (name: string) =>
    Object.fromEntries((sums ?? []).flatMap(({ series, key, value }) => (key === name && value > 0 ? [[series, value]] : [])))
  return { start, dead_letters, demoted: of('evictions'), spent: of('refused') }
}

/** Each condition is an alert at most once an hour: its id has the hour. */
export function alertsOf(seen: MarketObserved, { now, dead_letters, approval_ms, ledger_bytes }: Limits & { now: number }): Alert[] {
  const this_hour = new Date(bucketStart('hour', now)).toISOString()
  if (!seen.ok) {
    const summary = `the database (D1) is unavailable: ${seen.unavailable}`
    return [{ id: `database-unavailable:${this_hour}`, name: 'database-unavailable', summary, details: {} }]
  }
  const [oldest] = seen.approvals
  const waiting: Alert[] = !oldest
    ? []
    : [
        {
          id: `approval-waiting:${this_hour}`,
          name: 'approval-waiting',
          summary: `${countText(seen.approvals.length)} waited for more than ${Math.round(approval_ms / MINUTE_MS)} minutes`,
          details: {
            approvals: seen.approvals.map(({ id, scope }) => ({ id, scope })),
            oldest_at: new Date(oldest.created_at).toISOString(),
          },
        },
      ]
  const size = Math.round(seen.ledger_bytes / MB)
  const full: Alert[] =
    seen.ledger_bytes < ledger_bytes
      ? []
      : [
          {
            id: `ledger-size:${this_hour}`,
            name: 'ledger-size',
            summary: `the Ledger object has ${size} MB of at most 10,000`,
            details: { bytes: seen.ledger_bytes },
          },
        ]
  return [...waiting, ...full, ...seen.hours.flatMap((hour) => ofHour(hour, dead_letters))]
}

function ofHour({ start, dead_letters, demoted, spent }: HourSeen, limit: number): Alert[] {
  const hour = new Date(start).toISOString()
  const alerts: Alert[] = []
  if (dead_letters >= limit) {
    const summary = `${dead_letters} new dead letters since ${hour}`
    alerts.push({ id: `dead-letters:${hour}`, name: 'dead-letters', summary, details: { count: dead_letters, since: hour } })
  }
  if (Object.keys(demoted).length > 0) {
    const summary = `reflexes were demoted or suspended in ${namesOf(demoted)}`
    alerts.push({
      id: `reflex-demoted:${hour}`,
      name: 'reflex-demoted',
      summary,
      details: { scopes: Object.keys(demoted).slice(0, MOST_NAMED) },
    })
  }
  if (Object.keys(spent).length > 0) {
    const summary = `events wait because the token budget is spent in ${namesOf(spent)}`
    alerts.push({ id: `budget-spent:${hour}`, name: 'budget-spent', summary, details: { scopes: Object.keys(spent).slice(0, MOST_NAMED) } })
  }
  return alerts
}

const countText = (count: number): string =>
  count === 1 ? '1 approval has' : `${count}${count === MOST_NAMED ? ' or more' : ''} approvals have`
function namesOf(scopes: Record<string, number>): string {
  const names = Object.keys(scopes)
  return names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more scopes` : names.join(', ')
}

function limitsOf(env: Env): Limits {
  const { REFLEX_ALERT_DEAD_LETTERS: letters, REFLEX_ALERT_APPROVAL_MINUTES: minutes, REFLEX_ALERT_LEDGER_MB: megabytes } = env
  return {
    dead_letters: positive(letters) ?? DEFAULT_DEAD_LETTERS,
    approval_ms: (positive(minutes) ?? DEFAULT_APPROVAL_MINUTES) * MINUTE_MS,
    ledger_bytes: (positive(megabytes) ?? DEFAULT_LEDGER_MB) * MB,
  }
}

/** An invalid number counts as the default. */
function positive(text: string | undefined): number | null {
  const number = Number(text)
  return text !== undefined && Number.isFinite(number) && number > 0 ? number : null
}
