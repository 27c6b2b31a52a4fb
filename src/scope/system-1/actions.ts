import { v7 as uuidv7 } from 'uuid'
import type { Agent } from '../../agents/define-agent.ts'
import { toolKeys } from '../../agents/tool-keys.ts'
import type { Event } from '../../core/event.ts'
import type { Outcome } from '../../protocol/event-record.ts'
import type { ActionEnd, EntryHead } from '../../protocol/log-entry.ts'
import { messageOf } from '../../protocol/message-of.ts'
import type { Accepted } from '../../protocol/scope-api.ts'
import type { Settings } from '../../protocol/settings.ts'
import type { SkillProposal } from '../../skills/session/proposal.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { Alarm } from '../alarm.ts'
import type { Counters } from '../counters.ts'
import type { Database } from '../database.ts'
import type { Effects } from '../effects.ts'
import type { Stored } from '../event-row.ts'
import type { Log } from '../log.ts'
import { isPlatformFault } from '../platform-fault.ts'
import type { Settlement } from '../settlement.ts'
import type { SessionFor } from '../skills/skills.ts'
import { childHead, headOf } from '../spans.ts'
import type { Toolbox } from '../toolbox.ts'
import type { UnitOfWork } from '../unit-of-work.ts'
import type { WorkingMemory } from '../working-memory.ts'
import type { Fire } from './fire.ts'
import type { HeldEvents } from './held-events.ts'
import type { LaneWork } from './permit.ts'
import { saidIn } from './said-in.ts'
import type { Proving } from './proving.ts'

const HEARTBEAT_MS = 20_000
const AGAIN_MS = 2000
/** So often an action is begun anew after a lost connection, or under its key where it may have happened. */
const MOST_ATTEMPTS = 5

type Parts = {
  scope: string
  database: Database
  log: Log
  held: HeldEvents
  memory: WorkingMemory
  /** Bounds the context, once an event of it has ended. */
  trim: () => void
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
  /** To the sockets, behind the acknowledgement and ahead of the log. */
  say: (content: string, event_id: string) => void
  /** `text` is what was said, which keywords are looked for in. */
  propose: (proposal: SkillProposal, text: string, owner: SessionFor) => Promise<ProposalResult>
  now: () => number
}
type Task = {
  work: LaneWork
  head: EntryHead
  log_seq: number
  action_type: Fire['action']['action_type']
  consume: boolean
}
type Ended = { status: ActionEnd; error: string | null }
const OK: Ended = { status: 'ok', error: null }
const REUSED: Ended = { status: 'reused', error: null }
type Row = { id: string; seq: number; reflex_id: string; version: number; idempotence_key: string | null; task: Task }

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
  /** Whether a row may wait: asked at every event, so it is remembered. */
  #waiting: boolean

  constructor(parts: Parts) {
    this.#parts = parts
    this.#waiting = this.#next() !== null
    parts.alarm.source((now) => (this.#running ? now + HEARTBEAT_MS : this.#waiting ? now + AGAIN_MS : null))
  }

  /** Under this key, to its end. */
  carriedOut(reflex_id: string, idempotence_key: string): boolean {
    const known = 'SELECT 1 AS known FROM actions WHERE reflex_id = ? AND idempotence_key = ? AND ended_at IS NOT NULL'
    return this.#parts.database.first(known, reflex_id, idempotence_key) !== undefined
  }

  /** Whether a call of this tool under this key waits, or is under way. */
  waits(tool: string, key: string): boolean {
    const { database, toolbox, scope } = this.#parts
    const keys = toolKeys(toolbox.all, scope)
    return database
      .all<{ input: string }>(`SELECT task->'$.work.input' AS input FROM actions WHERE ended_at IS NULL AND task->>'$.work.tool' = ?`, tool)
      .some(({ input }) => keys(tool, JSON.parse(input))?.idempotence_key === key)
  }

  /** Within the unit of work that accepts the event, once it is stored and logged. */
  begin(fire: Fire, stored: Stored, log_seq: number): void {
    const { action, permitted, version } = fire
    const { counters, turn, proving } = this.#parts
    counters.add({ reflex_actions: 1 })
    if (action.preempt) turn.preempt(`reflex ${version.id} preempted it`)
    if (permitted.lane) return this.#enqueue(fire, permitted.work, stored, log_seq)
    if (action.idempotence_key !== undefined) this.#note(uuidv7(), fire, stored.seq, null)
    this.#atOnce(fire, stored)
    proving.acted(version, { ok: true, saves: action.action_type !== 'escalate' })
  }

  /** Begins, or goes on, with what waits for the effect lane. */
  run(): void {
    if (this.#running || !this.#waiting) return
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

  #next(): Row | null {
    const row = this.#parts.database.first<Omit<Row, 'task'> & { task: string }>(
      'SELECT id, seq, reflex_id, version, idempotence_key, task FROM actions WHERE ended_at IS NULL ORDER BY at, id LIMIT 1',
    )
    this.#waiting = row !== undefined
    return row ? { ...row, task: JSON.parse(row.task) as Task } : null
  }

  /** What is noted in the scratch is there already, so that the next event's reflexes saw it. */
  #atOnce({ action, version }: Fire, { event }: Stored): void {
    const { log, turn, say } = this.#parts
    const head = childHead(headOf(event))
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others take the lane, or are refused
    switch (action.action_type) {
      case 'reply':
        say(action.content, event.id)
        log.append([{ ...head, kind: 'reply-sent', turn_id: null, reflex_id: version.id, content: action.content }])
        break
      case 'set_scratch':
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
    const { action } = fire
    const head = childHead(headOf(event))
    this.#waiting = true
    this.#note(uuidv7(), fire, seq, { work, head, log_seq, action_type: action.action_type, consume: action.consume ?? false })
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
    for (let row = this.#next(); row; row = this.#next()) {
      const end = await this.#endOf(row)
      // The journal knows how far it came; the alarm goes on from there.
      if (end === null) break
      this.#ended(row, end)
      // Whoever else wants the object comes in between.
      await scheduler.wait(0)
    }
    this.#running = false
    this.#parts.alarm.rearm()
  }

  /** Null where it is to be tried again: it has not begun, or has a key under which it may be repeated. */
  async #endOf(row: Row): Promise<Ended | null> {
    const attempts = this.#attempt(row.id)
    try {
      if (attempts > MOST_ATTEMPTS)
        throw new Error(`it was begun ${MOST_ATTEMPTS} times, and the object died or lost its connection each time`)
      return await this.#perform(row)
    } catch (error) {
      const last = this.#parts.effects.lastOf(row.id)
      const unknown = last?.status === 'unknown' || last?.status === 'started'
      const again = last === undefined ? isPlatformFault(error) : unknown && last.idempotence_key !== null
      if (again && attempts < MOST_ATTEMPTS) return null
      return { status: unknown ? 'unknown' : 'failed', error: messageOf(error) }
    }
  }

  /** Counted before it begins: one that kills the object is not begun for ever. */
  #attempt(id: string): number {
    const { unit, database } = this.#parts
    const row = unit(() =>
      database.first<{ attempts: number }>('UPDATE actions SET attempts = attempts + 1 WHERE id = ? RETURNING attempts', id),
    )
    return row?.attempts ?? 0
  }

  async #perform({ id, seq, reflex_id, version, idempotence_key, task: { work, head } }: Row): Promise<Ended> {
    const { effects, toolbox, settings, accept, propose } = this.#parts
    if (idempotence_key !== null && this.carriedOut(reflex_id, idempotence_key)) return REUSED
    const { signal } = new AbortController()
    if (work.kind === 'event') {
      const accepted = await effects.exclusively(async () => accept([work.event]), signal)
      if (!accepted.ok) throw new Error(`the inbox is full (${accepted.depth} of ${accepted.limit})`)
      return OK
    }
    if (work.kind === 'skill') {
      // Under the action's own id: after a crash it is given the run that it had.
      const proposal = { skill_id: work.skill_id, inputs: work.inputs, why: `reflex ${reflex_id}@${version}` }
      const { status, reason, idempotent } = await propose(proposal, saidIn(this.#parts.database, seq), { head, causes: [id], signal })
      // What waits for an approval is asked for, and kept until somebody decides: that is all that the reflex can do.
      if (status === 'needs_approval') return OK
      if (status === 'ok') return idempotent ? REUSED : OK
      const error = `skill ${work.skill_id}: ${status}${reason === null ? '' : `, ${reason}`}`
      return { status: status === 'unknown' ? 'unknown' : 'failed', error }
    }
    const found = toolbox.find(work.tool)
    if (!found.ok) throw new Error(found.detail)
    await effects.run({
      tool: work.tool,
      definition: found.definition,
      input: work.input,
      key: idempotence_key === null ? null : `${reflex_id} ${idempotence_key}`,
      cause: { by: `reflex:${reflex_id}@${version}` },
      // Its own earlier attempts, before a crash.
      turn_id: id,
      earlier_turns: [id],
      head,
      signal,
      timeout_ms: settings().effect_timeout_ms,
    })
    return OK
  }

  /** The event has its outcome, or goes the slow path; with the action's own end, in one transaction. */
  #ended({ id, seq, reflex_id, version, task }: Row, { status, error }: Ended): void {
    const { unit, database, log, settlement, held, memory, proving, agent, effects, now, turn, trim } = this.#parts
    const { head, action_type, log_seq, consume } = task
    const ok = status === 'ok' || status === 'reused'
    unit(() => {
      database.all(
        'UPDATE actions SET ended_at = ?2, idempotence_key = CASE WHEN ?3 THEN idempotence_key END WHERE id = ?1',
        id,
        now(),
        ok ? 1 : 0,
      )
      log.append([{ ...head, kind: 'action-ended', reflex_id, version, action_type, status, error }])
      effects.forgetTurn(id)
      if (status !== 'reused') proving.acted({ id: reflex_id, version }, { ok, saves: true })
      if (ok) {
        const outcome: Outcome = { by: 'reflex', reflex_id, version, log_seq, ...(status === 'reused' && { reused: true }) }
        settlement.end([seq], 'completed', outcome)
        if (consume) memory.leave([seq])
      } else if (status === 'failed' && agent().trigger !== null) {
        held.giveBack(seq)
      } else {
        const reason =
          status === 'unknown'
            ? `the effect of reflex ${reflex_id} ended unknown: look whether it happened, then retry or discard this event`
            : `the action of reflex ${reflex_id} failed: ${error}`
        settlement.end([seq], 'dead_lettered', { by: 'failure', reason }, reason)
      }
      trim()
    })
    turn.consider()
  }
}
