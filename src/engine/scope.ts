import { isoOrNull } from '../base/time.ts'
import { unpricedBudget } from '../agent/unpriced-budget.ts'
import { streamOfLines } from '../traces/recording-lines.ts'
import type { ActionCall } from '../contract/action.ts'
import type { Env } from '../env.ts'
import type { Event } from '../core/event.ts'
import { limits } from '../base/limits.ts'
import { cleanEvent } from '../events/parse-event.ts'
import type * as api from '../contract/scope-api.ts'
import { type Collaborators, compose } from './wiring.ts'
import { ConnectedObject } from './live/connected-object.ts'
import { addCalls, install, type FeatureInScope } from './installed.ts'
import { CALLER, MOST_DEATHS, together } from './upkeep/guard.ts'
import { rangeOf, recordingOf } from './trace-recording.ts'
import type { Requested } from '../contract/log-entry.ts'
import { eventHead, scopeHead } from './log/spans.ts'
import type { Database, Unit } from '../kernel/unit.ts'
import type { AgentRegistry } from '../agent/registry.ts'
import { deploymentHider } from '../base/secrets.ts'
import { openDatabase } from './storage/scope-tables.ts'
import type { ContextView, ScopeChain, ScopeState, ScopeTool } from '../contract/scope.ts'
import type { ScopeMetrics } from '../contract/scope-api.ts'
import { namedTypes } from '../core/decision-context.ts'
import { onlyReads } from '../tools/define-tool.ts'
import { assumedDestinations } from '../tools/origins/destinations.ts'
import { modelName } from '../models/resolve-model.ts'
import { LEAST_ALONE } from '../store/replicate.ts'

import { contextAt } from './context/past-context.ts'

async function stateOf(parts: Collaborators): Promise<ScopeState> {
  const { scope, view, counters, turns, store, log, sockets, outbox, guard, memory, budget, outage, secret_settings, features, env, now } =
    parts
  const turn = turns.current
  const state: ScopeState = {
    scope,
    agent: store.agent().name,
    settings: await secret_settings.settled(store.settings()),
    inbox: view.depth(now()),
    context: { events: memory.count },
    counters: counters.counts,
    fired: NONE_FIRED,
    turn: turn?.held ? { turn_id: turn.turn_id, since: new Date(turn.since).toISOString(), events: turn.claimed.length } : null,
    llm_tokens_remaining: budget.remaining(),
    waiting_for_model: outage.state,
    budget_problem: unpricedBudget(env, store.settings(), scope),
    sockets: sockets.feed.size,
    outbox: { waiting: outbox.waiting, last_error: outbox.lastError },
    spans: null,
    archive: null,
    parked: guard.list(),
    last_seq: log.last,
  }
  return Object.assign(state, ...features.map((feature) => feature.state?.())) as ScopeState
}

const NONE_FIRED: ScopeState['fired'] = { share: null, decided: 0, model_calls: 0 }

/** Without redacted values. */
function contextOf({ scope, memory, log, hider }: Collaborators, limit: number, before?: number): ContextView {
  const { created_at, last_action_at, scratch } = memory.live
  const { events, first, more } = memory.page(limit, before)
  const quotes = log.masks.ofAll(memory.live.events)
  const shown = (value: unknown) => hider.value(quotes.value(log.clean(value)))
  return {
    scope,
    created_at: new Date(created_at).toISOString(),
    last_action_at: isoOrNull(last_action_at),
    events: shown(events) as Event[],
    count: memory.count,
    scratch: shown(scratch) as typeof scratch,
    next_cursor: more ? String(first) : null,
  }
}

function metricsOf({ scope, counters, records, features }: Collaborators): ScopeMetrics {
  const reflexes = records.all().map((entry) => {
    const of = { id: entry.reflex_id, version: entry.version }
    return Object.assign({ ...entry, certificate: null }, ...features.map((feature) => feature.metrics?.(of))) as Reported
  })
  return { scope, counters: counters.counts, reflexes }
}

type Reported = ScopeMetrics['reflexes'][number]

function chainOf({ scope, store, programs, toolbox, features, env, may_act, now }: Collaborators): ScopeChain {
  const [agent, settings] = [store.agent(), store.settings()]
  const { consumer } = settings
  const chain: ScopeChain = {
    scope,
    agent: { name: agent.name, version: agent.version ?? null },
    consumer,
    filters: { count: agent.filters.length, types: [...new Set(agent.filters.flatMap(namedTypes))] },
    reflexes: programs.links.map(({ reference, acting, earlier, watching, absent }) => {
      const idle = acting && may_act.idle(acting, now())
      const acts = idle === null ? acting : earlier
      return {
        id: reference.id,
        version: acts?.version ?? null,
        watching: (idle === null ? watching[0] : acting)?.version ?? null,
        by_proof: acts?.by_proof ?? false,
        absent: absent?.detail ?? (idle === null ? null : `version ${acting?.version} does not act: ${idle}`),
        cooldown_s: reference.cooldown_s ?? null,
        rate: reference.rate ?? null,
      }
    }),
    decision_model: null,
    turn: agent.trigger && { model: modelName(env, settings), tools: Array.from(toolbox.allowed) },
  }
  return Object.assign(chain, ...features.map((feature) => feature.chain?.())) as ScopeChain
}

const UNKNOWN_TOOL = { acts: true, plans_only: false, destinations: [], assumed: false }

const toolsOf = (toolbox: Collaborators['toolbox']): ScopeTool[] => [
  ...toolbox.unavailable.map(({ name, reason }) => ({
    ...UNKNOWN_TOOL,
    name,
    description: `not available: ${reason}`,
    unavailable: reason,
  })),
  ...toolbox.allowed.flatMap((name) => {
    const found = toolbox.forPlan(name)
    if (!found.ok) return []
    const { description, plans_only = false, destinations } = found.definition
    const given = destinations ? [...destinations] : assumedDestinations(found.definition)
    return [{ name, description, acts: !onlyReads(found.definition), plans_only, destinations: given, assumed: !destinations }]
  }),
]

type Of = { agents: AgentRegistry; features: readonly FeatureInScope[] }

/** Builds a scope from its storage, which stays empty until the first write. */
function openScope(context: DurableObjectState, env: Env, of: Of): Collaborators {
  const { storage, id } = context
  const hider = deploymentHider(env)
  const database: Database = openDatabase(storage, () => ({ scope, created_at }), hider)
  // The name is stored: an alarm may wake the object without it.
  const scope = database.read<string | null>('scope', null) ?? id.name ?? ''
  const created_at = database.read('created_at', Date.now())
  const parts = compose({ context, env, scope, created_at, database, hider, agents: of.agents })
  install(parts, of.features)
  return parts
}

/** With the calls that features answer: the constructor adds them. */
const Answering = ConnectedObject as abstract new (context: DurableObjectState, env: Env) => ConnectedObject & api.FeatureCalls

/**
 * A scope: the unit of state and serialization. Delegates each call to its owner, in one unit.
 * G1, G3: Inbox and Loop. G2: Inbox and WorkingMemory. G4: Turns and Effects. G5: Log. G8: Effects.
 */
export class ScopeObject extends Answering implements api.ScopeApi {
  #parts!: Collaborators
  #own!: OwnWork
  readonly #of: Of

  constructor(context: DurableObjectState, env: Env, of: Of) {
    super(context, env)
    this.#of = of
    addCalls(new.target.prototype, (scope) => (scope as ScopeObject).#parts, of.features)
    void context.blockConcurrencyWhile(async () => {
      // Store the failure count before the object is dropped.
      await this.#wake().catch(async (error: unknown) => {
        await context.storage.sync()
        throw error
      })
    })
  }

  async accept(events: Event[], via: api.Via, packs?: api.Packs): Promise<api.Accepted> {
    const { hider, loop, reflex_sync, outbox, replica } = this.#parts
    await reflex_sync.ready()
    // A queue message may be another Worker's, and a secret may be newer than the event.
    const clean = events.map((event) => cleanEvent(event, hider))
    const arrived = () => new Promise<api.Accepted>((resolve) => loop.arrive(clean, via, resolve))
    if (!packs) return arrived()
    const ids = clean.map(({ id }) => id)
    return outbox.unarmed(() => replica.awaiting(ids, async () => answered(this.#parts, await arrived(), packs)))
  }

  async unpacked(ids: string[]) {
    this.#parts.replica.unpacked(ids)
    this.#parts.alarm.arm()
  }

  async outcomes(asked: string[], timeout_ms: number, sender?: string): Promise<api.Waited> {
    const { view, waiters, outcomes } = this.#parts
    const ids = sender === undefined ? asked : view.sentBy(asked, sender)
    return { settled: await waiters.wait(view.open(ids), Math.min(timeout_ms, limits.wait_ms)), records: outcomes.of(ids) }
  }

  async state() {
    return stateOf(this.#parts)
  }

  async context(limit: number, before?: number) {
    return contextOf(this.#parts, limit, before)
  }

  async contextAt(at: number, limit: number, before?: number) {
    return contextAt(this.#parts, at, { limit, before })
  }

  async readLog(after: number, limit: number, before?: number, only: api.LogFilter = {}) {
    return this.#parts.history.log(after, limit, before, only)
  }

  async recording(of: api.OfTrace | api.LogRange) {
    const found = await ('trace_id' in of ? recordingOf(this.#parts, of) : rangeOf(this.#parts, of))
    return found === null ? null : streamOfLines(found)
  }

  async event(id: string) {
    return this.#parts.outcomes.record(id)
  }

  async events(asked: api.EventsAsked) {
    return JSON.stringify(this.#parts.outcomes.page(asked))
  }

  async chain() {
    await this.#parts.reflex_sync.ready()
    return chainOf(this.#parts)
  }

  async tools() {
    const { toolbox } = this.#parts
    await toolbox.ready()
    return toolsOf(toolbox)
  }

  async archivedEvent(id: string) {
    return this.#parts.history.event(id)
  }

  async archivedFiles(after: number, limit: number) {
    return this.#parts.history.files(after, limit)
  }

  async configure(patch: api.SettingsPatch, by: string, key_id?: string, trace?: api.TraceContext) {
    return this.#parts.configuration.change(patch, { by, key_id: key_id ?? null, trace })
  }

  async reflexesChanged(ids: string[]) {
    this.#parts.unit((unit) => this.#parts.programs.resume(unit, ids))
    await this.#parts.reflex_sync.refresh()
  }

  async recordings(request: { since: number; after: number; limit: number }) {
    const { recordings, settings } = this.#parts
    return { ...recordings.read(request), replies: settings().learning.replies }
  }

  async identify(calls: ActionCall[]) {
    return calls.map(({ tool, args }) => this.#parts.toolbox.keyOf(tool, args))
  }

  async metrics() {
    return metricsOf(this.#parts)
  }

  async propose(proposal: { skill_id: string; inputs: Record<string, unknown>; why: string }, caller: api.ProposalCaller) {
    return JSON.stringify(await this.#parts.operator_calls.propose(proposal, caller))
  }

  async bulletin(text: string) {
    return JSON.stringify(await this.#parts.views.bulletin(text))
  }

  async skillCall(cause: string, stop?: string) {
    return this.#parts.operator_calls.run(cause, stop)
  }

  async skills(page: api.SkillsPageOf) {
    return JSON.stringify(await this.#parts.views.page(page))
  }

  async eventTypes() {
    return JSON.stringify(this.#parts.settings().event_types ?? {})
  }

  async httpTools() {
    return JSON.stringify(this.#parts.settings().http_tools)
  }

  async destroying(tools: string[]) {
    const { toolbox } = this.#parts
    await toolbox.ready()
    return tools.filter((tool) => {
      const found = toolbox.forPlan(tool)
      return found.ok && found.definition.destroys === true
    })
  }

  async skillIds() {
    return this.#parts.views.ids()
  }

  async claim(request: api.ClaimRequest, by: string) {
    return this.#parts.unit((unit) => this.#parts.pull.claim(unit, request, by), CALLER)
  }

  async giveBack(claim_id: string, why: string) {
    const returned = this.#parts.unit((unit) => this.#parts.pull.giveBack(unit, claim_id, why))
    this.#parts.alarm.rearm()
    return returned
  }

  async ack(tokens: string[]) {
    return this.#parts.unit((unit) => this.#parts.pull.ack(unit, tokens), CALLER)
  }

  async nack(token: string, error: string) {
    return this.#parts.unit((unit) => this.#parts.pull.nack(unit, token, error), CALLER)
  }

  async cancel(reason: string, by: string, traceparent?: string) {
    return this.#parts.turns.cancelCurrent(reason, { by, traceparent })
  }

  async askModel(by: string, trace?: api.TraceContext): Promise<api.Hurried> {
    const { unit, outage, turns, alarm } = this.#parts
    const hurried = unit((unit) => outage.hurriedBy(unit, by, trace), CALLER)
    if (hurried) turns.consider()
    alarm.rearm()
    return { tries: hurried?.tries ?? null, waiting_for_model: outage.state }
  }

  async setTimer(name: string, schedule: api.Schedule, by: string, trace?: api.TraceContext) {
    const { unit, timers, alarm } = this.#parts
    const set = unit((unit) => timers.set(unit, name, schedule, { by, trace }), CALLER)
    if (set.ok) alarm.by(Date.parse(set.timer.next_at))
    return set
  }

  async timers() {
    return this.#parts.timers.list()
  }

  async timer(name: string) {
    return this.#parts.timers.get(name)
  }

  async removeTimer(name: string, by: string, trace?: api.TraceContext) {
    return this.#parts.unit((unit) => this.#parts.timers.remove(unit, name, { by, trace }), CALLER)
  }

  async reopen(ids: string[], by: string, traceparent?: string) {
    return reopen(this.#parts, ids, { by, traceparent })
  }

  async discard(ids: string[], by: string, traceparent?: string) {
    return this.#parts.unit((unit) => this.#parts.inbox.discard(unit, ids, { by, traceparent }).map(({ id }) => id))
  }

  async callTool(call: api.OperatorCall, by: string) {
    return this.#parts.operator_calls.call(call, by)
  }

  async replayed(note: api.ReplayNote, by: string, trace?: api.TraceContext) {
    this.#parts.operator_calls.replayed(note, by, trace)
  }

  async workState(work: api.KeyedWork) {
    return this.#parts.runs.stateOf(work)
  }

  async returnLease(name: string, n: number) {
    const { budget, unit } = this.#parts
    return budget.money()?.report(unit, name, n) ?? { epoch: '', spent: 0, held: 0 }
  }

  async poke() {
    return this.#own.poke()
  }

  protected override get connections() {
    return this.#parts
  }

  override async alarm(): Promise<void> {
    await this.#parts.alarm.fired(() => this.#own.runDue())
  }

  async #wake(): Promise<void> {
    this.#parts = openScope(this.ctx, this.env, this.#of)
    this.#own = new OwnWork(this.#parts)
    await this.#parts.alarm.woke()
    await this.#own.onWaking()
  }
}

/** The longest wait of a caller that packs outcomes: a turn without a model is shorter. */
const ANSWER_MS = 30

/** Adds the outcomes of few events, which are packed with the outcomes of other scopes. */
async function answered({ waiters, view, inbox, replica }: Collaborators, accepted: api.Accepted, packs: api.Packs): Promise<api.Accepted> {
  if (!accepted.ok) return accepted
  const ids = accepted.receipts.map(({ id }) => id)
  if (ids.length < LEAST_ALONE && inbox.open > 0) await waiters.wait(view.open(ids), ANSWER_MS)
  const outcomes = replica.answer(ids, packs === 'rows, too')
  return outcomes === null ? accepted : { ...accepted, outcomes }
}

/** Returns dead letters to pending. Earlier calls of unknown outcome for them count as failed. */
function reopen(parts: Collaborators, ids: string[], by: Requested): string[] {
  const { unit, guard, inbox, view, loop, turns, effects } = parts
  const rows = unit((unit) => {
    const reopened = inbox.reopen(unit, ids)
    for (const { seq } of reopened) guard.releaseEvent(seq)
    const earlier = view.earlierTurns(reopened.map(({ seq }) => seq))
    effects.journal.assumeFailed(unit, earlier, 'may have happened; its event was retried by hand')
    unit.log(...reopened.map((row) => ({ ...eventHead(row), parent_id: row.parent_id, kind: 'event-reopened', ...by }) as const))
    return reopened
  })
  loop.perceiveWaiting()
  turns.consider()
  return rows.map(({ id }) => id)
}

/** Tolerated difference between the clocks of two machines; smaller errors pass as quickly. */
const TOLERATED_MS = 60_000
/** Retry interval of parked retention work, which has no reset. */
const DAY_MS = 86_400_000

/** Guards the object's own work, on waking and at its alarm, so that crashing work is parked. */
class OwnWork {
  readonly #parts: Collaborators
  #watched = false

  constructor(parts: Collaborators) {
    this.#parts = parts
    parts.log.setBack = (ahead_ms) => {
      if (ahead_ms > TOLERATED_MS) parts.unit((unit) => this.#correctClock(unit, ahead_ms))
    }
  }

  async onWaking(): Promise<void> {
    const { guard, jobs, loop, turns, alarm } = this.#parts
    alarm.onRearm(() => this.rest())
    await alarm.woke()
    const open = this.#isOpen()
    if (open) await guard.woke()
    this.#parkSettings()
    this.#recover()
    jobs.run()
    loop.perceiveWaiting()
    turns.consider()
    alarm.rearm()
    this.#watched = open
  }

  /** Clears the suspicion once all work from waking has ended without a crash. */
  rest(): void {
    const { guard, turns, jobs, loop } = this.#parts
    if (!this.#watched || turns.busy || jobs.busy || loop.busy) return
    this.#watched = false
    guard.rested()
  }

  /** For the sweep, after a lost alarm. */
  async poke(): Promise<{ wake_at: number | null }> {
    const { database, outbox, alarm } = this.#parts
    // An empty scope has no work, and D1 should not hear of it.
    if (!database.laid) return { wake_at: null }
    outbox.hurry()
    await this.runDue()
    alarm.rearm()
    return { wake_at: alarm.next() }
  }

  /** At an alarm, or when the sweep pokes the scope. */
  async runDue(): Promise<void> {
    const { inbox, loop, turns, outbox, reflex_sync, jobs, features, retention } = this.#parts
    this.#forgetWhatIsOld()
    await this.#tick()
    if (inbox.open > 0) {
      loop.perceiveWaiting()
      turns.consider()
    }
    jobs.wake()
    const background = [outbox.due && outbox.flush(), reflex_sync.due && reflex_sync.run()]
    for (const feature of features) background.push(feature.runDue?.() ?? false)
    await this.#parts.alarm.cover(Promise.all([...background.filter((work) => work !== false), retention.archive()]))
  }

  #forgetWhatIsOld(): void {
    const { guard, unit, inbox, pull, retention, now } = this.#parts
    unit((unit) => {
      if (inbox.open > 0) pull.expire(unit)
    })
    const work = together('retention')
    const parked_at = guard.parkedAt(work)
    if (parked_at !== null && now() - parked_at < DAY_MS) return
    if (parked_at !== null) guard.release(work)
    if (guard.deaths(work) >= MOST_DEATHS) return unit((unit) => guard.park(unit, work, guard.reason(work)))
    unit((unit) => retention.sweep(unit), work)
    guard.done(work)
  }

  async #tick(): Promise<void> {
    const { guard, unit, timers, loop } = this.#parts
    if (!guard.careful('timer')) {
      if (!this.#ticks()) return
      return unit((unit) => void loop.accept(timers.due(unit, loop.full), 'timer'), together('timer'))
    }
    for (const name of timers.dueNames()) {
      const work = { kind: 'timer' as const, id: name }
      if (await guard.begin(work)) {
        unit((unit) => void loop.accept(timers.due(unit, loop.full, name), 'timer'), work)
        guard.done(work)
      } else {
        unit((unit) => guard.park(unit, work, guard.reason(work)))
      }
    }
    guard.done(together('timer'))
  }

  #parkSettings(): void {
    const { guard, unit, store } = this.#parts
    for (const [name, reason] of store.unusable) {
      const work = { kind: 'setting', id: name } as const
      if (guard.parkedAt(work) === null)
        unit((unit) => guard.park(unit, work, `its default applies until it is set again: ${reason}`), work)
    }
  }

  /** After several crashes, recovers without the log, in case its entries cannot be written. */
  #recover(): void {
    const { guard, unit, effects, turns, inbox, budget, parking } = this.#parts
    const work = together('recovery')
    const quiet = guard.deaths(work) >= MOST_DEATHS
    const cause = guard.diedOf()
    const blamed = cause === null || cause === 'turn' || cause === 'recovery'
    unit((unit) => {
      if (inbox.open > 0 && budget.changed(unit)) parking.release(unit, 'budget')
      effects.recover(unit, quiet)
      turns.recover(unit, { quiet, blamed })
    }, work)
    guard.done(work)
  }

  /** Corrects times from a fast clock. */
  #correctClock(unit: Unit, ahead_ms: number): void {
    const { parking, outage, timers, jobs } = this.#parts
    parking.correct(unit, ahead_ms)
    outage.moved(unit, ahead_ms)
    jobs.correct(unit, ahead_ms)
    timers.correct(unit)
    unit.log({ ...scopeHead(), kind: 'clock-corrected', ahead_ms })
  }

  #isOpen(): boolean {
    const { inbox, jobs } = this.#parts
    return inbox.open > 0 || jobs.any || this.#ticks()
  }

  #ticks(): boolean {
    const { timers, now } = this.#parts
    return (timers.nextDue() ?? Infinity) <= now()
  }
}
