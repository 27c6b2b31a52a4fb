import { actNameOf } from '../../contract/act-name.ts'
import type { Action } from '../../contract/action.ts'
import type { Event } from '../../core/event.ts'
import { allSignsOf } from '../../evidence/branches.ts'
import type { Risk } from '../../contract/risk.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import { riskIn, type RiskTools } from '../../agent/risk.ts'
import type { Log } from '../log/log.ts'
import type { LicensedGoods } from '../../contract/licence.ts'
import type { ReflexVersions } from './versions.ts'

/** Says what lets a version act by proof. Each method gives the reason why not, or null. */
export type VersionProofs = {
  /** On an event of this type, with an action of this risk. */
  unproven(version: ReflexVersion, where: ActWhere, at: number): string | null
  /** The reason why a proven act waits for verdicts on earlier ones. A queued action does not. */
  awaits(version: ReflexVersion, where: Required<Omit<ActWhere, 'signsOf'>>): string | null
  /** The reason why no proof is in force: it acts on no event at all. */
  expired(version: ReflexVersion, at: number): string | null
  /** The reason why it acts on nothing at present: no proof is in force, or none is left. */
  idle(version: ReflexVersion, at: number): string | null
}
/**
 * `risk` and `act`: missing before they are known. `action`: its words count, too, if it is known.
 * `signsOf`: of the action on the event, which a proof may no longer reach; null if they are
 * unknown.
 */
export type ActWhere = { event_type: string; risk?: Risk; act?: string; action?: Action; signsOf?: () => readonly string[] | null }

const nothing = (): string => 'this deployment proves no reflexes'
const NO_PROOFS: VersionProofs = { unproven: nothing, awaits: nothing, expired: nothing, idle: nothing }

type MayActParts = {
  programs: Pick<ReflexVersions, 'find' | 'isSuspended'>
  features: readonly { readonly mayUse?: (goods: LicensedGoods, at: number) => string | null }[]
  toolbox: RiskTools
  log: Pick<Log, 'clean'>
}
type ActingName = Pick<ReflexVersion, 'id' | 'version'>
/** An action on an event. Null: before it is known, and any would do. */
type ProposedAct = { event_type: string; event?: Event; action: Action | null }

/**
 * Answers whether a version may act now. All callers ask here: the decision on an event, a queued
 * action, a served contract and the view of the chain. Each method returns the reason why not, or
 * null. The reasons, in the order in which they are given:
 *
 * 1. The chain no longer has the version, or it no longer acts there. Only a queued action asks
 *    this: `decide` takes its versions from the chain.
 * 2. A feature objects. To the market, its licences have all expired, or are used up. A queued
 *    action was counted on one already.
 * 3. Its proof does not let it act so, or none does (`VersionProofs`).
 *
 * Reasons 2 and 3 are for versions that act by proof: a person activated the others.
 */
export class MayAct {
  readonly #parts: MayActParts
  #proofs = NO_PROOFS

  constructor(parts: MayActParts) {
    this.#parts = parts
  }

  /** Registers what proves versions. */
  proveBy(proofs: VersionProofs): void {
    this.#proofs = proofs
  }

  /** For a version of the chain that decides on an event. */
  mayAct(version: ReflexVersion, { event_type, event, action }: ProposedAct, at: number): string | null {
    if (!version.by_proof) return null
    const { features, toolbox, log } = this.#parts
    for (const feature of features) {
      const reason = feature.mayUse?.(version, at) ?? null
      if (reason !== null) return reason
    }
    if (action) {
      const where = { event_type, risk: riskIn(toolbox, action), act: actNameOf(action), action }
      return (
        this.#proofs.unproven(version, { ...where, ...(event && { signsOf: () => allSignsOf(event, action, log) }) }, at) ??
        this.#proofs.awaits(version, where)
      )
    }
    return this.#proofs.unproven(version, { event_type }, at)
  }

  /** For an action that was queued, when its turn comes. */
  mayStillAct(name: ActingName, where: ActWhere, at: number): string | null {
    const { programs } = this.#parts
    const version = programs.find(name)
    if (!version) return `reflex ${name.id}@${name.version} has left the chain`
    if (version.state !== 'active' || programs.isSuspended(version)) return `reflex ${name.id}@${name.version} no longer acts`
    return version.by_proof ? this.#proofs.unproven(version, where, at) : null
  }

  /** The reason why no proof of a version is in force: it acts on no event at all. */
  expired(version: ReflexVersion, at: number): string | null {
    return version.by_proof ? this.#proofs.expired(version, at) : null
  }

  /** The reason why a version acts on nothing at present. */
  idle(version: ReflexVersion, at: number): string | null {
    return version.by_proof ? this.#proofs.idle(version, at) : null
  }
}
