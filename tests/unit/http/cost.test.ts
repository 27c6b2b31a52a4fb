import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
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
  low: expect.closeTo(one.low - other.low, 6),
  high: expect.closeTo(one.high - other.high, 6),
})

test('the rates of the estimate are the differences between the measured figures', () => {
  const filtered = measured('filtered out, by the queue')
  expect(rates.event).toEqual(filtered)
  expect(rates.turn).toEqual(difference(measured('considered by a turn that says no, by the queue'), filtered))
  expect(rates.effect).toEqual(difference(measured('given to a tool by a reflex'), measured('answered by a reflex')))
})

test('the estimate adds the recorded cost of the models to that of the platform', () => {
  const cost = costOf({ accepted: 1_000_000, turns: 1_000_000, turn_time_ms: 5e9, model_cost_usd: 3, model_calls: 2, unpriced_calls: 1 })
  expect(cost).toMatchObject({ model_usd: 3, platform_usd: { low: 18, high: 29 }, total_usd: { low: 21, high: 32 } })
  expect(cost.counts).toMatchObject({ events: 1_000_000, turn_seconds: 5_000_000, unpriced_model_calls: 1 })
})

test('a scope without events costs nothing, and nothing by event', () => {
  expect(costOf({})).toMatchObject({ platform_usd: { low: 0, high: 0 }, total_usd: { low: 0, high: 0 }, per_event_usd: null })
})

test('the lower end is never above the higher one', () => {
  const { platform_usd } = costOf({ accepted: 1, effects: 1000 })
  expect(platform_usd.low).toBeLessThan(platform_usd.high)
})
