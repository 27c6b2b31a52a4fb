import { canonicalJson, isJsonFields, type JsonFields } from '../../../base/json.ts'
import type { LogEntry, EntryOf } from '../../../contract/log-entry.ts'
import {
  actsMissing,
  asked,
  fieldsOf,
  DONE,
  inputsOf,
  NOT_KEPT,
  notesOf,
  replyAct,
  skillRun,
  textIn,
  toolAct,
  type EpisodeDecision,
  type Placed,
  type SkillFields,
} from './decided.ts'

/** A turn that has not ended, or an event that a consumer outside has claimed. */
type Open = {
  head: Pick<EpisodeDecision, 'by' | 'agent' | 'basis' | 'ids' | 'places'>
  acts: Placed[]
  models: Set<string>
  /** Inputs that were proposed, by the proposal and by the skill. */
  proposed: Map<string, unknown>
  /** Inputs of runs as they may have been written, the likeliest first. */
  inputs: Map<Placed['act'], readonly unknown[]>
  approvals: string[]
  blackboard?: JsonFields
}
type RunInProgress = { open: Open; seq: number; inputs: unknown[] }

/** The most runs and effects that are remembered until they end. */
const MOST_OPEN = 10_000
const BY_ITSELF: ReadonlySet<string> = new Set(['result', 'none', 'failed', 'timeout'])

/** Collects what turns and outside consumers did, from entries in their order. */
export class EpisodeTurns {
  readonly #turns = new Map<string, Open>()
  readonly #spans = new Map<string, Open>()
  readonly #claims = new Map<string, { open: Open; trace_id: string }>()
  readonly #effects = new Map<string, { open: Open; started: EntryOf<'effect-started'> }>()
  readonly #runs = new Map<string, RunInProgress>()
  /** Calls of outside consumers, by their spans. */
  readonly #calls = new Map<string, Open>()

  /** Returns the decisions that end with this entry. */
  feed(entry: LogEntry): EpisodeDecision[] {
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others are of skills, or say nothing of a decision
    switch (entry.kind) {
      case 'turn-started':
        this.#start(entry)
        break
      case 'turn-ended':
        return this.#end(entry)
      case 'event-claimed':
        this.#claim(entry)
        break
      case 'event-returned':
      case 'event-retried':
        this.#claims.delete(entry.event_ids[0] ?? '')
        break
      case 'event-ended':
        return this.#acked(entry)
      case 'event-accepted':
        this.#sent(entry)
        break
      case 'decision-made':
        return asked(entry)
      case 'model-called':
        if (entry.turn_id !== null) this.#turns.get(entry.turn_id)?.models.add(entry.model)
        break
      case 'reply-sent':
        if (entry.turn_id !== null) this.#turns.get(entry.turn_id)?.acts.push({ seq: entry.seq, act: replyAct(entry.content) })
        break
      case 'call-received':
        this.#call(entry)
        break
      case 'effect-started':
        this.#effect(entry)
        break
      case 'effect-ended':
        this.#effectEnded(entry)
        break
      default:
        this.#skill(entry as SkillFields)
    }
    return []
  }

  #start(entry: EntryOf<'turn-started'>): void {
    const { turn_id, agent, basis, event_ids, considered } = entry
    const open = opened({ by: 'model', agent, basis, ids: event_ids, places: considered })
    this.#turns.set(turn_id, open)
    this.#spans.set(entry.span_id, open)
  }

  #end(entry: EntryOf<'turn-ended'>): EpisodeDecision[] {
    const { turn_id, span_id, status, usage, duration_ms, acts: listed } = entry
    const open = this.#turns.get(turn_id)
    this.#turns.delete(turn_id)
    this.#spans.delete(span_id)
    const is_ok = status === 'result' || status === 'none'
    const { model_calls, input_tokens, output_tokens, cost_usd } = usage
    const known = open ?? opened({ by: 'model', agent: '', basis: undefined, ids: entry.event_ids, places: [] })
    for (const [act, inputs] of known.inputs) act.input = inputsOf(listed, act.name, inputs)
    known.acts.push(...notesOf(entry))
    const ended = open === undefined ? 'its turn began before what is kept or read' : null
    const missing = is_ok ? actsMissing(entry, known.acts) : null
    const from_outside = BY_ITSELF.has(status) ? null : `its turn ended as ${status}`
    return [
      {
        ...decided(known, entry),
        usage: { model_calls, tokens: input_tokens + output_tokens, cost_usd: cost_usd ?? 0, duration_ms: duration_ms ?? 0 },
        outcome: is_ok ? 'ok' : 'failed',
        ...(is_ok && { left: status === 'result' }),
        whole: ended === null && missing !== NOT_KEPT,
        unusable: ended ?? from_outside ?? missing,
      },
    ]
  }

  #claim(entry: EntryOf<'event-claimed'>): void {
    const open = opened({ by: 'pull', agent: '', basis: undefined, ids: entry.event_ids, places: [] })
    this.#claims.set(entry.event_ids[0] ?? '', { open, trace_id: entry.trace_id })
    forgetOldest(this.#claims)
  }

  /** A consumer's work is known as far as it used the scope's tools in the event's trace. */
  #acked(entry: EntryOf<'event-ended'>): EpisodeDecision[] {
    const [id = ''] = entry.event_ids
    const open = this.#claims.get(id)?.open
    this.#claims.delete(id)
    if (entry.outcome.by !== 'pull') return []
    const known = open ?? opened({ by: 'pull', agent: '', basis: undefined, ids: [id], places: [] })
    for (const [act, inputs] of known.inputs) act.input = inputsOf([], act.name, inputs)
    const unusable = known.acts.length > 0 ? null : 'a consumer outside decided, and used no tool of the scope in the trace of the event'
    return [{ ...decided(known, entry), usage: NOTHING, outcome: 'ok', whole: unusable === null, unusable }]
  }

  /** A call in the trace of claimed events: its consumer's, if there is one such event. */
  #call({ span_id, trace_id }: EntryOf<'call-received'>): void {
    const [claim, ...others] = Array.from(this.#claims.values()).filter((one) => one.trace_id === trace_id)
    if (!claim || others.length > 0) return
    this.#calls.set(span_id, claim.open)
    forgetOldest(this.#calls)
  }

  #sent(entry: EntryOf<'event-accepted'>): void {
    const open = entry.via === 'agent' && entry.parent_id !== null ? this.#spans.get(entry.parent_id) : undefined
    const act = { kind: 'emit' as const, name: entry.event_type, input: {}, ...DONE }
    open?.acts.push({ seq: entry.seq, act, sent: entry.event_ids[0] ?? '' })
  }

  #effect(entry: EntryOf<'effect-started'>): void {
    if (entry.step) return
    const open = 'turn_id' in entry.cause ? this.#turns.get(entry.cause.turn_id) : this.#calls.get(entry.parent_id ?? '')
    if (open) this.#effects.set(entry.effect_id, { open, started: entry })
    forgetOldest(this.#effects)
  }

  #effectEnded(entry: EntryOf<'effect-ended'>): void {
    const { effect_id, parent_id, tool, input } = entry
    const found = this.#effects.get(effect_id)
    this.#effects.delete(effect_id)
    // A reused effect, which an earlier call began.
    const reuser = input === undefined ? undefined : (this.#spans.get(parent_id ?? '') ?? this.#calls.get(parent_id ?? ''))
    if (found) found.open.acts.push({ seq: found.started.seq, act: toolAct(found.started, entry) })
    else reuser?.acts.push({ seq: entry.seq, act: toolAct({ tool, input }, entry) })
  }

  #skill(entry: SkillFields): void {
    const { seq, parent_id } = entry as LogEntry
    const open = parent_id === null ? undefined : (this.#spans.get(parent_id) ?? this.#calls.get(parent_id))
    const text = (name: string) => textIn(entry, name)
    switch (entry.kind as string) {
      case 'blackboard-seeded':
        if (open && !open.blackboard && isJsonFields(entry['blackboard'])) open.blackboard = entry['blackboard']
        break
      case 'skill-decided': {
        const { inputs } = fieldsOf(entry['request'])
        open?.proposed.set(text('proposal_id'), inputs).set(text('skill_id'), inputs)
        break
      }
      case 'skill-started':
        if (open) this.#runs.set(text('run_id'), { open, seq, inputs: [open.proposed.get(text('skill_id')), entry['inputs']] })
        forgetOldest(this.#runs)
        break
      case 'skill-applied':
      case 'skill-reused':
        this.#runEnded(entry, open)
        break
      case 'approval-requested':
        this.#asked(entry)
    }
  }

  #runEnded(entry: SkillFields, open: Open | undefined): void {
    const run_id = textIn(entry, 'run_id')
    const run =
      this.#runs.get(run_id) ?? (open && { open, seq: (entry as LogEntry).seq, inputs: [open.proposed.get(textIn(entry, 'skill_id'))] })
    this.#runs.delete(run_id)
    if (!run) return
    const act = skillRun(entry, run.inputs[1] ?? run.inputs[0])
    run.open.inputs.set(act, run.inputs)
    run.open.acts.push({ seq: run.seq, act })
  }

  /** A request for approval is what the turn did: the run may follow days later. */
  #asked(entry: SkillFields): void {
    const id = textIn(entry, 'proposal_id')
    const skill_id = textIn(entry, 'skill_id')
    for (const open of [...this.#turns.values(), ...this.#calls.values()]) {
      if (!open.proposed.has(id)) continue
      const inputs = open.proposed.get(id)
      const act = { kind: 'skill' as const, name: skill_id, input: fieldsOf(inputs), ...DONE }
      open.inputs.set(act, [inputs])
      open.acts.push({ seq: (entry as LogEntry).seq, act })
      open.approvals.push(textIn(entry, 'approval_id'))
      return
    }
  }
}

const NOTHING: EpisodeDecision['usage'] = { model_calls: 0, tokens: 0, cost_usd: 0, duration_ms: 0 }

const opened = (head: Open['head']): Open => ({ head, acts: [], models: new Set(), proposed: new Map(), inputs: new Map(), approvals: [] })

function decided(
  { head, acts, models, approvals, blackboard }: Open,
  entry: LogEntry,
): Omit<EpisodeDecision, 'usage' | 'outcome' | 'left' | 'whole' | 'unusable'> {
  return {
    ...head,
    trace_id: entry.trace_id,
    at: Date.parse(entry.at),
    log_seq: entry.seq,
    models: [...models].sort(),
    acts: withoutRepeated(acts.sort((one, other) => one.seq - other.seq)),
    approvals,
    ...(blackboard && { blackboard }),
  }
}

/** A call that failed and was then made again is one decision: the later call. */
const withoutRepeated = (acts: Placed[]): Placed[] =>
  acts.filter(
    ({ act }, place) =>
      act.ok || act.kind !== 'tool' || !acts.slice(place + 1).some(({ act: later }) => later.ok && isSameCall(later, act)),
  )

const isSameCall = (one: Placed['act'], other: Placed['act']): boolean =>
  one.kind === other.kind && one.name === other.name && canonicalJson(one.input) === canonicalJson(other.input)

/** Forgets the oldest, which has no end in the log. */
function forgetOldest(open: Map<string, unknown>): void {
  const [oldest] = open.keys()
  if (open.size > MOST_OPEN && oldest !== undefined) open.delete(oldest)
}
