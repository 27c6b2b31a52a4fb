import type { EpisodeAct, Saw } from '../../src/features/learning/episode.ts'
import type { LearnedReflexes } from '../../src/features/learning/reflexes/learn.ts'
import { actsOfAction } from '../../src/features/learning/episodes/decided.ts'
import { offersOf } from '../../src/features/learning/run/policy.ts'
import type { LearnedReflex } from '../../src/features/learning/reflexes/write.ts'
import { actNameOf } from '../../src/contract/act-name.ts'
import type { Agreement } from '../../src/contract/agreement.ts'
import type { AuditPace } from '../../src/contract/reports/reflex-report.ts'
import type { Certificate, Foreseen, Stratum, Teacher } from '../../src/contract/certificate.ts'
import { signsOf } from '../../src/evidence/branches.ts'
import { actsIn, obstacle, openCertificate, proceed } from '../../src/evidence/certificate.ts'
import { countsOfOthers, stratumOf } from '../../src/evidence/strata.ts'
import { sampleContext } from '../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../src/reflexes/run-reflex.ts'
import type { Program, Sandbox } from '../../src/reflexes/sandbox.ts'
import { checkReflex } from '../../src/reflexes/static-check.ts'

export type Audit = { index: number; id: string; agreed: boolean }
/** Reflexes that were learned together and use the same tools. */
export type Bundle = {
  strata: readonly string[]
  reflexes: { reflex: LearnedReflex; program: Program }[]
  /** The certificate of each reflex, as in a scope. */
  certificates: Map<string, Certificate>
  audits: Audit[]
  paces: Map<string, AuditPace>
  /** Share of such decisions that it would have taken, by the newer part of its history. */
  forecast: number
}

const teacher: Teacher = { by: 'model', agent_version: '1', model: 'label', prompt_hash: '', tools_hash: '', settings_revision: 1 }
export type Fired = { acts: EpisodeAct[]; id: string; act: string; event_type: string; risk: 'inside' | 'outside'; signs: string[] }

type ForeseenOf = (reflex: LearnedReflex) => Foreseen | null

export async function bundlesOf(learned: LearnedReflexes, agreement: Agreement, foreseenOf: ForeseenOf): Promise<Bundle[]> {
  const least = { agreement, support: 5 }
  return Promise.all(
    offersOf(learned).map(async ({ strata, reflexes, forecast }) => {
      const programs = await Promise.all(reflexes.map(async (reflex) => ({ reflex, program: await programOf(reflex) })))
      const opened = reflexes.map((reflex): [string, Certificate] => {
        const { id } = reflex
        const seen = foreseenOf(reflex)
        const foreseen = seen && { foreseen: seen.acts, shapes: seen.shapes }
        return [id, openCertificate({ kind: 'reflex', id, version: '1', hash: '' }, { teacher, at: 0, least, ...foreseen })]
      })
      return { strata, reflexes: programs, certificates: new Map(opened), audits: [], paces: new Map(), forecast }
    }),
  )
}

const strataOf = ({ certificates }: Bundle): Stratum[] => [...certificates.values()].flatMap(actsIn)
export const isActive = (bundle: Bundle): boolean => strataOf(bundle).some(({ state }) => state === 'proven')
export function isRefuted(bundle: Bundle): boolean {
  const strata = strataOf(bundle)
  return strata.length > 0 && strata.every(({ state }) => state === 'refuted')
}

/** The state of the proof of an act; `doubted` while it is compared again after an audit. */
export function stateOf({ certificates }: Bundle, fired: Fired): Stratum['state'] | 'doubted' {
  const certificate = certificates.get(fired.id)
  const stratum = certificate && stratumOf(certificate, { ...fired, seq: 0, at: 0 })
  if (!certificate || !stratum) return 'open'
  const where = { ...fired, at: 0, teacher, signsOf: () => fired.signs }
  return stratum.state === 'proven' && obstacle(certificate, where) !== null ? 'doubted' : stratum.state
}

/** Counts a comparison or an audit. `all`: those that share the proof of all acts together. */
export function observe(
  bundle: Bundle,
  { kind, all, ...seen }: Fired & { kind: 'compared' | 'audited'; index: number; agreed: boolean; all: readonly Bundle[] },
) {
  const { event_type, risk, act, id, agreed, signs, index } = seen
  const certificate = bundle.certificates.get(id)
  if (!certificate) return []
  const beside = all.flatMap(({ certificates }) => [...certificates.values()]).filter((one) => one !== certificate)
  const others = countsOfOthers(beside, risk, certificate)
  const after = proceed(certificate, { kind, event_type, risk, act, agreed, signs, seq: index, at: index, teacher, others })
  bundle.certificates.set(id, after.certificate)
  return after.changes
}

const kindOf = ({ id, act }: Fired): string => `${id} ${act}`
export const paceOf = ({ paces }: Bundle, fired: Fired): AuditPace => paces.get(kindOf(fired)) ?? { proof: 0, acts: 0, unaudited: 0 }
export const putPace = ({ paces }: Bundle, fired: Fired, pace: AuditPace): void => void paces.set(kindOf(fired), pace)

/** As a scope does after a disagreement. */
export function auditNext({ paces }: Bundle): void {
  for (const [kind, pace] of paces) paces.set(kind, { ...pace, next: true })
}

async function programOf({ code }: LearnedReflex): Promise<Program> {
  const checked = await checkReflex(code)
  if (!checked.ok) throw new Error(`learned code is refused: ${JSON.stringify(checked.errors)}\n${code}`)
  return { hash: checked.hash, code }
}

/** The acts of the first reflex that fires, in the sandbox that scopes use; null if none does. */
export function fire(sandbox: Sandbox, { reflexes }: Pick<Bundle, 'reflexes'>, saw: Saw, times: number[] = []): Fired | null {
  for (const { reflex, program } of reflexes) {
    const { action, reason, error, duration_us } = runReflex(sandbox, program, { ...sampleContext, ...saw })
    times.push(duration_us)
    if (action !== null) {
      const acts = actsOfAction(action)
      const risk = acts.length === 0 ? 'inside' : 'outside'
      return { acts, id: reflex.id, act: actNameOf(action), event_type: saw.event.type, risk, signs: signsOf(saw.event, action) }
    }
    if (reason !== 'null') throw new Error(`a learned reflex ended in ${reason}: ${error}\n${program.code}`)
  }
  return null
}

/** The event of the first disagreement among the latest audits of a reflex. */
export function driftSince({ audits }: Bundle, id: string): number {
  const own = audits.filter((audit) => audit.id === id).slice(-MOST_AUDITS)
  return own.find(({ agreed }) => !agreed)?.index ?? own[0]?.index ?? 0
}
const MOST_AUDITS = 100

/** The reflexes that the audits since then speak against; all if they do so alike. */
export function driftedIn({ audits, reflexes }: Bundle, since: number): Bundle['reflexes'] {
  const recent = audits.filter(({ index }) => index >= since)
  const drifted = reflexes.filter(({ reflex: { id } }) => {
    const own = recent.filter((audit) => audit.id === id)
    return own.filter(({ agreed }) => !agreed).length >= Math.max(2, own.length * LEAST_DRIFT)
  })
  return drifted.length === 0 ? reflexes : drifted
}

const LEAST_DRIFT = 0.2
