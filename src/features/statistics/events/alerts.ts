import { iso } from '../../../base/time.ts'
import type { Alert } from '../../../contract/alert.ts'
import type { Env } from '../../../env.ts'
import { storeOf } from '../../../store/store.ts'
import { bucketSteps } from '../contract/statistics.ts'
import { sumByScope } from '../store/query.ts'

const MOST_NAMED = 20

type HourCounts = { start: number; demoted: Record<string, number>; spent: Record<string, number> }

/** The previous hour is read, too: its end is reported with a delay. */
export async function countAlerts(env: Env, hour: number): Promise<Alert[]> {
  const hours = await Promise.all([hour - bucketSteps.hour, hour].map((start) => countsSince(storeOf(env), start)))
  return hours.flatMap(alertsOfHour)
}

async function countsSince(db: D1Database, start: number): Promise<HourCounts> {
  const range = { family: 'scope' as const, bucket: 'hour' as const, since: start, until: start + 1, patterns: ['*'] }
  const sums = await sumByScope(db, { ...range, keys: ['evictions', 'refused'], by: 'scope' })
  const of = (name: string) =>
    Object.fromEntries((sums ?? []).flatMap(({ series, key, value }) => (key === name && value > 0 ? [[series, value]] : [])))
  return { start, demoted: of('evictions'), spent: of('refused') }
}

export function alertsOfHour({ start, demoted, spent }: HourCounts): Alert[] {
  const alert = (name: 'reflex-demoted' | 'budget-spent', scopes: string[], text: string): Alert[] =>
    scopes.length === 0
      ? []
      : [{ id: `${name}:${iso(start)}`, name, summary: `${text} ${namesOf(scopes)}`, details: { scopes: scopes.slice(0, MOST_NAMED) } }]
  return [
    ...alert('reflex-demoted', Object.keys(demoted), 'reflexes were demoted or suspended in'),
    ...alert('budget-spent', Object.keys(spent), 'events wait because a budget is spent in'),
  ]
}

const namesOf = (scopes: readonly string[]): string =>
  scopes.length > 3 ? `${scopes.slice(0, 3).join(', ')} and ${scopes.length - 3} more scopes` : scopes.join(', ')
