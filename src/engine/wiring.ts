import { isolateSandbox } from '../reflexes/isolate-sandbox.ts'
import type { Event } from '../core/event.ts'
import { cleanEvent } from '../events/parse-event.ts'
import { validKeys } from '../store/access/keys.ts'
import { keepingPrograms } from './log/log-parts.ts'
import { composeLanes } from './effects/wiring.ts'
import { OperatorCalls } from './effects/operator-calls.ts'
import { ScopeEventStore } from './event-store.ts'
import { ExpiredEvents } from './inbox/expired-events.ts'
import { Pull } from './inbox/pull.ts'
import { KeyCheck, Sockets } from './live/sockets.ts'
import { SocketMessages } from './live/socket-messages.ts'
import { Streams } from './live/sse.ts'
import { ExpiredEntries } from './log/expired-entries.ts'
import { Loop } from './loop.ts'
import { Actions } from './reflexes/actions.ts'
import { handleActions } from './reflexes/perform-action.ts'
import { reflexTools } from './reflexes/tools.ts'
import { composeReflexes, composeSituation } from './reflexes/wiring.ts'
import { Past } from './log/past.ts'
import { Configuration } from './settings/change.ts'
import { composeSkills, type Skilled } from './skills/wiring.ts'
import { composeGround, type ScopeHost } from './storage/wiring.ts'
import { depsOf } from './turns/deps.ts'
import { DryTurns } from './turns/dry/dry-turn.ts'
import { Retention } from './retention.ts'

export type Collaborators = ReturnType<typeof compose>

/**
 * Builds a scope from its parts, each from those before it. A part that is called by an earlier one
 * registers with it: handlers of a lane, tools, sources of due work. An untouched scope has no
 * tables yet.
 */
export function compose(host: ScopeHost) {
  const ground = composeGround(host)
  const reflexes = { ...ground, ...composeReflexes(ground) }
  const lanes = { ...reflexes, ...composeLanes(reflexes) }
  const skilled = { ...lanes, ...composeSkills(lanes) }
  const live = { ...skilled, ...composeLive(skilled) }
  const looped = { ...live, ...composeLoop(live) }
  return { ...looped, ...composeEntrances(looped) }
}

/** Wires the connections that clients keep open. */
function composeLive(parts: Skilled) {
  const { db, scope, now } = parts
  const key_check = new KeyCheck({ scope, valid: (keys) => validKeys(db, keys, now()), now })
  const streams = new Streams({ ...parts, key_check })
  const sockets = new Sockets({ ...parts, key_check, streams })
  return { key_check, sockets, streams }
}
type Live = Skilled & ReturnType<typeof composeLive>

/** Wires the loop, and the handlers of the work that it starts. */
function composeLoop(parts: Live) {
  const { skills, turns, features } = parts
  features.push(keepingPrograms(parts.log_parts))
  const actions = new Actions(parts)
  const loop = new Loop({ ...parts, actions, situation: composeSituation(parts) })
  const clean = (event: Event) => cleanEvent(event, parts.hider)
  handleActions({
    ...parts,
    accept: (events) => loop.accept(events.map(clean), 'reflex'),
    propose: (proposal, text, owner) => skills.propose(proposal, { from: 'reflex', roles: skills.agentRoles, text }, owner),
  })
  const pull = new Pull(parts)
  const events = new ScopeEventStore({ ...parts, loop, pull })
  turns.handle(depsOf({ ...parts, event_store: events, actions }))
  return { actions, loop, pull, events }
}
type Looped = Live & ReturnType<typeof composeLoop>

/** Wires what calls from outside reach, and what runs by itself. */
function composeEntrances(parts: Looped) {
  const { log, turns, toolbox, secret_settings } = parts
  log.showBy((entry) => secret_settings.entry(entry))
  const configuration = new Configuration(parts)
  const rechain: Configuration['rechain'] = (change, by) => configuration.rechain(change, by)
  const own = reflexTools({ ...parts, sandbox: isolateSandbox, rechain, turn_id: () => turns.current?.turn_id ?? null })
  toolbox.offer(own)
  const kept = { old_events: new ExpiredEvents(parts), old_entries: new ExpiredEntries(parts), history: new Past(parts.log) }
  const retention = new Retention({ ...parts, ...kept })
  const dry_turns = new DryTurns({ ...parts, ...kept })
  return {
    configuration,
    own_tools: own,
    dry_turns,
    ...kept,
    retention,
    socket_messages: new SocketMessages(parts),
    operator_calls: new OperatorCalls(parts),
  }
}
