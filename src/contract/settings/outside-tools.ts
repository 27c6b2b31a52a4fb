import { z } from 'zod'
import { TOOL_SECRET_HOSTS, TOOL_SECRET_PREFIX } from '../../base/secrets.ts'
import { fitsBytes } from '../../base/byte-length.ts'

const headerName = z.string().regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, 'is the name of a header')
/** Of a secret that tools may be given. */
export const secretName = z
  .string()
  .regex(/^REFLEX_TOOL_[A-Z0-9_]{1,64}$/, `is the name of a secret that begins with ${TOOL_SECRET_PREFIX}: a scope may use no other`)
  .refine(
    (name) => !name.endsWith(TOOL_SECRET_HOSTS),
    `names the hosts of a secret: the name of a secret does not end with ${TOOL_SECRET_HOSTS}`,
  )

/** Settings are shown to whoever may view the scope. */
const SECRET_HEADERS = new Set(['authorization', 'proxy-authorization', 'cookie', 'x-api-key', 'api-key'])
/** Headers that the request sets itself. */
const OWN_HEADERS = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'idempotency-key'])
const BRINGS_ITSELF = 'holds a header that the request brings itself'

const plainHeaders = z
  .record(headerName, z.string().max(1000))
  .refine((headers) => Object.keys(headers).length <= 20, 'are at most 20')
  .refine((headers) => !hasOne(headers, SECRET_HEADERS), 'holds a credential: name the secret in secret_headers instead')
  .refine((headers) => !hasOne(headers, OWN_HEADERS), BRINGS_ITSELF)
const secretHeaders = z
  .record(headerName, secretName)
  .refine((headers) => Object.keys(headers).length <= 10, 'are at most 10')
  .refine((headers) => !hasOne(headers, OWN_HEADERS), BRINGS_ITSELF)

/**
 * A malformed placeholder would be sent literally, and an idempotency key containing one would be the
 * same for every call.
 */
const slotsOnly = (text: string): boolean => !/\{\{(?!\s*\w+\s*\}\})/.test(text)
const NO_SLOT = 'holds a {{…}} that is no slot: a slot is a single name, such as {{order}}'

const address = z
  .string()
  .max(2000)
  .regex(/^https?:\/\/[^/?#\s{}@]+(?:[/?#]|$)/, 'is an address whose scheme and host are fixed: no {{slot}} and no password stands in them')
  .refine(slotsOnly, NO_SLOT)

const common = {
  url: address.meta({ description: 'Its scheme and host are fixed; `{{slots}}` may stand behind them.' }),
  headers: plainHeaders.optional().meta({ description: 'Headers that hold no credentials.' }),
  secret_headers: secretHeaders.optional().meta({ description: 'Headers by the name of the secret that each holds.' }),
  timeout_ms: z.int().min(1).max(120_000).optional().meta({ description: '15000 unless set.' }),
  plans_only: z.boolean().optional().meta({ description: 'Only the steps of skills may call it: no model, no trigger and no reflex.' }),
}

/** A tool that is one HTTP request, as a scope's settings declare it; wrap/http-request.ts says how it is made. */
export const httpToolSetting = z
  .strictObject({
    ...common,
    name: z.string().regex(/^http\.[\w./-]{1,59}$/, 'is a name that begins with http. such as http.tickets.open, at most 64 characters'),
    description: z.string().trim().min(1).max(1000).meta({ description: 'The model reads this.' }),
    method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
    body: z.union([z.string(), z.array(z.json()), z.record(z.string(), z.json())]).optional(),
    max_response_bytes: z.int().min(1).max(1_048_576).optional(),
    idempotence_key: z.string().min(1).max(400).refine(slotsOnly, NO_SLOT).optional().meta({
      description:
        'Names an effect that must happen once in this scope, such as `refund:{{order}}`. Leave it out where a plan undoes and does again: a plan has a key of its own.',
    }),
    repeatable: z.boolean().optional().meta({ description: 'It only reads: a call that a crash cuts off is made again.' }),
  })
  .refine(({ method, body }) => method !== 'GET' || body === undefined, { path: ['body'], message: 'a GET has no body' })
  .refine((tool) => fitsBytes(JSON.stringify(tool), 8000), 'is at most 8000 bytes of JSON')
export type HttpToolSetting = z.infer<typeof httpToolSetting>

/** A server whose tools a scope may use, each called `mcp.NAME.TOOL`. */
export const mcpServerSetting = z.strictObject({
  ...common,
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, 'is small letters, digits, _ and -, at most 32'),
  type: z.enum(['http', 'sse']).optional(),
})
export type McpServerSetting = z.infer<typeof mcpServerSetting>

const named = (items: readonly { name: string }[]): boolean => new Set(items.map(({ name }) => name)).size === items.length

export const httpTools = z.array(httpToolSetting).max(50).refine(named, 'holds two of one name')
export const mcpServers = z.array(mcpServerSetting).max(5).refine(named, 'holds two of one name')

function hasOne(headers: object, names: ReadonlySet<string>): boolean {
  return Object.keys(headers).some((name) => names.has(name.toLowerCase()))
}
