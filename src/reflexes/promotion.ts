import type { ReflexMetrics } from '../contract/reports/reflex-report.ts'
import { toolCallOf, type Action } from '../contract/action.ts'
import type { ReflexState } from '../contract/reflex.ts'
import type { Certificate, Stratum } from '../features/proof/contract/certificate.ts'
import type { Risk } from '../contract/risk.ts'
import { doubtIn } from '../features/proof/evidence/certificate.ts'
import { barFor, sprt, type SequentialProof } from '../features/proof/evidence/sprt.ts'
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

/** Fires in shadow mode that must agree before promotion, where none disagrees. */
export const agreementsNeeded = (risk: Risk): number => sprt(barFor(risk), { agreed: 0, disagreed: 0 }).needed

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
    `It acts on a type of events once its decisions there have agreed with the actual ones: ${agreementsNeeded('inside')} times for replies, notes and ` +
    `nothing, ${agreementsNeeded('outside')} times for what reaches outside, where none disagrees; each disagreement costs more. ` +
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
  const inForce = certificates.filter(({ lapsed, expires_at }) => lapsed === null && expires_at > now)
  const strata = summedStrata(inForce)
  const missing = inForce.flatMap((one) => one.strata.flatMap((stratum) => doubtOf(one, stratum)))
  if (strata.length === 0) missing.push(`0 of 0 compared fires in shadow agreed: at least ${agreementsNeeded('inside')} more must agree`)
  for (const { event_type, risk, n, k, verdict, needed } of strata) {
    const compared = `${k} of ${n} compared fires in shadow agreed`
    const good = percent(barFor(risk).good)
    if (verdict === 'open') missing.push(`${compared}: at least ${needed} more must agree on ${event_type}`)
    if (verdict === 'refuted') missing.push(`${compared}: that is too few to expect ${good} agreement on ${event_type}`)
    if (risk === 'final') missing.push(`its calls on ${event_type} can be neither undone nor repeated: a person must activate it`)
  }
  const failed = tooManyFailedRuns(metrics)
  if (failed !== null) missing.push(failed)
  return missing.length === 0 ? { ok: true } : { ok: false, missing }
}

function doubtOf(certificate: Certificate, stratum: Stratum): string[] {
  const doubted = doubtIn(certificate, stratum)
  return doubted === null ? [] : [`on ${stratum.event_type} ${doubted}`]
}

/** The strata of several scopes, added up; each is tested by itself. */
function summedStrata(certificates: readonly Certificate[]): (Pick<Stratum, 'event_type' | 'risk' | 'n' | 'k'> & SequentialProof)[] {
  const all = certificates.flatMap(({ strata, least, noise }) =>
    strata.map((stratum) => ({ ...stratum, bar: { least: least.agreement, noise } })),
  )
  return Array.from(Map.groupBy(all, ({ event_type, risk }) => `${risk} ${event_type}`).values(), (same) => {
    const [{ event_type, risk, bar }] = same as [(typeof all)[number]]
    const n = same.reduce((sum, stratum) => sum + stratum.n, 0)
    const k = same.reduce((sum, stratum) => sum + stratum.k, 0)
    const rejected = same.some(({ state, person }) => state === 'refuted' && person !== null)
    return { event_type, risk, n, k, ...(rejected ? REJECTED : sprt(barFor(risk, bar), { agreed: k, disagreed: n - k })) }
  })
}
const REJECTED = { verdict: 'refuted', needed: 0 } as const

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
