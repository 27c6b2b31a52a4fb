import { describe, expect, test } from 'vitest'
import { barAt, boundsOf, neededAt, type Bar, verdictAt } from '../../../src/evidence/e-process.ts'
import { seededRandom } from '../../support/random.ts'

/** The exact probability of `proven` for something that agrees with probability `rate`. */
function chanceOfProof(bar: Bar, rate: number, most = 4000): number {
  let proven = 0
  // Probabilities of the undecided states, by the number that disagreed.
  let open = new Map([[0, 1]])
  for (let compared = 1; compared <= most && open.size > 0; compared += 1) {
    const next = new Map<number, number>()
    const reach = (disagreed: number, chance: number) => {
      const verdict = verdictAt(bar, { agreed: compared - disagreed, disagreed })
      if (verdict === 'proven') proven += chance
      if (verdict === 'open' && chance > 1e-9) next.set(disagreed, (next.get(disagreed) ?? 0) + chance)
    }
    for (const [disagreed, chance] of open) {
      reach(disagreed, chance * rate)
      if (rate < 1) reach(disagreed + 1, chance * (1 - rate))
    }
    open = next
  }
  return proven
}

describe.each([
  [0.95, 70],
  [0.97, 118],
  [0.99, 358],
])('the proof of a bound of %d', (bound, clean) => {
  const bar = barAt(bound)

  test(`takes ${clean} agreements where nothing disagrees`, () => {
    expect(neededAt(bar, { agreed: 0, disagreed: 0 })).toBe(clean)
    expect(neededAt(bar, { agreed: clean - 1, disagreed: 0 })).toBe(1)
    expect(verdictAt(bar, { agreed: clean - 1, disagreed: 0 })).toBe('open')
    expect(verdictAt(bar, { agreed: clean, disagreed: 0 })).toBe('proven')
    expect(neededAt(bar, { agreed: clean, disagreed: 0 })).toBe(0)
  })

  test('refutes two disagreements at the start, and not one', () => {
    expect(verdictAt(bar, { agreed: 0, disagreed: 1 })).toBe('open')
    expect(verdictAt(bar, { agreed: 1, disagreed: 2 })).toBe('refuted')
  })

  test('is given to what is poor at most 5 % of the time, looked at after each comparison', () => {
    expect(chanceOfProof(bar, bar.poor)).toBeLessThanOrEqual(0.05)
    expect(chanceOfProof(bar, bar.poor - 0.03)).toBeLessThan(0.01)
  })

  test('is given to what is good at least 95 % of the time', () => {
    expect(chanceOfProof(bar, bar.good)).toBeGreaterThanOrEqual(0.95)
    expect(chanceOfProof(bar, 1)).toBe(1)
  })
})

test('what errs in a tenth of very many comparisons is refuted', () => {
  expect(verdictAt(barAt(0.95), { agreed: 90_000, disagreed: 10_000 })).toBe('refuted')
})

test('the agreements that are needed are bounded where nothing can be proven: the teacher only guesses', () => {
  expect(neededAt(barAt(0.95, 0.5), { agreed: 0, disagreed: 0 })).toBe(2 ** 20)
})

type Order = (place: number, random: () => number, seen: { agreed: number; disagreed: number }) => number
/** The chance that each comparison of a stream disagrees; `always`: any proof of it is wrong. */
const streams: Record<string, { errs: Order; always: boolean; least?: number }> = {
  'barely poor': { errs: () => 0.05, always: true, least: 0.01 },
  poor: { errs: () => 0.1, always: true },
  good: { errs: () => 0.01, always: false, least: 0.95 },
  'good, then poor': { errs: (place) => (place < 60 ? 0.01 : 0.2), always: false },
  'poor, then good': { errs: (place) => (place < 40 ? 0.3 : 0.005), always: false },
  'in waves': { errs: (place) => 0.05 + 0.05 * Math.sin(place / 25), always: false },
  // An adversary who sees all comparisons, and errs where the proof is far away.
  'errs less the nearer the proof is': {
    errs: (_, __, { agreed, disagreed }) => (agreed > 40 * (disagreed + 1) ? 0.04 : 0.12),
    always: false,
  },
  'errs all at once at last': { errs: (place) => (place < 66 ? 0 : 1), always: false },
}

describe('of 10,000 streams, looked at after each comparison,', () => {
  const DELTA = 0.05
  const SEED = 4711
  const bar = barAt(0.95)

  test.each(Object.keys(streams))(
    'those that are %s are proven while they err too often in at most 5 %',
    { tags: ['simulation'] },
    (name) => {
      const { errs, always, least = 0 } = streams[name]!
      const random = seededRandom(SEED)
      let violated = 0
      let proven = 0
      const LIVES = 10_000 / Object.keys(streams).length
      for (let life = 0; life < LIVES; life += 1) {
        const compared = { agreed: 0, disagreed: 0 }
        let sum = 0
        for (let place = 0; place < 600; place += 1) {
          const chance = errs(place, random, compared)
          sum += chance
          compared[random() < chance ? 'disagreed' : 'agreed'] += 1
          const verdict = verdictAt(bar, compared)
          if (verdict === 'open') continue
          if (verdict !== 'proven') break
          proven += 1
          // The comparisons so far erred, on average, as often as the proof rules out.
          if (always || sum / (place + 1) >= 1 - bar.poor) violated += 1
          break
        }
      }
      // Three standard errors above 5 %.
      expect(violated / LIVES).toBeLessThanOrEqual(DELTA + 3 * Math.sqrt((DELTA * (1 - DELTA)) / LIVES))
      // Nor is it that nothing is ever proven.
      expect(proven / LIVES).toBeGreaterThanOrEqual(least)
    },
  )
})

test('a teacher that contradicts itself lowers the bar, and no further than chance agreement allows', () => {
  const noise = 0.03
  const bar = barAt(0.95, noise)
  const observed = (agreement: number) => agreement * (1 - noise) + (1 - agreement) * noise
  expect(chanceOfProof(bar, observed(0.95))).toBeLessThanOrEqual(0.05)
  expect(chanceOfProof(bar, observed(0.99))).toBeGreaterThanOrEqual(0.9)
  expect(chanceOfProof(barAt(0.95), observed(0.99))).toBeLessThan(0.6)
})

describe('the bounds of an act', () => {
  test.each([
    [0.9, { alone: 0.9, together: null }],
    [0.95, { alone: 0.95, together: null }],
    [0.97, { alone: 0.95, together: 0.97 }],
    [0.99, { alone: 0.95, together: 0.99 }],
    [0.995, { alone: 0.975, together: 0.995 }],
    [0.999, { alone: 0.995, together: 0.999 }],
  ])('at %d let it err five times as often by itself as all acts together, and in 5 % at most', (agreement, bounds) => {
    const { alone, together } = boundsOf(agreement, 'label')
    expect({ alone: Number(alone.toFixed(6)), together }).toEqual(bounds)
  })

  test('are by itself what the setting says of its tool, and the strictest of the tools of a sequence', () => {
    const by_tool = { default: 0.98, refund: 0.999, label: 0.95 }
    expect(boundsOf(by_tool, 'refund')).toEqual({ alone: 0.999, together: null })
    expect(boundsOf(by_tool, 'label + reply')).toEqual({ alone: 0.95, together: null })
    expect(boundsOf(by_tool, 'label + refund')).toEqual({ alone: 0.999, together: null })
    expect(boundsOf(by_tool, 'other')).toEqual({ alone: 0.95, together: 0.98 })
    expect(boundsOf({ refund: 0.999 }, 'constructor')).toEqual({ alone: 0.95, together: 0.99 })
    // A tool of that name has no bound of its own.
    expect(boundsOf(by_tool, 'default')).toEqual({ alone: 0.95, together: 0.98 })
  })
})
