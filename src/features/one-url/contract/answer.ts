import type { BehindModel, ModelRequest } from '../../../contract/model-request.ts'
import type { ModelAsked } from '../../../contract/model-asked.ts'

/** A request as a scope gets it. `results`: outputs of calls that it handed over before. */
export type AskedOfScope = {
  event: Omit<ModelAsked, 'request_hash'>
  request: ModelRequest
  streams: boolean
  /** All words that direct: of users, and the instructions. */
  words: string
  results: readonly { tool: string; input: unknown; output: unknown }[]
  behind?: BehindModel
}

/**
 * `refused`: the scope does not allow it now. `model`: the provider failed or refused. `is_final`:
 * the same request would get the same answer.
 */
export type AnswerError = {
  status: number
  reason: 'refused' | 'model' | 'failed'
  message: string
  retry_after_s: number | null
  is_final?: true
}

/**
 * The answer of a scope, a line of JSON each. The head comes first, then what is said. Without a
 * trace, nothing was recorded. A beat says nothing: a caller that has left is noticed by a write.
 */
export type AnswerLine =
  | { line: 'head'; trace_id: string | null; model: string; decided_by: string | null }
  | { line: 'beat' }
  | { line: 'text'; text: string }
  | { line: 'call'; id: string; name: string; input: string }
  | { line: 'end'; finish: string; input_tokens: number; output_tokens: number }
  | ({ line: 'error' } & AnswerError)

/** Ids of calls have the trace of their request, so that the next request continues it. */
const CALL_ID = /^call_([\w-]{22})[\w-]{8}$/

export const callIdOf = (trace_id: string): string =>
  `call_${Buffer.from(trace_id, 'hex').toString('base64url')}${Buffer.from(crypto.getRandomValues(new Uint8Array(6))).toString('base64url')}`

/** The trace that a call was handed over in; null for an id of somebody else. */
export function traceOfCall(id: string): string | null {
  const [, text] = CALL_ID.exec(id) ?? []
  if (text === undefined) return null
  const trace_id = Buffer.from(text, 'base64url').toString('hex')
  return /[^0]/.test(trace_id) ? trace_id : null
}
