import { maskCredentials } from '../../base/secrets.ts'
import { mapJson } from '../../base/json.ts'
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { faultText, isOfRequest } from '../../base/faults.ts'
import type { Event } from '../../core/event.ts'
import { costOf, meter, mostTokens, ownPricesOf, readable, requestOf, type ModelCall } from '../../models/model-call.ts'
import { modelName, resolveModel, withFaults } from '../../models/resolve-model.ts'
import type { EntryHead, Usage } from '../../contract/log-entry.ts'
import { traceContextOf, traceHeaders } from '../../events/traceparent.ts'
import { childHead } from '../../traces/ids.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { ModelWitness } from '../../agent/turn-ending.ts'
import type { BehindModel } from '../../contract/model-request.ts'
import { reflexGuidance } from '../reflexes/guidance.ts'
import type { Lanes } from '../effects/wiring.ts'

/** The longest answer within a budget in money, in tokens, where the agent names none. */
const LONGEST_ANSWER = 4096

export type CountedParts = Lanes

/**
 * The purpose of a model call: a turn, which records its usage and the provider's state, or other
 * work.
 */
type AskedFor = {
  turn_id: string | null
  head: EntryHead
  signal: AbortSignal
  /** The events that it is for, whose senders may have budgets. */
  claimed?: readonly { event: Event }[]
  usage?: Usage
  model?: ModelWitness
  asked?: { behind?: BehindModel } | undefined
}

/**
 * The scope's model. Calls are aborted with their purpose, metered against the budget, and logged.
 */
export function countedModel(parts: CountedParts, asked: AskedFor): LanguageModelV4 {
  const { env, agent, settings, budget, outage, hide, now } = parts
  const { signal } = asked
  const behind = asked.asked?.behind
  const name = behind?.name ?? modelName(env, settings())
  const own = behind ? { ...env, OPENAI_COMPATIBLE_API_KEY: behind.key } : env
  const hidden = behind ? (text: string) => hide(text).replaceAll(behind.key, '***') : hide
  const stoppable = wrapLanguageModel({
    model: withFaults(resolveModel(name, own, agent().offline), { now, hide: hidden }),
    middleware: {
      specificationVersion: 'v4',
      transformParams: async ({ params }) => {
        signal.throwIfAborted()
        const given = guided(params)
        const prompt = settings().pasted_secrets === 'mask_prompts' ? withoutCredentials(given) : given
        return { ...params, prompt, abortSignal: params.abortSignal ? AbortSignal.any([params.abortSignal, signal]) : signal }
      },
    },
  })
  // A model or a key that a scope or a caller chose may fail alone.
  const is_shared = behind === undefined && name === modelName(env)
  const claimed = asked.claimed ?? []
  const own_prices = ownPricesOf(env)
  const money = budget.money()
  const is_limited = money?.limits(claimed) === true
  const allow = async (params: LanguageModelV4CallOptions) => {
    // Earlier calls may have spent what is left.
    if (parts.deferred.any) parts.unit(() => {})
    const allowed = budget.allow()
    const open = allowed.ok ? outage.allow() : allowed
    if (!open.ok || !money || !is_limited) return open
    const tokens = mostTokens(params)
    const most = costOf(name, tokens, own_prices)
    return money.reserve(parts.unit, { most, prompt: costOf(name, { ...tokens, output_tokens: 0 }, own_prices), model: name }, claimed)
  }
  return wrapLanguageModel({
    model: meter(stoppable, {
      allow,
      record: (modelCall, params, reserved) =>
        recordCall(parts, asked, { ...modelCall, params, reserved, is_shared, head: headIn(params, asked.head) }),
      now,
      name,
      own_prices,
      signal,
    }),
    middleware: {
      specificationVersion: 'v4',
      transformParams: async ({ params }) => ({
        ...params,
        // An answer without an end has no price.
        ...(is_limited && { maxOutputTokens: params.maxOutputTokens ?? LONGEST_ANSWER }),
        headers: { ...params.headers, ...traceHeaders(childHead(asked.head), parts.trace_marks.of(asked.head)) },
      }),
    },
  })
}

/** The span of a model call is in the header that the request carries. */
function headIn({ headers }: LanguageModelV4CallOptions, parent: EntryHead): EntryHead {
  const head = childHead(parent)
  return { ...head, span_id: traceContextOf(headers?.['traceparent'])?.parent_id ?? head.span_id }
}

/** The prompt whose texts and outputs of tools show the kinds of credentials. */
const withoutCredentials = (prompt: LanguageModelV4CallOptions['prompt']): LanguageModelV4CallOptions['prompt'] =>
  mapJson(prompt, (value) => (typeof value === 'string' ? maskCredentials(value) : value)) as LanguageModelV4CallOptions['prompt']

/** Adds guidance to the prompt of a model that may write reflexes. */
function guided({ prompt, tools = [] }: LanguageModelV4CallOptions): LanguageModelV4CallOptions['prompt'] {
  if (!tools.some(({ name }) => name === 'write_reflex')) return prompt
  return [{ role: 'system', content: reflexGuidance }, ...prompt]
}

/** Records a call even if its purpose has ended: it was paid for. */
function recordCall(
  { log, log_parts, budget, model_calls, unit, deferred }: CountedParts,
  { turn_id, usage: sum, model: witness, signal, asked }: AskedFor,
  modelCall: ModelCall & { params: LanguageModelV4CallOptions; reserved: string | null; is_shared: boolean; head: EntryHead },
): void {
  const {
    input_tokens,
    output_tokens,
    cost_usd,
    duration_ms,
    model,
    status,
    prompt_hash,
    content,
    finish_reason,
    error,
    fault = null,
    cancelled = false,
    params,
    reserved,
    is_shared,
    head,
  } = modelCall
  const { prompt, abortSignal } = params
  if (witness && (status === 'ok' || fault)) Object.assign(witness, { answered: status === 'ok', fault })
  const usage = { input_tokens, output_tokens, cost_usd, model_calls: 1 }
  if (sum) {
    sum.input_tokens += input_tokens
    sum.output_tokens += output_tokens
    sum.model_calls += 1
    sum.cost_usd = sum.cost_usd === null || cost_usd === null ? null : sum.cost_usd + cost_usd
  }
  const write = (unit: Unit) => {
    budget.spend(unit, input_tokens + output_tokens)
    budget.money()?.settle(unit, reserved, cost_usd)
    if (status === 'ok') model_calls.answered(unit, is_shared)
    else if (!cancelled && ![signal, abortSignal].some(isGivenUp)) {
      const why = log.clean(fault ? faultText(fault) : (error ?? 'no reason was given'), head.trace_id) as string
      model_calls.failed(unit, why, is_shared && !isOfRequest(fault))
    }
    unit.count({ model_calls: 1, input_tokens, output_tokens, cost_usd: cost_usd ?? 0, unpriced_calls: cost_usd === null ? 1 : 0 })
    const quotes = log.masks.of(head.trace_id)
    const messages = prompt.map((message) => log_parts.put(unit, message, { quotes }))
    const entry = {
      turn_id,
      model,
      status,
      prompt_hash,
      prompt: messages,
      request: log_parts.put(unit, requestOf(params), { quotes }),
      content: log.clean(content.map(readable), head.trace_id),
      finish_reason,
      error,
      usage,
    }
    unit.log({ ...head, duration_ms, kind: 'model-called', ...entry })
  }
  // The turn's next unit writes it: a request costs two of them.
  if (asked) deferred.put(write)
  else unit(write)
}

/** True for a call that was no longer wanted. A call that took too long was. */
const isGivenUp = (signal: AbortSignal | undefined): boolean =>
  signal?.aborted === true && !['TooLate', 'TimeoutError'].includes((signal.reason as Error | undefined)?.name ?? '')
