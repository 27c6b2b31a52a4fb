import { v7 as uuidv7 } from 'uuid'
import type { Agent } from '../../agent/define-agent.ts'
import { newSpanId } from '../../core/event.ts'
import type { TurnEnd } from '../../contract/log-entry.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Database } from '../storage/database.ts'
import type { EffectLane } from '../effects/effect-lane.ts'
import type { Claimed } from '../inbox/event-row.ts'
import { together, type Guard, type Work } from '../upkeep/guard.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { InboxView } from '../inbox/view.ts'
import type { Log } from '../log/log.ts'
import type { ModelOutage } from './model-outage.ts'
import type { Parking } from '../inbox/parking.ts'
import type { Settlement } from '../inbox/settlement.ts'
import { turnHead } from '../log/spans.ts'
import type { Proving } from '../reflexes/shadow.ts'
import { type Ending, nothingYet, noUsage, type Turn, type TurnRecord } from './turn.ts'
import { toRanges, type WorkingMemory } from '../context/working-memory.ts'
import type { Unit, UnitOfWork } from '../storage/unit.ts'

/** An event that was in this many turns during which the object died is assumed to cause it. */
const MOST_INTERRUPTIONS = 10
/** Maximum wait for a budget without a renewal; a change of the settings ends it earlier. */
const PARKED_MS = 86_400_000

export type LedgerParts = {
  database: Database
  inbox: Inbox
  view: InboxView
  guard: Guard
  memory: WorkingMemory
  log: Log
  settlement: Settlement
  proving: Proving
  effects: EffectLane
  outage: ModelOutage
  parking: Parking
  unit: UnitOfWork
  agent: () => Agent
  settings: () => Settings
  now: () => number
}

/**
 * Durable state of turns: the claims of their events and `turn` in the state table, written with
 * `turn-started`. After a crash before that, the events are pending and the alarm finds them; after
 * it, `recover` releases them without counting the attempt. A turn's end, its events' outcomes, the
 * context's changes and the log entries are one transaction (G1).
 */
export class TurnLedger {
  readonly #parts: LedgerParts

  constructor(parts: LedgerParts) {
    this.#parts = parts
  }

  /** Claims the due events for a turn; null if there are none. */
  claim(): Turn | null {
    return this.#parts.unit((unit) => this.#claim(unit, this.#parts.settings().context_limit), together('turn'))
  }

  /**
   * Claims one event after a crash during a turn. The guard counts it first, and the claim is on
   * disk before the trigger runs. An event that cannot be claimed is dead-lettered. `more` is false
   * if nothing is due.
   */
  async claimOne(): Promise<{ turn: Turn | null; more: boolean }> {
    const { guard, inbox, unit, database, now } = this.#parts
    const seq = inbox.nextForTurn(now())
    if (seq === null) {
      guard.done(together('turn'))
      return { turn: null, more: false }
    }
    const work = { kind: 'turn' as const, id: String(seq) }
    if (!(await guard.begin(work))) {
      this.#giveUp(work, seq)
      return { turn: null, more: true }
    }
    const turn = unit((unit) => this.#claim(unit, 1), work)
    await database.sync()
    // From here on, the event itself counts crashes during its turns.
    guard.done(work)
    return { turn, more: turn === null }
  }

  #giveUp(work: Work, seq: number): void {
    const { guard, unit, settlement } = this.#parts
    const reason = `this event crashed its scope ${guard.deaths(work)} times when a turn considered it: ${guard.reason(work)}`
    unit((unit) => {
      settlement.end(unit, [seq], { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
      guard.park(unit, work, reason)
    }, work)
  }

  settle(turn: Turn, ending: Ending): void {
    this.#parts.unit((unit) => this.#settle(unit, turn, ending), together('turn'))
  }

  /** Cancels a turn and its events. */
  cancel(unit: Unit, turn: Turn, reason: string, by: string): void {
    unit.log({ ...turn.head, kind: 'turn-cancelled', turn_id: turn.turn_id, reason, by })
    this.#parts.settlement.end(unit, seqsOf(turn.claimed), { status: 'cancelled', outcome: { by: 'cancel', reason } })
    this.#ended(unit, turn, { status: 'cancelled', result: null, error: reason }, 0)
  }

  /** Ends a turn and makes its events pending again. */
  interrupt(unit: Unit, turn: Turn, reason: string): void {
    this.#parts.inbox.release(unit, turn.turn_id, { due_at: 0 })
    this.#ended(unit, turn, { status: 'interrupted', result: null, error: reason }, 0)
  }

  /**
   * Releases the events of a turn that a crash ended, or dead-letters those that are unsafe to
   * repeat. `blamed` is false if other work caused the crash; `quiet` omits the log entry.
   */
  recover(unit: Unit, { quiet, blamed }: { quiet: boolean; blamed: boolean }): void {
    const { database, inbox } = this.#parts
    const record = database.read<TurnRecord | null>('turn', null)
    if (!record) return
    const { turn_id, head, since } = record
    const lost = inbox.release(unit, turn_id, { due_at: 0, interrupted: blamed })
    const duration_ms = unit.now - since
    const error = 'the server died, was reset or was evicted during this turn'
    const entry = { turn_id, status: 'lost' as const, result: null, error, cleared: 0, usage: noUsage(), scratch: null, acts: [] }
    if (!quiet) unit.log({ ...head, duration_ms, kind: 'turn-ended', ...entry })
    unit.write('turn', null)
    this.#endOftenInterrupted(
      unit,
      lost.map(({ seq }) => seq),
    )
  }

  /**
   * Ends events that were interrupted too often: they may be the cause, and no attempt counts them.
   */
  #endOftenInterrupted(unit: Unit, seqs: readonly number[]): void {
    const { view, settlement } = this.#parts
    const often = view.interrupted(seqs, MOST_INTERRUPTIONS)
    const reason = `the server died, or a connection was lost, ${MOST_INTERRUPTIONS} times while a turn considered this event`
    settlement.end(unit, often, { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
  }

  #claim(unit: Unit, limit: number): Turn | null {
    const { inbox, view, memory, log, agent } = this.#parts
    const turn_id = uuidv7()
    const due = inbox.claimForTurn(unit, turn_id, { limit, memory })
    const earlier_turns = view.earlierTurns(seqsOf(due))
    const claimed = this.#withoutUnsafe(unit, due, earlier_turns)
    if (claimed.length === 0) return null
    const head = turnHead(
      claimed.map(({ event }) => event),
      newSpanId(),
    )
    const seen = memory.view(claimed)
    const controller = new AbortController()
    const since = unit.now
    const attempts = Math.max(...claimed.map((stored) => stored.attempts))
    const saw = { seqs: toRanges(seen.seqs), count: seen.seqs.length, scratch: log.clean(seen.scratch) }
    const considered = toRanges(seqsOf(claimed))
    unit.log({ ...head, kind: 'turn-started', turn_id, agent: agent().name, attempts, considered, saw })
    unit.write('turn', { turn_id, head, since } satisfies TurnRecord)
    unit.count({ turns: 1 })
    const stop = (reason: Error) => controller.abort(reason)
    return {
      turn_id,
      head,
      since,
      claimed,
      earlier_turns,
      seen,
      signal: controller.signal,
      stop,
      usage: noUsage(),
      acts: [],
      ...nothingYet(),
    }
  }

  #settle(unit: Unit, turn: Turn, ending: Ending): void {
    const { memory, settlement, inbox, proving, outage } = this.#parts
    if (ending.status !== 'waiting' && (turn.model.answered || ending.fault?.fault === 'refused')) outage.answered(unit)
    const { turn_id, claimed, seen } = turn
    switch (ending.status) {
      case 'result':
      case 'none': {
        turn.acts.push(...memory.mergeScratch(unit, seen.scratch, seen.context.scratch))
        proving.decided(
          unit,
          claimed.map(({ seq, event }) => ({ seq, id: event.id, trace_id: event.meta.trace_id })),
          { by: 'turn', acts: turn.acts },
        )
        // Outcomes point to the `turn-ended` entry, whose place in the log is known before it is
        // written.
        settlement.end(unit, seqsOf(claimed), {
          status: 'completed',
          outcome: { by: 'turn', turn_id, log_seq: this.#parts.log.last + claimed.length + 1 },
        })
        this.#ended(unit, turn, ending, ending.status === 'result' ? memory.clear(unit, seen.seqs) : 0)
        return memory.trim(unit)
      }
      case 'refused': {
        inbox.release(unit, turn_id, { due_at: ending.until ?? unit.now + PARKED_MS, parked: { reason: 'budget', now: unit.now } })
        this.#ended(unit, turn, ending, 0)
        return
      }
      case 'waiting':
        return this.#wait(unit, turn, ending)
      case 'interrupted': {
        inbox.release(unit, turn_id, { due_at: unit.now, interrupted: true })
        this.#ended(unit, turn, ending, 0)
        return this.#endOftenInterrupted(unit, seqsOf(claimed))
      }
      case 'failed':
      case 'timeout': {
        const log_seq = this.#ended(unit, turn, ending, 0)
        const failure = settlement.failure(unit, ending.error ?? 'the turn failed', log_seq)
        // A retry would get the same answer.
        const max_attempts = ending.fault?.fault === 'refused' ? 1 : failure.max_attempts
        settlement.failed(unit, inbox.fail(unit, claimed, { turn_id, ...failure, max_attempts }), failure)
      }
    }
  }

  /**
   * Parks events until the provider is available, up to `model_outage_s`, without counting
   * attempts.
   */
  #wait(unit: Unit, turn: Turn, ending: Ending): void {
    const { inbox, parking, settlement, outage, settings } = this.#parts
    const at = unit.now
    if (ending.fault) outage.failed(unit, ending.fault)
    const { model_outage_s } = settings().retry
    const most_ms = model_outage_s * 1000
    const error = outage.told ?? ending.error ?? 'the model is not available'
    const log_seq = this.#ended(unit, turn, { ...ending, error }, 0)
    inbox.release(unit, turn.turn_id, { due_at: outage.askAt ?? at, parked: { reason: 'model', now: at, most_ms } })
    const given_up = parking.since(seqsOf(turn.claimed), 'model', at - most_ms)
    const reason = `the event waited for the model for ${model_outage_s} s (retry.model_outage_s): ${error}`
    settlement.end(unit, given_up, { status: 'dead_lettered', outcome: { by: 'failure', reason, log_seq }, error: reason })
  }

  #ended(unit: Unit, turn: Turn, { status, result, error, stack = null }: Ended, cleared: number): number {
    const { log, effects, memory } = this.#parts
    const { turn_id, head, since, usage, failed_calls } = turn
    const acts = log.clean(turn.acts) as Turn['acts']
    const warned = turn.warnings.length > 0 ? { warnings: turn.warnings } : {}
    const failure = { error, ...(stack !== null && { stack }), ...(failed_calls.length > 0 && { failed_calls }) }
    const scratch = log.clean(memory.live.scratch)
    const entry = { turn_id, status, result: log.clean(result), ...failure, cleared, usage, scratch, acts, ...warned }
    const log_seq = unit.log({ ...head, duration_ms: unit.now - since, kind: 'turn-ended', ...entry })
    if (status === 'failed' || status === 'timeout') unit.count({ turns_failed: 1 })
    unit.write('turn', null)
    effects.forgetTurn(turn_id)
    return log_seq
  }

  /**
   * Dead-letters events with an unknown effect without a key: repeating it could do it twice (G8).
   */
  #withoutUnsafe(unit: Unit, due: Claimed[], earlier_turns: readonly string[]): Claimed[] {
    const { effects, view, settlement } = this.#parts
    const given = new Set<number>()
    for (const turn_id of earlier_turns) {
      const tools = effects.journal.unknownTools(turn_id)
      if (tools.length === 0) continue
      const seqs = view.consideredBy(turn_id, seqsOf(due))
      const reason = `effect ${tools.join(', ')} has an unknown outcome and no idempotency key: check whether it happened, then retry or discard this event`
      settlement.end(unit, seqs, { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
      for (const seq of seqs) given.add(seq)
    }
    return given.size === 0 ? due : due.filter(({ seq }) => !given.has(seq))
  }
}

type Ended = { status: TurnEnd; result: unknown; error: string | null; stack?: string | null }

const seqsOf = (claimed: readonly Claimed[]): number[] => claimed.map(({ seq }) => seq)
