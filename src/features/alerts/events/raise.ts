import { withDeadline } from '../../../base/deadline.ts'
import { messageOf } from '../../../base/error-text.ts'
import { iso } from '../../../base/time.ts'
import { logError } from '../../../base/warn.ts'
import type { Alert } from '../../../contract/alert.ts'
import type { Env } from '../../../env.ts'
import { limitOf, type DeploymentFeature } from '../../../events/deployment.ts'
import { countDeadLetters } from '../../../store/dead-letters.ts'
import { storeOf } from '../../../store/store.ts'
import { keepAlerts } from '../store.ts'

const HOUR_MS = 3_600_000
const PATIENCE_MS = 10_000
const DEFAULT_DEAD_LETTERS = 10

/**
 * Keeps the alerts of all features, and raises them in the scope that the deployment names, if it
 * names one. Each condition is an alert at most once an hour: its id has the hour. Returns the
 * number of new ones.
 */
export async function raiseAlerts(env: Env, now: number, features: readonly DeploymentFeature[]): Promise<number> {
  const alerts = await alertsAt(env, now, features)
  const raised = await raiseIn(env, alerts)
  const isAway = alerts.some(({ name }) => name === 'database-unavailable')
  // The next sweep keeps an alert that was raised, but not kept.
  const kept = isAway ? [] : await keepAlerts(storeOf(env), alerts, now)
  return new Set([...raised, ...kept]).size
}

/** The ids of the alerts that were not raised before. */
async function raiseIn(env: Env, alerts: readonly Alert[]): Promise<string[]> {
  const scope = env.REFLEX_ALERT_SCOPE
  if (scope === undefined || scope === '') return []
  const stub = env.SCOPE.getByName(scope)
  const raised = await Promise.all(alerts.map(async (alert) => ((await stub.raise(alert)) ? [alert.id] : [])))
  return raised.flat()
}

async function alertsAt(env: Env, now: number, features: readonly DeploymentFeature[]): Promise<Alert[]> {
  const hour = now - (now % HOUR_MS)
  try {
    const look = () => Promise.all(features.map(async ({ alerts }) => alerts?.(env, { now, hour }) ?? []))
    return (await withDeadline(look, { timeout_ms: PATIENCE_MS, what: 'the database' })).flat()
  } catch (error) {
    logError({ message: 'the database is unavailable', error })
    return [unavailableAlert(messageOf(error), hour)]
  }
}

export const unavailableAlert = (why: string, hour: number): Alert => ({
  id: `database-unavailable:${iso(hour)}`,
  name: 'database-unavailable',
  summary: `the database (D1) is unavailable: ${why}`,
  details: {},
})

/** The previous hour is counted, too: its end is reported with a delay. */
export async function deadLetterAlerts(env: Env, hour: number): Promise<Alert[]> {
  const limit = limitOf(env.REFLEX_ALERT_DEAD_LETTERS, DEFAULT_DEAD_LETTERS)
  const counts = [hour - HOUR_MS, hour].map(async (start) => {
    return deadLetterAlert(start, { limit, count: await countDeadLetters(storeOf(env), { since: start, until: start + HOUR_MS }) })
  })
  return (await Promise.all(counts)).flat()
}

export function deadLetterAlert(start: number, { limit, count }: { limit: number; count: number }): Alert[] {
  const since = iso(start)
  if (count < limit) return []
  return [
    { id: `dead-letters:${since}`, name: 'dead-letters', summary: `${count} new dead letters since ${since}`, details: { count, since } },
  ]
}
