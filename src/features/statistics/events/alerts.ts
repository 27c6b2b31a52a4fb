import { iso } from '../../../base/time.ts'
import type { Alert, AlertName } from '../../../contract/alert.ts'
import type { Env } from '../../../env.ts'
import { limitOf } from '../../../events/deployment.ts'
import { percentile } from '../../../reflexes/metrics.ts'
import { storeOf } from '../../../store/store.ts'
import { bucketSteps, histogramOf, type MetricSums } from '../contract/statistics.ts'
import { sumByScope, sumStatistics, type Sum } from '../store/query.ts'

const MOST_NAMED = 20
const MOST_LABELS = 10
const WEEK_MS = 7 * bucketSteps.day
/** Fewer calls or turns of an hour say nothing of a share. */
const FEWEST_FAILURES = 5
const FEWEST_TURNS = 20
/** Hours with a cost that a rise is compared with. */
const FEWEST_HOURS = 12

const DEFAULTS = { failed_share: 0.2, turn_seconds: 60, cost_usd: 1, cost_times: 3 }
type Limits = typeof DEFAULTS

const limitsOf = (env: Env): Limits => ({
  failed_share: limitOf(env.REFLEX_ALERT_FAILED_SHARE, DEFAULTS.failed_share),
  turn_seconds: limitOf(env.REFLEX_ALERT_TURN_SECONDS, DEFAULTS.turn_seconds),
  cost_usd: limitOf(env.REFLEX_ALERT_COST_USD, DEFAULTS.cost_usd),
  cost_times: limitOf(env.REFLEX_ALERT_COST_TIMES, DEFAULTS.cost_times),
})

/** The previous hour is read, too: its end is reported with a delay. */
export async function countAlerts(env: Env, hour: number): Promise<Alert[]> {
  const db = storeOf(env)
  const limits = limitsOf(env)
  const hours = await Promise.all([hour - bucketSteps.hour, hour].map((start) => hourAlerts(db, start, limits)))
  return hours.flat()
}

const everywhere = (since: number, until: number) => ({ bucket: 'hour' as const, since, until, patterns: ['*'] })

async function hourAlerts(db: D1Database, start: number, limits: Limits): Promise<Alert[]> {
  const range = everywhere(start, start + 1)
  const labels = { ...range, keys: ['failed', 'calls'], by: 'label' as const }
  const [scopes, totals, tools, models] = await Promise.all([
    sumByScope(db, { ...range, family: 'scope', keys: ['evictions', 'refused', 'lapses', 'near_budgets'], by: 'scope' }),
    sumStatistics(db, { ...range, family: 'scope', keys: ['turn_ms', 'model_cost_usd'], by: null }),
    sumStatistics(db, { ...labels, family: 'tool' }),
    sumStatistics(db, { ...labels, family: 'model' }),
  ])
  const sums = Object.fromEntries(totals.map(({ key, value }) => [key, value]))
  return [
    ...scopeAlerts(start, scopes ?? []),
    ...failingAlerts(start, tools, { name: 'tool-failing', share: limits.failed_share }),
    ...failingAlerts(start, models, { name: 'model-failing', share: limits.failed_share }),
    ...slowAlert(start, sums, limits),
    ...(await riseAlert(db, { start, cost: sums['model_cost_usd'] ?? 0, ...limits })),
  ]
}

/** The numbers of scopes that are alerts, and the sentences that name the scopes. */
const CONDITIONS: readonly [key: string, name: AlertName, text: string][] = [
  ['evictions', 'reflex-demoted', 'reflexes were demoted or suspended in'],
  ['refused', 'budget-spent', 'events wait because a budget is spent in'],
  ['near_budgets', 'budget-near', '80 % of a budget in money are spent in'],
  ['lapses', 'certificate-lapsed', 'certificates of reflexes lapsed in'],
]

export function scopeAlerts(start: number, sums: readonly Pick<Sum, 'series' | 'key' | 'value'>[]): Alert[] {
  return CONDITIONS.flatMap(([counted, name, text]): Alert[] => {
    const scopes = sums.flatMap(({ series, key, value }) => (key === counted && value > 0 ? [series] : []))
    if (scopes.length === 0) return []
    const more = Math.max(0, scopes.length - MOST_NAMED)
    const details = { scopes: scopes.slice(0, MOST_NAMED), ...(more > 0 && { more }) }
    return [{ id: `${name}:${iso(start)}`, name, summary: `${text} ${namesOf(scopes)}`, details }]
  })
}

/** An alert for each tool or model of whose calls many failed, those with most failures first. */
export function failingAlerts(
  start: number,
  sums: readonly Pick<Sum, 'series' | 'key' | 'value'>[],
  { name, share }: { name: 'tool-failing' | 'model-failing'; share: number },
): Alert[] {
  const callsOf = new Map(sums.flatMap(({ series, key, value }) => (key === 'calls' ? [[series, value]] : [])))
  const failing = sums
    .filter(({ key, series, value }) => key === 'failed' && value >= FEWEST_FAILURES && value >= share * (callsOf.get(series) ?? 0))
    .toSorted((one, other) => other.value - one.value)
  return failing.slice(0, MOST_LABELS).map(({ series, value }) => {
    const calls = callsOf.get(series) ?? value
    const summary = `${value} of ${calls} calls of the ${name === 'tool-failing' ? 'tool' : 'model'} ${series} failed since ${iso(start)}`
    return { id: `${name}:${series}:${iso(start)}`, name, summary, details: { of: series, calls, failed: value } }
  })
}

export function slowAlert(start: number, sums: MetricSums, { turn_seconds }: Pick<Limits, 'turn_seconds'>): Alert[] {
  const histogram = histogramOf(sums, 'turn_ms')
  if (histogram.count < FEWEST_TURNS) return []
  const seconds = Math.round(percentile(histogram, 0.95) / 1000)
  if (seconds < turn_seconds) return []
  const summary = `of ${histogram.count} turns since ${iso(start)}, one in twenty took ${seconds} s or more`
  return [{ id: `turns-slow:${iso(start)}`, name: 'turns-slow', summary, details: { turns: histogram.count, p95_seconds: seconds } }]
}

type Cost = { start: number; cost: number } & Pick<Limits, 'cost_usd' | 'cost_times'>

/** Reads the week before only if the hour costs enough. */
async function riseAlert(db: D1Database, cost: Cost): Promise<Alert[]> {
  if (cost.cost < cost.cost_usd) return []
  const week = { ...everywhere(cost.start - WEEK_MS, cost.start), family: 'scope' as const, keys: ['model_cost_usd'], by: null }
  const hours = (await sumStatistics(db, week)).flatMap(({ value }) => (value > 0 ? [value] : []))
  return costAlert(hours, cost)
}

/** `hours`: what the hours of the week before have cost, without those that cost nothing. */
export function costAlert(hours: readonly number[], { start, cost, cost_usd, cost_times }: Cost): Alert[] {
  const mean = hours.reduce((sum, value) => sum + value, 0) / hours.length
  if (hours.length < FEWEST_HOURS || cost < cost_usd || cost < cost_times * mean) return []
  const [now, usual] = [cost, mean].map((usd) => `$${usd.toFixed(2)}`)
  const summary = `models cost ${now} in the hour since ${iso(start)}; an hour of the week before cost ${usual}`
  return [{ id: `cost-rise:${iso(start)}`, name: 'cost-rise', summary, details: { usd: cost, mean_usd: mean } }]
}

const namesOf = (scopes: readonly string[]): string =>
  scopes.length > 3 ? `${scopes.slice(0, 3).join(', ')} and ${scopes.length - 3} more scopes` : scopes.join(', ')
