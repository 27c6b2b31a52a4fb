import type { ReflexMetrics } from '../contract/reports/reflex-report.ts'
import type { ReflexState } from '../contract/reflex.ts'
import { emptyMetrics } from './metrics.ts'
import type { Run } from './sandbox.ts'

/**
 * Wald's sequential probability ratio test on compared fires: `poor` against `good` agreement. It
 * may be evaluated after each comparison without raising its error rates.
 */
const PROMOTION = { poor: 0.95, good: 0.99, error_rate: 0.05, failed_runs: 0.01 } as const
/** Limits beyond which an active reflex is demoted: a number of failures and a share of runs. */
const DEMOTION = {
  failed_runs: { at_least: 5, share: 0.2 },
  failed_effects: { at_least: 3, share: 0.2 },
  overruled: { at_least: 2, share: 0.1 },
} as const

const FOR_AN_AGREEMENT = Math.log(PROMOTION.good / PROMOTION.poor)
const FOR_A_DISAGREEMENT = Math.log((1 - PROMOTION.good) / (1 - PROMOTION.poor))
/** Both error rates are equal, so the two bounds differ only in sign. */
const BOUND = Math.log((1 - PROMOTION.error_rate) / PROMOTION.error_rate)

/** Fires in shadow that must agree before promotion, where none disagrees. */
export const AGREEMENTS_NEEDED = Math.ceil(BOUND / FOR_AN_AGREEMENT)

type Proof =
  | { verdict: 'open'; /** Agreements still needed if no fire disagrees. */ needed: number }
  | { verdict: 'proven' | 'refuted'; needed: 0 }

/** The test's verdict on the fires that were compared so far. */
export function proofOf({ agreed, disagreed }: Pick<ReflexMetrics['shadow'], 'agreed' | 'disagreed'>): Proof {
  const evidence = agreed * FOR_AN_AGREEMENT + disagreed * FOR_A_DISAGREEMENT
  if (evidence >= BOUND) return { verdict: 'proven', needed: 0 }
  if (evidence <= -BOUND) return { verdict: 'refuted', needed: 0 }
  return { verdict: 'open', needed: Math.ceil((BOUND - evidence) / FOR_AN_AGREEMENT) }
}

/** `missing` says what it still lacks, in words for its owner. */
type Promotable = { ok: true } | { ok: false; missing: string[] }

export function promotable(metrics: ReflexMetrics): Promotable {
  const { shadow, runs } = metrics
  const { agreed, disagreed } = shadow
  const { verdict, needed } = proofOf(shadow)
  const failed = failedRuns(metrics)
  const missing: string[] = []
  const compared = `${agreed} of ${agreed + disagreed} compared fires in shadow agreed`
  if (verdict === 'open') missing.push(`${compared}: at least ${needed} more must agree`)
  if (verdict === 'refuted') {
    missing.push(`${compared}: that is too few to expect ${percent(PROMOTION.good)} agreement`)
  }
  if (failed > runs * PROMOTION.failed_runs) {
    const most = percent(PROMOTION.failed_runs)
    missing.push(`${failed} of ${runs} runs ended in an error or at a limit: at most ${most} may`)
  }
  return missing.length === 0 ? { ok: true } : { ok: false, missing }
}

export function shouldDemote(metrics: Pick<ReflexMetrics, 'runs' | 'passed' | 'acted' | 'failed' | 'overruled'>): string | null {
  const { runs, acted, failed, overruled } = metrics
  const failures = failedRuns(metrics)
  if (reaches(DEMOTION.failed_runs, failures, runs)) return `${failures} of ${runs} runs ended in an error or at a limit`
  if (reaches(DEMOTION.failed_effects, failed, acted)) return `the effects of ${failed} of ${acted} actions failed`
  if (reaches(DEMOTION.overruled, overruled, acted)) return `${overruled} of ${acted} actions were overruled`
  return null
}

const failedRuns = ({ passed }: Pick<ReflexMetrics, 'passed'>): number => passed.error + passed.limit + passed.invalid_action

const reaches = ({ at_least, share }: { at_least: number; share: number }, count: number, of: number): boolean =>
  count >= at_least && count >= of * share

/** Rounded down, so that a value just below the threshold does not look sufficient. */
const percent = (share: number): string => `${Math.floor(share * 1000) / 10} %`

/** After this many consecutive runs that hit a limit a reflex is demoted: each costs tens of ms. */
const MOST_LIMITS = 3

/** Counts of a version since it entered its state in a scope. `limits` is consecutive. */
export type Trial = Pick<ReflexMetrics, 'runs' | 'passed' | 'acted' | 'failed' | 'overruled'> & { state: string; limits: number }

export function emptyTrial(state: string): Trial {
  const { runs, passed, acted, failed, overruled } = emptyMetrics()
  return { runs, passed, acted, failed, overruled, state, limits: 0 }
}

/** The trial after one more run. */
export const countTrial = (trial: Trial, { reason }: Pick<Run, 'reason'>): Trial => ({
  ...trial,
  runs: trial.runs + 1,
  passed: reason === 'fired' ? trial.passed : { ...trial.passed, [reason]: trial.passed[reason] + 1 },
  limits: reason === 'limit' ? trial.limits + 1 : 0,
})

/** The state that the version is demoted to, and why; null if it keeps its state. */
export function demotionOf(trial: Trial, state: ReflexState): { to: ReflexState; reason: string } | null {
  if (trial.limits >= MOST_LIMITS) return { to: 'draft', reason: `it was stopped at its limit ${MOST_LIMITS} times in a row` }
  const reason = state === 'active' ? shouldDemote(trial) : null
  return reason === null ? null : { to: 'shadow', reason }
}
