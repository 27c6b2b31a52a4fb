import { wordsFor, type Replies } from '../../../contract/words.ts'
import type { Words } from '../../../contract/reflex.ts'
import { v7 as uuidv7 } from 'uuid'
import type { Action } from '../../../contract/action.ts'
import { isAnsweredBeside } from '../../../contract/model-asked.ts'
import type { EntryHead, Usage } from '../../../contract/log-entry.ts'
import type { DryView } from '../../../contract/dry-turn.ts'
import { countAct, occasionOf, unitHash } from '../../../evidence/draw.ts'
import { isOther, mayBeAtEdge, moved } from '../../../evidence/edges.ts'
import { signsOf } from '../../../evidence/branches.ts'
import { noveltyOf, type TaughtValues, traitsOf } from '../../../evidence/novelty.ts'
import type { JsonFields } from '../../../base/json.ts'
import type { ShownContext } from '../../../reflexes/context/context-json.ts'
import { runReflex } from '../../../reflexes/run-reflex.ts'
import type { Sandbox } from '../../../reflexes/sandbox.ts'
import { valuesIn } from '../../../evidence/values.ts'
import type { ReactionDecision, Fire } from '../../../reflexes/decide.ts'
import type { Event } from '../../../core/event.ts'
import type { Applied, ScopeFeature, Next } from '../../../engine/feature.ts'
import { headOf } from '../../../engine/log/spans.ts'
import { childHead } from '../../../traces/ids.ts'
import type { Judgements, OwnAct } from './judgements.ts'
import type { Reflexes } from '../../../engine/reflexes/wiring.ts'
import type { Unit } from '../../../kernel/unit.ts'

/** An audit as stored in its job. */
export type Audit = OwnAct & {
  reflex_id: string
  version: number
  view: DryView
  head: EntryHead
  /** Missing in jobs of an earlier version. */
  words?: Words
  replies?: Replies
  pace?: PaceName & { act: number }
  /**
   * Set once the slow path has answered, and is to answer again without some events: the places of
   * the others, and the usage of its first answer.
   */
  apart?: { seqs: DryView['saw']['seqs']; usage: Usage }
}
/** The name of a pace, of the acts of one kind since a proof. */
type PaceName = { kind: string; proof: number }

export const paceKind = (event_type: string, action: Action): string =>
  `${event_type} ${action.action_type === 'call_tool' ? action.tool : action.action_type}`

export const waitingAudits = (database: Reflexes['database']): number =>
  database.first<{ n: number }>(`SELECT count(*) AS n FROM jobs WHERE kind = 'audit'`)?.n ?? 0

/** `secret`: a sender who knows all else does not know which acts are audited. */
type AuditsParts = Pick<Reflexes, 'agent' | 'settings' | 'memory' | 'jobs' | 'database' | 'records' | 'log'> & {
  judgements: Judgements
  secret: string
  sandbox: () => Sandbox
}
type Edges = { ranges: TaughtValues['numbers']; salt: string }

/** Audits that may wait, for example for the model; further ones are not drawn. */
const MOST_WAITING = 500

/** `shown`: what the reflex saw, if it is known. `unit`: in which it acts. */
type Looking = { shown: ShownContext | null; unit: Unit }

/** Actions that cannot be compared with a decision of the slow path. */
const NEVER: ReadonlySet<Action['action_type']> = new Set(['escalate', 'cancel_turn'])

/**
 * Draws the decisions of proven reflexes that the slow path repeats: by a keyed hash of the event's
 * id, densely after a proof, what is new to it, and one in twenty of those that reach outside. The
 * job is added in the unit of the decision, with what a turn would have seen then.
 */
export class Audits implements ScopeFeature {
  readonly name = 'audits'
  readonly #parts: AuditsParts
  /** The last unit with a run to look for an edge: one has a single such run. */
  #looked: Unit | null = null

  constructor(parts: AuditsParts) {
    this.#parts = parts
  }

  acted(unit: Unit, fire: Fire, { decision, fired_seq }: Applied): Next[] {
    this.#parts.judgements.guarded(unit, fire.version, decision.one.event, decision.one.seq)
    return this.#draw(unit, fire, decision, fired_seq) ? [{ do: 'run-jobs' }] : []
  }

  /** True if the decision is audited. */
  #draw(unit: Unit, acted: Fire, { one: { event, seq }, steps }: ReactionDecision, log_seq: number): boolean {
    const { agent, settings, memory, jobs, log } = this.#parts
    if (NEVER.has(acted.action.action_type)) return false
    if (agent().trigger === null && !isAnsweredBeside(event)) return false
    // A person's version is audited only while the scope learns.
    if (settings().learning.mode === 'off' && !acted.version.by_proof) return false
    // The reflex saw the notes before its own action changed them.
    const shown = steps.find(({ fire }) => fire === acted)?.shown ?? null
    const drawn = this.#occasion(acted, event, { shown, unit })
    if (drawn === null) return false
    const { action: own, version: by } = acted
    const { replies } = settings().learning
    const { created_at, last_action_at } = memory.live
    const scratch = shown?.context.scratch ?? {}
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
      ...drawn,
      traits: traitsOf(event),
      signs: signsOf(event, own, log),
      view,
      head: childHead(headOf(event)),
      words: wordsFor(own, replies, event),
      replies,
    }
    jobs.add(unit, { kind: 'audit', key: uuidv7(), payload })
    return true
  }

  /** Counts the act. While too many audits wait, none is added, and the next act is due again. */
  #occasion(fire: Fire, event: Event, { shown, unit }: Looking): Required<Pick<Audit, 'occasion' | 'pace'>> | null {
    const { settings, judgements, records, database, secret } = this.#parts
    const { version, action } = fire
    const proof = judgements.proofOf(version, { event_type: event.type, own: action })
    if (!proof) return null
    const kind = paceKind(event.type, action)
    const pace = records.pace(version, kind, proof.seq)
    const is_new = proof.values !== undefined && noveltyOf(proof.values, traitsOf(event)) !== null
    const { audit_share: share } = settings().learning
    const values = proof.risk === 'inside' ? [] : valuesIn(event)
    const salt = `${secret} ${version.hash}`
    const by_pace = occasionOf(pace, { event_id: event.id, salt, share, risk: proof.risk, is_new, values })
    const looks = by_pace === null && share > 0 && mayBeAtEdge(pace) && unit !== this.#looked
    if (looks) this.#looked = unit
    const drawn = looks && this.#isAtEdge(fire, shown, { ranges: proof.values?.numbers ?? {}, salt }) ? 'edge' : by_pace
    const occasion = drawn !== null && waitingAudits(database) >= MOST_WAITING ? null : drawn
    const after = countAct(pace, occasion, values)
    records.paced(version, kind, after)
    return occasion && { occasion, pace: { kind, proof: proof.seq, act: after.acts } }
  }

  /** True if the version decides otherwise where a number of the event is a little different. */
  #isAtEdge({ version, action }: Fire, shown: ShownContext | null, { ranges, salt }: Edges): boolean {
    if (!shown) return false
    const { event } = shown.context
    const beside = moved(event as JsonFields, ranges, unitHash(`${salt}\0edge\0${event.id}`))
    if (!beside) return false
    // Most acts are looked at: the rest of the context is not written again for each.
    const run = runReflex(this.#parts.sandbox(), version, shown.json.with('event', JSON.stringify(beside.event)))
    return isOther(action, run.action, beside.move)
  }
}
