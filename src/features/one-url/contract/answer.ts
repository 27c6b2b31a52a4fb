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

/** `refused`: the scope does not allow it now. `model`: the provider failed or refused. */
export type AnswerError = { status: number; reason: 'refused' | 'model' | 'failed'; message: string; retry_after_s: number | null }

/**
 * The answer of a scope, a line of JSON each. The head comes first, then what is said. Without a
 * trace, nothing was recorded.
 */
export type AnswerLine =
  | { line: 'head'; trace_id: string | null; model: string; decided_by: string | null }
  | { line: 'text'; text: string }
  | { line: 'call'; id: string; name: string; input: string }
  | { line: 'end'; finish: string; input_tokens: number; output_tokens: number }
  | ({ line: 'error' } & AnswerError)

/** Ids of calls have the trace of their request, so that the next request continues it. */
const CALL_ID = /^call_([\w-]{22})[\w-]{8}$/

export function callIdOf(trace_id: string): string {
  const bytes = Uint8Array.from(trace_id.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  return `call_${base64Url(bytes)}${base64Url(crypto.getRandomValues(new Uint8Array(6)))}`
}

/** The trace that a call was handed over in; null for an id of somebody else. */
export function traceOfCall(id: string): string | null {
  const [, text] = CALL_ID.exec(id) ?? []
  if (text === undefined) return null
  const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  const trace_id = Array.from(bytes, (character) => (character.codePointAt(0) ?? 0).toString(16).padStart(2, '0')).join('')
  return /[^0]/.test(trace_id) ? trace_id : null
}

const base64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCodePoint(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
