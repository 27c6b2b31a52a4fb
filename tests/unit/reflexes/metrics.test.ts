import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  countSample,
  emptyHistogram,
  mergeHistograms,
  percentiles,
  countRun,
  emptyMetrics,
  mergeMetrics,
  presentMetrics,
  type ReflexMetrics,
} from '../../../src/reflexes/metrics.ts'
import type { RunReason } from '../../../src/reflexes/sandbox.ts'
import { assertProperty } from '../../support/property.ts'

const histogramOf = (values: readonly number[]) => {
  const histogram = emptyHistogram()
  for (const value of values) countSample(histogram, value)
  return histogram
}
/** Sizes as they come: as many small ones as large ones. */
const sample = fc.oneof(
  fc.integer({ min: 0, max: 20 }),
  fc.double({ min: 0, max: 23, noNaN: true }).map((power) => Math.round(2 ** power)),
)
const samples = fc.array(sample, { minLength: 1, maxLength: 300 })

describe('percentiles', () => {
  test('are within a bucket of those of the sorted samples', () => {
    assertProperty(
      'reflexes/metrics: one list',
      fc.property(samples, (values) => {
        const sorted = values.toSorted((one, other) => one - other)
        const told = percentiles(histogramOf(values))
        for (const [name, share] of [['p50', 0.5] as const, ['p90', 0.9] as const, ['p99', 0.99] as const]) {
          const exact = sorted[Math.ceil(share * values.length) - 1] ?? Number.NaN
          expect(Math.abs(told[name] - exact)).toBeLessThanOrEqual(exact * 0.045 + 0.5)
        }
        expect(told.max).toBe(sorted.at(-1))
      }),
    )
  })

  test('of merged histograms are those of all their samples', () => {
    assertProperty(
      'reflexes/metrics: several lists',
      fc.property(fc.array(samples, { maxLength: 5 }), (lists) => {
        expect(mergeHistograms(lists.map(histogramOf))).toEqual(histogramOf(lists.flat()))
      }),
    )
  })

  test('of nothing are 0', () => {
    expect(percentiles(emptyHistogram())).toEqual({ p50: 0, p90: 0, p99: 0, max: 0 })
  })

  test('come from few buckets, whatever the samples', () => {
    const histogram = histogramOf(Array.from({ length: 10_000 }, (_, index) => index * 800))
    expect(Object.keys(histogram.buckets).length).toBeLessThan(200)
  })
})

const ran = (...reasons: RunReason[]): ReflexMetrics => {
  const metrics = emptyMetrics()
  for (const reason of reasons) countRun(metrics, { reason, fuel: 100, duration_us: 7 })
  return metrics
}

describe('the metrics of a reflex', () => {
  test.each<RunReason>(['null', 'error', 'limit', 'invalid_action'])('count a run that ends in %s', (reason) => {
    const { runs, fired, passed } = ran(reason)
    expect({ runs, fired, passed }).toEqual({ runs: 1, fired: 0, passed: { ...emptyMetrics().passed, [reason]: 1 } })
  })

  test('count a run that fires', () => {
    expect(ran('fired')).toMatchObject({ runs: 1, fired: 1, passed: emptyMetrics().passed, fuel: { count: 1, max: 100 } })
  })

  test('of several scopes are summed, each field by itself', () => {
    const one: ReflexMetrics = {
      ...ran('fired', 'fired', 'null', 'limit'),
      held_back: 1,
      acted: 2,
      failed: 3,
      shadow: { runs: 4, fired: 5, agreed: 6, disagreed: 7, undecided: 8 },
      overruled: 9,
      model_calls_saved: 10,
      tokens_saved: 11,
      cost_saved_usd: 0.5,
    }
    const merged = mergeMetrics([one, one, emptyMetrics()])
    expect(merged).toMatchObject({
      runs: 8,
      fired: 4,
      passed: { null: 2, error: 0, limit: 2, invalid_action: 0 },
      held_back: 2,
      acted: 4,
      failed: 6,
      shadow: { runs: 8, fired: 10, agreed: 12, disagreed: 14, undecided: 16 },
      overruled: 18,
      model_calls_saved: 20,
      tokens_saved: 22,
      cost_saved_usd: 1,
      duration_us: { count: 8, max: 7 },
    })
    expect(one.shadow.runs).toBe(4)
    expect(mergeMetrics([])).toEqual(emptyMetrics())
  })

  test('are presented with percentiles in place of buckets', () => {
    const presented = presentMetrics({ ...ran('fired'), shadow: { runs: 5, fired: 5, agreed: 3, disagreed: 1, undecided: 1 } })
    expect(presented).toMatchObject({ runs: 1, agreement: 0.75, fuel: { p50: 100, p90: 100, p99: 100, max: 100 } })
    expect(presented.duration_us).toEqual({ p50: 7, p90: 7, p99: 7, max: 7 })
    expect(presentMetrics(emptyMetrics()).agreement).toBeNull()
  })
})
