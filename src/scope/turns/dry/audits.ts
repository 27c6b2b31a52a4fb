import { v7 as uuidv7 } from 'uuid'
import type { Action } from '../../../contract/action.ts'
import { isAsked } from '../../../contract/decisions/event.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import type { DryView } from '../../../contract/reports/audit.ts'
import { isAudited } from '../../../proof/draw.ts'
import type { Decision } from '../../../reflexes/decide.ts'
import { childHead, headOf } from '../../log/spans.ts'
import type { OwnAct } from '../../learning/judgements.ts'
import type { Reflexes } from '../../reflexes/wiring.ts'
import type { Unit } from '../../storage/unit.ts'

/** An audit as stored in its job. */
export type Audit = OwnAct & { reflex_id: string; version: number; view: DryView; head: EntryHead }

type Parts = Pick<Reflexes, 'agent' | 'settings' | 'judgements' | 'memory' | 'jobs' | 'database'>

/** Audits that may wait, for example for the model; further ones are not drawn. */
const MOST_WAITING = 500

/** Actions that cannot be compared with a decision of the slow path. */
const NEVER: ReadonlySet<Action['action_type']> = new Set(['escalate', 'cancel_turn'])

/**
 * Draws the decisions of proven reflexes that the slow path repeats, by a hash of the event's id.
 * The job is added in the unit of the decision, with what a turn would have seen then.
 */
export class Audits {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** True if the decision is audited. */
  draw(unit: Unit, { one: { event, seq }, acted, steps }: Decision, log_seq: number): boolean {
    const { agent, settings, memory, jobs, judgements } = this.#parts
    if (acted && !acted.reused) judgements.guarded(unit, acted.version, event, seq)
    if (!acted || acted.reused || NEVER.has(acted.action.action_type)) return false
    if (agent().trigger === null && !isAsked(event)) return false
    const { audit_share: share, mode } = settings().learning
    // A person's version is audited only while the scope learns.
    if (mode === 'off' && !acted.version.by_proof) return false
    if (!isAudited(event.id, { share, salt: acted.version.hash })) return false
    const { action: own, version: by } = acted
    if (!judgements.isProven(by, { event_type: event.type, own }) || this.#waiting() >= MOST_WAITING) return false
    const { created_at, last_action_at } = memory.live
    // The reflex saw the notes before its own action changed them.
    const scratch = steps.find(({ fire }) => fire === acted)?.shown?.context.scratch ?? {}
    const view: DryView = {
      considered: [[seq, seq]],
      saw: { seqs: memory.placesUpTo(seq), scratch, created_at, last_action_at },
      decided_at: unit.now,
    }
    const payload: Audit = {
      reflex_id: by.id,
      version: by.version,
      seq,
      event_type: event.type,
      own,
      log_seq,
      view,
      head: childHead(headOf(event)),
    }
    jobs.add(unit, { kind: 'audit', key: uuidv7(), payload })
    return true
  }

  #waiting(): number {
    return this.#parts.database.first<{ n: number }>(`SELECT count(*) AS n FROM jobs WHERE kind = 'audit'`)?.n ?? 0
  }
}
