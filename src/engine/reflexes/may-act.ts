import type { Action } from '../../contract/action.ts'
import { risks, type Risk } from '../../contract/risk.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import { expiry, idleSince, obstacle } from '../../features/proof/evidence/certificate.ts'
import { riskIn } from '../../agent/risk.ts'
import type { Toolbox } from '../../agent/toolbox.ts'
import { saysBeside } from '../../contract/words.ts'
import type { ScopeFeature } from '../feature.ts'
import type { Ground } from '../storage/wiring.ts'
import type { Certificates } from '../../features/proof/scope/certificates.ts'
import type { ReflexVersions } from './versions.ts'

type MayActParts = Pick<Ground, 'settings'> & {
  programs: Pick<ReflexVersions, 'find' | 'isSuspended'>
  features: readonly Pick<ScopeFeature, 'mayAct'>[]
  certificates: Pick<Certificates, 'of' | 'teacher'>
  toolbox: Pick<Toolbox, 'all' | 'keyOf'>
}
type ActingName = Pick<ReflexVersion, 'id' | 'version'>
/** `action`: its words count, too, if it is known. */
type Where = { event_type: string; risk: Risk; action?: Action }
/** An action on an event. Null: before it is known, and any would do. */
export type ProposedAct = { event_type: string; action: Action | null }

/**
 * Answers whether a version may act now. All callers ask here: the decision on an event, a queued
 * action, a promotion, the decision model, a served contract and the view of the chain. Each
 * method returns the reason why not, or null. The reasons, in the order in which they are given:
 *
 * 1. The chain no longer has the version, or it no longer acts there. Only a queued action asks
 *    this: `decide` takes its versions from the chain.
 * 2. A feature objects. To the market, its licences have all expired, or are used up. A queued
 *    action was counted on one already.
 * 3. The setting `learning.mode` holds back what acts by proof.
 * 4. It has no certificate here, or the certificate lapsed, expired or is of another slow path.
 * 5. Its action on such an event is refuted, not proven yet, or in doubt since its proof.
 * 6. A person must allow it: it can be neither undone nor repeated, the mode is `propose`, or it
 *    says words beside other acts that the setting `learning.replies` leaves to a person.
 *
 * Reasons 2 to 6 are for versions that act by proof: a person activated the others.
 */
export class MayAct {
  readonly #parts: MayActParts

  constructor(parts: MayActParts) {
    this.#parts = parts
  }

  /** For a version of the chain that decides on an event. */
  mayAct(version: ReflexVersion, { event_type, action }: ProposedAct, at: number): string | null {
    if (!version.by_proof) return null
    const { features, toolbox } = this.#parts
    for (const feature of features) {
      const reason = feature.mayAct?.(version, at) ?? null
      if (reason !== null) return reason
    }
    if (action) return this.unproven(version, { event_type, risk: riskIn(toolbox, action), action }, at)
    const reasons = risks.map((risk) => this.unproven(version, { event_type, risk }, at))
    return reasons.includes(null) ? null : (reasons[0] ?? null)
  }

  /** For an action that was queued, when its turn comes. */
  mayStillAct(name: ActingName, where: Where, at: number): string | null {
    const { programs } = this.#parts
    const version = programs.find(name)
    if (!version) return `reflex ${name.id}@${name.version} has left the chain`
    if (version.state !== 'active' || programs.isSuspended(version)) return `reflex ${name.id}@${name.version} no longer acts`
    return version.by_proof ? this.unproven(version, where, at) : null
  }

  /** For what acts by proof, or is about to. */
  unproven(version: ReflexVersion, { action, ...where }: Where, at: number): string | null {
    const held_back = this.heldBack(version)
    if (held_back !== null) return held_back
    const { certificates, settings } = this.#parts
    const known = certificates.of(version)
    if (!known) return NEVER_COMPARED
    const { mode, replies } = settings().learning
    const chooses = replies === 'by_person' && action !== undefined && saysBeside(action)
    return obstacle(known, { ...where, at, teacher: certificates.teacher, replies, asks: mode === 'propose' || chooses })
  }

  /** The reason why the settings stop a version from acting by proof. */
  heldBack({ provenance }: Pick<ReflexVersion, 'provenance'>): string | null {
    const { mode } = this.#parts.settings().learning
    const stops = mode === 'shadow' || (mode === 'off' && provenance.run !== undefined)
    return stops ? `the setting learning.mode is ${mode}` : null
  }

  /** The reason why no certificate of a version is in force: it acts on no event at all. */
  expired(version: ReflexVersion, at: number): string | null {
    if (!version.by_proof) return null
    const held_back = this.heldBack(version)
    if (held_back !== null) return held_back
    const { certificates } = this.#parts
    const known = certificates.of(version)
    if (!known) return NEVER_COMPARED
    const { replies } = this.#parts.settings().learning
    return expiry(known, { at, teacher: certificates.teacher, replies }) ?? (known.bound === null ? 'none of its actions is proven' : null)
  }

  /** The reason why a version acts on nothing at present: its certificate, or all of its proofs. */
  idle(version: ReflexVersion, at: number): string | null {
    if (!version.by_proof) return null
    const known = this.#parts.certificates.of(version)
    return this.expired(version, at) ?? (known && idleSince(known, at)?.reason) ?? null
  }
}

const NEVER_COMPARED = 'it was never compared with a decision in this scope'
