import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { costOf, rates } from '../../../src/features/statistics/http/cost.ts'

/** Dollars per million of a row of the table, in batches and alone. */
function measured(what: string): { low: number; high: number } {
  const lines = readFileSync('docs/cost.md', 'utf8').split('\n')
  const of = (sent: string) =>
    Number(
      lines
        .find((line) => line.startsWith(`| ${what} | ${sent} |`))
        ?.split('|')
        .at(-2),
    )
  return { low: of('in batches'), high: of('alone') }
}
const difference = (one: { low: number; high: number }, other: { low: number; high: number }) => ({
  low: expect.closeTo(Math.max(0, one.low - other.low), 6),
  high: expect.closeTo(Math.max(0, one.high - other.high), 6),
})

test('the rates of the estimate are the differences between the measured figures', () => {
  const filtered = measured('filtered out, by the queue')
  expect(rates.event).toEqual(filtered)
  expect(rates.turn).toEqual(difference(measured('considered by a turn that says no, by the queue'), filtered))
  expect(rates.effect).toEqual(difference(measured('given to a tool by a reflex'), measured('answered by a reflex')))
})

test('the estimate adds the recorded cost of the models to that of the platform', () => {
  const each = (more: number) => ({
    low: expect.closeTo(rates.event.low + rates.turn.low + more, 6),
    high: expect.closeTo(rates.event.high + rates.turn.high + more, 6),
  })
  const cost = costOf({ accepted: 1_000_000, turns: 1_000_000, turn_time_ms: 5e9, model_cost_usd: 3, model_calls: 2, unpriced_calls: 1 })
  expect(cost).toMatchObject({ model_usd: 3, platform_usd: each(8), total_usd: each(11) })
  expect(cost.counts).toMatchObject({ events: 1_000_000, turn_seconds: 5_000_000, unpriced_model_calls: 1 })
})

test('a scope without events costs nothing, and nothing by event', () => {
  expect(costOf({})).toMatchObject({ platform_usd: { low: 0, high: 0 }, total_usd: { low: 0, high: 0 }, per_event_usd: null })
})

test('the lower end is never above the higher one', () => {
  const { platform_usd } = costOf({ accepted: 1, effects: 1000 })
  expect(platform_usd.low).toBeLessThan(platform_usd.high)
})

describe('of the events that reflexes left alone,', () => {
  const missed = (sums: Record<string, number>) => costOf(sums).most_missed

  test('nothing is said without any', () => {
    expect(missed({})).toBeNull()
  })

  test.each([
    ['all may be missed that no audit looked at', 300, 0, 0, 300],
    ['few can be missed if many audits found none', 10_000, 1000, 0, 27],
    ['more can be missed the fewer audits there are', 10_000, 50, 0, 579],
    ['those that audits found are missed, and their share of the rest', 10_000, 1000, 10, 163],
    ['no more are missed than there are', 3, 5, 5, 3],
  ])('%s', (_, left_alone, left_alone_audits, left_alone_missed, most) => {
    expect(missed({ left_alone, left_alone_audits, left_alone_missed })).toBe(most)
  })
})
