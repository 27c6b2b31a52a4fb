import type { ReflexMetrics } from '../contract/reports/reflex-report.ts'
import { toolCallOf, type Action } from '../contract/action.ts'
import type { ReflexState } from '../contract/reflex.ts'
import type { Certificate, Stratum } from '../contract/certificate.ts'
import type { Risk } from '../contract/risk.ts'
import { DEFAULT_AGREEMENT } from '../contract/agreement.ts'
import { actsIn, doubtIn } from '../evidence/certificate.ts'
import { barAt, floorOf, neededAt, type ProofVerdict } from '../evidence/e-process.ts'
import { isSame, openText, togetherOf, verdictIn } from '../evidence/strata.ts'
import { emptyMetrics } from './metrics.ts'
import type { SandboxRun } from './sandbox.ts'

/** Share of runs that may end in an error, at a limit or in an invalid action. */
const MOST_FAILED_RUNS = 0.01
/** Limits beyond which an active reflex is demoted: a number of failures and a share of runs. */
const DEMOTION = {
  failed_runs: { at_least: 5, share: 0.2 },
  failed_effects: { at_least: 3, share: 0.2 },
  overruled: { at_least: 2, share: 0.1 },
} as const

/** Fires in shadow mode that must agree to prove a bound, where none disagrees. */
export const agreementsNeeded = (bound: number): number => neededAt(barAt(bound), { agreed: 0, disagreed: 0 })

/** The same for each act by itself at the default bound. */
const LEAST_OF_ACT = agreementsNeeded(floorOf(DEFAULT_AGREEMENT))

/** The newest active version: it acts where a chain follows the reflex. */
export const actsOf = (versions: readonly { version: number; state: ReflexState }[]): number | null =>
  versions.filter(({ state }) => state === 'active').reduce<number | null>((most, { version: one }) => Math.max(most ?? 0, one), null)

/** The way from a new version to its first act, for whoever wrote it; null: it acts already. */
export function wayToAct({
  id,
  version,
  state,
  by_agent,
}: {
  id: string
  version: number
  state: ReflexState
  by_agent: boolean
}): string | null {
  if (state === 'active') return null
  const name = `${id}@${version}`
  const at_once = `A person activates it at once by POST /v1/reflexes/${name}/state {"state": "active"${by_agent ? ', "force": true' : ''}}.`
  if (!by_agent) return `It does not act${state === 'shadow' ? ', and is compared with what is decided' : ''}. ${at_once}`
  return (
    `It acts on a type of events once its decisions there have agreed with the actual ones: each act ${LEAST_OF_ACT} times, and ` +
    `all acts of the same risk together ${agreementsNeeded(DEFAULT_AGREEMENT)} times, where none disagrees ` +
    `and learning.min_agreement is not set; each disagreement costs more. ` +
    `A call that can be neither undone nor repeated waits for a person, too. ${at_once}`
  )
}

const INSIDE: ReadonlySet<Action['action_type']> = new Set(['reply', 'set_scratch', 'ignore'])

/** `undoable`: some tool undoes the one that is called. */
export function riskOf(action: Action, call: { keyed: boolean; undoable: boolean }): Risk {
  if (INSIDE.has(action.action_type)) return 'inside'
  return toolCallOf(action) === null || call.keyed || call.undoable ? 'outside' : 'final'
}

/** `missing` says what it still lacks, in words for its owner. */
type Promotable = { ok: true } | { ok: false; missing: string[] }

/**
 * True if the certificates of all scopes together prove the version on each event type: then it
 * acts everywhere. `now` in ms: expired certificates prove nothing, even if their scope has not
 * ended them.
 */
export function promotable(certificates: readonly Certificate[], metrics: Pick<ReflexMetrics, 'runs' | 'passed'>, now: number): Promotable {
  const inForce = certificates.filter((one) => one.lapsed === null && one.expires_at > now && one.procedure === 'e_process')
  const summed = summedOf(inForce)
  const missing = inForce.flatMap((one) => actsIn(one).flatMap((stratum) => doubtOf(one, stratum)))
  const strata = summed ? actsIn(summed) : []
  if (strata.length === 0) missing.push(`0 of 0 compared fires in shadow agreed: at least ${LEAST_OF_ACT} more must agree`)
  for (const stratum of strata) {
    const { event_type, act, risk, n, k } = stratum
    const verdict = summed ? verdictOn(summed, stratum) : 'open'
    if (verdict === 'open' && summed) missing.push(openText(summed, stratum))
    if (verdict === 'refuted') missing.push(`${k} of ${n} compared fires for ${act} on ${event_type} agreed: that is too few to prove it`)
    if (risk === 'final') missing.push(`its action ${act} on ${event_type} can be neither undone nor repeated: a person must activate it`)
  }
  const failed = tooManyFailedRuns(metrics)
  if (failed !== null) missing.push(failed)
  return missing.length === 0 ? { ok: true } : { ok: false, missing }
}

function doubtOf(certificate: Certificate, stratum: Stratum): string[] {
  const doubted = doubtIn(certificate, stratum)
  return doubted === null ? [] : [`for ${stratum.act} on ${stratum.event_type} ${doubted}`]
}

/** The verdict of several scopes: a person's rejection anywhere counts. */
const verdictOn = (summed: Certificate, stratum: Stratum): ProofVerdict =>
  stratum.person === null && togetherOf(summed, stratum).person === null ? verdictIn(summed, stratum) : 'refuted'

/** The certificates of several scopes, added up as one by the terms of the first. */
function summedOf(certificates: readonly Certificate[]): Certificate | null {
  const [first] = certificates
  if (!first) return null
  const strata: Stratum[] = []
  for (const one of certificates.flatMap((certificate) => certificate.strata)) {
    const at = strata.findIndex((other) => isSame(one, other))
    const before = strata[at]
    const isRejected = one.state === 'refuted' && one.person !== null
    const person = isRejected ? one.person : (before?.person ?? null)
    const all = { ...one, state: 'open' as const, person, n: one.n + (before?.n ?? 0), k: one.k + (before?.k ?? 0) }
    if (before) strata[at] = all
    else strata.push(all)
  }
  return { ...first, strata }
}

/** The sentence about too many failed runs; null if there are few. */
export function tooManyFailedRuns({ runs, passed }: Pick<ReflexMetrics, 'runs' | 'passed'>): string | null {
  const failed = failedRuns({ passed })
  if (failed <= runs * MOST_FAILED_RUNS) return null
  return `${failed} of ${runs} runs ended in an error or at a limit: at most ${percent(MOST_FAILED_RUNS)} may`
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
export const countTrial = (trial: Trial, { reason }: Pick<SandboxRun, 'reason'>): Trial => ({
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
