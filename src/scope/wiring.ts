import type { AgentRegistry } from '../agent/registry.ts'
import type { Env } from '../env.ts'
import { ScopedLocks } from '../core/scoped-locks.ts'
import type { SecretHider } from '../base/secrets.ts'
import { existingKeys } from '../store/keys.ts'
import { storeOf } from '../store/store.ts'
import { Alarm } from './upkeep/alarm.ts'
import { Configuration } from './settings/change.ts'
import { Counters } from './storage/counters.ts'
import { correctClock } from './upkeep/clock-correction.ts'
import type { Database } from './storage/database.ts'
import { DoneKeys } from './effects/done-keys.ts'
import { dropObject } from './log/failures.ts'
import { EffectJournal } from './effects/effect-journal.ts'
import { EffectLane } from './effects/effect-lane.ts'
import { EventOutcomes } from './inbox/event-outcomes.ts'
import { InboxView } from './inbox/view.ts'
import { Guard } from './upkeep/guard.ts'
import { Jobs } from './jobs.ts'
import { Inbox } from './inbox/inbox.ts'
import { KeyCheck, UsedTickets } from './live/connections.ts'
import { Log } from './log/log.ts'
import { composeModelAccess } from './turns/model-access.ts'
import { OperatorCalls } from './effects/operator-calls.ts'
import { Loop } from './loop.ts'
import { EventReplica } from './replication/event-replica.ts'
import { Outbox, topicsOf } from './replication/outbox.ts'
import { PullClaims, Pull } from './inbox/pull.ts'
import { Retention } from './upkeep/retention.ts'
import { ScopeEventStore } from './inbox/event-store.ts'
import { SettingsStore } from './settings/settings-store.ts'
import { Settlement } from './inbox/settlement.ts'
import { Sockets } from './live/sockets.ts'
import { Streams } from './live/sse.ts'
import { composeSkills } from './skills/wiring.ts'
import { composeSystem1 } from './reflexes/wiring.ts'
import { ActionKeys } from './reflexes/action-keys.ts'
import { Records } from './reflexes/stats.ts'
import { Timers } from './upkeep/timers.ts'
import { turnDeps } from './turns/deps.ts'
import { Turns } from './turns/turn-lane.ts'
import { Waiters } from './inbox/waiters.ts'
import { situationOf } from './inbox/waiting.ts'
import { WorkingMemory } from './context/working-memory.ts'
import { type Unit, unitOfWork, type UnitOfWork } from './storage/unit.ts'

export type Collaborators = ReturnType<typeof compose>

type Host = {
  context: DurableObjectState
  env: Env
  scope: string
  created_at: number
  database: Database
  hider: SecretHider
  agents: AgentRegistry
}

/** Builds a scope from its collaborators. An untouched scope has no tables yet. */
export function compose({ context, env, scope, created_at, database, hider, agents }: Host) {
  const now = Date.now
  const random = Math.random
  const store = new SettingsStore({ database, scope, env, agents })
  const settings = () => store.settings
  const agent = () => store.agent
  const counters = new Counters(database)
  const alarm = new Alarm(context.storage, { now, laid: () => database.laid })
  const log = new Log(database, now, hider)
  log.redact(settings().redact)
  const guard = new Guard({ database, now })
  const inbox = new Inbox(database, hider)
  const records = new Records(database)
  const view = new InboxView(database)
  const outcomes = new EventOutcomes({ database, log, view, situation: () => situationOf({ turns, budget, outage, settings, now }) })
  const memory = new WorkingMemory({ database, scope, created_at, now, limit: settings().context_limit })
  const db = storeOf(env)
  const report = () => ({ scope, agent: agent().name, open: inbox.open, parked: guard.count })
  const replica = new EventReplica({
    database,
    log,
    db,
    now,
    scope: report,
    wake: () => alarm.next(),
    guard,
    unit: (work, of) => unit(work, of),
  })
  const outbox = new Outbox({
    database,
    alarm,
    now,
    events: replica,
    topics: topicsOf(db),
    sources: [() => upkeep.tellSums(db)],
  })
  const changed = () => outbox.arm()
  const reset = (error: unknown) => dropObject(context, scope, error)
  const unit: UnitOfWork = unitOfWork({ database, log, counters, buffered: [records], guard, alarm, changed, reset, now })
  const waiters = new Waiters()
  const settlement = new Settlement({
    inbox,
    memory,
    waiters,
    settings,
    random,
    undecided: (unit, rows) => proving.decided(unit, rows, null),
  })
  const done_keys = new DoneKeys(database)
  // `fetch` throws if called as a method of another object.
  const outbound: typeof fetch = (input, init) => fetch(input, init)
  const jobs = new Jobs({ database, unit, guard, alarm, now })
  const action_keys = new ActionKeys({ database, keyOf: (tool, args) => toolbox.keyOf(tool, args) })
  const journal = new EffectJournal({ database, done_keys })
  const effects = new EffectLane({
    scope,
    env,
    settings,
    journal,
    action_keys,
    log,
    locks: new ScopedLocks(),
    unit,
    tools: () => toolbox.all,
    fetch: outbound,
    now,
  })
  const access = composeModelAccess({ database, hider, settings, now, random })
  const { budget, outage } = access
  const timers = new Timers({ database, guard, scope, now })
  const { programs, upkeep, windows, toolbox, proving, recordings, actions, situation } = composeSystem1({
    scope,
    env,
    agents,
    guard,
    database,
    records,
    log,
    inbox,
    memory,
    counters,
    settlement,
    effects,
    jobs,
    action_keys,
    budget,
    alarm,
    unit,
    agent,
    settings,
    now,
    turns: () => turns,
    configuration: () => configuration,
    accept: (accepted) => loop.accept(accepted, 'reflex'),
    fetch: outbound,
    propose: (proposal, text, owner) => skills.propose(proposal, { from: 'reflex', roles: skills.agentRoles, text }, owner),
  })
  const { skills, skillRuns, parked, views, secret_settings, decisions } = composeSkills({
    scope,
    env,
    guard,
    database,
    done_keys,
    outbox,
    unit,
    log,
    ...access,
    effects,
    jobs,
    toolbox,
    alarm,
    memory,
    agent,
    settings,
    now,
  })
  const turns: Turns = new Turns({
    scope,
    env,
    ...access,
    guard,
    database,
    inbox,
    view,
    memory,
    log,
    settlement,
    proving,
    effects,
    alarm,
    unit,
    agent,
    settings,
    now,
    deps: (turn) =>
      turnDeps(
        {
          env,
          scope,
          agent,
          settings,
          store: events,
          effects,
          ...access,
          log,
          sockets,
          toolbox,
          proving,
          skills,
          waits: (tool, key) => actions.waits(tool, key),
          unit,
          now,
        },
        turn,
      ),
  })
  const loop: Loop = new Loop({
    scope,
    guard,
    inbox,
    view,
    memory,
    log,
    records,
    proving,
    settlement,
    actions,
    jobs,
    turns,
    toolbox,
    upkeep,
    sockets: { reply: (delta) => sockets.reply(delta) },
    situation,
    agent,
    settings,
    unit,
    now,
  })
  log.showBy((entry) => secret_settings.entry(entry))
  const configuration: Configuration = new Configuration({
    guard,
    secret_settings,
    store,
    unit,
    log,
    memory,
    ...access,
    loop,
    turns,
    programs,
    upkeep,
    windows,
    alarm,
  })
  const claims = new PullClaims()
  const pull = new Pull({ inbox, claims, settlement, settings })
  const events = new ScopeEventStore({ env, scope, database, loop, pull, unit })
  const rules = (source: string) => ({
    union: agents.eventSchema,
    types: agents.eventTypes,
    defaults: { now: now(), source },
    scope,
    secrets: hider,
  })
  const sockets: Sockets = new Sockets({
    context,
    log,
    hider,
    rules,
    accept: (accepted) => loop.accept(accepted, 'socket'),
    decide: (decision, by) => decisions.take(decision, by),
    used: () => keyCheck.used(),
    now,
  })
  const operator_calls = new OperatorCalls({ effects, proving, unit, agent, settings })
  const streams = new Streams({ log, used: () => keyCheck.used(), now })
  const keyCheck = new KeyCheck({ scope, existing: (keys) => existingKeys(db, keys), connections: () => [sockets, streams], now })
  const used_tickets = new UsedTickets()
  const clock = { correct: (unit: Unit) => correctClock(unit, { database, log, outage }) }
  const retention = new Retention({
    guard,
    inbox,
    memory,
    log,
    counters,
    effects,
    doneKeys: done_keys,
    actionKeys: action_keys,
    replica,
    skillRuns,
    settings,
  })
  alarm.source((at) => view.nextDue(at))
  alarm.source(() => timers.nextDue())
  alarm.source(() => retention.nextDue())
  return {
    database,
    store,
    configuration,
    records,
    programs,
    upkeep,
    recordings,
    actions,
    jobs,
    skills,
    skillRuns,
    views,
    secret_settings,
    parked,
    counters,
    alarm,
    log,
    inbox,
    view,
    memory,
    outbox,
    unit,
    outcomes,
    waiters,
    effects,
    operator_calls,
    ...access,
    timers,
    toolbox,
    turns,
    guard,
    loop,
    pull,
    sockets,
    streams,
    used_tickets,
    retention,
    clock,
    now,
  }
}
