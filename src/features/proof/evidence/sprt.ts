import type { Risk } from '../../../contract/risk.ts'

export type Compared = { agreed: number; disagreed: number }

/** `accept`, `refuse`: likelihood ratios at which a sequential test ends. */
export type Bar = { poor: number; good: number; accept: number; refuse: number }

/**
 * Both error rates are 5 %. Wald's ratio of 19 keeps that for the first bar (4.99 %), not for the
 * second (5.06 %), which takes 20: by Ville's inequality no bad reflex reaches it more often.
 */
const BARS = {
  inside: { poor: 0.95, good: 0.99, accept: 19, refuse: 1 / 19 },
  outside: { poor: 0.97, good: 0.995, accept: 20, refuse: 1 / 19 },
} as const satisfies Record<string, Bar>

/**
 * The bar of a risk. `noise` is the share of decisions in which the teacher contradicts itself,
 * measured apart (the same event asked twice): nothing can agree with it more often than it does
 * itself. A noisy decision may also agree by chance with a wrong act, which raises `poor`.
 */
export function barFor(risk: Risk, { noise = 0, least = 0 }: { noise?: number; least?: number } = {}): Bar {
  const bar = raised(BARS[risk === 'inside' ? 'inside' : 'outside'], least)
  return { ...bar, poor: bar.poor * (1 - noise) + (1 - bar.poor) * noise, good: bar.good * (1 - noise) }
}

/** A bar whose `poor` is at least `least`. */
const raised = (bar: Bar, least: number): Bar =>
  least <= bar.poor ? bar : { ...bar, poor: least, good: Math.max(bar.good, 1 - (1 - least) / 5), accept: 20 }

export type SequentialProof =
  | { verdict: 'open'; /** Agreements still needed if nothing disagrees. */ needed: number }
  | { verdict: 'proven' | 'refuted'; needed: 0 }

/** Log likelihood ratio of `good` to `poor` for one comparison. */
export function weights({ poor, good }: Bar): { agreed: number; disagreed: number } {
  return { agreed: Math.log(good / poor), disagreed: Math.log((1 - good) / (1 - poor)) }
}

/**
 * Wald's sequential probability ratio test: may be evaluated after each comparison without raising
 * its error rates.
 */
export function sprt(bar: Bar, { agreed, disagreed }: Compared): SequentialProof {
  const weight = weights(bar)
  const evidence = agreed * weight.agreed + disagreed * weight.disagreed
  const accept = Math.log(bar.accept)
  if (evidence >= accept) return { verdict: 'proven', needed: 0 }
  if (evidence <= Math.log(bar.refuse)) return { verdict: 'refuted', needed: 0 }
  return { verdict: 'open', needed: Math.ceil((accept - evidence) / weight.agreed) }
}
