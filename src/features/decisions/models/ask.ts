import type { Experimental_DecisionModelV4 as DecisionModel, Experimental_DecisionModelV4Question as Question } from '@ai-sdk/provider'
import {
  experimental_decide as decide,
  type Experimental_DecisionResult as DecisionResult,
  type Experimental_DecisionState as State,
} from 'ai'
import { estimateTokenCount } from 'tokenx'
import { modelFaultOf, faultText, type ModelFault } from '../../../base/faults.ts'
import { costOf, type OwnPrices } from '../../../models/model-call.ts'

export type DecisionResults = DecisionResult<Record<string, Question>>
type AskedState = { state: State; questions: Record<string, Question> }
type AskOptions = {
  /** The name to record and to price by. */
  name: string
  timeout_ms: number
  now: () => number
  /** The deployment's own prices. */
  own_prices: OwnPrices
  /** Takes secrets out of the provider's text. */
  hide: (text: string) => string
}

/** A call of a decision model, as metered. Tokens are estimates if the provider reported none. */
export type DecisionCall = {
  model: string
  input_tokens: number
  output_tokens: number
  cost_usd: number | null
  duration_ms: number
} & ({ ok: true; result: DecisionResults } | { ok: false; error: string; fault: ModelFault | null })

/**
 * Asks once, through the AI SDK's experimental port, which refuses an answer that is not complete
 * or not a probability. Never throws: an outage and a broken answer are data.
 */
export async function askDecision(
  model: () => DecisionModel,
  { state, questions }: AskedState,
  options: AskOptions,
): Promise<DecisionCall> {
  const { name, timeout_ms, now, hide, own_prices } = options
  const started = now()
  const metered = (given: Partial<DecisionResults['usage']>, taken: boolean) => {
    const estimated = () => (taken ? estimateTokenCount(JSON.stringify([state, questions])) : 0)
    const tokens = { input_tokens: given.inputTokens ?? estimated(), output_tokens: given.outputTokens ?? 0 }
    return { model: name, ...tokens, cost_usd: costOf(name, tokens, own_prices), duration_ms: now() - started }
  }
  try {
    // The caller retries, not the AI SDK.
    const result = await decide({ model: model(), state, questions, maxRetries: 0, abortSignal: AbortSignal.timeout(timeout_ms) })
    return { ok: true, result, ...metered(result.usage, true) }
  } catch (error) {
    const fault = modelFaultOf(error, { now: now(), asked: true })
    const text = fault ? faultText(fault) : error instanceof Error ? error.message : String(error)
    return { ok: false, error: hide(text).slice(0, 2000), fault, ...metered({}, fault === null) }
  }
}
