import { jsonSchema, tool, type Tool } from 'ai'
import type { z } from 'zod'
import type { Json, JsonFields } from '../skills/json.ts'
import { guardedFetch } from './guarded-fetch.ts'
import { readResponse } from './read-response.ts'
import { fillSlots, slotsIn } from './slot-text.ts'
import type { ReflexToolOptions } from './tool-proxy.ts'

/** A tool that is one HTTP request. `{{slots}}` stand for the input's fields: encoded in the address, as they are in a header or a body. */
export type HttpToolDefinition = {
  name: string
  description: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Its scheme and host are fixed: no slot stands in them. */
  url: string
  headers?: Readonly<Record<string, string>>
  /** Headers by the name of the secret that each holds. */
  secret_headers?: Readonly<Record<string, string>>
  /** JSON, with slots in its strings; a string that is one slot becomes the field as it is. */
  body?: Json
  /** Of the input; unless given, each slot is a text that must be there. */
  input?: z.ZodType<JsonFields>
  timeout_ms?: number
  max_response_bytes?: number
}

export type HttpToolOptions = {
  allowed_hosts: readonly string[]
  /** Looks a secret up by its name; what it gives goes into the request and nowhere else. */
  secret?: (name: string) => string | undefined
  fetch?: typeof fetch
}

const TIMEOUT_MS = 15_000
const MOST_BYTES = 1024 * 1024
const SHOWN = 500

/** Thrown where the other side answers with an error. */
export class HttpToolError extends Error {
  override readonly name = 'HttpToolError'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The tools by their names, for `wrap` or the AI SDK. Throws where a definition has a slot in its host. */
export function httpTools(definitions: readonly HttpToolDefinition[], options: HttpToolOptions): Record<string, Tool> {
  return Object.fromEntries(definitions.map((definition) => [definition.name, httpTool(definition, options)]))
}

export function httpTool(definition: HttpToolDefinition, options: HttpToolOptions): Tool {
  const [origin = ''] = /^[a-z]+:\/\/[^/?#]*/i.exec(definition.url) ?? []
  if (origin === '' || slotsIn(origin).length > 0) throw new TypeError(`${definition.name}: the host in ${definition.url} must be fixed`)
  return tool({
    description: definition.description,
    inputSchema: definition.input ?? textSchema(definition),
    execute: (input: JsonFields, call) => send(definition, { input, options, call }),
  })
}

type Sending = { input: JsonFields; options: HttpToolOptions; call: ReflexToolOptions }

async function send(definition: HttpToolDefinition, { input, options, call }: Sending): Promise<unknown> {
  const { name, method, timeout_ms = TIMEOUT_MS, max_response_bytes = MOST_BYTES } = definition
  const timeout = AbortSignal.timeout(timeout_ms)
  const signal = call.abortSignal ? AbortSignal.any([call.abortSignal, timeout]) : timeout
  const headers = headersOf(definition, { input, options, call })
  const body = definition.body === undefined ? {} : { body: JSON.stringify(fillSlots(definition.body, input)) }
  const url = fillSlots(definition.url, input, encodeURIComponent) as string
  const fetching = { allowed_hosts: options.allowed_hosts, fetch: options.fetch ?? fetch }
  const response = await guardedFetch(url, { method, headers, signal, ...body }, fetching)
  const output = await readResponse(response, max_response_bytes)
  if (response.ok) return output
  const shown = (typeof output === 'string' ? output : JSON.stringify(output)).slice(0, SHOWN)
  throw new HttpToolError(response.status, `${name}: ${response.status} ${response.statusText} ${shown}`.trim())
}

function headersOf({ headers = {}, secret_headers = {}, body, name }: HttpToolDefinition, { input, options, call }: Sending): Headers {
  const all = new Headers(body === undefined ? {} : { 'content-type': 'application/json' })
  for (const [header, value] of Object.entries(headers)) all.set(header, fillSlots(value, input) as string)
  if (call.idempotence_key) all.set('idempotency-key', encodeURIComponent(call.idempotence_key))
  for (const [header, secret] of Object.entries(secret_headers)) {
    const value = options.secret?.(secret)
    if (value === undefined) throw new Error(`${name} needs the secret ${secret}, which is not set`)
    all.set(header, value)
  }
  return all
}

function textSchema({ url, headers = {}, body = null }: HttpToolDefinition) {
  const names = [...new Set(slotsIn([url, ...Object.values(headers), body]))]
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
  return jsonSchema<JsonFields>(
    { type: 'object', properties, required: names, additionalProperties: false },
    { validate: (value) => validated(value, names) },
  )
}

function validated(value: unknown, names: readonly string[]): { success: true; value: JsonFields } | { success: false; error: Error } {
  const fields = typeof value === 'object' && value !== null ? (value as JsonFields) : {}
  const wrong = names.find((name) => typeof fields[name] !== 'string')
  return wrong === undefined ? { success: true, value: fields } : { success: false, error: new Error(`${wrong} must be a text`) }
}
