import { DecisionContext } from '../../core/decision-context.ts'
import { newSpanId } from '../../core/event.ts'
import { v7 as uuidv7 } from 'uuid'
import type { Unit } from '../../kernel/unit.ts'
import type { Lanes } from '../effects/wiring.ts'
import type { Stored } from '../inbox/inbox.ts'
import { turnHead } from '../log/spans.ts'
import { marksOf } from '../../traces/ids.ts'
import { keep, nothingYet, noUsage, type Turn, type TurnRecord } from './turn.ts'

/**
 * Turns beside the turn lane: each answers one request, and changes nothing of the context, so that
 * any number may run at once. The log has them as other turns.
 */
export class BesideTurns {
  readonly #parts: Lanes

  constructor(parts: Lanes) {
    this.#parts = parts
  }

  /** Logs the start of a turn on this event alone. */
  begin(unit: Unit, stored: Stored, asked: NonNullable<Turn['asked']>): Turn {
    const { agent, memory, log, now, scope, basis } = this.#parts
    const { seq, event, attempts } = stored
    const turn_id = uuidv7()
    const head = { ...turnHead([event], newSpanId()), marks: marksOf(event.meta) }
    const since = now()
    const readings: Turn['readings'] = { clock: [], done: [], offered: [] }
    const read = () => {
      const at = now()
      keep(readings.clock, at - since)
      return at
    }
    const { created_at, last_action_at, scratch } = memory.live
    const own = structuredClone(scratch)
    const context = new DecisionContext({ scope, events: [event], scratch: own, created_at, last_action_at, now: read })
    log.masks.mayQuote(head.trace_id, [event])
    const places: [number, number][] = [[seq, seq]]
    const saw = { seqs: places, count: 1, hidden: 1, scratch: log.clean(own), created_at, last_action_at }
    const started = {
      ...head,
      kind: 'turn-started' as const,
      turn_id,
      agent: agent().name,
      attempts: attempts + 1,
      considered: places,
      saw,
    }
    const started_seq = unit.log({ ...started, since, basis: basis(unit), beside: true })
    unit.count({ turns: 1 })
    const controller = new AbortController()
    return {
      turn_id,
      head,
      since,
      readings,
      now: read,
      started,
      started_seq,
      asked,
      held: true,
      claimed: [{ ...stored, attempts: attempts + 1 }],
      earlier_turns: [],
      seen: { context, seqs: [seq], scratch: structuredClone(own) },
      signal: controller.signal,
      stop: (reason: Error) => controller.abort(reason),
      usage: noUsage(),
      acts: [],
      ...nothingYet(),
    }
  }

  /** Logs that the object died during a turn. */
  lost(unit: Unit, { turn_id, head, since, started_seq }: TurnRecord, error: string): number {
    const { memory, log } = this.#parts
    const scratch = log.clean(memory.live.scratch, head.trace_id)
    const nothing = { result: null, cleared: 0, usage: noUsage(), scratch, acts: [], beside: true as const }
    return unit.log({ ...head, duration_ms: unit.now - since, kind: 'turn-ended', turn_id, started_seq, status: 'lost', error, ...nothing })
  }
}
