import { actNameOf } from '../../contract/act-name.ts'
import { sequenceKey } from '../effects/effect-journal.ts'
import { v7 as uuidv7 } from 'uuid'
import { actsIn, type Action, type LaneWork } from '../../contract/action.ts'
import type { Json } from '../../base/json.ts'
import type { EffectEnd, EntryHead } from '../../contract/log-entry.ts'
import { signsOf } from '../../evidence/branches.ts'
import type { Risk } from '../../contract/risk.ts'
import type { ReactionDecision, Fire } from '../../reflexes/decide.ts'
import type { Applied, Next } from '../feature.ts'
import type { Stored } from '../inbox/inbox.ts'
import type { JobKind } from '../jobs.ts'
import { reflexHead, under } from '../log/spans.ts'
import { childHead } from '../../traces/ids.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Lanes } from '../effects/wiring.ts'
import { riskIn } from '../../agent/risk.ts'

/** An action as stored in its job. */
export type LaneAction = {
  seq: number
  reflex_id: string
  version: number
  idempotence_key: string | null
  work: LaneWork
  head: EntryHead
  /** The log entry of the firing. */
  log_seq: number
  action_type: Action['action_type']
  consume: boolean
  /** The acts of a sequence that ended well. */
  done?: DoneAct[]
  /**
   * The proof that the action needs; null if it acts without one. An earlier version wrote no
   * `signs`.
   */
  proof: { event_type: string; risk: Risk; act?: string; signs?: string[] } | null
}

/**
 * `output`: null if the act has none, or nothing after it uses it; missing if it could not be kept.
 * `asks`: a person was asked. `answered`: the id of what an earlier attempt on the event did, which
 * answered it.
 */
export type DoneAct = { action_type: Action['action_type']; status: EffectEnd; output?: Json | undefined; asks?: true; answered?: string }

type ActionsParts = Pick<Lanes, 'action_keys' | 'toolbox' | 'jobs' | 'trace_marks' | 'log' | 'turns'>

/**
 * Queues reflex actions. An action that changes only this scope is applied in the unit that accepts
 * the event. Any other is a job: it takes the effect lane beside a running turn, and its event is
 * held until it ends. A plan takes the lane step by step. `handleActions` executes the jobs.
 */
export class Actions {
  readonly #parts: ActionsParts

  constructor(parts: ActionsParts) {
    this.#parts = parts
  }

  /** True if a job, running or queued, calls this tool under this key. */
  waits(tool: string, key: string): boolean {
    const { jobs, toolbox } = this.#parts
    const waiting = [
      ...jobs.payloads<LaneAction>('action', '$.work.tool', tool),
      ...(['action', 'plan'] as const).flatMap((kind) => jobs.payloads<LaneAction>(kind, '$.work.kind', 'sequence')),
    ]
    const calls = waiting.flatMap(({ work }) => callsIn(work))
    return calls.some((call) => call.tool === tool && toolbox.keyOf(tool, call.input)?.idempotence_key === key)
  }

  /** Preempts a turn, and queues the action or keeps its key. */
  queue(unit: Unit, fire: Fire, { decision, fired_seq }: Applied): Next[] {
    const { action, permitted, version } = fire
    unit.count({ reflex_actions: 1 })
    const preempted = action.preempt ? this.#parts.turns.preempt(unit, `reflex ${version.id} preempted it`) : null
    this.add(unit, fire, decision.one, fired_seq)
    return [...(preempted ? [{ do: 'stop-turn' as const, ...preempted }] : []), ...(permitted.lane ? [RUN_JOBS] : [])]
  }

  /** Carries out what changes only this scope. The scratch has a `set_scratch` already. */
  atOnce(unit: Unit, { action, version }: Fire, { one: { event }, perceived }: ReactionDecision): Next[] {
    const { log, turns } = this.#parts
    const head = childHead(reflexHead(event, version.id))
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others take the lane, or are refused
    switch (action.action_type) {
      case 'reply': {
        const content = log.clean(action.content) as string
        unit.log({ ...head, kind: 'reply-sent', turn_id: null, reflex_id: version.id, content })
        return [{ do: 'say', content, event_id: event.id }]
      }
      case 'ignore':
        return []
      case 'set_scratch': {
        const { key, value } = log.clean({ key: action.key, value: action.value }, head.trace_id) as { key: string; value: unknown }
        unit.log({ ...head, kind: 'scratch-set', key, value, reflex_id: version.id })
        return []
      }
      case 'cancel_turn': {
        const cancelled = turns.cancel(unit, action.reason, { by: `reflex:${version.id}` })
        return cancelled ? [{ do: 'stop-turn', ...cancelled }] : []
      }
      case 'escalate':
        return perceived === 'asked' ? [] : [{ do: 'think', urgent: true }]
      default:
        throw new Error(`the action ${action.action_type} is not done at once`)
    }
  }

  /** Queues lane work, or stores the key of an action that is already done. */
  add(unit: Unit, fire: Fire, stored: Stored, log_seq: number): void {
    const { action, permitted, version } = fire
    if (permitted.lane) this.#enqueue(unit, fire, permitted.work, stored, log_seq)
    else if (action.idempotence_key !== undefined) this.#parts.action_keys.keep(unit, version.id, action.idempotence_key, null)
  }

  #enqueue(unit: Unit, { action, version }: Fire, work: LaneWork, { seq, event }: Stored, log_seq: number): void {
    const { action_type, consume = false, idempotence_key = null } = action
    const head = childHead(reflexHead(event, version.id))
    const of = { reflex_id: version.id, version: version.version, idempotence_key }
    const payload: LaneAction = {
      seq,
      ...of,
      work: work.kind === 'event' ? { kind: 'event', event: under(head, work.event, this.#parts.trace_marks.of(head)) } : work,
      head,
      log_seq,
      action_type,
      consume,
      proof: version.by_proof
        ? {
            event_type: event.type,
            risk: riskIn(this.#parts.toolbox, action),
            act: actNameOf(action),
            signs: signsOf(event, action, this.#parts.log),
          }
        : null,
    }
    const locks = [
      ...skillsIn(work).map((skill_id) => `skill ${skill_id}`),
      ...(idempotence_key === null ? [] : [`key ${version.id} ${idempotence_key}`]),
    ]
    const key = work.kind === 'sequence' ? sequenceKey(log_seq) : uuidv7()
    this.#parts.jobs.add(unit, { kind: kindOf(work), key, payload, locks })
  }
}

const RUN_JOBS = { do: 'run-jobs' } as const

export const kindOf = (work: LaneWork): JobKind => (skillsIn(work).length > 0 ? 'plan' : 'action')

function skillsIn(work: LaneWork): string[] {
  if (work.kind === 'skill') return [work.skill_id]
  if (work.kind !== 'sequence') return []
  return [...new Set(actsIn(work).flatMap((act) => (act.action_type === 'run_skill' ? [act.skill_id] : [])))]
}

function callsIn(work: LaneWork): { tool: string; input: unknown }[] {
  if (work.kind === 'tool') return [work]
  if (work.kind !== 'sequence') return []
  return actsIn(work).flatMap((act) => (act.action_type === 'call_tool' ? [{ tool: act.tool, input: act.args }] : []))
}
