import { isJsonFields } from '../../../../base/json.ts'
import type { LogEntry, EntryOf } from '../../../../contract/log-entry.ts'
import type { AnswerPart } from '../../../../contract/scope-api.ts'
import { messageEntry, type LoggedApproval, type LoggedProposal, type MessageEntry } from '../../../../traces/message-run.ts'
import { Texts, type UiEvent } from './ag-ui-texts.ts'

/** `event_id`: the event that the run waits for. `approval_ids`: the approvals that it decides. */
export type AgUiRun = {
  threadId: string
  runId: string
  parentRunId?: string | undefined
  event_id: string | null
  approval_ids: readonly string[]
}
type Interrupt = { id: string; reason: string; message: string; responseSchema: object; metadata: Record<string, unknown> }

const answer = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, edits: { type: 'object' } },
  required: ['approved'],
} as const
const reply = { type: 'string' } as const
/** Characters of an answer that are kept until its turn is known. */
const MOST_EARLY = 65_536
/** Ids of interrupts that ask for more input begin with this. */
export const CLARIFY = 'clarify:'

/**
 * The events of a run, as a projection of the scope's log: the same entries give the same events.
 * `shows_work`: tool calls and state are for viewers.
 */
export class RunEvents {
  readonly #run: AgUiRun
  readonly #shows_work: boolean
  readonly #steps = new Set<string>()
  /** The number of times that each call began: a client takes the id of a call once. */
  readonly #calls = new Map<string, number>()
  readonly #interrupts: Interrupt[] = []
  readonly #texts = new Texts()
  /** The answer of a turn that is not known to be of the run. */
  #early: AnswerPart = { turn_id: '', from: 0, content: '' }
  /** The scratch that was sent last. */
  #state: unknown = undefined
  /** The entries of reflexes that reply: an event may end in the log before its reply is there. */
  readonly #replying = new Set<number>()
  #held: MessageEntry | null = null
  #said = false
  /** The end of the run's event. */
  #event_end: EventEnd | null = null
  /** The approvals whose decision or run the log does not have yet. */
  readonly #waiting: Set<string>
  /** The approvals whose skills run, by the span of their decision. */
  readonly #running = new Map<string, string>()
  readonly #settled: { interrupt_id: string; status: unknown }[] = []
  ended = false

  constructor(run: AgUiRun, { shows_work }: { shows_work: boolean }) {
    this.#run = run
    this.#waiting = new Set(run.approval_ids)
    this.#shows_work = shows_work
  }

  /** A run that only leaves questions is over. */
  start(): UiEvent[] {
    const { threadId, runId, parentRunId } = this.#run
    return [{ type: 'RUN_STARTED', threadId, runId, ...(parentRunId !== undefined && { parentRunId }) }, ...this.#endOnceDone()]
  }

  /** The events of an entry, none after the end of the run. */
  of(entry: LogEntry): UiEvent[] {
    if (this.ended) return []
    const told = messageEntry(entry)
    const made = told ? [...this.#common(told), ...this.#endedBy(told)] : []
    return made.map((event) => ({ ...event, timestamp: Date.parse(entry.at) }))
  }

  #endedBy(entry: MessageEntry): UiEvent[] {
    this.#decided(entry)
    const said = this.#run.event_id === null ? [] : this.#answeredOnceSaid(entry)
    return this.ended ? said : [...said, ...this.#endOnceDone()]
  }

  #answeredOnceSaid(entry: MessageEntry): UiEvent[] {
    if (entry.kind === 'reply-sent' && entry.turn_id === null && this.#held) return this.#answered(this.#held)
    if (entry.kind === 'reflex-fired' && entry.action.action_type === 'reply' && entry.reused !== true) this.#replying.add(entry.seq)
    const waits = entry.kind === 'event-ended' && entry.outcome.by === 'reflex' && this.#replying.has(entry.outcome.log_seq)
    if (!waits || this.#said || entry.event_ids[0] !== this.#run.event_id) return this.#answered(entry)
    this.#held = entry
    return []
  }

  /** Part of the answer of a turn. It can precede the entry that the turn started. */
  part(part: AnswerPart): UiEvent[] {
    if (this.ended) return []
    if (this.#steps.has(part.turn_id)) return this.#texts.part(part)
    const { turn_id, from, content } = this.#early
    if (turn_id !== part.turn_id) this.#early = part
    else if (from + content.length === part.from && part.from < MOST_EARLY) this.#early = { turn_id, from, content: content + part.content }
    return []
  }

  #started(turn_id: string): UiEvent[] {
    const early = this.#early.turn_id === turn_id ? this.#early : null
    return [...this.#texts.close(), ...this.#step(turn_id), ...(early ? this.#texts.part(early) : [])]
  }

  #common(entry: MessageEntry): UiEvent[] {
    if (entry.kind === 'turn-started') return this.#started(entry.turn_id)
    if (entry.kind === 'turn-ended') {
      const state = this.#shows_work ? this.#changed(entry.scratch ?? {}) : []
      return [...state, ...this.#endStep(entry.turn_id)]
    }
    if (entry.kind === 'reply-sent') {
      this.#said = true
      return entry.turn_id === null ? say(entry.span_id, entry.content) : this.#texts.whole(entry.turn_id, entry.content)
    }
    if (entry.kind === 'effect-started') return this.#shows_work ? this.#call(entry) : []
    if (entry.kind === 'effect-ended') return this.#shows_work ? this.#result(entry) : []
    if (entry.kind === 'approval-requested') this.#interrupts.push(approvalOf(entry))
    if (entry.kind === 'skill-decided') this.#interrupts.push(...clarifyOf(entry))
    return []
  }

  #answered(entry: MessageEntry): UiEvent[] {
    if (entry.kind !== 'event-ended' || entry.event_ids[0] !== this.#run.event_id) return []
    const { status, outcome, error } = entry
    if (status === 'dead_lettered')
      return this.#end({ type: 'RUN_ERROR', message: error ?? 'the event became a dead letter', code: status })
    if (status === 'cancelled') return this.#end(this.#finished({ type: 'cancelled' }))
    const result = outcome.by === 'turn' ? outcome.result : undefined
    const is_text = outcome.by === 'turn' && !this.#said && typeof result === 'string' && result !== ''
    // Some agents return their text instead of replying.
    const text = is_text ? this.#texts.whole(outcome.turn_id, result) : []
    this.#event_end = { status, by: outcome.by, ...(result !== undefined && { result }) }
    return text
  }

  /** Decisions on calls of tools, and rejections, have no run that would follow. */
  #decided(entry: MessageEntry): void {
    if (entry.kind === 'approval-decided' && this.#waiting.has(entry.approval_id)) {
      if (entry.status === 'approved' && entry.version !== undefined) this.#running.set(entry.span_id, entry.approval_id)
      else this.#settle(entry.approval_id, entry.status)
    }
    const approval_id = entry.parent_id === null ? undefined : this.#running.get(entry.parent_id)
    if (approval_id === undefined) return
    if (entry.kind === 'run-ended') this.#settle(approval_id, entry.status)
    else if (entry.kind === 'skill-decided' && entry.verdict !== 'allow' && !entry.waits) this.#settle(approval_id, 'refused')
  }

  #settle(interrupt_id: string, status: unknown): void {
    if (this.#waiting.delete(interrupt_id)) this.#settled.push({ interrupt_id, status })
  }

  #endOnceDone(): UiEvent[] {
    const { event_id, approval_ids } = this.#run
    if (this.#waiting.size > 0 || (event_id !== null && !this.#event_end)) return []
    if (this.#event_end && this.#interrupts.length > 0)
      return this.#end(this.#finished({ type: 'interrupt', interrupts: this.#interrupts }, this.#event_end))
    const [only] = this.#settled
    const alone = approval_ids.length > 1 ? { answers: this.#settled } : { status: only?.status ?? 'cancelled' }
    return this.#end(this.#finished({ type: 'success' }, this.#event_end ?? alone))
  }

  #finished(outcome: object, result?: unknown): UiEvent {
    const { threadId, runId } = this.#run
    return { type: 'RUN_FINISHED', threadId, runId, outcome, ...(result !== undefined && { result }) }
  }

  /** A run ends with no message and no step open. */
  #end(last: UiEvent): UiEvent[] {
    this.ended = true
    return [...this.#texts.close(), ...Array.from(this.#steps, (stepName) => ({ type: 'STEP_FINISHED', stepName })), last]
  }

  #step(turn_id: string): UiEvent[] {
    this.#steps.add(turn_id)
    return [{ type: 'STEP_STARTED', stepName: turn_id }]
  }

  #endStep(turn_id: string): UiEvent[] {
    return this.#steps.delete(turn_id) ? [{ type: 'STEP_FINISHED', stepName: turn_id }] : []
  }

  /** The client's state is unknown until a snapshot; then changes suffice. */
  #changed(state: unknown): UiEvent[] {
    const before = this.#state
    this.#state = state
    if (!isJsonFields(before) || !isJsonFields(state)) return [{ type: 'STATE_SNAPSHOT', snapshot: state }]
    const delta = patchOf(before, state)
    return delta.length > 0 ? [{ type: 'STATE_DELTA', delta }] : []
  }

  #call({ effect_id, tool: toolCallName, input }: { effect_id: string; tool: string; input?: unknown }): UiEvent[] {
    this.#calls.set(effect_id, (this.#calls.get(effect_id) ?? 0) + 1)
    const toolCallId = this.#callId(effect_id)
    return [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(input ?? {}) },
      { type: 'TOOL_CALL_END', toolCallId },
    ]
  }

  /** A call that a crash interrupted may begin again. */
  #callId(effect_id: string): string {
    const times = this.#calls.get(effect_id) ?? 1
    return times === 1 ? effect_id : `${effect_id}:${times}`
  }

  #result(entry: EntryOf<'effect-ended'>): UiEvent[] {
    const { effect_id, status, output, error } = entry
    // A reused effect did not start.
    const call = this.#calls.has(effect_id) ? [] : this.#call(entry)
    const toolCallId = this.#callId(effect_id)
    const content = JSON.stringify(error === null ? (output ?? null) : { status, error })
    return [...call, { type: 'TOOL_CALL_RESULT', messageId: `${toolCallId}:result`, toolCallId, role: 'tool', content }]
  }
}

type Fields = Readonly<Record<string, unknown>>
type EventEnd = { status: string; by: string; result?: unknown }

const say = (messageId: string, delta: string): UiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
  { type: 'TEXT_MESSAGE_END', messageId },
]

/** The changes of the top-level fields as a JSON Patch. */
function patchOf(before: Fields, after: Fields): object[] {
  const path = (name: string) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name))
  const changed = Object.entries(after).filter(([name, value]) => JSON.stringify(before[name]) !== JSON.stringify(value))
  // `add` replaces a field that exists.
  return [
    ...removed.map((name) => ({ op: 'remove', path: path(name) })),
    ...changed.map(([name, value]) => ({ op: 'add', path: path(name), value })),
  ]
}

function approvalOf({ approval_id: id, skill_id, version, reason }: LoggedApproval): Interrupt {
  const what = version === undefined ? skill_id : `${skill_id} ${version}`
  const metadata = { skill_id, ...(version !== undefined && { version }) }
  return { id, reason: 'approval_required', message: `${what} needs an approval: ${reason}`, responseSchema: answer, metadata }
}

function clarifyOf({ verdict, dry_run, proposal_id, skill_id, reason }: LoggedProposal): Interrupt[] {
  if (verdict !== 'clarify' || dry_run === true) return []
  const message = `${skill_id}: ${String(reason)}`
  return [{ id: `${CLARIFY}${proposal_id}`, reason: 'input_required', message, responseSchema: reply, metadata: { skill_id } }]
}
