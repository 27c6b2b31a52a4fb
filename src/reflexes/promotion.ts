import type { ReflexMetrics } from '../contract/reports/reflex-report.ts'
import type { Action } from '../contract/action.ts'
import type { ReflexState } from '../contract/reflex.ts'
import { risks, type Risk } from '../contract/reports/certificate.ts'
import { MOST_TYPES } from '../proof/certificate.ts'
import { barFor, sprt, type Compared, type Proof } from '../proof/sprt.ts'
import { emptyMetrics } from './metrics.ts'
import type { Run } from './sandbox.ts'

/** Share of runs that may end in an error, at a limit or in an invalid action. */
const MOST_FAILED_RUNS = 0.01
/** Limits beyond which an active reflex is demoted: a number of failures and a share of runs. */
const DEMOTION = {
  failed_runs: { at_least: 5, share: 0.2 },
  failed_effects: { at_least: 3, share: 0.2 },
  overruled: { at_least: 2, share: 0.1 },
} as const

type Strata = ReflexMetrics['strata']

/** Fires in shadow mode that must agree before promotion, where none disagrees. */
export const agreementsNeeded = (risk: Risk): number => sprt(barFor(risk), { agreed: 0, disagreed: 0 }).needed

const INSIDE: ReadonlySet<Action['action_type']> = new Set(['reply', 'set_scratch', 'ignore'])

/** `undoable`: some tool undoes the one that is called. */
export function riskOf(action: Action, call: { keyed: boolean; undoable: boolean }): Risk {
  if (INSIDE.has(action.action_type)) return 'inside'
  return action.action_type !== 'call_tool' || call.keyed || call.undoable ? 'outside' : 'final'
}

/** The counts after one more comparison. */
export function countComparison(strata: Strata, at: { event_type: string; risk: Risk; agreed: boolean }): Strata {
  const isKnown = Object.hasOwn(strata, at.event_type) || Object.keys(strata).length < MOST_TYPES
  const type = isKnown ? at.event_type : '*'
  const known = Object.hasOwn(strata, type) ? strata[type] : undefined
  const { agreed, disagreed } = known?.[at.risk] ?? { agreed: 0, disagreed: 0 }
  const counts = at.agreed ? { agreed: agreed + 1, disagreed } : { agreed, disagreed: disagreed + 1 }
  return { ...strata, [type]: { ...known, [at.risk]: counts } }
}

/** One verdict for each event type and risk. A stratum is never proved by the fires of another. */
export function proofsOf(strata: Strata): (Compared & Proof & { event_type: string; risk: Risk })[] {
  return Object.entries(strata).flatMap(([event_type, known]) =>
    risks.flatMap((risk) => {
      const compared = known[risk]
      return compared ? [{ event_type, risk, ...compared, ...sprt(barFor(risk), compared) }] : []
    }),
  )
}

/** `missing` says what it still lacks, in words for its owner. */
type Promotable = { ok: true } | { ok: false; missing: string[] }

export function promotable(metrics: ReflexMetrics): Promotable {
  const { strata, runs } = metrics
  const proofs = proofsOf(strata)
  const failed = failedRuns(metrics)
  const missing: string[] = []
  if (proofs.length === 0) missing.push(`0 of 0 compared fires in shadow agreed: at least ${agreementsNeeded('inside')} more must agree`)
  for (const { event_type, risk, agreed, disagreed, verdict, needed } of proofs) {
    const compared = `${agreed} of ${agreed + disagreed} compared fires in shadow agreed`
    const good = percent(barFor(risk).good)
    if (verdict === 'open') missing.push(`${compared}: at least ${needed} more must agree on ${event_type}`)
    if (verdict === 'refuted') missing.push(`${compared}: that is too few to expect ${good} agreement on ${event_type}`)
    if (risk === 'final') missing.push(`its calls on ${event_type} can be neither undone nor repeated: a person must activate it`)
  }
  if (failed > runs * MOST_FAILED_RUNS) {
    const most = percent(MOST_FAILED_RUNS)
    missing.push(`${failed} of ${runs} runs ended in an error or at a limit: at most ${most} may`)
  }
  return missing.length === 0 ? { ok: true } : { ok: false, missing }
}

/** True if some event type has too many disagreements for a promotion ever. */
export const refuted = (strata: Strata): boolean => proofsOf(strata).some(({ verdict }) => verdict === 'refuted')

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
