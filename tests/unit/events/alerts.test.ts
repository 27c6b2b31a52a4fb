import { expect, test } from 'vitest'
import { waitingAlert } from '../../../src/features/approvals/events/alerts.ts'
import { sizeAlert } from '../../../src/features/market/deployment.ts'
import { deadLetterAlert, unavailableAlert } from '../../../src/features/notices/events/alerts.ts'
import { alertsOfHour } from '../../../src/features/statistics/events/alerts.ts'

const HOUR = 3_600_000
const now = Date.parse('2026-11-22T10:30:00Z')
const hour = Date.parse('2026-11-22T10:00:00Z')

test('a quiet deployment raises no alert', () => {
  expect(deadLetterAlert(hour, { limit: 10, count: 0 })).toEqual([])
  expect(alertsOfHour({ start: hour, demoted: {}, spent: {} })).toEqual([])
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
    [...alertsOfHour({ start, demoted: { a: 1 }, spent: { a: 1, b: 2 } }), ...deadLetterAlert(start, { limit: 10, count: 20 })].map(
      ({ id }) => id,
    ),
  )
  expect(new Set(ids).size).toBe(6)
  expect(ids).toContain('budget-spent:2026-11-22T09:00:00.000Z')
})

test('the scopes of an alert are named, the first ones of many', () => {
  expect(alertsOfHour({ start: hour, demoted: { a: 1, b: 2, c: 1, d: 1 }, spent: {} })).toMatchObject([
    { name: 'reflex-demoted', summary: 'reflexes were demoted or suspended in a, b, c and 1 more scopes' },
  ])
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
