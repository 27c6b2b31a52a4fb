import { binomialTail, clopperPearsonHigh } from './binomial.ts'

/** A decision of a learner with scores, and whether the teacher decided the same. */
export type Scored = { score: number; agreed: boolean }

/**
 * Decisions with at least this score disagree at most `alpha` of the time, with confidence 1 -
 * `delta`.
 */
type Threshold = {
  threshold: number
  n: number
  disagreed: number
  /** Upper Clopper-Pearson bound of the disagreement at the level of this test. */
  high: number
  procedure: 'fixed_sequence' | 'bonferroni'
}
type Levels = {
  alpha: number
  delta: number
  /** Candidate thresholds, chosen without these labels; see `thresholdGrid`. */
  grid: readonly number[]
}

/** Coverage levels that Bonferroni's correction pays for. */
const LEVELS = 12

/** Thresholds at even steps of coverage, from the strictest to one that covers everything. */
export function thresholdGrid(scores: readonly number[], steps = 50): number[] {
  const sorted = Array.from(scores).sort((one, other) => other - one)
  const grid = Array.from({ length: steps }, (_, step) => sorted[Math.ceil((sorted.length * (step + 1)) / steps) - 1])
  return Array.from(new Set(grid.filter((threshold) => threshold !== undefined)))
}

/**
 * Learn-then-Test: the lowest threshold above which the learner may answer. Half of `delta` pays
 * for a fixed sequence from strict to lax that stops at its first failure, half for a few levels
 * under Bonferroni's correction, which survive a failure at the strict end. Null: defer everything.
 */
export function learnThenTest(scored: readonly Scored[], { alpha, delta, grid }: Levels): Threshold | null {
  const candidates = Array.from(new Set(grid)).sort((one, other) => other - one)
  const counts = countAbove(scored, candidates)
  let found: Threshold | null = null
  const passes = (index: number, level: number, procedure: Threshold['procedure']): boolean => {
    const count = counts[index]
    if (!count || binomialTail(count, alpha) > level) return false
    const { threshold, n, k: disagreed } = count
    if (!found || threshold < found.threshold) found = { threshold, n, disagreed, high: clopperPearsonHigh(count, level), procedure }
    return true
  }
  const first = counts.findIndex(({ n }) => n >= leastFor(alpha, delta / 2))
  // The sequence has not begun while too few are covered for any verdict: n holds no label.
  for (let index = first; passes(index, delta / 2, 'fixed_sequence'); index += 1);
  const levels = Math.min(LEVELS, candidates.length)
  for (let level = 1; level <= levels; level += 1) {
    passes(Math.ceil((candidates.length * level) / levels) - 1, delta / 2 / levels, 'bonferroni')
  }
  return found
}

/** Decisions without a disagreement that a test at this level needs. */
const leastFor = (alpha: number, level: number): number => Math.log(level) / Math.log(1 - alpha)

/** For each threshold, from high to low: decisions covered, and how many of them disagreed. */
function countAbove(scored: readonly Scored[], thresholds: readonly number[]): { threshold: number; n: number; k: number }[] {
  const sorted = Array.from(scored).sort((one, other) => other.score - one.score)
  let n = 0
  let k = 0
  return thresholds.map((threshold) => {
    for (let next = sorted[n]; next && next.score >= threshold; next = sorted[n]) {
      n += 1
      if (!next.agreed) k += 1
    }
    return { threshold, n, k }
  })
}
