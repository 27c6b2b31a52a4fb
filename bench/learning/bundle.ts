import type { EpisodeAct, Saw } from '../../src/features/learning/episode.ts'
import type { LearnedReflexes } from '../../src/features/learning/reflexes/learn.ts'
import { actsOfAction } from '../../src/features/learning/episodes/decided.ts'
import { offersOf } from '../../src/features/learning/run/policy.ts'
import type { LearnedReflex } from '../../src/features/learning/reflexes/write.ts'
import type { AuditPace } from '../../src/contract/reports/reflex-report.ts'
import { countAudit, doubt, emptyCusum, type Cusum } from '../../src/features/proof/evidence/drift.ts'
import { type Bar, barFor } from '../../src/features/proof/evidence/sprt.ts'
import { sampleContext } from '../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../src/reflexes/run-reflex.ts'
import type { Program, Sandbox } from '../../src/reflexes/sandbox.ts'
import { checkReflex } from '../../src/reflexes/static-check.ts'

export type Audit = { index: number; id: string; agreed: boolean }
/** Reflexes that were learned together and use the same tool: proved and demoted together. */
export type Bundle = {
  stratum: string
  reflexes: { reflex: LearnedReflex; program: Program }[]
  state: 'shadow' | 'active'
  agreed: number
  disagreed: number
  audits: Audit[]
  /** A certificate for each reflex, as in a scope. */
  audited: Map<string, { cusum: Cusum; pace: AuditPace }>
  /** Share of such decisions that it would have taken, by the newer part of its history. */
  forecast: number
}

export const NOTHING = 'nothing'

export async function bundlesOf(learned: LearnedReflexes): Promise<Bundle[]> {
  return Promise.all(
    offersOf(learned).map(async ({ stratum, reflexes, forecast }) => {
      const programs = await Promise.all(reflexes.map(async (reflex) => ({ reflex, program: await programOf(reflex) })))
      return { stratum, reflexes: programs, state: 'shadow', agreed: 0, disagreed: 0, forecast, ...notAudited() } as const
    }),
  )
}

export const notAudited = (): Pick<Bundle, 'audits' | 'audited'> => ({ audits: [], audited: new Map() })

/** The audits of a reflex's acts since its proof. */
export const auditsOf = ({ audited }: Bundle, id: string): { cusum: Cusum; pace: AuditPace } =>
  audited.get(id) ?? { cusum: emptyCusum(), pace: { proof: 0, acts: 0, unaudited: 0 } }

/** True while it is compared again, since an audit disagreed. */
export const isDoubted = (bundle: Bundle, id: string): boolean => doubt(auditsOf(bundle, id).cusum, barOf(bundle)) > 0

export function countAudited(bundle: Bundle, audit: Audit): void {
  const known = auditsOf(bundle, audit.id)
  bundle.audits.push(audit)
  bundle.audited.set(audit.id, { ...known, cusum: countAudit(known.cusum, audit.agreed, barOf(bundle)) })
}

async function programOf({ code }: LearnedReflex): Promise<Program> {
  const checked = await checkReflex(code)
  if (!checked.ok) throw new Error(`learned code is refused: ${JSON.stringify(checked.errors)}\n${code}`)
  return { hash: checked.hash, code }
}

export type Fired = { acts: EpisodeAct[]; id: string }

/** The acts of the first reflex that fires, in the sandbox that scopes use; null if none does. */
export function fire(sandbox: Sandbox, { reflexes }: Bundle, saw: Saw, times: number[] = []): Fired | null {
  for (const { reflex, program } of reflexes) {
    const { action, reason, error, duration_us } = runReflex(sandbox, program, { ...sampleContext, ...saw })
    times.push(duration_us)
    if (action !== null) return { acts: actsOfAction(action), id: reflex.id }
    if (reason !== 'null') throw new Error(`a learned reflex ended in ${reason}: ${error}\n${program.code}`)
  }
  return null
}

export const barOf = ({ stratum }: Pick<Bundle, 'stratum'>): Bar => barFor(stratum === NOTHING ? 'inside' : 'outside')

/** The audited event since which a CUSUM test sees more disagreement, or null. */
export function driftSince({ audits, stratum }: Bundle): number | null {
  const bar = barOf({ stratum })
  let state = emptyCusum()
  let since = audits[0]?.index ?? 0
  for (const { index, agreed } of audits) {
    if (state.sum === 0) since = index
    state = countAudit(state, agreed, bar)
  }
  return state.alarm ? since : null
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
