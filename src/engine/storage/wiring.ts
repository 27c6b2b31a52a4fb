import { pauses } from '../../base/backoff.ts'
import type { AgentRegistry } from '../../agent/registry.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { SecretHider } from '../../base/secrets.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Env } from '../../env.ts'
import { storeOf } from '../../store/store.ts'
import { otlpTargetOf } from '../../traces/otlp-target.ts'
import { WorkingMemory } from '../context/working-memory.ts'
import { deploymentMask } from '../../traces/keyed-hash.ts'
import { ContextRows } from '../inbox/context-rows.ts'
import { Inbox } from '../inbox/inbox.ts'
import { InboxView } from '../inbox/view.ts'
import { Jobs } from '../jobs.ts'
import { dropObject } from '../log/failures.ts'
import { LogFollower, Log } from '../log/log.ts'
import { TraceMarksOf } from '../log/spans.ts'
import { basisOf, LogParts } from '../log/log-parts.ts'
import { Records } from '../reflexes/stats.ts'
import { EventReplica } from '../replication/event-replica.ts'
import { modelReport } from '../turns/model-access.ts'
import { SettingsStore } from '../settings/settings-store.ts'
import { Alarm } from '../../kernel/alarm.ts'
import { Guard } from '../upkeep/guard.ts'
import type { ScopeFeature } from '../feature.ts'
import { Outbox, type OutboxPace } from '../../kernel/outbox.ts'
import { ScopeCounters, type Database, Deferred, unitOfWork } from '../../kernel/unit.ts'

export type ScopeHost = {
  context: DurableObjectState
  env: Env
  scope: string
  created_at: number
  database: Database
  hider: SecretHider
  agents: AgentRegistry
}
export type Ground = ReturnType<typeof composeGround>

type Copied = ScopeHost & { db: D1Database; now: () => number; settings: () => Settings; agent: () => Agent } & {
  log: Log
  counters: ScopeCounters
  alarm: Alarm
  guard: Guard
  inbox: Inbox
  features: readonly ScopeFeature[]
}

/** D1 lags by about a second. */
const REPLICATION: OutboxPace = { gather_ms: 800, most_items: 50, pauses: pauses.replication, failed: 'failed to replicate to D1' }

/** Wires what follows the log, to copy it. */
function composeCopies(parts: Copied) {
  const { scope, database, now, log, alarm } = parts
  const trace_marks = new TraceMarksOf(database, otlpTargetOf(parts.env)?.ratio ?? 1)
  const replica = new EventReplica({ ...parts, modelReport })
  const outbox = new Outbox({ database, alarm, now, pace: REPLICATION })
  const follower = new LogFollower({ log, scope })
  follower.add(replica)
  return { trace_marks, replica, outbox, follower }
}

/** Wires what every other part uses: the unit of work, and the state that it writes. */
export function composeGround(host: ScopeHost) {
  const { context, env, scope, database, hider } = host
  const now = Date.now
  // `fetch` throws if called as a method of another object.
  const outbound: typeof fetch = (input, init) => fetch(input, init)
  const db = storeOf(env)
  const store = new SettingsStore(host)
  const { settings, agent } = store
  const counters = new ScopeCounters(database)
  const alarm = new Alarm(context.storage, { now, database })
  const log = new Log(database, now, { hider, mask: deploymentMask(env) })
  log.masks.redact(settings())
  const log_parts = new LogParts(database, log)
  const guard = new Guard({ database, now })
  const inbox = new Inbox(database)
  const records = new Records(database, counters)
  const memory = new WorkingMemory({ ...host, rows: new ContextRows(database), log, now, limit: settings().context_limit })
  const features: ScopeFeature[] = []
  const copies = composeCopies({ ...host, db, now, log, counters, alarm, guard, inbox, settings, agent, features })
  const { follower, outbox } = copies
  const reset = (error: unknown) => dropObject(context, scope, error)
  const deferred = new Deferred()
  const isTold = () => copies.replica.isTold()
  const unit = unitOfWork({ database, log, counters, buffered: [follower], deferred, guard, alarm, outbox, isTold, reset, now })
  copies.replica.sendBy(outbox, unit)
  return {
    ...host,
    now,
    random: Math.random,
    fetch: outbound,
    db,
    store,
    settings,
    agent,
    counters,
    alarm,
    log,
    log_parts,
    basis: basisOf({ env, agent, settings, log_parts }),
    guard,
    inbox,
    view: new InboxView(database, alarm, inbox),
    records,
    features,
    ...copies,
    memory,
    deferred,
    unit,
    jobs: new Jobs({ database, unit, guard, alarm, now }),
  }
}
