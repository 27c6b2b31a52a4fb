import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Act, CallKeys, FailedRead } from '../../contract/reflex.ts'
import type { AgentDeps } from '../../agent/define-agent.ts'
import { tracedFetch } from '../../events/traceparent.ts'
import type { EventStore } from '../../core/event-store.ts'
import { messageOf } from '../../base/error-text.ts'
import { canonicalJson, fitsBytes } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import { FailedCalls } from '../../agent/turn-ending.ts'
import { toolSet } from '../../agent/toolbox.ts'
import type { Sockets } from '../live/sockets.ts'
import type { Actions } from '../reflexes/actions.ts'
import { failureOf } from '../../reflexes/sequence.ts'
import { onlyReads, shownName, type ToolDefinition } from '../../tools/define-tool.ts'
import { under } from '../log/spans.ts'
import { childHead } from '../../traces/ids.ts'
import type { Unit } from '../../kernel/unit.ts'
import { type ModelParts, turnModel } from './turn-model.ts'
import { keep, type Turn } from './turn.ts'
import { storeOf } from '../../store/store.ts'
import type { Lanes } from '../effects/wiring.ts'

type TurnDepsParts = ModelParts &
  Pick<Lanes, 'scope' | 'effects' | 'toolbox' | 'features'> & {
    event_store: EventStore
    sockets: Sockets
    actions: Pick<Actions, 'waits'>
  }

/** Names of offered tools that the log keeps. */
const MOST_OFFERED = 100

/** Notes an act with its input, which says which event it is about. */
export function noteAct({ acts, inputs }: Pick<Turn, 'acts' | 'inputs'>, act: Act, input: unknown): void {
  inputs[acts.length] = input
  acts.push(act)
}

/** Notes a call with its output, which a later act of a sequence may use. */
export function noteCall(
  turn: Pick<Turn, 'acts' | 'inputs' | 'outputs'>,
  act: Act,
  { input, output }: { input: unknown; output: unknown },
): void {
  turn.outputs[turn.acts.length] = output
  noteAct(turn, act, input)
}

/** Failed calls that later comparisons know. */
const MOST_FAILED_READS = 20
type Reading = { name: string; keys: CallKeys | null; definition: ToolDefinition }

/** Notes a call that only reads if it fails, until the same call succeeds. */
export async function noteFailedRead<Output>(
  turn: Pick<Turn, 'acts' | 'failed_reads'>,
  { name, keys, definition }: Reading,
  run: () => Promise<Output>,
): Promise<Output> {
  if (!keys || !onlyReads(definition)) return run()
  const act = { act: 'call_tool' as const, tool: name, ...keys }
  const isOther = (one: FailedRead): boolean => canonicalJson(one.act) !== canonicalJson(act)
  try {
    const output = await run()
    turn.failed_reads = turn.failed_reads.filter(isOther)
    return output
  } catch (error) {
    const failed = { at: turn.acts.length, act, output: failureOf(messageOf(error)) }
    turn.failed_reads = [...turn.failed_reads.filter(isOther), failed].slice(-MOST_FAILED_READS)
    throw error
  }
}

/** Notes which calls of a turn still run. */
export function followed({ running }: Pick<Turn, 'running'>, perform: AgentDeps['call']): AgentDeps['call'] {
  return (name, input) => {
    const call = perform(name, input)
    const ended = () => running.delete(call)
    running.set(call, name)
    // Mark the rejection as handled: an unawaited failure is in the turn's log entry, not a crash.
    void call.then(ended, ended)
    return call
  }
}

/**
 * Builds the trigger's dependencies. After the turn ends, its signal is aborted and they do
 * nothing.
 */
export const depsOf = (parts: TurnDepsParts) => (turn: Turn) => turnDeps(parts, turn)

async function turnDeps(parts: TurnDepsParts, turn: Turn): Promise<AgentDeps> {
  const { env, settings, effects, unit, toolbox, features, actions, hide } = parts
  const { turn_id, signal, head, earlier_turns } = turn

  await toolbox.ready()
  turn.signal.throwIfAborted()
  turn.readings.offered = toolbox.offered.slice(0, MOST_OFFERED)
  const failures = new FailedCalls(turn, hide)
  const perform = async (name: string, input: unknown): Promise<unknown> => {
    const found = toolbox.find(name)
    if (!found.ok) throw new Error(found.detail)
    const { definition } = found
    const timeout_ms = settings().effect_timeout_ms
    const unneeded = turn.needed !== null && !turn.needed.has(shownName(name))
    const by_person = turn.asked?.allowed(name, input) === true && { approved: true }
    const words = turn.asked && { words: turn.asked.words }
    const run = { cause: { turn_id }, turn_id, earlier_turns, head, signal, timeout_ms }
    const request = { tool: name, definition, input, ...run, unneeded, ...by_person, ...words }
    const keys = toolbox.keyOf(name, input)
    const perform = () => noteFailedRead(turn, { name, keys, definition }, () => effects.run(request))
    const output = await failures.watch({ tool: name, input }, perform)
    if (keys) noteCall(turn, { act: 'call_tool', tool: name, ...keys }, { input, output })
    const { undoes } = definition
    if (undoes)
      unit((unit) => {
        for (const feature of features) feature.undone?.(unit, { tool: name, undoes }, input, { turn_id, who: 'a turn' })
      })
    return output
  }
  const call = followed(turn, perform)
  const written = writtenFirst(parts)
  const deps: Omit<AgentDeps, 'model'> = {
    env,
    scope: parts.scope,
    store: during(parts.event_store, turn, { ...parts, written }),
    signal,
    turn_id,
    now: turn.now,
    call,
    needs: (tools) => {
      if (turn.acts.length + turn.failed_calls.length + turn.running.size > 0) throw new Error('deps.needs comes before the first call')
      turn.needed = new Set(tools)
    },
    done: (name, input) => {
      const key = toolbox.keyOf(name, input)?.idempotence_key
      return keep(turn.readings.done, typeof key === 'string' && (effects.journal.isDone(name, key) || actions.waits(name, key)))
    },
    get db() {
      written()
      return storeOf(env)
    },
    context: turn.seen.context,
    attempt: Math.max(...turn.claimed.map(({ attempts }) => attempts)),
    settings: settings(),
    fetch: turnFetch({ ...parts, written }, turn),
    tools: toolSet(toolbox, call),
    reply: (content) => reply({ write: turn.asked ? parts.deferred.put.bind(parts.deferred) : unit, log: parts.log }, turn, content),
    stream: (delta) => {
      signal.throwIfAborted()
      written()
      parts.sockets.stream({ turn_id, content: delta })
    },
  }
  // Create the model on first use: an agent that calls no model needs no model settings.
  let model: LanguageModelV4 | undefined
  return Object.defineProperty(deps, 'model', { enumerable: true, get: () => (model ??= turnModel(parts, turn)) }) as AgentDeps
}

/** Precedes what others may notice, but no unit writes: events that are held back are stored. */
const writtenFirst =
  ({ deferred, unit }: Pick<TurnDepsParts, 'deferred' | 'unit'>) =>
  (): void => {
    if (deferred.unfinished) unit(() => {})
  }

type ReplyParts = Pick<TurnDepsParts, 'log'> & { write: (work: (unit: Unit) => unknown) => void }

function reply({ write, log }: ReplyParts, { signal, acts, head, turn_id }: Turn, content: string): void {
  signal.throwIfAborted()
  demandReply(content)
  acts.push({ act: 'reply', content })
  const shown = log.clean(content) as string
  write((unit) => unit.log({ ...childHead(head), kind: 'reply-sent', turn_id, reflex_id: null, content: shown }))
}

/** Checks at run time, since values from a model or a tool often have type `any`. */
export function demandReply(content: unknown): void {
  if (typeof content !== 'string') {
    const given = content === null ? 'null' : Array.isArray(content) ? 'an array' : typeof content
    throw new TypeError(`deps.reply takes text, not ${given}: pass a string, such as JSON.stringify(value)`)
  }
  if (content === '') throw new TypeError('deps.reply was given an empty text: leave the call out where there is nothing to say')
  if (!fitsBytes(content, limits.result_bytes)) throw new RangeError(`a reply takes at most ${limits.result_bytes} bytes in UTF-8`)
}

/** `written`: precedes what leaves the scope. */
type Outgoing = Pick<TurnDepsParts, 'trace_marks'> & { written: () => void }

/** Stops a turn's requests once the turn ends. They carry its span. */
function turnFetch({ trace_marks, written }: Outgoing, { head, signal }: Turn): typeof fetch {
  const stoppable: typeof fetch = (input, init) => {
    written()
    return fetch(input, { ...init, signal: init?.signal ? AbortSignal.any([init.signal, signal]) : signal })
  }
  return tracedFetch(stoppable, head, () => trace_marks.of(head))
}

/** Stops a turn's calls of the store once the turn ends. */
function during(store: EventStore, turn: Turn, { trace_marks, written }: Outgoing): EventStore {
  const { signal, head } = turn
  const live =
    <Arguments extends unknown[], Result>(method: (...given: Arguments) => Result) =>
    (...given: Arguments) => {
      signal.throwIfAborted()
      written()
      return method(...given)
    }
  return {
    publish: live(async (...events) => {
      const marks = trace_marks.of(head)
      const receipts = await store.publish(...events.map((event) => under(head, event, marks)))
      for (const event of events) noteAct(turn, { act: 'emit_event', event_type: event.type }, event)
      return receipts
    }),
    subscribe: live((subscription) => store.subscribe(subscription)),
    ack: live((token) => store.ack(token)),
    nack: live((token, error) => store.nack(token, error)),
    replay: live((span) => store.replay(span)),
  }
}
