/**
 * The one classification of what is thrown. The party at fault decides what follows:
 *
 * 1. `refused`: the model's provider refused the request. No retry changes its answer, so the
 *    events go to the dead letters at once.
 * 2. `unavailable`: the provider is busy, broken or out of reach. The scope waits for it, and no
 *    attempt is counted.
 * 3. The platform (`isPlatformFault`): the object was reset, or its storage or a connection lost.
 *    No attempt is counted.
 * 4. Anything else is the agent's own error. It costs an attempt.
 *
 * Errors are recognised by names, fields and statuses, never by `instanceof`: neither RPC nor a
 * second copy of a package keeps prototypes.
 */
export type ModelFault = {
  fault: 'refused' | 'unavailable'
  status: number | null
  /** The provider's `Retry-After`, in ms from now; null without one. */
  retry_after_ms: number | null
  detail: string
}

const DEEPEST = 8
const LONGEST_TEXT = 1000
/** 4xx statuses that are temporary. */
const BUSY = new Set([408, 409, 425, 429])
/** Statuses of a gateway without a response from the server; the last three are Cloudflare's. */
export const NO_ANSWER: ReadonlySet<number> = new Set([502, 504, 520, 522, 524])

/** Names of errors that only a model provider's client throws. */
const PROVIDER_ERRORS = /^(?:AI_APICallError|AI_StreamProviderError|StreamProviderError|Gateway\w*Error|WorkersAIGatewayError)$/
/** Errors that say themselves whose fault they are. */
const JUDGED = new Set(['ModelFailed', 'AnswerTooLong'])
/** Configuration errors, which a retry does not fix. */
const NOT_SET_UP = new Set(['ModelMisconfigured', 'AI_LoadAPIKeyError', 'AI_LoadSettingError', 'AI_NoSuchModelError'])
const LOST_CONNECTION = /^(?:Error: )?Network connection lost\.?$/
/** Messages of `fetch` without a connection; the last one is workerd's. */
const NO_CONNECTION = /^(?:fetch failed|failed to fetch|Cannot connect to API\b.*|internal error; reference = .*)$/i
const CONNECTION_CODES =
  /^(?:ECONN\w+|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_\w+|Connection(?:Refused|Closed)|FailedToOpenSocket)$/
const TIMEOUTS = new Set(['TimeoutError', 'HeadersTimeoutError', 'ConnectTimeoutError', 'BodyTimeoutError'])

/** The full messages of Cloudflare's runtime. */
const PLATFORM_FAULTS = [
  LOST_CONNECTION,
  /^(?:Error: )?Durable Object reset because its code was updated\.?$/,
  /^(?:Error: )?This script has been upgraded\. Please send a new request to connect to the new version\.?$/,
  /^(?:Error: )?The Durable Object's code has been updated, this version can no longer access storage\.?$/,
]
/** Messages of D1 while it is unavailable; a wrong query fails with others. */
const D1_AWAY = /^D1_ERROR: .*(?:network connection lost|overloaded|exceeded timeout|timed out|reset|internal error)/i

/** Statuses that say that this request is wrong, such as a prompt that is too long. */
const OF_REQUEST = new Set([400, 413, 422])

/** True if the provider refused one request, and may answer others. */
export const isOfRequest = (fault: ModelFault | null): boolean => fault?.fault === 'refused' && OF_REQUEST.has(fault.status ?? 0)

/** Describes the fault to people: its kind, the status and the provider's text. */
export function faultText({ fault, status, detail }: ModelFault): string {
  if (fault === 'refused' && status === null) return detail
  const what = fault === 'refused' ? 'the model provider refused the request' : 'the model provider is not available'
  return `${what} (${status === null ? 'no answer' : `HTTP ${status}`}): ${detail}`
}

type Thrown = { [field: string]: unknown }

/** An error, its causes, and those in `lastError` and `errors`: outermost first, each once. */
export function* causesOf(error: unknown, seen = new Set<unknown>(), depth = 0): Generator<Thrown> {
  if (typeof error !== 'object' || error === null || seen.has(error) || depth > DEEPEST) return
  seen.add(error)
  const thrown = error as Thrown
  yield thrown
  const { cause, lastError, errors } = thrown
  for (const inner of [cause, lastError, ...(Array.isArray(errors) ? errors : [])]) yield* causesOf(inner, seen, depth + 1)
}

/** True if the platform reset the object, or lost its storage or a connection. */
export const isPlatformFault = (error: unknown): boolean =>
  messagesOf(error).some((message) => PLATFORM_FAULTS.some((fault) => fault.test(message)))

/** True if the same request may succeed later, by an error's fields or D1's message. */
export function isTransient(error: unknown): boolean {
  if (isPlatformFault(error) || messagesOf(error).some((message) => D1_AWAY.test(message))) return true
  return Array.from(causesOf(error)).some(({ retryable, overloaded }) => retryable === true || overloaded === true)
}

/**
 * True if a repeated tool call may succeed, by the error's flag or HTTP status. Calls that may have
 * taken effect need a key.
 */
export function isRetryable(error: unknown, { keyed = false }: { keyed?: boolean } = {}): boolean {
  if (typeof error !== 'object' || error === null) return false
  const thrown = error as Thrown
  if (thrown['name'] === 'CutOff') return keyed
  const told = [thrown['isRetryable'], thrown['retryable']].find((said) => typeof said === 'boolean')
  if (told !== undefined) return told
  const status = statusOf(thrown)
  if (status === null) return false
  return status === 429 || status === 503 || (keyed && (status === 408 || status === 500 || NO_ANSWER.has(status)))
}

/**
 * The provider's fault in an error, or null. `asked`: thrown by the model call itself, so that a
 * failed connection is the provider's too.
 */
export function modelFaultOf(error: unknown, { now, asked = false }: { now: number; asked?: boolean }): ModelFault | null {
  for (const thrown of causesOf(error)) {
    const { name, fault } = thrown
    if (JUDGED.has(String(name)) && typeof fault === 'object' && fault !== null) return fault as ModelFault
    const found = asked || PROVIDER_ERRORS.test(String(name)) || NOT_SET_UP.has(String(name)) ? faultIn(thrown, { now, asked }) : null
    if (found) return found
  }
  return null
}

function faultIn(thrown: Thrown, { now, asked }: { now: number; asked: boolean }): ModelFault | null {
  const status = statusOf(thrown)
  const about = { status, retry_after_ms: retryAfter(thrown, now), detail: detailOf(thrown) }
  if (NOT_SET_UP.has(String(thrown['name']))) return { fault: 'refused', ...about }
  if (status !== null && status >= 400) return { fault: status >= 500 || BUSY.has(status) ? 'unavailable' : 'refused', ...about }
  if (status === null && (thrown['isRetryable'] === true || (asked && isUnreachable(thrown)))) return { fault: 'unavailable', ...about }
  return null
}

function isUnreachable({ name, code, message }: Thrown): boolean {
  if (TIMEOUTS.has(String(name)) || CONNECTION_CODES.test(String(code))) return true
  return LOST_CONNECTION.test(String(message)) || NO_CONNECTION.test(String(message))
}

/** `code` is the status that some providers send in mid-stream. */
function statusOf({ statusCode, status, code }: Thrown): number | null {
  const found = [statusCode, status, typeof code === 'string' ? Number(code) : code].find(
    (one) => typeof one === 'number' && Number.isInteger(one) && one >= 100 && one < 600,
  )
  return typeof found === 'number' ? found : null
}

/** HTTP has seconds or a date; some providers add milliseconds. */
function retryAfter({ responseHeaders }: Thrown, now: number): number | null {
  if (typeof responseHeaders !== 'object' || responseHeaders === null) return null
  const headers = new Map(Object.entries(responseHeaders).map(([name, value]) => [name.toLowerCase(), String(value).trim()]))
  const ms = headers.get('retry-after-ms')
  if (ms !== undefined && /^\d+(?:\.\d+)?$/.test(ms)) return Math.ceil(Number(ms))
  return retryAfterMs(headers.get('retry-after'), now)
}

/** The header `Retry-After` in ms from now: it has seconds, or a date. */
export function retryAfterMs(after: string | null | undefined, now: number): number | null {
  if (after === undefined || after === null || after === '') return null
  const at = /^\d+(?:\.\d+)?$/.test(after) ? now + Number(after) * 1000 : Date.parse(after)
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil(at - now))
}

/** The provider's message, or the start of a response that its client could not parse. */
function detailOf({ message, responseBody }: Thrown): string {
  const text = typeof message === 'string' ? message : ''
  const body = typeof responseBody === 'string' ? responseBody.trim() : ''
  const told = body !== '' && !body.includes(text.slice(0, 100)) ? `${text}: ${body}` : text === '' ? body : text
  return told.slice(0, LONGEST_TEXT)
}

export const messagesOf = (error: unknown): string[] =>
  Array.from(causesOf(error)).flatMap(({ message }) => (typeof message === 'string' ? [message] : []))
