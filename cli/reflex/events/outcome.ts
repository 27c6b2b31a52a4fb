import type { EventOutcome, EventReceipt, Outcome, Waiting } from '../../../src/contract/event-record.ts'
import { statusColour } from '../../../src/contract/operations/events.ts'
import type { Paint } from '../../lib/paint.ts'
import { linesOf, safeJson, written } from '../table.ts'

/** The status, then the result or the reason. */
export function outcomeLines(event: EventOutcome | (EventReceipt & { waiting?: Waiting | null }), paint: Paint): string[] {
  const { id, status, waiting } = event
  const { outcome, error } = 'outcome' in event ? event : { outcome: null, error: null }
  const colour = statusColour(status)
  const head = `${colour ? paint(colour, written(status)) : written(status)}  ${written(id)}${outcome ? `  by ${deciderOf(outcome)}` : ''}`
  const reason = error ?? (outcome && 'reason' in outcome ? outcome.reason : null) ?? waiting?.detail ?? null
  const result = outcome?.by === 'turn' ? outcome.result : outcome?.by === 'reflex' ? outcome.action : undefined
  const text = typeof result === 'string' ? result : result === undefined || result === null ? null : safeJson(result)
  return [head, ...[reason, text].flatMap((text) => (text === null ? [] : linesOf(text).map((line) => `  ${line}`)))]
}

const deciderOf = (outcome: Outcome): string =>
  outcome.by === 'reflex' ? `reflex ${written(outcome.reflex_id)}@${outcome.version}` : outcome.by === 'turn' ? 'a turn' : outcome.by
