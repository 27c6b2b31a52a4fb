import type { LogEntry } from '../../contract/log-entry.ts'
import type { SpanKind } from '../../contract/reports/trace.ts'
import type { DecisionMade } from '../../contract/decisions/entry.ts'

/** An entry's contribution to its span. A span that begins runs until an entry gives it an end. */
export type Said = {
  kind?: SpanKind
  name?: string
  begins?: true
  ends?: 'ok' | 'error'
  /** Ends with the last of its children. */
  contains?: true
  attributes: Record<string, unknown>
}

export const ended = (ok: boolean) => (ok ? ('ok' as const) : ('error' as const))
export const errorType = (ok: boolean, type: unknown) => (ok ? {} : { 'error.type': type })

export const note = (name: string, attributes: Record<string, unknown> = {}): Said => ({ name, ends: 'ok', attributes })

/** The judgement of a decision model's answer: the action, or why a turn decides. */
export const middleOf = (middle: DecisionMade['middle']) =>
  middle && {
    'reflex.decision.id': middle.decision_id,
    'reflex.version': middle.version,
    'reflex.decision.probability': middle.score,
    'reflex.decision.threshold': middle.threshold,
    'reflex.decision.left': middle.left,
    'reflex.decision.detail': middle.detail,
    'reflex.action': middle.action,
  }

const TIMED_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7/

/** The time in the queue: an id that was made with its event begins with the time in ms. */
export function queued(id: string, at: string): Record<string, unknown> {
  if (!TIMED_ID.test(id)) return {}
  const sent = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  return { 'reflex.event.queued_ms': Math.max(0, Date.parse(at) - sent) }
}

/** A bought reflex: the deal, and the average turn of the scope, which it spared. */
export const licenceOf = ({ licence }: Extract<LogEntry, { kind: 'reflex-fired' }>) =>
  licence && {
    'reflex.licence.deal': licence.deal_id,
    ...(licence.saves && {
      'reflex.licence.saved_model_calls': licence.saves.model_calls,
      'reflex.licence.saved_tokens': licence.saves.tokens,
      'reflex.licence.saved_usd': licence.saves.cost_usd,
    }),
  }

type Used = Extract<LogEntry, { kind: 'turn-ended' | 'model-called' | 'decision-made' | 'dry-turn-ended' }>
export const usageOf = ({ usage: { input_tokens, output_tokens, cost_usd } }: Used) => ({
  'gen_ai.usage.input_tokens': input_tokens,
  'gen_ai.usage.output_tokens': output_tokens,
  'reflex.cost_usd': cost_usd,
})
