import { withEarlierActs } from '../../agent/earlier-acts.ts'
import { triggerOn } from '../../agent/answer-request.ts'
import type { Agent, AgentDeps } from '../../agent/define-agent.ts'
import { FailedCalls, endingOf, endingOfError, endingWithCalls, type TurnEnding, resultOf } from '../../agent/turn-ending.ts'
import { toolSet, Toolbox } from '../../agent/toolbox.ts'
import type { FailedCall } from '../../contract/event-record.ts'
import type { TurnEnd, EntryOf } from '../../contract/log-entry.ts'
import type { Act } from '../../contract/reflex.ts'
import { DecisionContext } from '../../core/decision-context.ts'
import type { Around } from './given.ts'
import type { Basis } from './recording.ts'
import { RecordedEffects } from './recorded-effects.ts'
import type { ModelCalled } from './recorded-model.ts'
import { Unrecorded } from './report.ts'
import type { Source } from './source.ts'
import type { Sessions } from './skills/sessions.ts'

type Recorded = {
  started: EntryOf<'turn-started'>
  ended: EntryOf<'turn-ended'>
  basis: Basis
  context: DecisionContext
  now: () => number
}

/** Ends that the trigger decides. Others come from outside, such as a cancellation or a crash. */
const DECIDED: ReadonlySet<TurnEnd> = new Set(['result', 'none', 'failed'])

/** Runs the trigger of each recorded turn again. */
export async function replayTurns(around: Around, sessions: Sessions): Promise<Saved> {
  const { source, host, given, comparison } = around
  const saved: Saved = { effects: 0, calls: [], duration_ms: 0 }
  for (const recorded of source.entriesOf('turn-started')) {
    await host.computing.rest(8)
    const moved = given.departures?.moved(recorded) ?? null
    const started = given.departures && moved === null ? given.departures.turn(recorded) : recorded
    if (!started) {
      comparison.diverge(recorded, 'turn', { path: '', recorded: 'started', replayed: 'not started' })
      save(saved, notStarted(recorded, around))
      continue
    }
    try {
      if (moved !== null) throw new Unrecorded(moved)
      save(saved, await replayTurn(recordedTurn(started, around), around, sessions))
    } catch (error) {
      if (!(error instanceof Unrecorded)) throw error
      comparison.cannot(started, 'turn', error.message)
      for (const ended of source.entriesOf('turn-ended')) if (ended.turn_id === started.turn_id) comparison.covered.add(ended)
    }
  }
  return saved
}

function save(saved: Saved, { effects, calls }: { effects: RecordedEffects; calls: readonly ModelCalled[] }): void {
  saved.effects += effects.recorded - effects.made
  saved.calls.push(...calls)
  saved.duration_ms += effects.unused_ms + calls.reduce((sum, { duration_ms }) => sum + (duration_ms ?? 0), 0)
}

/** The report of a turn that would not start: its calls and effects would not exist. */
function notStarted(turn: EntryOf<'turn-started'>, { source, comparison }: Around) {
  const effects = new RecordedEffects(source, turn, { offered: [], comparison, clean: (value) => value, exact: true })
  effects.compareUnused()
  return { effects, calls: callsOf(turn, source) }
}

const callsOf = ({ turn_id }: EntryOf<'turn-started'>, source: Source): ModelCalled[] =>
  source.entriesOf('model-called').filter((call) => call.turn_id === turn_id)

/** Model calls, the number of effects, and their time, that were recorded and not repeated. */
type Saved = { effects: number; calls: ModelCalled[]; duration_ms: number }

function recordedTurn(started: EntryOf<'turn-started'>, { source, given }: Around): Recorded {
  const { turn_id, saw, since } = started
  const ended = source.entriesOf('turn-ended').find((entry) => entry.turn_id === turn_id)
  if (!ended) throw new Unrecorded('the turn had not ended when it was exported')
  if (!DECIDED.has(ended.status)) throw new Unrecorded(`the turn ended from outside, as ${ended.status}`)
  const basis = given.basisOf(started)
  if (!basis || since === undefined) throw new Unrecorded('the settings in force are not in the recording')
  const events = eventsIn(saw.seqs, source)
  const readings = [...(ended.clock ?? [])]
  const now = () => since + (readings.length > 1 ? (readings.shift() ?? 0) : (readings[0] ?? 0))
  const { created_at = since, last_action_at = null } = saw
  const scratch = structuredClone(saw.scratch) as Record<string, unknown>
  return {
    started,
    ended,
    basis,
    context: new DecisionContext({ scope: source.scope, events, scratch, created_at, last_action_at, now }),
    now,
  }
}

const eventsIn = (seqs: EntryOf<'turn-started'>['considered'], source: Source) =>
  seqs.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, index) => eventAt(first + index, source)))

function eventAt(seq: number, source: Source) {
  const found = source.eventAt(seq)
  if (!found) throw new Unrecorded(`the event at ${seq} of the inbox, which the turn saw, is not in the recording`)
  return structuredClone(found.event)
}

async function replayTurn(recorded: Recorded, { source, host, given, comparison }: Around, sessions: Sessions) {
  const { started, ended, basis, context } = recorded
  const agent = host.agents.agentOf(source.scope, basis.agent.name)
  const events = eventsIn(started.considered, source)
  const trigger = triggerOn(agent, events, (hash) => source.part(hash))
  if (agent.name !== basis.agent.name || !trigger) throw new Unrecorded(`this deployment has no agent ${basis.agent.name} with a trigger`)
  const clean = host.cleaner(basis.settings)
  const exact = given.departures !== null
  const effects = new RecordedEffects(source, started, {
    offered: ended.offered ?? [],
    comparison,
    clean,
    exact,
    failed: ended.failed_calls ?? [],
    rest: () => host.computing.rest(8),
  })
  const model = given.model({ source, calls: callsOf(started, source), comparison, clean, blocked: () => effects.missing })
  const turn = {
    acts: [] as Act[],
    failed_calls: [] as FailedCall[],
    running: new Map<Promise<unknown>, string>(),
    warnings: [],
    seen: { context },
    missing: [] as string[],
  }
  const [session] = sessions.of(started.span_id)
  const shown = withEarlierActs(model, started.done)
  const skilled = sessions.modelOf({ span_id: started.span_id, acts: turn.acts }, { basis, model: shown, events, missing: turn.missing })
  const deps = depsOf(recorded, { agent, model: skilled, effects, turn, scope: source.scope })
  const ending = await endOf(trigger, { deps, turn, on_tool_error: basis.settings.on_tool_error })
  if (exact && effects.missing !== null) throw new Unrecorded(effects.missing)
  if (model.diverged !== null) {
    if (exact) comparison.cannot(ended, 'turn', model.diverged)
    return { effects, calls: [...model.unused, ...model.replaced] }
  }
  if (turn.missing.length > 0) throw new Unrecorded(`the trigger used ${turn.missing.join(', ')}, which is not in the recording`)
  const replayed = outcomeOf({ ...ending, acts: turn.acts, scratch: context.scratch, failed_calls: turn.failed_calls })
  comparison.compare(ended, 'turn', { recorded: outcomeOf(ended), replayed: clean(replayed) })
  for (const reply of source.entriesOf('reply-sent')) if (reply.turn_id === started.turn_id) comparison.covered.add(reply)
  if (session) sessions.finish(session)
  for (const unused of model.unused) comparison.diverge(unused, 'model', { path: '', recorded: 'asked', replayed: 'not asked' })
  effects.compareUnused()
  return { effects, calls: [...model.unused, ...model.replaced] }
}

type Turn = {
  acts: Act[]
  failed_calls: FailedCall[]
  running: Map<Promise<unknown>, string>
  warnings: string[]
  seen: { context: DecisionContext }
  missing: string[]
}

async function endOf(
  trigger: NonNullable<Agent['trigger']>,
  { deps, turn, on_tool_error }: { deps: AgentDeps; turn: Turn; on_tool_error: AgentDeps['settings']['on_tool_error'] },
): Promise<TurnEnding> {
  try {
    return endingWithCalls(endingOf(await resultOf(trigger, turn, deps), turn.seen.context.scratch), turn.failed_calls, on_tool_error)
  } catch (error) {
    return endingOfError(error, { now: 0, model: { answered: true, fault: null } })
  }
}

type Outcome = Pick<EntryOf<'turn-ended'>, 'status' | 'result' | 'error' | 'acts' | 'scratch'>

/** Calls are compared by their inputs; only a turn that ends well writes its scratch. */
function outcomeOf({ status, result, error, acts, scratch }: Outcome & { failed_calls?: FailedCall[] }): object {
  const done = status !== 'failed'
  const own = acts
    .filter(({ act }) => act !== 'set_scratch')
    .map((act) => (act.act === 'call_tool' ? { act: act.act, tool: act.tool } : act))
  return { status, result, error, acts: own, ...(done && { scratch }) }
}

type DepsParts = { agent: Agent; model: AgentDeps['model']; effects: RecordedEffects; turn: Turn; scope: string }

function depsOf({ started, ended, basis, context, now }: Recorded, { agent, model, effects, turn, scope }: DepsParts): AgentDeps {
  const { settings } = basis
  const { signal } = new AbortController()
  const toolbox = new Toolbox({ scope, agent: () => agent, settings: () => settings, outside: effects.outside })
  const failures = new FailedCalls({ signal, failed_calls: turn.failed_calls }, (text) => text)
  const perform = async (name: string, input: unknown): Promise<unknown> => {
    const found = toolbox.find(name)
    if (!found.ok && !effects.has(name)) throw new Error(found.detail)
    const output = await failures.watch({ tool: name, input }, () => effects.run(name, input, found.ok ? found.definition : null))
    turn.acts.push({ act: 'call_tool', tool: name, idempotence_key: null, arguments_hash: '' })
    return output
  }
  const call = (name: string, input: unknown): Promise<unknown> => {
    const running = perform(name, input)
    const settled = () => turn.running.delete(running)
    turn.running.set(running, name)
    void running.then(settled, settled)
    return running
  }
  const answers = [...(ended.done ?? [])]
  const lacking = (name: string) => () => {
    turn.missing.push(name)
    throw new Unrecorded(`${name} is not in the recording`)
  }
  return {
    env: unrecorded('env', turn.missing),
    db: unrecorded('db', turn.missing),
    store: {
      publish: async (...events) => {
        turn.acts.push(...events.map(({ type }) => ({ act: 'emit_event' as const, event_type: type })))
        return events.map(({ id, scope: to }) => ({ id, scope: to, status: 'accepted' as const }))
      },
      subscribe: lacking('store.subscribe'),
      ack: lacking('store.ack'),
      nack: lacking('store.nack'),
      replay: lacking('store.replay'),
    },
    fetch: lacking('fetch'),
    scope,
    signal,
    turn_id: started.turn_id,
    now,
    call,
    needs: () => {},
    done: () => answers.shift() ?? false,
    context,
    attempt: started.attempts,
    settings,
    tools: { ...effects.tools(call), ...toolSet(toolbox, call) },
    reply: (content) => void turn.acts.push({ act: 'reply', content }),
    stream: () => {},
    model,
  }
}

/** Bindings are outside: a trigger that uses them directly cannot be replayed. */
function unrecorded<Value extends object>(name: string, missing: string[]): Value {
  return new Proxy({} as Value, {
    get: (_target, field) => {
      if (typeof field === 'symbol' || field === 'then') return undefined
      missing.push(`${name}.${field}`)
      throw new Unrecorded(`${name}.${field} is not in the recording`)
    },
  })
}
