import { v7 as uuidv7 } from 'uuid'
import type { Agent } from '../../agent/define-agent.ts'
import { toolKeys } from '../../tools/tool-keys.ts'
import type { Outcome } from '../../contract/event-record.ts'
import { messageOf } from '../../base/error-text.ts'
import type { Alarm } from '../alarm.ts'
import type { Stored } from '../inbox/event-row.ts'
import { MOST_DEATHS, type Guard } from '../guard.ts'
import { inBackground } from '../in-background.ts'
import type { Log } from '../log.ts'
import { isPlatformFault } from '../../base/faults.ts'
import type { Settlement } from '../inbox/settlement.ts'
import { childHead, headOf } from '../spans.ts'
import type { WorkingMemory } from '../context/working-memory.ts'
import { ActionRows, type ActionRow } from './action-rows.ts'
import type { Fire } from './fire.ts'
import type { HeldEvents } from './held-events.ts'
import { performAction, type Ended, type Performing } from './perform-action.ts'
import type { LaneWork } from './permit.ts'
import type { Proving } from './shadow.ts'
import type { Unit, UnitOfWork } from '../unit.ts'

const HEARTBEAT_MS = 20_000
const AGAIN_MS = 2000
/** So often an action is begun anew after a lost connection, or under its key where it may have happened. */
const MOST_ATTEMPTS = MOST_DEATHS
/** At once, one of a skill: the others wait for it. */
const MOST_PLANS = 5

type Parts = Omit<Performing, 'rows'> & {
  scope: string
  guard: Guard
  log: Log
  held: HeldEvents
  memory: WorkingMemory
  /** Bounds the context, once an event of it has ended. */
  trim: (unit: Unit) => void
  settlement: Settlement
  proving: Proving
  alarm: Alarm
  unit: UnitOfWork
  agent: () => Agent
  /** The turn in flight, where there is one. */
  turn: { cancel: (reason: string, by: string) => void; preempt: (reason: string) => void; consider: () => void; escalate: () => void }
  /** To the sockets, behind the acknowledgement and ahead of the log. */
  say: (content: string, event_id: string) => void
  now: () => number
}
/**
 * Carries out what reflexes decided. What changes only the scope happens in the transaction of the event's acceptance. What reaches out takes the effect
 * lane, beside a turn in flight: its event is held until then. A skill's plan takes the lane step by step, and what comes after it need not wait for its end.
 *
 * Kept state: a row in `actions`, written with the event; the effect's own journal; the row's end, written with the event's outcome. If the process dies
 * before the first, the event was not accepted; before the last, the row is found on waking and goes through the journal again, which knows
 * whether the effect was done (G1, G8). An effect that failed hands the event to the slow path.
 */
export class Actions {
  readonly #parts: Parts
  readonly #rows: ActionRows
  #running = false
  /** Skills under way. */
  readonly #plans = new Set<ActionRow>()
  /** Whether a row may wait: asked at every event, so it is remembered. */
  #waiting: boolean

  constructor(parts: Parts) {
    this.#parts = parts
    this.#rows = new ActionRows(parts.database)
    this.#waiting = this.#next() !== null
    parts.alarm.source((now) => this.#due(now))
  }

  /** Whether any is to be carried out. */
  get waiting(): boolean {
    return this.#waiting
  }

  get busy(): boolean {
    return this.#running
  }

  /** Under this key, to its end. */
  carriedOut(reflex_id: string, idempotence_key: string): boolean {
    return this.#rows.carriedOut(reflex_id, idempotence_key)
  }

  /** Whether a call of this tool under this key waits, or is under way. */
  waits(tool: string, key: string): boolean {
    const { toolbox, scope } = this.#parts
    const keys = toolKeys(toolbox.all, scope)
    return this.#rows.inputsOf(tool).some((input) => keys(tool, input)?.idempotence_key === key)
  }

  /** In the unit that accepts the event, once it is stored and logged. */
  begin(unit: Unit, fire: Fire, stored: Stored, log_seq: number): void {
    const { action, permitted, version } = fire
    const { turn, proving } = this.#parts
    unit.count({ reflex_actions: 1 })
    if (action.preempt) turn.preempt(`reflex ${version.id} preempted it`)
    if (permitted.lane) return this.#enqueue(unit, fire, permitted.work, stored, log_seq)
    if (action.idempotence_key !== undefined) this.#note(unit, fire, stored.seq, null)
    this.#atOnce(unit, fire, stored)
    proving.acted(unit, version, { ok: true, saves: action.action_type !== 'escalate' })
  }

  /** Begins, or goes on, with what waits for the effect lane. */
  run(): void {
    if (this.#running || !this.#waiting) return
    this.#running = true
    this.#parts.alarm.by(this.#parts.now() + HEARTBEAT_MS)
    inBackground(this.#pump())
  }

  /** Drops the keys of long ago. */
  forget(unit: Unit, before: number, limit: number): number {
    return this.#rows.forget(unit, before, limit)
  }

  /** What is to be tried again does not wait for the plans beside it. */
  #due(now: number): number | null {
    if (this.#waiting && !this.#running) return now + AGAIN_MS
    return this.#running || this.#plans.size > 0 ? now + HEARTBEAT_MS : null
  }

  /** A plan that waits for another one begins at that one's end: it is not looked for before, for there may be many. */
  #mayBegin(work: LaneWork): boolean {
    if (work.kind !== 'skill') return true
    const same = ({ task: { work: begun } }: ActionRow) => begun.kind === 'skill' && begun.skill_id === work.skill_id
    return this.#plans.size < MOST_PLANS && !Array.from(this.#plans).some(same)
  }

  #next(): ActionRow | null {
    const row = this.#rows.next({ begun: Array.from(this.#plans), plans: this.#plans.size < MOST_PLANS })
    this.#waiting = row !== null
    return row
  }

  /** What is noted in the scratch is there already, so that the next event's reflexes saw it. */
  #atOnce(unit: Unit, { action, version }: Fire, { event }: Stored): void {
    const { log, turn, say } = this.#parts
    const head = childHead(headOf(event))
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others take the lane, or are refused
    switch (action.action_type) {
      case 'reply':
        say(action.content, event.id)
        unit.log({ ...head, kind: 'reply-sent', turn_id: null, reflex_id: version.id, content: action.content })
        break
      case 'set_scratch':
        unit.log({ ...head, kind: 'scratch-set', ...cleanPair(log, action), reflex_id: version.id })
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

  #enqueue(unit: Unit, fire: Fire, work: LaneWork, { seq, event }: Stored, log_seq: number): void {
    const { action } = fire
    const head = childHead(headOf(event))
    if (this.#mayBegin(work)) this.#waiting = true
    this.#note(unit, fire, seq, { work, head, log_seq, action_type: action.action_type, consume: action.consume ?? false })
  }

  #note(unit: Unit, { action, version }: Fire, seq: number, task: ActionRow['task'] | null): void {
    const idempotence_key = action.idempotence_key ?? null
    this.#rows.add(unit, { id: uuidv7(), seq, reflex_id: version.id, version: version.version, idempotence_key, task })
  }

  async #pump(): Promise<void> {
    for (let row = this.#next(); row; row = this.#next()) {
      if (row.task.work.kind === 'skill') {
        inBackground(this.#plan(row))
        continue
      }
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

  /** Beside the other actions: a plan may take minutes. */
  async #plan(row: ActionRow): Promise<void> {
    this.#plans.add(row)
    const end = await this.#endOf(row)
    if (end === null) await scheduler.wait(AGAIN_MS)
    else this.#ended(row, end)
    this.#plans.delete(row)
    // Another of the same skill, or under the same key, may have waited for it.
    this.#waiting = true
    this.run()
  }

  /** Null where it is to be tried again: it has not begun, or has a key under which it may be repeated. */
  async #endOf(row: ActionRow): Promise<Ended | null> {
    const attempts = await this.#attempt(row.id)
    try {
      if (attempts > MOST_ATTEMPTS) throw new Error(this.#park(row.id))
      return await performAction(row, { ...this.#parts, rows: this.#rows }, new AbortController().signal)
    } catch (error) {
      const last = this.#parts.effects.lastOf(row.id)
      const unknown = last?.status === 'unknown' || last?.status === 'started'
      const again = last === undefined ? isPlatformFault(error) : unknown && last.idempotence_key !== null
      if (again && attempts < MOST_ATTEMPTS) return null
      return { status: unknown ? 'unknown' : 'failed', error: messageOf(error) }
    }
  }

  /** Counted before it begins, from the second time on on disk: one that kills the object is not begun for ever. */
  async #attempt(id: string): Promise<number> {
    const { unit, database } = this.#parts
    const attempts = unit((unit) => this.#rows.attempt(unit, id))
    if (attempts > 1) await database.sync()
    return attempts
  }

  #park(id: string): string {
    const { guard, unit } = this.#parts
    const work = { kind: 'action', id } as const
    const reason = `it was begun ${MOST_ATTEMPTS} times, and the object died or lost its connection each time: ${guard.reason(work)}`
    unit((unit) => guard.park(unit, work, reason), work)
    return reason
  }

  /** The event has its outcome, or goes the slow path; with the action's own end, in one transaction. */
  #ended({ id, seq, reflex_id, version, task }: ActionRow, { status, error }: Ended): void {
    const { unit, guard, settlement, held, memory, proving, agent, effects, turn, trim } = this.#parts
    const { head, action_type, log_seq, consume } = task
    const ok = status === 'ok' || status === 'reused'
    unit(
      (unit) => {
        this.#rows.end(unit, id, ok)
        unit.log({ ...head, kind: 'action-ended', reflex_id, version, action_type, status, error })
        effects.forgetTurn(id)
        if (status !== 'reused') proving.acted(unit, { id: reflex_id, version }, { ok, saves: true })
        if (ok) {
          const outcome: Outcome = { by: 'reflex', reflex_id, version, log_seq, ...(status === 'reused' && { reused: true }) }
          settlement.end(unit, [seq], { status: 'completed', outcome })
          if (consume) memory.leave(unit, [seq])
        } else if (status === 'failed' && agent().trigger !== null) {
          held.giveBack(unit, seq)
        } else {
          const reason =
            status === 'unknown'
              ? `the effect of reflex ${reflex_id} ended unknown: look whether it happened, then retry or discard this event`
              : `the action of reflex ${reflex_id} failed: ${error}`
          settlement.end(unit, [seq], { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
        }
        trim(unit)
        guard.done({ kind: 'action', id })
      },
      { kind: 'action', id },
    )
    turn.consider()
  }
}

const cleanPair = (log: Log, { key, value }: { key: string; value: unknown }): { key: string; value: unknown } =>
  log.clean({ key, value }) as { key: string; value: unknown }
