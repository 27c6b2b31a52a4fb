import { ScopedLocks } from '../core/scoped-locks.ts'
import { isolateSandbox } from '../reflexes/isolate-sandbox.ts'
import { existingKeys } from '../store/keys.ts'
import { DoneKeys } from './effects/done-keys.ts'
import { EffectJournal } from './effects/effect-journal.ts'
import { EffectLane } from './effects/effect-lane.ts'
import { OperatorCalls } from './effects/operator-calls.ts'
import { EventOutcomes } from './inbox/event-outcomes.ts'
import { ScopeEventStore } from './inbox/event-store.ts'
import { Pull } from './inbox/pull.ts'
import { Settlement } from './inbox/settlement.ts'
import { TurnRows } from './inbox/turn-rows.ts'
import { Waiters } from './inbox/waiters.ts'
import { UsedTickets } from './live/connections.ts'
import { KeyCheck } from './live/key-check.ts'
import { SocketMessages } from './live/socket-messages.ts'
import { Sockets } from './live/sockets.ts'
import { Streams } from './live/sse.ts'
import { Loop } from './loop.ts'
import { Actions } from './reflexes/actions.ts'
import { handleActions } from './reflexes/perform-action.ts'
import { reflexTools } from './reflexes/tools.ts'
import { composeReflexes, composeSituation, type Reflexes } from './reflexes/wiring.ts'
import { Configuration } from './settings/change.ts'
import { composeSkills } from './skills/wiring.ts'
import { composeGround, type Ground, type Host } from './storage/wiring.ts'
import { turnDeps } from './turns/deps.ts'
import { composeModelAccess } from './turns/model-access.ts'
import { Turns } from './turns/turn-lane.ts'
import { Retention } from './upkeep/retention.ts'
import { Timers } from './upkeep/timers.ts'

export type Collaborators = ReturnType<typeof compose>

/**
 * Builds a scope from its parts, each from those before it. A part that is called by an earlier one
 * registers with it: handlers of a lane, tools, sources of due work. An untouched scope has no
 * tables yet.
 */
export function compose(host: Host) {
  const ground = composeGround(host)
  const reflexes = { ...ground, ...composeReflexes(ground) }
  const lanes = { ...reflexes, ...composeLanes(reflexes) }
  const skilled = { ...lanes, ...composeSkills(lanes) }
  const live = { ...skilled, ...composeLive(skilled) }
  const looped = { ...live, ...composeLoop(live) }
  return { ...looped, ...composeEntrances(looped) }
}

/** Wires the lanes of effects and turns, and how their ends settle events. */
function composeLanes(parts: Ground & Reflexes) {
  const { database, alarm, view } = parts
  const access = composeModelAccess(parts)
  const waiters = new Waiters()
  const settlement = new Settlement({ ...parts, waiters })
  const done_keys = new DoneKeys(database)
  const journal = new EffectJournal({ database, done_keys })
  const effects = new EffectLane({ ...parts, journal, locks: new ScopedLocks() })
  const turns = new Turns({ ...parts, ...access, rows: new TurnRows(database), settlement, effects })
  const timers = new Timers(parts)
  const outcomes = new EventOutcomes({ ...parts, ...access, turns })
  alarm.source((at) => view.nextDue(at))
  alarm.source(() => timers.nextDue())
  return { ...access, waiters, settlement, done_keys, effects, turns, timers, outcomes }
}
type Lanes = Ground & Reflexes & ReturnType<typeof composeLanes>
type Skilled = Lanes & ReturnType<typeof composeSkills>

/** Wires the connections that clients keep open. */
function composeLive(parts: Skilled) {
  const { db, scope, now } = parts
  const key_check = new KeyCheck({ scope, existing: (keys) => existingKeys(db, keys), now })
  const sockets = new Sockets({ ...parts, key_check })
  const streams = new Streams({ ...parts, key_check })
  return { key_check, sockets, streams }
}
type Live = Skilled & ReturnType<typeof composeLive>

/** Wires the loop, and the handlers of the work that it starts. */
function composeLoop(parts: Live) {
  const { skills, turns } = parts
  const actions = new Actions(parts)
  const loop = new Loop({ ...parts, actions, situation: composeSituation(parts) })
  handleActions({
    ...parts,
    accept: (events) => loop.accept(events, 'reflex'),
    propose: (proposal, text, owner) => skills.propose(proposal, { from: 'reflex', roles: skills.agentRoles, text }, owner),
  })
  const pull = new Pull(parts)
  const events = new ScopeEventStore({ ...parts, loop, pull })
  const waits = (tool: string, key: string) => actions.waits(tool, key)
  turns.handle((turn) => turnDeps({ ...parts, store: events, waits }, turn))
  return { loop, pull }
}
type Looped = Live & ReturnType<typeof composeLoop>

/** Wires what calls from outside reach, and what runs by itself. */
function composeEntrances(parts: Looped) {
  const { log, loop, turns, toolbox, secret_settings, alarm } = parts
  log.showBy((entry) => secret_settings.entry(entry))
  const configuration = new Configuration(parts)
  const configure: Configuration['change'] = (patch, by) => configuration.change(patch, by)
  toolbox.offer(reflexTools({ ...parts, sandbox: isolateSandbox, configure, turn_id: () => turns.current?.turn_id ?? null }))
  const retention = new Retention(parts)
  alarm.source(() => retention.nextDue())
  return {
    configuration,
    retention,
    socket_messages: new SocketMessages({ ...parts, accept: (events) => loop.accept(events, 'socket') }),
    operator_calls: new OperatorCalls(parts),
    used_tickets: new UsedTickets(),
  }
}
