import type { Requested, TurnEnd } from '../../contract/log-entry.ts'
import { toRanges } from '../../traces/ranges.ts'
import { together } from '../upkeep/guard.ts'
import type { Parking } from '../inbox/parking.ts'
import type { Promotions } from '../../features/proof/scope/promotions.ts'
import type { ShadowTrials } from '../../features/proof/scope/shadow.ts'
import type { Claimed } from '../inbox/event-row.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { Unit } from '../storage/unit.ts'
import type { ClaimParts, TurnClaims } from './claims.ts'
import type { ModelOutage } from './model-outage.ts'
import type { MiddleProof } from '../../features/decisions/scope/middle-proof.ts'
import type { Turn } from './turn.ts'
import type { TurnEnding } from '../../agent/turn-ending.ts'

/** Maximum wait for a budget without a renewal; a change of the settings ends it earlier. */
const PARKED_MS = 86_400_000

export type LedgerParts = ClaimParts & {
  middle_proof: MiddleProof
  inbox: Inbox
  shadow_trials: ShadowTrials
  promotions: Promotions
  outage: ModelOutage
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
    const { deferred, unit } = this.#parts
    if (!turn.held && (ending.status === 'result' || ending.status === 'none')) deferred.drop()
    unit((unit) => this.#settle(unit, turn, ending), together('turn'))
  }

  cancel(unit: Unit, turn: Turn, reason: string, by: Requested): void {
    unit.log({ ...turn.head, kind: 'turn-cancelled', turn_id: turn.turn_id, reason, ...by })
    this.#parts.settlement.end(unit, seqsOf(turn.claimed), { status: 'cancelled', outcome: { by: 'cancel', reason } })
    this.#ended(unit, turn, { status: 'cancelled', result: null, error: reason })
  }

  /** Ends a turn and makes its events pending again. */
  interrupt(unit: Unit, turn: Turn, reason: string): void {
    this.#parts.rows.release(unit, turn.turn_id, { due_at: 0 })
    this.#ended(unit, turn, { status: 'interrupted', result: null, error: reason })
  }

  #settle(unit: Unit, turn: Turn, ending: TurnEnding): void {
    const { memory, settlement, inbox, rows, shadow_trials, promotions, outage } = this.#parts
    if (ending.status !== 'waiting' && (turn.model.answered || ending.fault?.fault === 'refused')) outage.answered(unit)
    const { turn_id, claimed, seen } = turn
    switch (ending.status) {
      case 'result':
      case 'none': {
        const how = this.#claims.end(unit, turn)
        // Before the comparison, which is with this teacher.
        promotions.taught(unit, turn.shown)
        turn.acts.push(...memory.mergeScratch(unit, seen.scratch, seen.context.scratch))
        shadow_trials.decided(
          unit,
          claimed.map(({ seq, event }) => ({ seq, scope: event.scope, id: event.id, trace_id: event.meta.trace_id })),
          { by: 'turn', acts: turn.acts },
        )
        this.#parts.middle_proof.decided(unit, claimed, turn.acts)
        const seqs = seqsOf(claimed)
        const acted = ending.status === 'result'
        const cleared = acted ? memory.clearable(seen.seqs, seqs) : []
        const log_seq = this.#ended(unit, turn, ending, cleared)
        const isIdle = ending.status === 'none' && turn.usage.model_calls === 0 && turn.acts.length === 0 && !turn.failed_calls.length
        const idle = isIdle && { idle: true as const }
        const partial = turn.failed_calls.length + turn.failed_runs.length > 0 && { partial: true as const }
        settlement.end(unit, seqs, { status: 'completed', outcome: { by: 'turn', turn_id, log_seq, ...partial, ...idle }, ...how })
        if (acted) memory.clear(unit, seen.seqs)
        return memory.trim(unit)
      }
      case 'refused': {
        rows.release(unit, turn_id, { due_at: ending.until ?? unit.now + PARKED_MS, parked: { reason: 'budget', now: unit.now } })
        this.#ended(unit, turn, ending)
        return
      }
      case 'waiting':
        return this.#wait(unit, turn, ending)
      case 'interrupted': {
        rows.release(unit, turn_id, { due_at: unit.now, interrupted: true })
        this.#ended(unit, turn, ending)
        return this.#claims.endOftenInterrupted(unit, seqsOf(claimed))
      }
      case 'failed':
      case 'timeout': {
        const log_seq = this.#ended(unit, turn, ending)
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
    const log_seq = this.#ended(unit, turn, { ...ending, error })
    rows.release(unit, turn.turn_id, { due_at: outage.askAt ?? at, parked: { reason: 'model', now: at, most_ms } })
    const given_up = parking.since(seqsOf(turn.claimed), 'model', at - most_ms)
    const reason = `the event waited for the model for ${model_outage_s} s (retry.model_outage_s): ${error}`
    settlement.end(unit, given_up, { status: 'dead_lettered', outcome: { by: 'failure', reason, log_seq }, error: reason })
  }

  #ended(unit: Unit, turn: Turn, { status, result, error, stack = null }: Ended, left: readonly number[] = []): number {
    const { log, effects, memory } = this.#parts
    const { turn_id, head, since, started_seq, usage, failed_calls, failed_runs, seen } = turn
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
    const entry = { turn_id, started_seq, status, ...ending, ...warned, ...read }
    const log_seq = unit.log({ ...head, duration_ms: unit.now - since, kind: 'turn-ended', ...entry })
    if (status === 'failed' || status === 'timeout') unit.count({ turns_failed: 1 })
    if (turn.held) unit.write('turn', null)
    effects.forgetTurn(turn_id)
    return log_seq
  }
}

type Ended = { status: TurnEnd; result: unknown; error: string | null; stack?: string | null }

const seqsOf = (claimed: readonly Claimed[]): number[] => claimed.map(({ seq }) => seq)
