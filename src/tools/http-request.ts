import type { z } from 'zod'
import { messageOf } from '../base/error-text.ts'
import type { Json, JsonFields } from '../base/json.ts'
import { secretHider } from '../base/secrets.ts'
import { guardedFetch } from './guarded-fetch.ts'
import { CutOff, followed } from './may-have-happened.ts'
import { readResponse } from './response-body.ts'
import { fillSlots, fillUrl } from './slot-text.ts'
import { secretValues } from './tool-secrets.ts'

/** A tool that is one HTTP request. `{{slots}}` are fields of the input, encoded in the address. */
export type HttpToolDefinition = {
  name: string
  description: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Its scheme and host are fixed: they contain no slot. */
  url: string
  headers?: Readonly<Record<string, string>> | undefined
  /** Headers by the name of the secret that each holds. */
  secret_headers?: Readonly<Record<string, string>> | undefined
  /** JSON, with slots in its strings; a string that is one slot keeps the type of its value. */
  body?: Json | undefined
  /** Of the input; unless given, each slot is a text. `{{slot?}}` may be absent. */
  input?: z.ZodType<JsonFields>
  timeout_ms?: number | undefined
  max_response_bytes?: number | undefined
  /** Only reads, whatever its method: an error means that it failed. A GET always only reads. */
  repeatable?: boolean | undefined
}

/** A request alone: its input was parsed before. */
type HttpRequest = Omit<HttpToolDefinition, 'input'>

export type HttpToolOptions = {
  allowed_hosts: readonly string[]
  /** Looks up a secret by name. Its value goes only into the request. */
  secret?: (name: string) => string | undefined
  /** The hosts that a secret may be sent to; by default all allowed hosts. */
  secret_hosts?: (name: string) => readonly string[]
  fetch?: typeof fetch
}

type HttpCall = {
  input: JsonFields
  signal?: AbortSignal | undefined
  idempotence_key?: string | null | undefined
  /** Secrets in the input: a redirect sends them to no other host. */
  secrets?: readonly string[] | undefined
}

export const HTTP_TIMEOUT_MS = 15_000
const MOST_BYTES = 1024 * 1024
const SHOWN = 500

export class HttpToolError extends Error {
  override readonly name = 'HttpToolError'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * Sends the request and returns the response, with its secrets masked. Throws HttpToolError for an
 * error response, and CutOff if the effect may have happened.
 */
export async function sendHttp(definition: HttpRequest, options: HttpToolOptions, call: HttpCall): Promise<unknown> {
  const { name, timeout_ms = HTTP_TIMEOUT_MS } = definition
  const controller = new AbortController()
  const stop = () => controller.abort(new DOMException(`${name} took longer than ${timeout_ms} ms`, 'TimeoutError'))
  // Cleared at the end, which AbortSignal.timeout is not: a timer keeps a Durable Object in memory.
  const timer = setTimeout(stop, timeout_ms)
  const signal = call.signal ? AbortSignal.any([call.signal, controller.signal]) : controller.signal
  const { fetch: send, mayHaveHappened } = followed(options.fetch ?? fetch)
  try {
    return await exchange(definition, { ...options, fetch: send }, { ...call, signal })
  } catch (error) {
    if (definition.repeatable || !mayHaveHappened()) throw error
    throw new CutOff(`it may have happened: ${messageOf(error)}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

async function exchange(
  definition: HttpRequest,
  options: HttpToolOptions & { fetch: typeof fetch },
  call: HttpCall & { signal: AbortSignal },
): Promise<unknown> {
  const { name, method, max_response_bytes = MOST_BYTES } = definition
  const { input, signal } = call
  const secrets = secretsOf(definition, options)
  const headers = headersOf(definition, call, secrets)
  const body = definition.body === undefined ? {} : { body: JSON.stringify(fillSlots(definition.body, input)) }
  const url = fillUrl(definition.url, input)
  const { allowed_hosts, secret_hosts, fetch: send } = options
  const names = [...Object.values(definition.secret_headers ?? {}), ...(call.secrets ?? [])]
  const bounds = secret_hosts ? names.map(secret_hosts) : []
  const fetching = { allowed_hosts, secret_hosts: bounds, fetch: send }
  const response = await guardedFetch(url, { method, headers, signal, ...body }, fetching)
  // However short they are: these were sent there.
  const hide = secretHider(Object.values(secrets), 1).value
  const output = hide(
    await readResponse(response, max_response_bytes).catch((error: unknown) => {
      throw new Error(`${name}: ${response.status} ${hide(messageOf(error))}`)
    }),
  )
  if (response.ok) return output
  const shown = (typeof output === 'string' ? output : JSON.stringify(output)).slice(0, SHOWN)
  const statusText = hide(response.statusText)
  throw new HttpToolError(response.status, `${name}: ${response.status} ${statusText} ${shown}`.trim())
}

function headersOf({ headers = {}, body }: HttpRequest, { input, idempotence_key }: HttpCall, secrets: Record<string, string>): Headers {
  const all = new Headers(body === undefined ? {} : { 'content-type': 'application/json' })
  for (const [header, value] of Object.entries(headers)) all.set(header, fillSlots(value, input) as string)
  if (idempotence_key) all.set('idempotency-key', encodeURIComponent(idempotence_key))
  for (const [header, value] of Object.entries(secrets)) all.set(header, value)
  return all
}

function secretsOf({ secret_headers = {}, name }: HttpRequest, { secret: look }: HttpToolOptions): Record<string, string> {
  return secretValues(secret_headers, { name, secret: (secret) => look?.(secret) })
}
