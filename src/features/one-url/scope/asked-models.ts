import { answerRequest, type AnswerEnd, type AnswerSink, type RefusedCall } from '../../../agent/answer-request.ts'
import { endingOf, endingOfError, isSpent, resultOf, type TurnEnding } from '../../../agent/turn-ending.ts'
import { withDeadline } from '../../../base/deadline.ts'
import { messageOf } from '../../../base/error-text.ts'
import { byteLength, canonicalJson } from '../../../base/json.ts'
import { limits } from '../../../base/limits.ts'
import type { Action } from '../../../contract/action.ts'
import { actionsIn } from '../../../contract/action.ts'
import { CALLER_TOOL, isModelAsked, type ModelAsked } from '../../../contract/model-asked.ts'
import type { SettingsPatch } from '../../../contract/settings/settings.ts'
import type { RequestParts } from '../../../contract/model-request.ts'
import type { EventOutcome } from '../../../contract/event-record.ts'
import type { Event } from '../../../core/event.ts'
import type { Applied, Next, ScopeFeature } from '../../../engine/feature.ts'
import type { Stored } from '../../../engine/inbox/inbox.ts'
import type { Job } from '../../../engine/jobs.ts'
import { inBackground } from '../../../engine/log/failures.ts'
import type { LogParts } from '../../../engine/log/log-parts.ts'
import { BesideTurns } from '../../../engine/turns/beside.ts'
import { depsOf } from '../../../engine/turns/deps.ts'
import { logEnd } from '../../../engine/turns/ledger.ts'
import type { Turn, TurnRecord } from '../../../engine/turns/turn.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { cleanEvent } from '../../../events/parse-event.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { AnswerTooLong, tooLongText } from '../../../models/model-errors.ts'
import { modelName } from '../../../models/resolve-model.ts'
import { senderOf } from '../../../contract/sender.ts'
import { callIdOf, type AnswerError, type AnswerLine, type AskedOfScope } from '../contract/answer.ts'
import { AnswerStream, AnswerText, type AnswerOut } from '../contract/answer-stream.ts'
import { Allowed } from './allowed.ts'
import { EarlyRuns } from './early-runs.ts'
import { Untold } from './untold.ts'

/** Requests that a scope answers at once. */
const AT_ONCE = 64
/** The longest wait for the action of a reflex. */
const REFLEX_MS = 10_000
const DIED = 'the server died, was reset or was evicted in the middle of the answer'

type Answering = { seq: number; turn?: TurnRecord }
/** A request whose caller waits. `parts`: of its event. `turn`: if it began with the event. */
type Live = {
  asked: AskedOfScope
  out: AnswerOut
  parts: ReturnType<LogParts['prepare']>[]
  taken: PromiseWithResolvers<boolean>
  turn?: Turn
  leave: (why: string) => void
}
type Ended = Pick<Job<Answering>, 'key' | 'payload'>
type Parts = Collaborators

/**
 * Answers requests to a model: by a reflex that may act on them, else by a turn beside the lane. A
 * turn is a job, which holds the event. After a crash nobody waits for the answer any more: the
 * job logs that the turn was lost.
 */
export class AskedModels implements ScopeFeature {
  readonly name = 'one url'
  readonly #parts: Parts
  readonly #turns: BesideTurns
  readonly #allowed: Allowed
  readonly #untold: Untold
  readonly #early_runs: EarlyRuns
  readonly #live = new Map<string, Live>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#turns = new BesideTurns(parts)
    this.#allowed = new Allowed(parts.database)
    this.#untold = new Untold(parts.database)
    this.#early_runs = new EarlyRuns(parts)
    parts.jobs.handle<Answering>('answer', {
      work: 'action',
      at_once: AT_ONCE,
      attempts: MOST_DEATHS,
      run: (job) => this.#run(job),
      giveUp: (job) => this.#lost(job),
    })
  }

  applied(unit: Unit, { decision }: Applied): void {
    for (const part of this.#live.get(decision.one.event.id)?.parts ?? []) this.#parts.log_parts.keep(unit, part)
  }

  /** Begins the turn in the unit that accepts the request, where no other has to end before. */
  asked(unit: Unit, { decision: { one } }: Applied): Next[] {
    const { jobs } = this.#parts
    const { seq, event } = one
    if (!isModelAsked(event)) return []
    const live = this.#live.get(event.id)
    if (!live || !jobs.isFree('answer')) {
      this.#add(unit, seq, event)
      return [{ do: 'run-jobs' }]
    }
    live.turn = this.#begin(unit, one, live.asked)
    jobs.addRunning(unit, { kind: 'answer', key: String(seq), payload: { seq, turn: recordOf(live.turn) } satisfies Answering })
    return []
  }

  released(unit: Unit, { seq, event }: { seq: number; event: Event }): boolean {
    if (!isModelAsked(event)) return false
    this.#add(unit, seq, event)
    return true
  }

  teachers(): readonly string[] {
    return this.#early_runs.senders
  }

  configured(unit: Unit, { learning }: SettingsPatch): void {
    if (learning === null || learning?.mode !== undefined) this.#early_runs.wasSet(unit)
  }

  keepsApproved(unit: Unit, { tool, input }: { tool: string; input: unknown }): boolean {
    if (!tool.startsWith(CALLER_TOOL)) return false
    this.#allowed.add(unit, tool, input)
    return true
  }

  /** The lines of the answer. The head says who decided. */
  async answer(given: AskedOfScope): Promise<ReadableStream<Uint8Array> | string> {
    const { hider, loop, reflex_sync, caller_tools, settings, env } = this.#parts
    await reflex_sync.ready()
    const asked = { ...given, request: { ...given.request, prompt: this.#untold.told(given.request.prompt) } }
    const { event: kept, parts } = this.#kept(asked)
    const event = cleanEvent(kept, hider) as Event
    const { id, meta } = event
    const out = asked.streams ? new AnswerStream((why) => live.leave(why)) : new AnswerText()
    const live: Live = { asked, out, parts, taken: Promise.withResolvers(), leave: () => {} }
    caller_tools.open(meta.trace_id)
    this.#live.set(id, live)
    this.#noteOutputs(asked)
    const accepted = loop.accept([event as never], 'http')
    const model = asked.behind?.name ?? modelName(env, settings())
    if (!accepted.ok) {
      const message = `the inbox of the scope is full (${accepted.depth} of ${accepted.limit})`
      this.#end(id, meta.trace_id, out, { line: 'error', status: 429, reason: 'refused', message, retry_after_s: 5 })
      return out.answer
    }
    const fired = live.turn ? null : await this.#firedOn(id, live)
    if (fired) await this.#byReflex(event, out, fired)
    else out.write({ line: 'head', trace_id: meta.trace_id, model, decided_by: null })
    if (live.turn) inBackground(this.#runBegun(live, live.turn))
    return out.answer
  }

  /** Runs a turn that began where its request was accepted. */
  async #runBegun(live: Live, turn: Turn): Promise<void> {
    const { jobs } = this.#parts
    const seq = turn.claimed[0]?.seq ?? 0
    const key = String(seq)
    try {
      await this.#think({ key, payload: { seq } }, live, turn)
    } finally {
      jobs.release('answer', key)
      jobs.run()
    }
  }

  #add(unit: Unit, seq: number, { id }: Event): void {
    this.#live.get(id)?.taken.resolve(true)
    this.#parts.jobs.add(unit, { kind: 'answer', key: String(seq), payload: { seq } satisfies Answering })
  }

  /** The request by its parts, of which each message is kept once. */
  #kept({ event, request: { prompt, tools, options } }: AskedOfScope): { event: ModelAsked; parts: Live['parts'] } {
    const { log_parts, log, now } = this.#parts
    log.masks.mayQuote(event.meta.trace_id, [event])
    const quotes = log.masks.of(event.meta.trace_id)
    const prepared = [...prompt, { tools }].map((part) => log_parts.prepare(part, now(), { quotes }))
    const hashes = prepared.map(({ hash }) => hash)
    const request: RequestParts = { prompt: hashes.slice(0, -1), tools: hashes.at(-1) ?? '', options }
    const whole = log_parts.prepare(request, now(), { quotes })
    return { event: { ...event, request_hash: whole.hash }, parts: [...prepared, whole] }
  }

  /** Values that the caller's tools gave: where they come from decides where later calls may go. */
  #noteOutputs({ results }: AskedOfScope): void {
    const { effects, toolbox } = this.#parts
    for (const { tool, input, output } of results) {
      const found = toolbox.find(CALLER_TOOL + tool)
      if (found.ok) effects.origins.note({ tool: CALLER_TOOL + tool, definition: found.definition, input }, output)
    }
  }

  /** The outcome of the reflex that took the event; null if a turn answers. */
  async #firedOn(id: string, { taken }: Live): Promise<EventOutcome | null> {
    const { waiters, view, outcomes } = this.#parts
    const ended = waiters.wait(view.open([id]), REFLEX_MS).then(() => false)
    return (await Promise.race([taken.promise, ended])) ? null : (outcomes.of([id])[0] ?? null)
  }

  async #byReflex({ id, meta: { trace_id } }: Event, out: AnswerOut, { outcome, error }: EventOutcome): Promise<void> {
    const { caller_tools } = this.#parts
    if (outcome?.by !== 'reflex' || !outcome.action) {
      const message = error ?? 'the request was not decided'
      return this.#end(id, trace_id, out, { line: 'error', status: 500, reason: 'failed', message, retry_after_s: null })
    }
    const { reflex_id, version, action } = outcome
    const decided_by = `reflex:${reflex_id}@${version}`
    out.write({ line: 'head', trace_id, model: decided_by, decided_by })
    const lines = linesOf(action, trace_id)
    const calls = lines.filter(({ line }) => line === 'call').length
    const waits = calls > caller_tools.handed(trace_id)
    for (const line of waits ? WAITS : lines) out.write(line)
    const finish = calls > 0 && !waits ? 'tool-calls' : 'stop'
    this.#end(id, trace_id, out, { line: 'end', finish, input_tokens: 0, output_tokens: 0 })
  }

  async #run(job: Job<Answering>): Promise<void> {
    const stored = this.#storedOf(job)
    const live = this.#live.get(stored.event.id)
    if (!live) return this.#lost(job)
    const { unit, jobs } = this.#parts
    const turn = unit((beginning) => {
      const turn = this.#begin(beginning, stored, live.asked)
      jobs.advanced(beginning, 'answer', job.key, { ...job.payload, turn: recordOf(turn) } satisfies Answering)
      return turn
    })
    await this.#think(job, live, turn)
  }

  async #think(job: Ended, live: Live, turn: Turn): Promise<void> {
    const { out, asked } = live
    const { id } = asked.event
    live.leave = (why) => turn.stop(new Error(why))
    const ending = await this.#endingOf(turn, live)
    this.#settle(job, turn, ending)
    // The answer names the question about the calls that it holds: its caller may decide at once.
    if (turn.failed_calls.length > 0) await this.#parts.effects.questionsSent()
    const { status, error } = ending
    const { input_tokens, output_tokens } = turn.usage
    const { trace_id } = turn.head
    if (status === 'result') {
      const { finish } = ending.result as AnswerEnd
      this.#end(id, trace_id, out, { line: 'end', finish, input_tokens, output_tokens })
    } else this.#end(id, trace_id, out, { line: 'error', ...errorOf(ending, error, this.#parts.now()) })
    for (const { event } of turn.claimed) inBackground(this.#early_runs.decided(senderOf(event)))
  }

  #begin(unit: Unit, stored: Stored, { words, behind }: AskedOfScope): Turn {
    const { event } = stored
    const { causation_id: _cause, ...meta } = event.meta
    const directing = { ...event, content: words, meta: { ...meta, causation_id: null } }
    const allowed = (tool: string, input: unknown) => this.#parts.unit((using) => this.#allowed.take(using, tool, input))
    return this.#turns.begin(unit, stored, { words: directing, allowed, ...(behind && { behind }) })
  }

  async #endingOf(turn: Turn, { asked, out }: Live): Promise<TurnEnding> {
    const { settings, now, hide, events, actions, unit } = this.#parts
    const { trace_id } = turn.head
    const left: string[] = []
    const refused: RefusedCall[] = []
    let said = 0
    const sink: AnswerSink = {
      streams: asked.streams,
      said: (text) => {
        demandRecordable((said += byteLength(text)))
        out.write({ line: 'text', text })
      },
      called: ({ toolName: name, input }) => {
        const id = callIdOf(trace_id)
        left.push(id)
        out.write({ line: 'call', id, name, input })
      },
      untold: (call) => void refused.push(call),
    }
    try {
      const deps = await depsOf({ ...this.#parts, event_store: events, actions })(turn)
      const work = () => resultOf(() => answerRequest(asked.request, deps, sink), turn, deps)
      const result = await withDeadline(work, { signal: turn.signal, timeout_ms: settings().turn_timeout_ms, what: 'the turn' })
      const [beside] = left
      if (beside !== undefined && refused.length > 0) unit((unit) => this.#untold.add(unit, beside, refused))
      return endingOf(result, turn.seen.context.scratch)
    } catch (error) {
      const too_long = tooLongText(error)
      const ending = too_long !== null ? tooLong(too_long) : endingOfError(error, { now: now(), model: turn.model })
      const text = hide(ending.error ?? messageOf(error))
      return { ...ending, error: asked.behind ? text.replaceAll(asked.behind.key, '***') : text }
    } finally {
      turn.stop(new Error('the turn has ended'))
    }
  }

  /** Ends the turn and its event. A failed request was answered: it is no dead letter. */
  #settle(job: Ended, turn: Turn, ending: TurnEnding): void {
    const { unit, features, settlement, outage } = this.#parts
    const { seq } = job.payload
    const events = turn.claimed.map(({ event: { scope, id, meta } }) => ({ seq, scope, id, trace_id: meta.trace_id }))
    unit((end) => {
      this.#done(end, job)
      if (turn.model.answered) outage.answered(end)
      if (ending.status === 'result') {
        for (const feature of features) feature.taught?.(end, turn.shown)
        for (const feature of features) feature.eventsDecided?.(end, events, { by: 'turn', acts: turn.acts }, turn)
        for (const feature of features) feature.turned?.(end, turn.claimed, turn.acts)
        const log_seq = logEnd(this.#parts, end, turn, ending)
        const partial = turn.failed_calls.length > 0 && { partial: true as const }
        const outcome = { by: 'turn' as const, turn_id: turn.turn_id, log_seq, ...partial }
        settlement.end(end, [seq], { status: 'completed', outcome, attempts: 1 })
        return
      }
      const reason = ending.error ?? 'the turn failed'
      const left = turn.signal.aborted && LEFT.test(reason)
      const log_seq = logEnd(this.#parts, end, turn, left ? { status: 'cancelled', result: null, error: reason } : ending)
      settlement.end(end, [seq], { status: 'cancelled', outcome: { by: 'failure', reason, log_seq }, error: reason, attempts: 1 })
    })
  }

  #lost(job: Job<Answering>): void {
    const { unit, settlement } = this.#parts
    const { seq, turn } = job.payload
    unit((end) => {
      this.#done(end, job)
      const log_seq = turn && this.#turns.lost(end, turn, DIED)
      const outcome = { by: 'failure' as const, reason: DIED, ...(log_seq !== undefined && { log_seq }) }
      settlement.end(end, [seq], { status: 'cancelled', outcome, error: DIED })
    })
  }

  #done(unit: Unit, { key }: Ended): void {
    this.#parts.jobs.done(unit, 'answer', key)
    this.#parts.guard.done({ kind: 'action', id: key })
  }

  #end(id: string, trace_id: string, out: AnswerOut, last: AnswerLine): void {
    this.#live.delete(id)
    this.#parts.caller_tools.close(trace_id)
    out.write(last)
    out.close()
  }

  #storedOf({ payload: { seq } }: Job<Answering>): Stored {
    const row = this.#parts.database.first<{ payload: string; attempts: number }>('SELECT payload, attempts FROM events WHERE seq = ?', seq)
    const { payload: text, attempts } = row ?? { payload: '{}', attempts: 0 }
    return { seq, event: JSON.parse(text) as Event, attempts, text }
  }
}

const recordOf = ({ turn_id, head, since, started_seq }: Turn): TurnRecord => ({ turn_id, head, since, started_seq })

function demandRecordable(bytes: number): void {
  if (bytes > limits.result_bytes) throw new AnswerTooLong(`${limits.result_bytes} bytes in UTF-8`)
}

/** The ending of such a turn: neither the agent nor the provider is at fault. */
function tooLong(message: string): TurnEnding {
  const fault = { fault: 'refused' as const, status: 502, retry_after_ms: null, detail: message }
  return { status: 'failed', result: null, error: message, fault }
}

const LEFT = /the caller left/
const WAITS: readonly AnswerLine[] = [{ line: 'text', text: 'This call waits for a person: the scope lists its approval.' }]

/** The action of a reflex as an answer: what it says, and the calls that the caller makes. */
function linesOf(action: Action, trace_id: string): AnswerLine[] {
  return actionsIn(action).flatMap((one): AnswerLine[] => {
    if (one.action_type === 'reply') return [{ line: 'text', text: one.content }]
    if (one.action_type !== 'call_tool') return []
    const name = one.tool.slice(CALLER_TOOL.length)
    return [{ line: 'call', id: callIdOf(trace_id), name, input: canonicalJson(one.args) }]
  })
}

function errorOf({ status, fault, until }: TurnEnding, error: string | null, now: number): AnswerError {
  const message = error ?? 'the request failed'
  const retry = until == null ? null : Math.max(1, Math.ceil((until - now) / 1000))
  if (status === 'refused') return { status: 429, reason: 'refused', message, retry_after_s: retry }
  if (fault?.fault === 'refused')
    return {
      status: fault.status ?? 400,
      reason: isSpent(fault) ? 'refused' : 'model',
      message: fault.detail,
      retry_after_s: null,
      is_final: true,
    }
  if (status === 'waiting') {
    const after = fault?.retry_after_ms
    return { status: fault?.status ?? 503, reason: 'model', message, retry_after_s: after == null ? null : Math.ceil(after / 1000) }
  }
  return { status: status === 'timeout' ? 504 : 500, reason: 'failed', message, retry_after_s: null }
}
