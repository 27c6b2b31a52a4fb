import type { JsonFields } from '../../base/json.ts'
import { isOfSequence, type KeptAct } from '../effects/effect-journal.ts'
import type { EarlierAct, Requested, TurnEnd } from '../../contract/log-entry.ts'
import { limits } from '../../base/limits.ts'
import { toRanges } from '../../traces/ranges.ts'
import { together, type GuardedWork } from '../upkeep/guard.ts'
import type { Parking } from '../inbox/parking.ts'
import type { ScopeFeature } from '../feature.ts'
import type { Claimed, DueEvent, Inbox, TurnLimit, TurnRows } from '../inbox/inbox.ts'
import type { Unit, Deferred } from '../../kernel/unit.ts'
import type { Budget, ModelOutage } from './model-access.ts'
import { type Turn, keep, nothingYet, noUsage, type Readings, type TurnRecord } from './turn.ts'
import { noSlowPath } from '../../agent/define-agent.ts'
import { isSpent, type TurnEnding } from '../../agent/turn-ending.ts'
import { v7 as uuidv7 } from 'uuid'
import { newSpanId } from '../../core/event.ts'
import type { EffectLane } from '../effects/effect-lane.ts'
import type { Settlement } from '../inbox/settlement.ts'
import { turnHead } from '../log/spans.ts'
import type { Reflexes } from '../reflexes/wiring.ts'

/** Maximum wait for a budget without a renewal; a change of the settings ends it earlier. */
const PARKED_MS = 86_400_000

export type LedgerParts = ClaimParts & {
  inbox: Inbox
  features: readonly ScopeFeature[]
  outage: ModelOutage
  budget: Pick<Budget, 'refused' | 'looksAt'>
  parking: Parking
}

/**
 * Ends turns. A turn's end, its events' outcomes, the context's changes and the log entries are one
 * transaction (G1).
 */
export class TurnLedger {
  readonly #parts: LedgerParts
  readonly #claims: TurnClaims

  constructor(parts: LedgerParts, claims: TurnClaims) {
    this.#parts = parts
    this.#claims = claims
  }

  settle(turn: Turn, ending: TurnEnding): void {
    if (!turn.held && (ending.status === 'result' || ending.status === 'none')) this.#claims.drop()
    this.#parts.unit((unit) => this.#settle(unit, turn, ending), together('turn'))
  }

  cancel(unit: Unit, turn: Turn, reason: string, by: Requested): void {
    unit.log({ ...turn.head, kind: 'turn-cancelled', turn_id: turn.turn_id, reason, ...by })
    this.#parts.settlement.end(unit, seqsOf(turn.claimed), { status: 'cancelled', outcome: { by: 'cancel', reason } })
    logEnd(this.#parts, unit, turn, { status: 'cancelled', result: null, error: reason })
  }

  /** Ends a turn and makes its events pending again. */
  interrupt(unit: Unit, turn: Turn, reason: string): void {
    this.#parts.rows.release(unit, turn.turn_id, { due_at: 0 })
    logEnd(this.#parts, unit, turn, { status: 'interrupted', result: null, error: reason })
  }

  #settle(unit: Unit, turn: Turn, ending: TurnEnding): void {
    const { agent, memory, settlement, inbox, rows, features, outage, settings } = this.#parts
    if (ending.status !== 'waiting' && (turn.model.answered || providerRefused(ending))) outage.answered(unit)
    const { turn_id, claimed, seen } = turn
    switch (ending.status) {
      case 'result':
      case 'none': {
        const how = this.#claims.end(unit, turn)
        // Before the comparison, which is with this teacher.
        for (const feature of features) feature.taught?.(unit, turn.shown)
        turn.acts.push(...memory.mergeScratch(unit, { before: seen.scratch, after: seen.context.scratch }, settings()))
        const { acts } = turn
        const events = claimed.map(({ seq, event }) => ({ seq, scope: event.scope, id: event.id, trace_id: event.meta.trace_id }))
        for (const feature of features) feature.eventsDecided?.(unit, events, { by: 'turn', acts }, turn)
        for (const feature of features) feature.turned?.(unit, claimed, acts)
        const seqs = seqsOf(claimed)
        const acted = ending.status === 'result'
        const cleared = acted ? memory.clearable(seen.seqs, seqs) : []
        const log_seq = logEnd(this.#parts, unit, turn, ending, cleared)
        const isIdle = ending.status === 'none' && turn.usage.model_calls === 0 && turn.acts.length === 0 && !turn.failed_calls.length
        const why = isIdle ? (noSlowPath(agent(), settings()) ?? agent().idle?.(settings()) ?? null) : null
        const idle = isIdle && { idle: true as const, ...(why !== null && { why }) }
        const partial = turn.failed_calls.length + turn.failed_runs.length > 0 && { partial: true as const }
        settlement.end(unit, seqs, { status: 'completed', outcome: { by: 'turn', turn_id, log_seq, ...partial, ...idle }, ...how })
        if (acted) memory.clear(unit, seen.seqs)
        return memory.trim(unit)
      }
      case 'refused': {
        rows.release(unit, turn_id, { due_at: ending.until ?? unit.now + PARKED_MS, parked: { reason: 'budget', now: unit.now } })
        this.#parts.budget.refused(unit, ending.error ?? 'a budget is spent')
        logEnd(this.#parts, unit, turn, ending)
        return
      }
      case 'waiting':
        return this.#wait(unit, turn, ending)
      case 'interrupted': {
        rows.release(unit, turn_id, { due_at: unit.now, interrupted: true })
        logEnd(this.#parts, unit, turn, ending)
        return this.#claims.endOftenInterrupted(unit, seqsOf(claimed))
      }
      case 'failed':
      case 'timeout': {
        const log_seq = logEnd(this.#parts, unit, turn, ending)
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
  #wait(unit: Unit, turn: Turn, ending: TurnEnding): void {
    const { rows, parking, settlement, outage, settings } = this.#parts
    const at = unit.now
    if (ending.fault) outage.failed(unit, ending.fault)
    const { model_outage_s } = settings().retry
    const most_ms = model_outage_s * 1000
    const error = outage.told ?? ending.error ?? 'the model is not available'
    const log_seq = logEnd(this.#parts, unit, turn, { ...ending, error })
    rows.release(unit, turn.turn_id, { due_at: outage.askAt ?? at, parked: { reason: 'model', now: at, most_ms } })
    const given_up = parking.since(seqsOf(turn.claimed), 'model', at - most_ms)
    const reason = `the event waited for the model for ${model_outage_s} s (retry.model_outage_s): ${error}`
    settlement.end(unit, given_up, { status: 'dead_lettered', outcome: { by: 'failure', reason, log_seq }, error: reason })
  }
}

/** True for a refusal of the provider: the scope's own budget refuses, too. */
const providerRefused = ({ fault }: TurnEnding): boolean => fault?.fault === 'refused' && !isSpent(fault)

type EndedTurn = { status: TurnEnd; result: unknown; error: string | null; stack?: string | null }

/** Logs the end of a turn, and returns the entry's `seq`. `left`: what leaves the context. */
export function logEnd(
  parts: Pick<LedgerParts, 'log' | 'effects' | 'memory'>,
  unit: Unit,
  turn: Turn,
  ended: EndedTurn,
  left: readonly number[] = [],
): number {
  const { log, effects, memory } = parts
  const { status, result, error, stack = null } = ended
  const { turn_id, head, since, started_seq, usage, failed_calls, failed_runs, seen } = turn
  effects.endTurn(unit, turn_id, status)
  const cleared = left.length
  const some = cleared > 0 && cleared < seen.seqs.length ? { left: toRanges(left) } : {}
  const acts = log.clean(turn.acts, head.trace_id) as Turn['acts']
  const warned = turn.warnings.length > 0 ? { warnings: turn.warnings } : {}
  const failures = { ...(failed_calls.length > 0 && { failed_calls }), ...(failed_runs.length > 0 && { failed_runs }) }
  const failure = { error, ...(stack !== null && { stack }), ...failures }
  const scratch = log.clean(memory.live.scratch, head.trace_id)
  const { clock, done, offered } = turn.readings
  const read = { ...(clock.length > 0 && { clock }), ...(done.length > 0 && { done }), ...(offered.length > 0 && { offered }) }
  const ending = { result: log.clean(result, head.trace_id), ...failure, cleared, ...some, usage, scratch, acts }
  const beside = turn.asked && { beside: true as const }
  const entry = { turn_id, started_seq, status, ...ending, ...warned, ...read, ...beside }
  const log_seq = unit.log({ ...head, duration_ms: unit.now - since, kind: 'turn-ended', ...entry })
  if (status === 'failed' || status === 'timeout') unit.count({ turns_failed: 1 })
  // The record is of the turn in the lane.
  if (turn.held && !turn.asked) unit.write('turn', null)
  return log_seq
}

/** A turn sees the notes of a sequence in its context. */
function shownAct(kept: unknown): EarlierAct[] {
  const { action, output } = kept as KeptAct
  if (action.action_type === 'reply') return [{ said: action.content }]
  if (action.action_type === 'emit_event') return [{ sent: action.event as JsonFields }]
  if (action.action_type === 'run_skill') return [{ ran: action.skill_id, inputs: action.inputs as JsonFields, outputs: output }]
  return []
}

const seqsOf = (claimed: readonly Claimed[]): number[] => claimed.map(({ seq }) => seq)

/** Longest time between alarms during a turn. */
export const HEARTBEAT_MS = 20_000
/** An event that was in this many turns during which the object died is assumed to cause it. */
const MOST_INTERRUPTIONS = 10

export type ClaimParts = Reflexes & {
  inbox: Inbox
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
  /** The claim that may wait to be written. */
  #write: (unit: Unit) => void = () => {}

  constructor(parts: ClaimParts) {
    this.#parts = parts
  }

  /** Claims the due events for a turn; null if there are none. */
  claim(): Turn | null {
    const { inbox, settings } = this.#parts
    const { context_limit, turn_limit = { events: context_limit, bytes: limits.context_bytes } } = settings()
    const most = { ...turn_limit, events: Math.min(context_limit, turn_limit.events) }
    const turn = this.#turnOn(inbox.heldForTurn(most) ?? this.#due(most))
    if (!turn) return null
    this.#write = (unit) => this.#hold(unit, turn)
    this.#parts.deferred.put(this.#write)
    return turn
  }

  /** Forgets a claim that is not written: the turn's end writes it. */
  drop(): void {
    this.#parts.deferred.drop(this.#write)
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
      const turn = this.#turnOn(this.#due({ events: 1, bytes: limits.context_bytes }))
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

  #due(most: TurnLimit): DueEvent[] {
    const { rows, memory, now } = this.#parts
    return rows.dueForTurn(now(), { most, memory })
  }

  #turnOn(due: DueEvent[]): Turn | null {
    const { memory, log, agent, now, inbox, settings } = this.#parts
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
    const { turn_limit } = settings()
    const isAlone = turn_limit !== undefined && inbox.open > claimed.length
    const full = isAlone || (turn_limit !== undefined && claimed.length >= turn_limit.events)
    const seen = memory.view(claimed, !isAlone, read)
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
    const done = this.#doneBefore(earlier_turns)
    const had = done.length > 0 && { done: log.clean(done, head.trace_id) as EarlierAct[] }
    return {
      turn_id,
      head,
      since,
      readings,
      now: read,
      started: { ...head, kind: 'turn-started', turn_id, agent: agent().name, attempts, considered, saw, ...had },
      started_seq: 0,
      held: false,
      claimed,
      earlier_turns,
      ...(done.length > 0 && { done }),
      ...(full && { full }),
      seen,
      signal: controller.signal,
      stop: (reason: Error) => controller.abort(reason),
      usage: noUsage(),
      acts: [],
      ...nothingYet(),
    }
  }

  /** The acts that sequences had done for these events before they failed. */
  #doneBefore(earlier_turns: readonly string[]): EarlierAct[] {
    const { effects, log } = this.#parts
    return effects.journal.doneBy(earlier_turns.filter(isOfSequence)).flatMap(({ tool, output, log_seq }): EarlierAct[] => {
      if (tool === null) return shownAct(output)
      const started = log_seq === null ? undefined : log.entry(log_seq)
      const input = started?.kind === 'effect-started' ? started.input : {}
      return [{ tool, input, output }]
    })
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
