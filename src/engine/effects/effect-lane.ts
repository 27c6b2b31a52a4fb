import { v7 as uuidv7 } from 'uuid'
import { argumentsHash, isGlobalKey, onlyReads, anchorsTouched, AwaitsPerson, whyAnchored, whyDoubted } from '../../tools/define-tool.ts'
import type { ScopedLocks } from '../../core/scoped-locks.ts'
import type { EntryHead, NewEntry, TurnEnd } from '../../contract/log-entry.ts'
import { hideInError } from '../../base/secrets.ts'
import type { Json } from '../../base/json.ts'
import type { Doubt } from '../../contract/origin.ts'
import type { EditedCall } from '../../contract/held-call.ts'
import type { AnchoredCall } from '../../contract/settings/anchors.ts'
import { CutOff } from '../../tools/may-have-happened.ts'
import type { StepEnd } from '../../skills/runner/ports.ts'
import { withDeadline } from '../../base/deadline.ts'
import {
  callKey,
  fillSecrets,
  type Filled,
  effectInput,
  effectKey,
  effectWork,
  stepOf,
  succeeded,
  type EffectPlace,
  type EffectRequest,
  type EffectResult,
  type HeldEffect,
} from './effect.ts'
import { tracedFetch } from '../../events/traceparent.ts'
import { scopeHead } from '../log/spans.ts'
import { childHead } from '../../traces/ids.ts'
import { toolFailure } from '../log/failures.ts'
import type { Unit } from '../../kernel/unit.ts'
import { effectId, type EffectJournal, isOfSequence, type RecordedEffect, releaseUndone } from './effect-journal.ts'
import type { CallOrigins } from './call-origins.ts'
import type { GlobalKeys } from './global-keys.ts'
import type { Reflexes } from '../reflexes/wiring.ts'

/** Maximum time that an aborted tool may keep the lane. */
const GRACE_MS = 2000

type Used = 'scope' | 'env' | 'settings' | 'action_keys' | 'log' | 'unit' | 'toolbox' | 'fetch' | 'now' | 'trace_marks'
type LaneParts = Pick<Reflexes, Used> & {
  journal: EffectJournal
  global_keys: GlobalKeys
  locks: ScopedLocks
  origins: CallOrigins
}
/** `input` is as it is logged; if it names secrets, `filled` is what the tool is called with. */
type ReadyRequest = EffectRequest & { filled: Filled } & Judged
type Judged = { doubts: readonly Doubt[]; named_by: Readonly<Record<string, string>> }
/** An effect in the lane. `place` is null if it has no journal row. */
/** `ask` and `gather` return the id of the approval; null if an equal question waits already. */
type AskForCall = {
  ask: (call: AnchoredCall, why: string, place: EntryHead) => Promise<string | null>
  /** Keeps a call until its turn ends: one question has all of a turn. */
  gather: (turn_id: string, call: AnchoredCall, why: string, place: EntryHead) => string | null
  /** Asks about the calls of a turn, unless it will be repeated or was cancelled. */
  endTurn: (unit: Unit, turn_id: string, asks: boolean) => void
  /** Resolves once D1 has the questions of ended turns, or has refused them for now. */
  sent: () => Promise<unknown>
}
type JudgedRequest = Pick<
  EffectRequest,
  'tool' | 'definition' | 'cause' | 'turn_id' | 'step' | 'words' | 'approved' | 'edited' | 'unneeded'
>

/** A call that a person changed, and that the gate does not let pass. */
export class EditRefused extends Error {
  override readonly name = 'EditRefused'
}

const whyRefused = ({ anchors, said }: { anchors: readonly string[]; said: readonly string[] }): string =>
  [...anchors.map((name) => `it touches the anchor ${name}, which the question did not name`), ...said].join('; ')

const NOT_NEEDED = 'the turn did not name this tool as one that its task needs'
type BegunEffect = { id: string; place: EffectPlace | null; key: string | null; head: EntryHead; started: number; log_seq: number }
type EndedEffect = { begun: BegunEffect; result: EffectResult; step: StepEnd | undefined }

/**
 * The effect lane: one effect of this scope at a time (G4), each journalled before and after (G8).
 *
 * If the process dies before the first write, nothing happened. Between the two, the effect ends as
 * `unknown`: with an idempotency key it runs again under that key, without one it is never repeated
 * automatically. After the second write, a repeated turn gets the recorded output.
 */
export class EffectLane {
  readonly journal: EffectJournal
  readonly origins: CallOrigins
  readonly #parts: LaneParts
  /** Recorded effects that a turn has reused: the same call twice in one turn is two effects. */
  readonly #reused = new Map<string, Set<string>>()

  #asking: AskForCall | null = null

  constructor(parts: LaneParts) {
    this.#parts = parts
    this.journal = parts.journal
    this.origins = parts.origins
  }

  /** Runs a tool, or answers from the journal. Throws for invalid input, and if the tool throws. */
  async run(request: EffectRequest): Promise<unknown> {
    const held = await this.hold(request)
    this.#parts.unit((unit) => held.close(unit), effectWork(request))
    if (held.thrown) throw held.thrown.error
    return held.output
  }

  /** Like `run`, but the caller writes the end together with its consequences. */
  async hold(request: EffectRequest): Promise<HeldEffect> {
    const filled = fillSecrets(this.#parts, request)
    const parsed = effectInput({ ...request, input: filled.input })
    const input = filled.names.length > 0 ? request.input : parsed
    const judged = await this.#demandPerson({ ...request, input }, parsed)
    const leave = await this.#enter(request.signal)
    try {
      return await this.#inLane({ ...request, input, filled: { ...filled, input: parsed }, ...judged }, leave)
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Registers what asks a person for the call of a turn or a reflex. */
  onAnchored(asking: AskForCall): void {
    this.#asking = asking
  }

  /**
   * Throws if the call touches an anchor or goes where no trusted origin sends it, and nobody
   * allowed it. Returns the origins of the arguments for the log.
   */
  async #demandPerson(request: EffectRequest, called_with: unknown): Promise<Judged> {
    const { tool, input, turn_id, step, head, signal } = request
    const { anchors, doubts, named_by, said, refuses, asks } = this.#verdict(request, called_with)
    if (refuses) throw new Error(`${tool} is refused: ${said.join('; ')}`)
    if (anchors.length === 0 && !asks) return { doubts, named_by }
    if (request.edited) throw new EditRefused(whyRefused({ anchors, said: asks ? said : [] }))
    signal.throwIfAborted()
    const reasons = [...(anchors.length > 0 ? [whyAnchored(anchors)] : []), ...(asks ? [whyDoubted(said)] : [])]
    const why = `${tool} ${reasons.join(', and ')}`
    if (step) throw new Error(`${why}: set policy.needs_approval_if of the skill, since this was not known before its run`)
    if (turn_id === null) throw new Error(why)
    const call = { tool, input: input as AnchoredCall['input'], anchors, named_by, ...(asks && { origins: doubts }) }
    if (!this.#asking) throw new Error('nobody asks people')
    const is_of_turn = 'turn_id' in request.cause
    const approval_id = is_of_turn ? this.#asking.gather(turn_id, call, why, head) : await this.#asking.ask(call, why, head)
    throw new AwaitsPerson(
      `${why}: ${approval_id === null ? 'it waits for an approval already' : `it waits for the approval ${approval_id}`}`,
    )
  }

  /**
   * Why a call may not be made as a person changed it, by the verdict on its first attempt: what
   * they wrote and were shown is allowed, and nothing else. Null: it may.
   */
  editRefusal(call: Pick<EffectRequest, 'tool' | 'definition'> & { edited: EditedCall }, input: unknown): string | null {
    const { anchors, said, asks, refuses } = this.#verdict(
      { ...call, cause: { by: 'approval' }, turn_id: 'approval', approved: true },
      input,
    )
    const why = { anchors, said: asks || refuses ? said : [] }
    return why.anchors.length + why.said.length === 0 ? null : whyRefused(why)
  }

  /** The gate's verdict on a call: the anchors that it touches, and who named where it goes. */
  #verdict(request: JudgedRequest, called_with: unknown) {
    const { tool, approved = false, edited } = request
    const { anchors: all, origins: mode } = this.#parts.settings()
    const touched = approved && !edited ? [] : anchorsTouched(all, { tool, input: called_with })
    const anchors = touched.filter((name) => !edited?.asked.anchors.includes(name))
    const { found, named_by } = this.origins.judge(request, called_with)
    const said = found.map(({ sentence }) => sentence)
    if (request.unneeded && !approved) said.push(NOT_NEEDED)
    const asks = (mode === 'ask' && said.length > 0) || said.includes(NOT_NEEDED)
    return { anchors, doubts: found.map(({ doubt }) => doubt), named_by, said, asks, refuses: mode === 'refuse' && said.length > 0 }
  }

  /** Runs work that is not a tool in the lane, so that it overlaps no effect (G4). */
  async exclusively<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#parts.locks.run('effects', work, { signal })
  }

  /** Marks unfinished effects as unknown, after a crash. `quiet` omits the log entry. */
  recover(unit: Unit, quiet = false): void {
    const error = 'the server died while this effect ran: check whether it happened'
    const lost = this.#parts.journal.loseStarted(unit, error)
    unit.count({ effects: lost.length })
    if (quiet) return
    for (const { id, tool, key, log_seq } of lost) {
      const { trace_id, span_id, parent_id, event_ids, event_count } = this.#parts.log.entry(log_seq) ?? scopeHead()
      const head = { trace_id, span_id, parent_id, event_ids, ...(event_count !== undefined && { event_count }), duration_ms: null }
      unit.log({ ...head, kind: 'effect-ended', effect_id: id, tool, status: 'unknown', output: null, error, idempotence_key: key })
    }
  }

  forgetTurn(turn_id: string): void {
    this.#reused.delete(turn_id)
  }

  /** Resolves once people can answer what ended turns asked, or D1 is away. */
  async questionsSent(): Promise<void> {
    await this.#asking?.sent()
  }

  /** In the unit that ends a turn, before it is logged. */
  endTurn(unit: Unit, turn_id: string, status: TurnEnd): void {
    this.#asking?.endTurn(unit, turn_id, status !== 'cancelled' && status !== 'interrupted')
    this.forgetTurn(turn_id)
  }

  /** Resolves once the lane is free, with a function that leaves it. */
  #enter(signal: AbortSignal): Promise<() => void> {
    const entered = Promise.withResolvers<() => void>()
    const left = Promise.withResolvers<void>()
    const hold = () => {
      entered.resolve(left.resolve)
      return left.promise
    }
    this.#parts.locks.run('effects', hold, { signal }).catch(entered.reject)
    return entered.promise
  }

  async #inLane(request: ReadyRequest, leave: () => void): Promise<HeldEffect> {
    request.signal.throwIfAborted()
    const { journal, global_keys, scope, unit, now } = this.#parts
    const own = effectKey(request, scope)
    const arguments_hash = argumentsHash(request.input)
    const place = this.#placeOf(request)
    const claimed = own !== null && place && request.definition.idempotence_key && isGlobalKey(own) ? { key: own, place } : null
    const earlier = claimed ? await global_keys.claimEffect(request, claimed, journal) : this.#earlier(request, arguments_hash, own)
    const key = own ?? callKey(request.definition, earlier, place)
    if (earlier?.status === 'ok') return this.#reuse(request, earlier, { key, leave })
    if (earlier?.status === 'unknown' && key === null) {
      throw new Error(`effect ${request.tool} may have happened in an earlier attempt and has no idempotency key: it is not repeated`)
    }
    const head = childHead(request.head)
    const started = now()
    const begun = unit((begin) => this.#begin(begin, request, { place, key, arguments_hash, head, started }), effectWork(request))
    const called = await this.#call(request, key, head)
    return { ...called, close: (end, step) => (this.#end(end, request, { begun, result: called.result, step }), leave()) }
  }

  /** The effect's journal row. A call that only reads has none before its end. */
  #placeOf({ step, definition, turn_id }: ReadyRequest): EffectPlace | null {
    return step ?? (definition.repeatable ? null : this.#parts.journal.nextPlace(turn_id ?? `call:${uuidv7()}`))
  }

  #begin(unit: Unit, request: ReadyRequest, effect: Omit<BegunEffect, 'id' | 'log_seq'> & { arguments_hash: string }): BegunEffect {
    const { place, key, arguments_hash, head, started } = effect
    const id = place ? effectId(place) : uuidv7()
    const step = request.step && stepOf(request.step)
    const log_seq = unit.log({
      ...head,
      kind: 'effect-started',
      effect_id: id,
      tool: request.tool,
      input: this.#shown(request.input, request),
      idempotence_key: key,
      cause: request.cause,
      ...(step && { step }),
      ...(request.doubts.length > 0 && { origins: this.#shown(request.doubts, request) as Doubt[] }),
      ...(Object.keys(request.named_by).length > 0 && { named_by: request.named_by }),
    })
    if (place) this.#parts.journal.begin(unit, { ...place, tool: request.tool, arguments_hash, key, log_seq, started_at: started })
    return { id, place, key, head, started, log_seq }
  }

  async #call(request: ReadyRequest, key: string | null, head: EntryHead): Promise<Omit<HeldEffect, 'close'>> {
    const { now, env, scope, settings, log, trace_marks } = this.#parts
    const fetch = tracedFetch(this.#parts.fetch, head, () => trace_marks.of(head))
    const { tool, definition, filled } = request
    const { hider, names: secrets } = filled
    const call = { env, fetch, scope, parameters: settings().parameters, idempotence_key: key, secrets, now, trace: head }
    let stopped = false
    let work: Promise<unknown> = Promise.resolve()
    try {
      const returned = await withDeadline(
        (signal) => {
          signal.addEventListener('abort', () => (stopped = true), { once: true })
          return (work = definition.execute(filled.input, { ...call, signal }))
        },
        { signal: request.signal, timeout_ms: definition.timeout_ms ?? request.timeout_ms, what: `effect ${tool}` },
      )
      // A host may echo a secret: hide it from the model and the journal.
      const output = hider.value(returned)
      return { result: succeeded(output), output }
    } catch (error) {
      hideInError(error, hider)
      // An aborted tool may still be running: the lane waits for it briefly (G4).
      if (stopped) await Promise.race([work.catch(() => null), scheduler.wait(GRACE_MS)])
      // A stopped effect has an unknown outcome; one that failed by itself reports it.
      const status = stopped || error instanceof CutOff ? 'unknown' : 'failed'
      const failure = toolFailure(request, scope, error, log.masks.of(head.trace_id))
      return { result: { status, output: null, ...failure }, output: null, thrown: { error } }
    }
  }

  #end(unit: Unit, request: ReadyRequest, { begun, result, step }: EndedEffect): void {
    const { journal, global_keys } = this.#parts
    const { place, head, started } = begun
    const kept = place ?? this.#keepRead(unit, request, { begun, result })
    if (kept) journal.end(unit, kept, result, step)
    unit.count({ effects: 1, effects_failed: result.status === 'ok' ? 0 : 1 })
    unit.log({ ...head, duration_ms: unit.now - started, ...this.#endEntry(request, begun, result) })
    if (place) global_keys.settleEffect(place, result, unit.now)
    // A call that failed may have stored what it was given.
    this.origins.note(request, result.output)
    if (result.status !== 'ok') return
    releaseUndone(unit, this.#parts, request.definition, request.input)
  }

  /**
   * Keeps what a sequence read, once it is known and without a key: its later acts depend on that,
   * and so do a turn that continues it, a retry and an audit. A read that a crash cut off is
   * repeated.
   */
  #keepRead(unit: Unit, request: ReadyRequest, { begun, result }: Pick<EndedEffect, 'begun' | 'result'>): EffectPlace | null {
    const { tool, turn_id, input } = request
    if (turn_id === null || !isOfSequence(turn_id) || result.status === 'unknown') return null
    const { log_seq, started: started_at } = begun
    const place = this.#parts.journal.nextPlace(turn_id)
    this.#parts.journal.begin(unit, { ...place, tool, arguments_hash: argumentsHash(input), key: null, log_seq, started_at })
    return place
  }

  #reuse(
    request: ReadyRequest,
    { id, output, error }: RecordedEffect,
    { key, leave }: { key: string | null; leave: () => void },
  ): HeldEffect {
    const { turn_id, step } = request
    if (turn_id !== null) this.#reused.set(turn_id, (this.#reused.get(turn_id) ?? new Set()).add(id))
    const recorded: unknown = output === null ? null : JSON.parse(output)
    this.origins.note(request, recorded)
    const result: EffectResult = { status: 'reused', output: recorded, error }
    const close: HeldEffect['close'] = (unit, end) => {
      unit.log({ ...childHead(request.head), ...this.#endEntry(request, { id, key }, result) })
      if (step && end) this.#parts.journal.endStep(unit, step, end)
      leave()
    }
    return { result, output: recorded, close, answered: id }
  }

  #endEntry(request: EffectRequest, { id, key }: { id: string; key: string | null }, { status, output, error, stack, told }: EffectResult) {
    return {
      kind: 'effect-ended' as const,
      effect_id: id,
      tool: request.tool,
      status,
      ...(status === 'reused' && { input: this.#shown(request.input, request) }),
      output: this.#shown(output ?? null, request),
      error: error === null ? null : String(hidden(error, request)),
      idempotence_key: key,
      ...(status === 'failed' && onlyReads(request.definition) && { reads: true as const }),
      ...(stack && { stack: String(hidden(stack, request)) }),
      ...told,
    } satisfies Partial<NewEntry>
  }

  #shown(value: unknown, request: EffectRequest): unknown {
    return this.#parts.log.clean(hidden(value, request), request.head.trace_id)
  }

  /** Finds the same call of an earlier attempt. Plans match steps by place. */
  #earlier(
    { tool, turn_id, step, earlier_turns, answered }: EffectRequest,
    arguments_hash: string,
    key: string | null,
  ): RecordedEffect | undefined {
    if (key !== null) return this.#parts.journal.byKey(tool, key)
    if (turn_id === null || step) return undefined
    const reused = this.#reused.get(turn_id) ?? new Set()
    const same = this.#parts.journal.sameCalls({ owner: turn_id, earlier: earlier_turns, tool, arguments_hash })
    return same.find(({ id }) => !reused.has(id) && answered?.has(id) !== true)
  }
}

const hidden = (value: unknown, { hide }: Pick<EffectRequest, 'hide'>): unknown => (hide ? hide(value as Json) : value)
