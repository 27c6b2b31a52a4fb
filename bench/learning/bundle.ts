import type { EpisodeAct, Saw } from '../../src/features/learning/episode.ts'
import type { LearnedReflexes } from '../../src/features/learning/reflexes/learn.ts'
import { actsOfAction } from '../../src/features/learning/episodes/decided.ts'
import { offersOf } from '../../src/features/learning/run/policy.ts'
import type { LearnedReflex } from '../../src/features/learning/reflexes/write.ts'
import type { AuditPace } from '../../src/contract/reports/reflex-report.ts'
import { countAudit, doubt, emptyCusum, type Cusum } from '../../src/features/proof/evidence/drift.ts'
import { barFor } from '../../src/features/proof/evidence/sprt.ts'
import { sampleContext } from '../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../src/reflexes/run-reflex.ts'
import type { Program, Sandbox } from '../../src/reflexes/sandbox.ts'
import { checkReflex } from '../../src/reflexes/static-check.ts'

export type Audit = { index: number; id: string; risk: RiskLevel; agreed: boolean }
type RiskLevel = 'inside' | 'outside'
/** The proof of a bundle's acts of one risk, as a certificate has a stratum for each. */
type Proof = { agreed: number; disagreed: number; state: 'open' | 'proven' | 'refuted' }
/** Reflexes that were learned together and use the same tools: proved and demoted together. */
export type Bundle = {
  strata: readonly string[]
  reflexes: { reflex: LearnedReflex; program: Program }[]
  proofs: Record<RiskLevel, Proof>
  audits: Audit[]
  /** A certificate for each reflex and risk, as in a scope. */
  audited: Map<string, { cusum: Cusum; pace: AuditPace }>
  /** Share of such decisions that it would have taken, by the newer part of its history. */
  forecast: number
}

const unproven = (): Proof => ({ agreed: 0, disagreed: 0, state: 'open' })

export async function bundlesOf(learned: LearnedReflexes): Promise<Bundle[]> {
  return Promise.all(
    offersOf(learned).map(async ({ strata, reflexes, forecast }) => {
      const programs = await Promise.all(reflexes.map(async (reflex) => ({ reflex, program: await programOf(reflex) })))
      return { strata, reflexes: programs, proofs: { inside: unproven(), outside: unproven() }, forecast, ...notAudited() }
    }),
  )
}

export const isActive = ({ proofs }: Bundle): boolean => proofs.inside.state === 'proven' || proofs.outside.state === 'proven'
export const isRefuted = ({ proofs }: Bundle): boolean =>
  Object.values(proofs).some(({ state }) => state === 'refuted') &&
  Object.values(proofs).every(({ state, agreed }) => state !== 'proven' && (state === 'refuted' || agreed === 0))

export const notAudited = (): Pick<Bundle, 'audits' | 'audited'> => ({ audits: [], audited: new Map() })

/** The audits of a reflex's acts of a risk since its proof. */
export const auditsOf = ({ audited }: Bundle, { id, risk }: Fired): { cusum: Cusum; pace: AuditPace } =>
  audited.get(`${risk} ${id}`) ?? { cusum: emptyCusum(), pace: { proof: 0, acts: 0, unaudited: 0 } }

export const putAudits = ({ audited }: Bundle, { id, risk }: Fired, known: ReturnType<typeof auditsOf>): void =>
  void audited.set(`${risk} ${id}`, known)

/** True while it is compared again, since an audit disagreed. */
export const isDoubted = (bundle: Bundle, fired: Fired): boolean => doubt(auditsOf(bundle, fired).cusum, barFor(fired.risk)) > 0

export function countAudited(bundle: Bundle, fired: Fired, audit: Audit): void {
  const known = auditsOf(bundle, fired)
  bundle.audits.push(audit)
  putAudits(bundle, fired, { ...known, cusum: countAudit(known.cusum, audit.agreed, barFor(fired.risk)) })
}

async function programOf({ code }: LearnedReflex): Promise<Program> {
  const checked = await checkReflex(code)
  if (!checked.ok) throw new Error(`learned code is refused: ${JSON.stringify(checked.errors)}\n${code}`)
  return { hash: checked.hash, code }
}

export type Fired = { acts: EpisodeAct[]; id: string; risk: RiskLevel }

/** The acts of the first reflex that fires, in the sandbox that scopes use; null if none does. */
export function fire(sandbox: Sandbox, { reflexes }: Bundle, saw: Saw, times: number[] = []): Fired | null {
  for (const { reflex, program } of reflexes) {
    const { action, reason, error, duration_us } = runReflex(sandbox, program, { ...sampleContext, ...saw })
    times.push(duration_us)
    if (action !== null) {
      const acts = actsOfAction(action)
      return { acts, id: reflex.id, risk: acts.length === 0 ? 'inside' : 'outside' }
    }
    if (reason !== 'null') throw new Error(`a learned reflex ended in ${reason}: ${error}\n${program.code}`)
  }
  return null
}

/** The audited event since which a CUSUM test of a risk sees more disagreement, or null. */
export function driftSince({ audits }: Bundle): number | null {
  for (const risk of ['inside', 'outside'] as const) {
    const own = audits.filter((audit) => audit.risk === risk)
    let state = emptyCusum()
    let since = own[0]?.index ?? 0
    for (const { index, agreed } of own) {
      if (state.sum === 0) since = index
      state = countAudit(state, agreed, barFor(risk))
    }
    if (state.alarm) return since
  }
  return null
}

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
