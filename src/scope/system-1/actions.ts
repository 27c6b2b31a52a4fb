import { v7 as uuidv7 } from 'uuid'
import type { Agent } from '../../agents/define-agent.ts'
import type { Env } from '../../bindings.ts'
import type { Event } from '../../core/event.ts'
import type { Outcome } from '../../protocol/event-record.ts'
import type { ActionEnd, EntryHead } from '../../protocol/log-entry.ts'
import { toolKeys } from '../../agents/tool-keys.ts'
import { messageOf } from '../../protocol/message-of.ts'
import type { Accepted } from '../../protocol/scope-api.ts'
import type { ReflexVersion } from '../../protocol/reflex.ts'
import type { Settings } from '../../protocol/settings.ts'
import type { Alarm } from '../alarm.ts'
import type { Counters } from '../counters.ts'
import type { Database } from '../database.ts'
import type { Effects } from '../effects.ts'
import type { Stored } from '../inbox.ts'
import type { Log } from '../log.ts'
import { isPlatformFault } from '../platform-fault.ts'
import type { Settlement } from '../settlement.ts'
import { childHead, eventHead } from '../spans.ts'
import type { Toolbox } from '../toolbox.ts'
import type { UnitOfWork } from '../unit-of-work.ts'
import type { WorkingMemory } from '../working-memory.ts'
import type { Fire } from './fire.ts'
import type { HeldEvents } from './held-events.ts'
import type { LaneWork } from './permit.ts'
import type { Proving } from './proving.ts'

const HEARTBEAT_MS = 20_000
const AGAIN_MS = 2000

type Parts = {
  scope: string
  env: Env
  database: Database
  log: Log
  held: HeldEvents
  memory: WorkingMemory
  counters: Counters
  settlement: Settlement
  effects: Effects
  proving: Proving
  toolbox: Toolbox
  alarm: Alarm
  unit: UnitOfWork
  agent: () => Agent
  settings: () => Settings
  /** The turn in flight, where there is one. */
  turn: { cancel: (reason: string, by: string) => void; preempt: (reason: string) => void; consider: () => void; escalate: () => void }
  accept: (events: readonly Event[]) => Accepted
  now: () => number
}
type Task = {
  work: LaneWork
  head: EntryHead
  log_seq: number
  action_type: Fire['action']['action_type']
  consume: boolean
  version: ReflexVersion
}
type Row = { id: string; seq: number; idempotence_key: string | null; task: Task }

/**
 * Carries out what reflexes decided. What changes only the scope happens in the transaction of the event's acceptance. What reaches out takes the effect
 * lane, beside a turn in flight: its event is held until then.
 *
 * Kept state: a row in `actions`, written with the event; the effect's own journal; the row's end, written with the event's outcome. If the process dies
 * before the first, the event was not accepted; before the last, the row is found on waking and goes through the journal again, which knows
 * whether the effect was done (G1, G8). An effect that failed hands the event to the slow path.
 */
export class Actions {
  readonly #parts: Parts
  #running = false
  #waiting: Row[]

  constructor(parts: Parts) {
    this.#parts = parts
    this.#waiting = parts.database
      .all<{ id: string; seq: number; idempotence_key: string | null; task: string }>(
        'SELECT id, seq, idempotence_key, task FROM actions WHERE ended_at IS NULL ORDER BY at, id',
      )
      .map((row) => ({ ...row, task: JSON.parse(row.task) as Task }))
    parts.alarm.source((now) => (this.#waiting.length > 0 ? now + (this.#running ? HEARTBEAT_MS : AGAIN_MS) : null))
  }

  /** Under this key, or about to be. */
  carriedOut(reflex_id: string, idempotence_key: string): boolean {
    const known = 'SELECT 1 AS known FROM actions WHERE reflex_id = ? AND idempotence_key = ?'
    return this.#parts.database.first(known, reflex_id, idempotence_key) !== undefined
  }

  /** Whether a call of this tool under this key waits, or is under way. */
  waits(tool: string, key: string): boolean {
    const { toolbox, scope } = this.#parts
    const named = toolKeys(toolbox.all, scope)
    return this.#waiting.some(
      ({ task: { work } }) => work.kind === 'tool' && work.tool === tool && named(tool, work.input)?.idempotence_key === key,
    )
  }

  /** Within the unit of work that accepts the event, once it is stored and logged. */
  begin(fire: Fire, stored: Stored, log_seq: number): void {
    const { action, permitted, version } = fire
    const { counters, turn } = this.#parts
    counters.add({ reflex_actions: 1 })
    if (action.preempt) turn.preempt(`reflex ${version.id} preempted it`)
    if (permitted.lane) return this.#enqueue(fire, permitted.work, stored, log_seq)
    if (action.idempotence_key !== undefined) this.#note(uuidv7(), fire, stored.seq, null)
    this.#atOnce(fire, stored)
    this.#parts.proving.acted(version, true)
  }

  /** Begins, or goes on, with what waits for the effect lane. */
  run(): void {
    if (this.#running || this.#waiting.length === 0) return
    this.#running = true
    this.#parts.alarm.by(this.#parts.now() + HEARTBEAT_MS)
    void this.#pump()
  }

  /** Drops the keys of long ago. */
  forget(before: number, limit: number): number {
    return this.#parts.database.all(
      'DELETE FROM actions WHERE id IN (SELECT id FROM actions WHERE ended_at < ? LIMIT ?) RETURNING id',
      before,
      limit,
    ).length
  }

  #atOnce({ action, version }: Fire, { event }: Stored): void {
    const { log, memory, turn } = this.#parts
    const head = childHead(eventHead({ id: event.id, trace_id: event.meta.trace_id }))
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others take the lane, or are refused
    switch (action.action_type) {
      case 'reply':
        log.append([{ ...head, kind: 'reply-sent', turn_id: null, reflex_id: version.id, content: action.content }])
        break
      case 'set_scratch':
        memory.setScratch(action.key, action.value)
        log.append([{ ...head, kind: 'scratch-set', key: action.key, value: log.clean(action.value), reflex_id: version.id }])
        break
      case 'cancel_turn':
        turn.cancel(action.reason, `reflex:${version.id}`)
        break
      case 'escalate':
        turn.escalate()
        break
      default:
        throw new Error(`the action ${action.action_type} is not done at once`)
    }
  }

  #enqueue(fire: Fire, work: LaneWork, { seq, event }: Stored, log_seq: number): void {
    const { action, version } = fire
    const head = childHead(eventHead({ id: event.id, trace_id: event.meta.trace_id }))
    const task: Task = {
      work,
      head,
      log_seq,
      action_type: action.action_type,
      consume: action.consume ?? false,
      version: { ...version, code: '' },
    }
    const id = uuidv7()
    this.#note(id, fire, seq, task)
    this.#waiting.push({ id, seq, idempotence_key: action.idempotence_key ?? null, task })
  }

  #note(id: string, { action, version }: Fire, seq: number, task: Task | null): void {
    const { database, now } = this.#parts
    database.all(
      'INSERT INTO actions (id, seq, reflex_id, version, idempotence_key, task, at, ended_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)',
      id,
      seq,
      version.id,
      version.version,
      action.idempotence_key ?? null,
      JSON.stringify(task),
      now(),
      task === null ? now() : null,
    )
  }

  async #pump(): Promise<void> {
    for (let row = this.#waiting[0]; row; row = this.#waiting[0]) {
      try {
        await this.#perform(row)
        this.#ended(row, 'ok', null)
      } catch (error) {
        // The journal knows how far it came; the alarm goes on from there.
        if (isPlatformFault(error)) break
        this.#ended(row, this.#parts.effects.unknownIn(row.id).length > 0 ? 'unknown' : 'failed', messageOf(error))
      }
      this.#waiting.shift()
    }
    this.#running = false
    this.#parts.alarm.rearm()
  }

  async #perform({ id, idempotence_key, task: { work, head, version } }: Row): Promise<void> {
    const { effects, toolbox, settings, scope, env, accept } = this.#parts
    if (work.kind === 'event') {
      const accepted =
        work.event.scope === scope ? accept([work.event]) : await env.SCOPE.getByName(work.event.scope).accept([work.event], 'reflex')
      if (!accepted.ok) throw new Error(`the inbox of scope ${work.event.scope} is full (${accepted.depth} of ${accepted.limit})`)
      return
    }
    const found = toolbox.find(work.tool)
    if (!found.ok) throw new Error(found.detail)
    await effects.run({
      tool: work.tool,
      definition: found.definition,
      input: work.input,
      key: idempotence_key === null ? null : `${version.id}:${idempotence_key}`,
      cause: { by: `reflex:${version.id}@${version.version}` },
      // Its own earlier attempts, before a crash.
      turn_id: id,
      earlier_turns: [id],
      head,
      signal: new AbortController().signal,
      timeout_ms: settings().effect_timeout_ms,
    })
  }

  /** The event has its outcome, or goes the slow path; with the action's own end, in one transaction. */
  #ended({ id, seq, task }: Row, status: ActionEnd, error: string | null): void {
    const { unit, database, log, settlement, held, memory, proving, agent, effects, now, turn } = this.#parts
    const { version, head, action_type, log_seq, consume } = task
    unit(() => {
      database.all(
        'UPDATE actions SET ended_at = ?2, idempotence_key = CASE WHEN ?3 THEN idempotence_key END WHERE id = ?1',
        id,
        now(),
        status === 'ok' ? 1 : 0,
      )
      log.append([{ ...head, kind: 'action-ended', reflex_id: version.id, version: version.version, action_type, status, error }])
      effects.forgetTurn(id)
      proving.acted(version, status === 'ok')
      if (status === 'ok') {
        const outcome: Outcome = { by: 'reflex', reflex_id: version.id, version: version.version, log_seq }
        settlement.end([seq], 'completed', outcome)
        if (consume) memory.leave([seq])
      } else if (status === 'failed' && agent().trigger !== null) {
        held.giveBack(seq)
      } else {
        const reason =
          status === 'unknown'
            ? `the effect of reflex ${version.id} ended unknown and carries no idempotence key: look whether it happened, then retry or discard this event`
            : `the action of reflex ${version.id} failed: ${error}`
        settlement.end([seq], 'dead_lettered', { by: 'failure', reason }, reason)
      }
    })
    turn.consider()
  }
}
