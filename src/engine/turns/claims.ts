import { v7 as uuidv7 } from 'uuid'
import { newSpanId } from '../../core/event.ts'
import { toRanges } from '../../traces/ranges.ts'
import type { EffectLane } from '../effects/effect-lane.ts'
import { together, type GuardedWork } from '../upkeep/guard.ts'
import type { Settlement } from '../inbox/settlement.ts'
import type { DueEvent, TurnRows } from '../inbox/turn-rows.ts'
import { turnHead } from '../log/spans.ts'
import type { Deferred, Unit } from '../storage/unit.ts'
import { keep, nothingYet, noUsage, type Readings, type Turn, type TurnRecord } from './turn.ts'
import type { Reflexes } from '../reflexes/wiring.ts'

/** Longest time between alarms during a turn. */
export const HEARTBEAT_MS = 20_000
/** An event that was in this many turns during which the object died is assumed to cause it. */
const MOST_INTERRUPTIONS = 10

export type ClaimParts = Reflexes & {
  rows: TurnRows
  settlement: Settlement
  effects: EffectLane
  deferred: Deferred
}

/**
 * Claims events for turns. A claim waits in memory for the scope's next unit of work, which writes
 * it first, and for no longer than the current task: a turn that ends at once, without an effect,
 * writes its claim and its end together. Whatever a turn does is a unit of work, so its claim is on
 * disk before it. After a crash before that, the events are pending and the alarm finds them; after
 * it, `recover` releases them without counting the attempt.
 */
export class TurnClaims {
  readonly #parts: ClaimParts

  constructor(parts: ClaimParts) {
    this.#parts = parts
  }

  /** Claims the due events for a turn; null if there are none. */
  claim(): Turn | null {
    const turn = this.#turnOn(this.#parts.settings().context_limit)
    if (turn) this.#parts.deferred.put((unit) => this.#hold(unit, turn))
    return turn
  }

  /**
   * Claims one event after a crash during a turn. The guard counts it first, and the claim is on
   * disk before the trigger runs. An event that cannot be claimed is dead-lettered. `more` is false
   * if nothing is due.
   */
  async claimOne(): Promise<{ turn: Turn | null; more: boolean }> {
    const { guard, rows, unit, database, now } = this.#parts
    const seq = rows.nextForTurn(now())
    if (seq === null) {
      guard.done(together('turn'))
      return { turn: null, more: false }
    }
    const work = { kind: 'turn' as const, id: String(seq) }
    if (!(await guard.begin(work))) {
      this.#giveUp(work, seq)
      return { turn: null, more: true }
    }
    const turn = unit((unit) => {
      const turn = this.#turnOn(1)
      if (turn) this.#hold(unit, turn)
      return turn
    }, work)
    await database.sync()
    // From here on, the event itself counts crashes during its turns.
    guard.done(work)
    return { turn, more: turn === null }
  }

  /** Writes the claim of a turn that lasts. */
  hold(turn: Turn): void {
    // The unit makes the deferred write.
    if (!turn.held && !turn.signal.aborted) this.#parts.unit(() => {}, together('turn'))
  }

  /** In the unit that ends the turn: writes `turn-started` if the claim was not written. */
  end(unit: Unit, turn: Turn): { attempts: 0 | 1 } {
    if (turn.held) return { attempts: 0 }
    this.#start(unit, turn)
    return { attempts: 1 }
  }

  /**
   * Releases the events of a turn that a crash ended, or dead-letters those that are unsafe to
   * repeat. `blamed` is false if other work caused the crash; `quiet` omits the log entry.
   */
  recover(unit: Unit, { quiet, blamed }: { quiet: boolean; blamed: boolean }): void {
    const { database, rows } = this.#parts
    const record = database.read<TurnRecord | null>('turn', null)
    if (!record) return
    const { turn_id, head, since, started_seq } = record
    const lost = rows.release(unit, turn_id, { due_at: 0, interrupted: blamed })
    const duration_ms = unit.now - since
    const error = 'the server died, was reset or was evicted during this turn'
    const entry = {
      turn_id,
      started_seq,
      status: 'lost' as const,
      result: null,
      error,
      cleared: 0,
      usage: noUsage(),
      scratch: null,
      acts: [],
    }
    if (!quiet) unit.log({ ...head, duration_ms, kind: 'turn-ended', ...entry })
    unit.write('turn', null)
    this.endOftenInterrupted(
      unit,
      lost.map(({ seq }) => seq),
    )
  }

  /**
   * Ends events that were interrupted too often: they may be the cause, and no attempt counts them.
   */
  endOftenInterrupted(unit: Unit, seqs: readonly number[]): void {
    const { view, settlement } = this.#parts
    const often = view.interrupted(seqs, MOST_INTERRUPTIONS)
    const reason = `the server died, or a connection was lost, ${MOST_INTERRUPTIONS} times while a turn considered this event`
    settlement.end(unit, often, { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
  }

  #giveUp(work: GuardedWork, seq: number): void {
    const { guard, unit, settlement } = this.#parts
    const reason = `this event crashed its scope ${guard.deaths(work)} times when a turn considered it: ${guard.reason(work)}`
    unit((unit) => {
      settlement.end(unit, [seq], { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
      guard.park(unit, work, reason)
    }, work)
  }

  #turnOn(limit: number): Turn | null {
    const { rows, memory, log, agent, now } = this.#parts
    const due = rows.dueForTurn(now(), { limit, memory })
    const earlier_turns = Array.from(new Set(due.flatMap((one) => one.earlier_turns)))
    const claimed = this.#withoutUnsafe(due, earlier_turns)
    if (claimed.length === 0) return null
    const turn_id = uuidv7()
    const head = turnHead(
      claimed.map(({ event }) => event),
      newSpanId(),
    )
    const since = now()
    const readings: Readings = { clock: [], done: [], offered: [] }
    const read = () => {
      const at = now()
      keep(readings.clock, at - since)
      return at
    }
    const seen = memory.view(claimed, read)
    log.masks.mayQuote(head.trace_id, seen.context.events)
    const controller = new AbortController()
    const attempts = Math.max(...claimed.map((stored) => stored.attempts))
    const { created_at, last_action_at } = seen.context
    const hidden = memory.count - seen.seqs.length
    const saw = {
      seqs: toRanges(seen.seqs),
      count: seen.seqs.length,
      ...(hidden > 0 && { hidden }),
      scratch: log.clean(seen.scratch, head.trace_id),
      created_at,
      last_action_at,
    }
    const considered = toRanges(claimed.map(({ seq }) => seq))
    return {
      turn_id,
      head,
      since,
      readings,
      now: read,
      started: { ...head, kind: 'turn-started', turn_id, agent: agent().name, attempts, considered, saw },
      started_seq: 0,
      held: false,
      claimed,
      earlier_turns,
      seen,
      signal: controller.signal,
      stop: (reason: Error) => controller.abort(reason),
      usage: noUsage(),
      acts: [],
      ...nothingYet(),
    }
  }

  #start(unit: Unit, turn: Turn): void {
    turn.started_seq = unit.log({ ...turn.started, since: turn.since, basis: this.#parts.basis(unit) })
    unit.count({ turns: 1 })
  }

  #hold(unit: Unit, turn: Turn): void {
    const { turn_id, head, since, claimed } = turn
    turn.held = true
    this.#parts.rows.hold(
      unit,
      turn_id,
      claimed.map(({ seq }) => seq),
    )
    this.#start(unit, turn)
    unit.write('turn', { turn_id, head, since, started_seq: turn.started_seq } satisfies TurnRecord)
    unit.wakeBy(unit.now + HEARTBEAT_MS)
  }

  /**
   * Dead-letters events with an unknown effect without a key: repeating it could do it twice (G8).
   */
  #withoutUnsafe(due: DueEvent[], earlier_turns: readonly string[]): DueEvent[] {
    const { effects, settlement, unit } = this.#parts
    const unsafe = new Set<DueEvent>()
    for (const turn_id of earlier_turns) {
      const tools = effects.journal.unknownTools(turn_id)
      if (tools.length === 0) continue
      const some = due.filter((one) => one.earlier_turns.includes(turn_id))
      const reason = `effect ${tools.join(', ')} has an unknown outcome and no idempotency key: check whether it happened, then retry or discard this event`
      const how = { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason, attempts: 1 } as const
      const seqs = some.map(({ seq }) => seq)
      unit((unit) => settlement.end(unit, seqs, how), together('turn'))
      for (const one of some) unsafe.add(one)
    }
    return unsafe.size === 0 ? due : due.filter((one) => !unsafe.has(one))
  }
}
