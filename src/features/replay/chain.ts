import { hexHash } from '../../base/hash.ts'
import {
  arrivalOf,
  type OverlapSituation,
  isMarketEvent,
  decideInSteps,
  isFilterFailure,
  type ReactionDecision,
  type Fire,
  type Perceived,
  type ReflexSituation,
  type ReflexStep,
} from '../../reflexes/decide.ts'
import { permit } from '../../agent/permit.ts'
import { Toolbox } from '../../agent/toolbox.ts'
import type { Steps } from '../../base/steps.ts'
import type { Action } from '../../contract/action.ts'
import { isAnsweredBeside } from '../../contract/model-asked.ts'
import type { LogEntry, EntryOf, ReflexEntry } from '../../contract/log-entry.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { DecisionContext, relevant, type Filter } from '../../core/decision-context.ts'
import type { Event } from '../../core/event.ts'
import { ContextJson } from '../../reflexes/context/context-json.ts'
import { emptyTrial } from '../../reflexes/promotion.ts'
import type { ReflexContext } from '../../reflexes/reflex-context.ts'
import { HIDDEN_ERROR } from '../../reflexes/run-reflex.ts'
import { ownTools, contextsOf, fuelLeft, linkOf, recordedHistory, recordedTools, showRecorded } from './recorded-chain.ts'
import { asRecorded, type Around } from './given.ts'
import { differences, Unrecorded, type Comparison } from './report.ts'

type Perceiving = { accepted: EntryOf<'event-accepted'>; perceived: Perceived; steps: ReflexEntry[]; settings: Settings }

/** The fire of a reflex that acted, by what the replay decided. `entry` records it. */
export type Acted = { fire: Fire; event: Event; settings: Settings; entry: LogEntry }

/** `decided`: the ids of events on which the replay decided; on the others it could not. */
export type Chains = { acted: Acted[]; decided: Set<string> }

/** Replays what the scope's filters and reflexes decided on each event of the trace. */
export function* replayChains(around: Around): Steps<Chains> {
  const acted: Acted[] = []
  const decided = new Set<string>()
  const { source, given, comparison } = around
  for (const accepted of source.entriesOf('event-accepted')) {
    yield
    const found = source.eventOf(accepted.event_ids[0] ?? '')
    const settings = given.basisOf(accepted)?.settings
    if (!found || !settings) {
      comparison.cannot(accepted, 'filter', found ? 'the settings in force are not in the recording' : 'the event is not in the recording')
      continue
    }
    const { seq, event } = found
    const perceived = { seq, event, attempts: 0, text: JSON.stringify(event) }
    const steps = source.entriesOf('reflex-fired', 'reflex-passed').filter(({ event_ids }) => event_ids[0] === event.id)
    const gone = given.departures?.absent({ accepted, event: found, steps })
    if (gone != null) {
      comparison.diverge(accepted, 'event', { path: '', recorded: 'accepted', replayed: gone })
      decided.add(event.id)
      continue
    }
    const again = yield* replayOne({ accepted, perceived, steps, settings }, around)
    if (!again) continue
    decided.add(event.id)
    const { fire } = again
    const entry = steps.find(({ kind, reflex_id }) => kind === 'reflex-fired' && reflex_id === fire?.version.id) ?? accepted
    if (fire) acted.push({ fire, event, settings, entry })
  }
  return { acted, decided }
}

/** The fire that acts, if any. Null if the recording lacks what it takes to decide. */
function* replayOne(one: Perceiving, around: Around): Steps<{ fire: Fire | null } | null> {
  const { host, given, comparison } = around
  const { accepted, perceived, steps } = one
  const recorded = perceivedAs(one, around)
  const filtered = { known: true }
  try {
    const situation = situationOf(one, around, { recorded, filtered })
    const [decision] = (yield* decideInSteps([perceived], situation)).decisions
    if (!decision) throw new Unrecorded('nothing was decided')
    const before = (who: string) => recordedHistory(who, steps, contextsOf(steps))
    given.departures?.decided({ accepted, event: perceived, steps }, decision, { ...recorded, before })
    if (filtered.known) {
      const replayed = { perceived: decision.perceived, error: decision.failure?.error ?? null }
      comparison.compare(accepted, 'filter', { recorded, replayed })
    }
    if (filtered.known || given.departures) compareArrival(one, decision, around)
    compareSteps(steps, decision.steps, { comparison, clean: host.cleaner(one.settings), accepted })
    return { fire: decision.acted }
  } catch (error) {
    if (!(error instanceof Unrecorded)) throw error
    comparison.cannot(steps[0] ?? accepted, steps.length > 0 ? 'reflex' : 'filter', error.message)
    return null
  }
}

/** Compares what the overlap policy does with an event that waits for a turn. */
function compareArrival(one: Perceiving, decision: ReactionDecision, { source, host, given, comparison }: Around): void {
  const { accepted, perceived, steps, settings } = one
  const acting = steps.find(({ kind, state }) => kind === 'reflex-fired' && state === 'active')
  const waited = acting?.kind !== 'reflex-fired' || (acting.action.action_type === 'escalate' && !acting.reused)
  const in_flight = accepted.overlap ?? null
  const meeting = ({ overlap, agent }: Settings): OverlapSituation => {
    const { trigger } = host.agents.agentOf(source.scope, agent)
    return { overlap, has_trigger: trigger !== null, in_flight }
  }
  // Only a turn in flight is logged: without one, the policy says what it did.
  const before = asRecorded(source).basisOf(accepted)?.settings ?? settings
  const recorded = accepted.overlap?.arrival ?? arrivalOf(decision, meeting(before))
  if (!given.departures) {
    if (accepted.overlap) comparison.compare(accepted, 'overlap', { recorded, replayed: arrivalOf(decision, meeting(settings)) })
    return
  }
  const started = in_flight ? source.entriesOf('turn-started').find(({ turn_id }) => turn_id === in_flight.turn_id) : undefined
  const judged = { accepted, event: perceived, steps }
  const met = given.departures.met(judged, started)
  if (typeof met === 'string') return comparison.cannot(accepted, 'overlap', met)
  const replayed = arrivalOf(decision, { ...meeting(settings), in_flight: met })
  if (!waited || recorded === null || replayed === null) return
  const same = recorded === replayed || (in_flight !== null && met === null && recorded === 'waits')
  if (!same) comparison.compare(accepted, 'overlap', { recorded, replayed })
  else if (in_flight) comparison.same(accepted, 'overlap')
  given.departures.arrived(judged, { recorded, replayed: same ? recorded : replayed })
}

type Verdict = { perceived: ReactionDecision['perceived']; error: string | null }

/** The filters' verdict, by what followed the event in the log. */
function perceivedAs({ accepted, perceived: { event }, steps }: Perceiving, { source }: Around): Verdict {
  if (isAnsweredBeside(event)) return { perceived: 'asked', error: null }
  if (asRecorded(source).basisOf(accepted)?.settings.consumer === 'pull') return { perceived: 'unperceived', error: null }
  const of = ({ event_ids }: LogEntry) => event_ids.includes(event.id)
  const ended = source.entriesOf('event-ended').find(of)
  if (ended?.status === 'ignored') return { perceived: 'ignored', error: null }
  const passed = steps.length > 0 || source.entriesOf('turn-started').some(of)
  const error = ended?.error ?? source.entriesOf('event-retried').findLast(of)?.error
  // The log has a turn on several events in the trace of one: it may have failed on this one.
  return error != null && !passed && isFilterFailure(error) ? { perceived: 'failed', error } : { perceived: 'joined', error: null }
}

type Judging = { recorded: Verdict; filtered: { known: boolean } }

function situationOf(one: Perceiving, { source, host, given }: Around, { recorded, filtered }: Judging): ReflexSituation {
  const { accepted, steps, settings } = one
  const { scope } = source
  const { departures } = given
  const now = Date.parse(accepted.at)
  const agent = host.agents.agentOf(scope, settings.agent)
  const toolbox = new Toolbox({ scope, agent: () => agent, settings: () => settings, outside: recordedTools(steps) })
  toolbox.offer(...ownTools)
  const logged = contextsOf(steps, source.recording.contexts?.[one.perceived.event.id])
  const contexts = departures ? new Map(Array.from(logged, ([hash, context]) => [hash, departures.context(context)])) : logged
  const history = (who: string) => recordedHistory(who, steps, contexts)
  return {
    now,
    fuel: fuelLeft(steps),
    perceives: settings.consumer !== 'pull',
    agent: agent.name,
    filters: [judge(agent.filters, { recorded, filtered, context: new UnseenContext({ scope, now: () => now }) })],
    // Before such events reached the chain, those that the filters dropped have no steps.
    reaches: (event) => isMarketEvent(event) && (steps.length > 0 || departures !== null || recorded.perceived !== 'ignored'),
    context: () => new DecisionContext({ scope, now: () => now }),
    chain: settings.reflexes.map((reference) => departures?.link(reference, steps) ?? linkOf(reference, steps, { scope, given })),
    sandbox: host.sandbox,
    show: () => showRecorded(steps, contexts),
    history: (who) => departures?.history(who, history(who)) ?? history(who),
    trial: ({ state }) => emptyTrial(state),
    mayAct: () => null,
    permit: (action, asked) => permit(action, { ...asked, scope, agents: host.agents, toolbox }),
    carriedOut: (id, key) =>
      departures?.carriedOut(id, key, steps) ??
      steps.some((step) => step.kind === 'reflex-fired' && step.reflex_id === id && step.reused === true),
  }
}

/** Core's limits keep state between events, which a replay must neither read nor change. */
const isStateful = (filter: object): boolean => 'stateful' in filter && filter.stateful === true

/** The agent's filters, except where they depend on what the recording does not have. */
function judge(filters: readonly Filter[], { recorded, filtered, context }: Judging & { context: DecisionContext }): Filter {
  const asRecorded = (): boolean => {
    filtered.known = false
    return recorded.perceived !== 'ignored'
  }
  return (event) => {
    if (filters.some(isStateful)) return asRecorded()
    try {
      return relevant(filters, event, context)
    } catch (error) {
      if (error instanceof Unrecorded) return asRecorded()
      throw error
    }
  }
}

/** The context of the moment is not in the log: a filter that reads it cannot be replayed. */
class UnseenContext extends DecisionContext {
  constructor(options: { scope: string; now: () => number }) {
    super(options)
    for (const field of ['events', 'scratch'])
      Object.defineProperty(this, field, {
        get: () => {
          throw new Unrecorded('a filter read the context of the moment, which is not in the recording')
        },
      })
  }
}

type Outcome = { action: Action | null; reused: boolean; reason: string; error: string | null }

function compareSteps(
  recorded: readonly ReflexEntry[],
  replayed: readonly ReflexStep[],
  { comparison, clean, accepted }: { comparison: Comparison; clean: (value: unknown) => unknown; accepted: EntryOf<'event-accepted'> },
): void {
  const contexts = contextsOf(recorded)
  const left = new Map(replayed.map((step) => [nameOf({ ...step, reflex_id: step.id }), step]))
  for (const entry of recorded) {
    const step = left.get(nameOf(entry))
    left.delete(nameOf(entry))
    const again = step ? outcomeOfStep(step) : null
    const pair = { recorded: hiddenAs(again, outcomeOfEntry(entry)), replayed: again && clean(hiddenAs(outcomeOfEntry(entry), again)) }
    const context = contexts.get(entry.context_hash ?? '')
    if (context && isMasked(context, entry) && differences(pair.recorded, pair.replayed).length > 0)
      comparison.cannot(entry, 'reflex', 'the context holds redacted values, and the reflex decides otherwise without them')
    else comparison.compare(entry, 'reflex', pair)
  }
  for (const step of left.values()) comparison.compare(accepted, 'reflex', { recorded: null, replayed: clean(outcomeOfStep(step)) })
}

type Named = { reflex_id: string; version: number | null; state: 'active' | 'shadow' | null }
const nameOf = ({ reflex_id, version, state }: Named): string => `${reflex_id}@${state === 'shadow' ? version : ''}`

function outcomeOfEntry(entry: ReflexEntry): Outcome & Named {
  const { reflex_id, version, state } = entry
  if (entry.kind === 'reflex-passed')
    return { reflex_id, version, state, action: null, reused: false, reason: entry.reason, error: errorOf(entry) }
  return { reflex_id, version, state, action: entry.action, reused: entry.reused ?? false, reason: 'fired', error: null }
}

function outcomeOfStep({ id, version, state, fire, passed }: ReflexStep): Outcome & Named {
  const named = { reflex_id: id, version, state }
  if (fire) return { ...named, action: fire.action, reused: fire.reused, reason: 'fired', error: null }
  return { ...named, action: null, reused: false, reason: passed?.reason ?? 'null', error: passed && errorOf(passed) }
}

/** An error that one side hides is hidden on the other: the code was sealed between the two. */
const hiddenAs = <One extends Outcome>(other: Outcome | null, one: One): One =>
  one.error !== null && other?.error === HIDDEN_ERROR ? { ...one, error: HIDDEN_ERROR } : one

/** Fuel and time are two nets for the same limit: which one stops a run depends on the machine. */
const errorOf = ({ reason, error }: { reason: string; error: string | null }): string | null => (reason === 'limit' ? null : error)

/** True if the logged context is not the one that the reflex was shown. */
const isMasked = (context: ReflexContext, { context_hash }: ReflexEntry): boolean => hexHash(ContextJson.of(context).text) !== context_hash
