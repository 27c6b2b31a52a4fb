import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { messageOf } from '../base/error-text.ts'
import { byteLength, canonicalJson, fitsBytes } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { meter, readable, type ModelCall } from '../models/model-call.ts'
import { partHash } from '../traces/ids.ts'
import { defineAgent } from './define-agent.ts'

/** The cause of a tool call by the user's agent, which no decision of a replay leads to. */
export const WRAPPED_CALLER = 'wrapped agent'

/** The part of a model's answer that the user's agent gets. */
export type WrappedAnswer = Pick<ModelCall, 'finish_reason' | 'error'> & { content: unknown[] }

export const wrappedAnswer = ({ content, finish_reason, error }: ModelCall): WrappedAnswer => ({
  content: content.map(readable),
  finish_reason,
  error,
})

/** The result of a turn: its answers, or the hash of what is too large for a result. */
export function wrappedResult(answers: readonly WrappedAnswer[]): object {
  const text = canonicalJson(answers)
  if (fitsBytes(text, limits.result_bytes / 2)) return [...answers]
  return { answers: answers.length, bytes: byteLength(text), hash: partHash(text) }
}

type AskedEvent = { asked: LanguageModelV4CallOptions }

/**
 * A model that a process wrapped, as an agent: each event is a call of the model by the user's own
 * agent, which is outside, with the messages and tools that it gave.
 */
export const wrapped = defineAgent({
  name: 'wrapped',
  scopes: [],
  trigger: async ({ events }, deps) => {
    const answers: WrappedAnswer[] = []
    let failure: unknown = null
    const model = meter(deps.model, { allow: () => ({ ok: true }), record: (call) => answers.push(wrappedAnswer(call)) })
    for (const { asked } of events as unknown as readonly AskedEvent[]) {
      failure = null
      // The user's agent may ask again after a failure.
      await Promise.resolve(model.doGenerate(asked)).catch((error: unknown) => (failure = error))
    }
    if (failure !== null) throw new Error(messageOf(failure))
    return wrappedResult(answers)
  },
})
