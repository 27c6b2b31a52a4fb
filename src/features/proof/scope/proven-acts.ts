import type { ReflexVersion } from '../../../contract/reflex.ts'
import { choosesWords } from '../../../contract/words.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import type { ActWhere, VersionProofs } from '../../../engine/reflexes/may-act.ts'
import { expiry, idleSince, obstacle } from '../../../evidence/certificate.ts'
import { actNameOf } from '../../../contract/act-name.ts'
import { isAwaited } from '../../../evidence/draw.ts'
import { stratumOf } from '../../../evidence/strata.ts'
import { paceKind, waitingAudits } from './audits.ts'
import type { Certificates } from './certificates.ts'

type ProvenActsParts = Pick<Ground, 'settings' | 'records' | 'database'> & { certificates: Pick<Certificates, 'of' | 'teacher' | 'least'> }

/**
 * Says what certificates let versions do that act by proof, or are about to. The reasons why not,
 * in the order in which they are given:
 *
 * 1. The setting `learning.mode` holds back what acts by proof.
 * 2. It has no certificate here, or the certificate lapsed, expired or is of another slow path.
 * 3. Its action on such an event is refuted, not proven yet, or in doubt since its proof.
 * 4. A person must allow it: it can be neither undone nor repeated, the mode is `propose`, or it
 *    says words beside other acts of which any will do.
 * 5. Too many of its acts outside wait for the answer to an audit. A queued action was counted.
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
    return obstacle(known, {
      ...where,
      at,
      teacher: certificates.teacher,
      least: certificates.least,
      replies,
      asks: mode === 'propose',
      chooses: action !== undefined && choosesWords(action, replies),
    })
  }

  awaits(version: ReflexVersion, { event_type, risk, action }: Required<ActWhere>): string | null {
    const { certificates, records, database } = this.#parts
    const known = certificates.of(version)
    const proven = known && stratumOf(known, { event_type, risk, act: actNameOf(action), seq: 0, at: 0 })
    if (!proven || risk === 'inside') return null
    const pace = records.pace(version, paceKind(event_type, action), proven.to.seq)
    return isAwaited(pace) && waitingAudits(database) > 0
      ? `${pace.acts - (pace.judged ?? 0)} of its acts wait for the answer to an audit`
      : null
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
