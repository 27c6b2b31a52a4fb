import type { ReflexMetrics } from '../contract/reflex-report.ts'
import type { ReflexState } from '../contract/reflex.ts'
import { emptyMetrics } from './metrics.ts'
import { shouldDemote } from './promotion.ts'
import type { Run } from './sandbox.ts'

/** A reflex that is stopped at its limit this often in a row is demoted: each time costs tens of ms. */
const MOST_LIMITS = 3

/** Counts of a version since it came into its state in a scope; `limits` in a row. */
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
