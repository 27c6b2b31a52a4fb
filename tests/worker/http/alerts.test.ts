import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import type { Alert } from '../../../src/contract/alert.ts'
import { forgetAlerts, keepAlerts } from '../../../src/features/alerts/store.ts'
import { countAlerts } from '../../../src/features/statistics/events/alerts.ts'
import { writeStatistics } from '../../../src/features/statistics/store/write.ts'
import { storeOf } from '../../../src/store/store.ts'
import { call, keyFor } from '../../support/http.ts'
import { freshScope } from '../../support/scopes.ts'

type Shown = { id: string; name: string; at: string; details: object }

const HOUR_MS = 3_600_000
/** An hour that no other test counts in. */
const hour = Date.parse('2031-05-05T10:00:00Z')
const alert = (more: Partial<Alert>): Alert => ({
  id: crypto.randomUUID(),
  name: 'tool-failing',
  summary: 'it fails',
  details: {},
  ...more,
})

async function listed(query: Record<string, string> = {}, key?: string): Promise<Shown[]> {
  const { status, body } = await call(`/v1/alerts?${new URLSearchParams(query).toString()}`, key === undefined ? {} : { key })
  expect(status).toBe(200)
  return body.items
}
const idsOf = (alerts: readonly { id: string }[]): string[] => alerts.map(({ id }) => id)

test('an alert is kept once, and listed by its name and time, newest first', async () => {
  const [first, second] = [alert({}), alert({ name: 'turns-slow' })]
  const db = storeOf(env)
  expect(await keepAlerts(db, [first], hour)).toEqual([first.id])
  expect(await keepAlerts(db, [first, second], hour + 1000)).toEqual([second.id])
  const range = { since: new Date(hour).toISOString(), until: new Date(hour + 2000).toISOString() }
  expect(await listed(range)).toEqual([
    { ...second, at: '2031-05-05T10:00:01.000Z' },
    { ...first, at: '2031-05-05T10:00:00.000Z' },
  ])
  expect(idsOf(await listed({ ...range, name: 'turns-slow' }))).toEqual([second.id])
  expect(await keepAlerts(db, [], hour)).toEqual([])
  expect((await call('/v1/alerts?name=noise')).status).toBe(400)
})

test('a key sees the alerts about scopes that it covers, and those of the deployment with all scopes', async () => {
  const [mine, other] = [freshScope(), freshScope()]
  const own = alert({ details: { scopes: [mine] } })
  const both = alert({ details: { scopes: [mine, other] } })
  const cut = alert({ details: { scopes: [mine], more: 3 } })
  const whole = alert({ details: { of: 'http.refund' } })
  await keepAlerts(storeOf(env), [own, both, cut, whole], hour + 5000)
  expect(idsOf(await listed({}, await keyFor(['viewer'], [mine])))).toEqual([own.id])
  expect(idsOf(await listed({}, await keyFor(['viewer'], [mine, other]))).toSorted()).toEqual([own.id, both.id].toSorted())
  expect(idsOf(await listed())).toEqual(expect.arrayContaining([own.id, both.id, cut.id, whole.id]))
})

test('old alerts are deleted, oldest first', async () => {
  const old = [1, 2, 3].map((at) => ({ at, one: alert({}) }))
  for (const { at, one } of old) await keepAlerts(storeOf(env), [one], at)
  expect(await forgetAlerts(storeOf(env), 4, 2)).toBe(2)
  const left = idsOf(await listed({ until: new Date(10).toISOString() }))
  expect(left).toEqual([old[2]?.one.id])
  expect(await forgetAlerts(storeOf(env), 4, 2)).toBe(1)
})

test('failing tools and models, slow turns, sudden costs, near budgets and lapsed certificates of an hour are alerts', async () => {
  const scope = freshScope()
  const start = hour + 24 * HOUR_MS
  const row = (family: 'scope' | 'tool' | 'model', label: string, values: Record<string, number>, at = start) => ({
    family,
    bucket: 'hour' as const,
    start: at,
    values: { [label]: values },
  })
  const week = Array.from({ length: 12 }, (_, index) => row('scope', '', { model_cost_usd: 0.5 }, start - (index + 1) * HOUR_MS))
  await writeStatistics(storeOf(env), scope, [
    ...week,
    row('scope', '', { lapses: 1, near_budgets: 1, model_cost_usd: 6, 'turn_ms.200': 30 }),
    row('tool', 'http.refund', { calls: 10, failed: 5 }),
    row('model', 'gpt', { calls: 10, failed: 6 }),
  ])
  const limited = { ...env, REFLEX_ALERT_TURN_SECONDS: '1' }
  const found = await countAlerts(limited, start)
  expect(found.map(({ name }) => name)).toEqual([
    'budget-near',
    'certificate-lapsed',
    'tool-failing',
    'model-failing',
    'turns-slow',
    'cost-rise',
  ])
  expect(found.every(({ id }) => id.endsWith(':2031-05-06T10:00:00.000Z'))).toBe(true)
  expect(found[0]?.details).toEqual({ scopes: [scope] })
  // In the next hour the same are found, under the same ids.
  expect(idsOf(await countAlerts(limited, start + HOUR_MS))).toEqual(idsOf(found))
  expect(await countAlerts({ ...limited, REFLEX_ALERT_FAILED_SHARE: '0.7', REFLEX_ALERT_COST_USD: '7' }, start)).toHaveLength(3)
})
