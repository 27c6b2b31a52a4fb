import { expect, test } from 'vitest'
import { alertsOf, type MarketObserved } from '../../../src/features/notices/events/alerts.ts'

const HOUR = 3_600_000
const now = Date.parse('2026-11-22T10:30:00Z')
const start = Date.parse('2026-11-22T10:00:00Z')
const limits = { now, dead_letters: 10, approval_ms: HOUR, ledger_bytes: 5_000_000_000 }
const quiet = { start, dead_letters: 0, demoted: {}, spent: {} }
const seen = (changes: Partial<Extract<MarketObserved, { ok: true }>> = {}): MarketObserved => ({
  ok: true,
  ledger_bytes: 0,
  hours: [quiet],
  approvals: [],
  ...changes,
})

test('a quiet deployment raises no alert', () => {
  expect(alertsOf(seen(), limits)).toEqual([])
})

test('dead letters are an alert from the limit on', () => {
  expect(alertsOf(seen({ hours: [{ ...quiet, dead_letters: 9 }] }), limits)).toEqual([])
  expect(alertsOf(seen({ hours: [{ ...quiet, dead_letters: 10 }] }), limits)).toMatchObject([
    { id: 'dead-letters:2026-11-22T10:00:00.000Z', name: 'dead-letters', details: { count: 10 } },
  ])
})

test('each condition has an id by hour, so that a scope raises it once', () => {
  const hours = [start - HOUR, start].map((hour) => ({ start: hour, dead_letters: 20, demoted: { a: 1 }, spent: { a: 1, b: 2 } }))
  const ids = alertsOf(seen({ hours }), limits).map(({ id }) => id)
  expect(new Set(ids).size).toBe(6)
  expect(alertsOf(seen({ hours }), { ...limits, now: now + 60_000 }).map(({ id }) => id)).toEqual(ids)
})

test('approvals that wait for too long are one alert with the oldest first', () => {
  const approvals = [
    { id: 'one', scope: 'a', created_at: now - 3 * HOUR },
    { id: 'two', scope: 'b', created_at: now - 2 * HOUR },
  ]
  expect(alertsOf(seen({ approvals }), limits)).toMatchObject([
    {
      name: 'approval-waiting',
      summary: '2 approvals have waited for more than 60 minutes',
      details: { approvals: [{ id: 'one' }, { id: 'two' }] },
    },
  ])
})

test('a database that does not answer is the only alert', () => {
  expect(alertsOf({ ok: false, unavailable: 'it took longer than 10000 ms' }, limits)).toMatchObject([
    { id: 'database-unavailable:2026-11-22T10:00:00.000Z', name: 'database-unavailable' },
  ])
})

test('a large Ledger is an alert from the limit on', () => {
  expect(alertsOf(seen({ ledger_bytes: 4_999_999_999 }), limits)).toEqual([])
  expect(alertsOf(seen({ ledger_bytes: 5_000_000_000 }), limits)).toMatchObject([
    { id: 'ledger-size:2026-11-22T10:00:00.000Z', name: 'ledger-size', summary: 'the Ledger object has 5000 MB of at most 10,000' },
  ])
})
