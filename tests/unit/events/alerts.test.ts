import { expect, test } from 'vitest'
import { waitingAlert } from '../../../src/features/approvals/events/alerts.ts'
import { sizeAlert } from '../../../src/features/market/deployment.ts'
import { deadLetterAlert, unavailableAlert } from '../../../src/features/alerts/events/raise.ts'
import { costAlert, failingAlerts, scopeAlerts, slowAlert } from '../../../src/features/statistics/events/alerts.ts'

const HOUR = 3_600_000
const now = Date.parse('2026-11-22T10:30:00Z')
const hour = Date.parse('2026-11-22T10:00:00Z')

const counted = (key: string, of: Record<string, number>) => Object.entries(of).map(([series, value]) => ({ series, key, value }))

test('a quiet deployment raises no alert', () => {
  expect(deadLetterAlert(hour, { limit: 10, count: 0 })).toEqual([])
  expect(scopeAlerts(hour, [])).toEqual([])
  expect(scopeAlerts(hour, counted('lapses', { a: 0 }))).toEqual([])
  expect(slowAlert(hour, {}, { turn_seconds: 60 })).toEqual([])
  expect(waitingAlert([], { minutes: 60, hour })).toEqual([])
  expect(sizeAlert(0, { limit: 5_000_000_000, hour })).toEqual([])
})

test('dead letters are an alert from the limit on', () => {
  expect(deadLetterAlert(hour, { limit: 10, count: 9 })).toEqual([])
  expect(deadLetterAlert(hour, { limit: 10, count: 10 })).toMatchObject([
    { id: 'dead-letters:2026-11-22T10:00:00.000Z', name: 'dead-letters', details: { count: 10 } },
  ])
})

test('each condition has an id by hour, so that a scope raises it once', () => {
  const ids = [hour - HOUR, hour].flatMap((start) =>
    [
      ...scopeAlerts(start, [...counted('evictions', { a: 1 }), ...counted('refused', { a: 1, b: 2 })]),
      ...deadLetterAlert(start, { limit: 10, count: 20 }),
    ].map(({ id }) => id),
  )
  expect(new Set(ids).size).toBe(6)
  expect(ids).toContain('budget-spent:2026-11-22T09:00:00.000Z')
})

test('the scopes of an alert are named, the first ones of many', () => {
  expect(scopeAlerts(hour, counted('evictions', { a: 1, b: 2, c: 1, d: 1 }))).toMatchObject([
    { name: 'reflex-demoted', summary: 'reflexes were demoted or suspended in a, b, c and 1 more scopes' },
  ])
  const many = Object.fromEntries(Array.from({ length: 23 }, (_, index) => [`scope-${index}`, 1]))
  const [alert] = scopeAlerts(hour, counted('lapses', many))
  expect(alert?.name).toBe('certificate-lapsed')
  expect(alert?.details['scopes']).toHaveLength(20)
  expect(alert?.details['more']).toBe(3)
})

test('approvals that wait for too long are one alert with the oldest first', () => {
  const approvals = [
    { id: 'one', scope: 'a', created_at: now - 3 * HOUR },
    { id: 'two', scope: 'b', created_at: now - 2 * HOUR },
  ]
  expect(waitingAlert(approvals, { minutes: 60, hour })).toMatchObject([
    {
      name: 'approval-waiting',
      summary: '2 approvals have waited for more than 60 minutes',
      details: { approvals: [{ id: 'one' }, { id: 'two' }], oldest_at: '2026-11-22T07:30:00.000Z' },
    },
  ])
})

test('a database that does not answer is an alert of its own', () => {
  expect(unavailableAlert('it took longer than 10000 ms', hour)).toMatchObject({
    id: 'database-unavailable:2026-11-22T10:00:00.000Z',
    name: 'database-unavailable',
  })
})

test('a large Ledger is an alert from the limit on', () => {
  const limit = 5_000_000_000
  expect(sizeAlert(4_999_999_999, { limit, hour })).toEqual([])
  expect(sizeAlert(5_000_000_000, { limit, hour })).toMatchObject([
    { id: 'ledger-size:2026-11-22T10:00:00.000Z', name: 'ledger-size', summary: 'the Ledger object has 5000 MB of at most 10,000' },
  ])
})

test('a tool or a model of whose calls many fail is an alert of its own', () => {
  const tools = [...counted('calls', { refund: 40, mail: 100, once: 4 }), ...counted('failed', { refund: 12, mail: 19, once: 4 })]
  expect(failingAlerts(hour, tools, { name: 'tool-failing', share: 0.2 })).toEqual([
    {
      id: 'tool-failing:refund:2026-11-22T10:00:00.000Z',
      name: 'tool-failing',
      summary: '12 of 40 calls of the tool refund failed since 2026-11-22T10:00:00.000Z',
      details: { of: 'refund', calls: 40, failed: 12 },
    },
  ])
  const [worst, other] = failingAlerts(hour, tools, { name: 'model-failing', share: 0.1 })
  expect(worst?.summary).toContain('19 of 100 calls of the model mail')
  expect(other?.details).toMatchObject({ of: 'refund' })
})

test('turns that take long are an alert, if there were enough', () => {
  expect(slowAlert(hour, { 'turn_ms.0': 19 }, { turn_seconds: 0.0001 })).toEqual([])
  const slow = slowAlert(hour, { 'turn_ms.0': 10, 'turn_ms.90': 10 }, { turn_seconds: 1 })
  expect(slow).toMatchObject([{ name: 'turns-slow', details: { turns: 20 } }])
  expect(slowAlert(hour, { 'turn_ms.0': 20 }, { turn_seconds: 1 })).toEqual([])
})

test('an hour that costs far more than those of the week before is an alert', () => {
  const rise = { start: hour, cost: 9, cost_usd: 1, cost_times: 3 }
  const week = Array.from({ length: 12 }, () => 3)
  expect(costAlert(week, rise)).toMatchObject([
    {
      name: 'cost-rise',
      summary: 'models cost $9.00 in the hour since 2026-11-22T10:00:00.000Z; an hour of the week before cost $3.00',
    },
  ])
  expect(costAlert(week, { ...rise, cost: 8.9 })).toEqual([])
  // A new deployment has nothing to compare with, and little money is no alert.
  expect(costAlert(week.slice(1), rise)).toEqual([])
  expect(costAlert(week, { ...rise, cost_usd: 10 })).toEqual([])
})
