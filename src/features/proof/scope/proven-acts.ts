import type { ReflexVersion } from '../../../contract/reflex.ts'
import { saysBeside } from '../../../contract/words.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import type { ActWhere, VersionProofs } from '../../../engine/reflexes/may-act.ts'
import { expiry, idleSince, obstacle } from '../../../evidence/certificate.ts'
import type { Certificates } from './certificates.ts'

type ProvenActsParts = Pick<Ground, 'settings'> & { certificates: Pick<Certificates, 'of' | 'teacher' | 'least'> }

/**
 * Says what certificates let versions do that act by proof, or are about to. The reasons why not,
 * in the order in which they are given:
 *
 * 1. The setting `learning.mode` holds back what acts by proof.
 * 2. It has no certificate here, or the certificate lapsed, expired or is of another slow path.
 * 3. Its action on such an event is refuted, not proven yet, or in doubt since its proof.
 * 4. A person must allow it: it can be neither undone nor repeated, the mode is `propose`, or it
 *    says words beside other acts that the setting `learning.replies` leaves to a person.
 */
export class ProvenActs implements VersionProofs {
  readonly #parts: ProvenActsParts

  constructor(parts: ProvenActsParts) {
    this.#parts = parts
  }

  unproven(version: ReflexVersion, { action, ...where }: ActWhere, at: number): string | null {
    const held_back = this.heldBack(version)
    if (held_back !== null) return held_back
    const { certificates, settings } = this.#parts
    const known = certificates.of(version)
    if (!known) return NEVER_COMPARED
    const { mode, replies } = settings().learning
    const chooses = replies === 'by_person' && action !== undefined && saysBeside(action)
    return obstacle(known, {
      ...where,
      at,
      teacher: certificates.teacher,
      least: certificates.least,
      replies,
      asks: mode === 'propose' || chooses,
    })
  }

  /** The reason why the settings stop a version from acting by proof. */
  heldBack({ provenance }: Pick<ReflexVersion, 'provenance'>): string | null {
    const { mode } = this.#parts.settings().learning
    const stops = mode === 'shadow' || (mode === 'off' && provenance.run !== undefined)
    return stops ? `the setting learning.mode is ${mode}` : null
  }

  expired(version: ReflexVersion, at: number): string | null {
    const held_back = this.heldBack(version)
    if (held_back !== null) return held_back
    const { certificates } = this.#parts
    const known = certificates.of(version)
    if (!known) return NEVER_COMPARED
    const { replies } = this.#parts.settings().learning
    return expiry(known, { at, teacher: certificates.teacher, replies }) ?? (known.bound === null ? 'none of its actions is proven' : null)
  }

  idle(version: ReflexVersion, at: number): string | null {
    const known = this.#parts.certificates.of(version)
    return this.expired(version, at) ?? (known && idleSince(known, at)?.reason) ?? null
  }
}

const NEVER_COMPARED = 'it was never compared with a decision in this scope'
