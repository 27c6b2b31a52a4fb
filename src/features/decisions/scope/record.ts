import { wireAnswers } from '../agent/answers.ts'
import type { DecisionMade } from '../contract/entry.ts'
import type { Usage } from '../../../contract/log-entry.ts'
import type { Event } from '../../../core/event.ts'
import type { DecisionCall } from '../models/ask.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { childHead, headOf } from '../../../engine/log/spans.ts'
import type { Unit } from '../../../kernel/unit.ts'

type Made = { event: Event; call: DecisionCall } & Pick<DecisionMade, 'middle' | 'audit'>

/** Logs and meters a call, which was paid for even if it failed. Returns the entry's `seq`. */
export function recordDecision(unit: Unit, { event, call, ...made }: Made, { budget }: Pick<Lanes, 'budget'>): number {
  const { input_tokens, output_tokens, cost_usd, duration_ms, model } = call
  const usage: Usage = { input_tokens, output_tokens, cost_usd, model_calls: 1 }
  budget.spend(unit, input_tokens + output_tokens)
  unit.count({ model_calls: 1, input_tokens, output_tokens, cost_usd: cost_usd ?? 0, unpriced_calls: cost_usd === null ? 1 : 0 })
  const said = call.ok
    ? { status: 'ok' as const, answered_by: call.result.response.modelId, answers: wireAnswers(call.result), error: null }
    : { status: 'failed' as const, answered_by: null, answers: null, error: call.error }
  return unit.log({ ...childHead(headOf(event)), duration_ms, kind: 'decision-made', model, ...said, usage, ...made })
}
