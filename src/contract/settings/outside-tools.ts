import { z } from 'zod'
import { TOOL_SECRET_PREFIX } from '../../base/secrets.ts'
import { isJsonFields, type JsonFields, fitsBytes } from '../../base/json.ts'
import { requestSlots, type SlottedRequest } from '../../base/slots.ts'
import { objectSchema } from './json-schema.ts'
import { namedOnce, secretNamed, setting } from '../setting.ts'

const headerName = z.string().regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, 'must be the name of a header')
export const secretName = secretNamed(TOOL_SECRET_PREFIX)

/** Headers with credentials: everyone who may view the scope sees its settings. */
const SECRET_HEADERS = new Set(['authorization', 'proxy-authorization', 'cookie', 'x-api-key', 'api-key'])
/** Headers that the request sets itself. */
const OWN_HEADERS = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'idempotency-key'])
const BRINGS_ITSELF = 'must not contain a header that the request sets itself'

const plainHeaders = z
  .record(headerName, z.string().max(1000))
  .refine((headers) => Object.keys(headers).length <= 20, 'must be at most 20')
  .refine((headers) => !hasOne(headers, SECRET_HEADERS), 'must not contain a credential: name the secret in secret_headers')
  .refine((headers) => !hasOne(headers, OWN_HEADERS), BRINGS_ITSELF)
const secretHeaders = z
  .record(headerName, secretName)
  .refine((headers) => Object.keys(headers).length <= 10, 'must be at most 10')
  .refine((headers) => !hasOne(headers, OWN_HEADERS), BRINGS_ITSELF)

/** A malformed placeholder would be sent literally, and would give all calls the same key. */
const slotsOnly = (text: string): boolean => !/\{\{(?!\s*\w+\s*\??\s*\}\})/.test(text)
const NO_SLOT = 'contains a malformed {{…}}: a placeholder is one name, such as {{order}}'
const ALWAYS = 'contains a placeholder that may have no value: calls with and without it would have one key'
const noneOptional = (text: string): boolean => !/\?\s*\}\}/.test(text)

const address = z
  .string()
  .max(2000)
  .regex(/^https?:\/\/[^/?#\s{}@]+(?:[/?#]|$)/, 'must be an address whose scheme and host contain no {{slot}} and no password')
  .refine(slotsOnly, NO_SLOT)

const paths = z.array(z.string().min(1).max(128)).max(20)
const untrusted = z
  .union([z.boolean(), paths])
  .optional()
  .meta({
    description:
      'Strangers write its output, or the fields at these paths: no value from there may say where an effect goes. ' +
      'Unset: true for a tool that reads an address, such as a `url`.',
  })

const common = {
  url: address.meta({ description: '`{{slots}}` are allowed after the host.' }),
  headers: plainHeaders.optional().meta({ description: 'Headers without credentials.' }),
  secret_headers: secretHeaders.optional().meta({ description: 'Headers, each with the name of the secret it contains.' }),
  timeout_ms: z.int().min(1).max(120_000).optional().meta({ description: 'Default: 15000.' }),
  plans_only: z.boolean().optional().meta({ description: 'Only steps of skills may call it: not models, triggers or reflexes.' }),
}

/** The reasons why a schema does not give each slot its value. */
function slotProblems({ input: schema, ...request }: SlottedRequest & { input?: JsonFields | undefined }): string[] {
  if (schema === undefined) return []
  const { properties, required, additionalProperties = false } = schema
  const known = isJsonFields(properties) ? properties : {}
  return requestSlots(request).flatMap(({ name, optional }) => {
    const property = Object.hasOwn(known, name) ? known[name] : undefined
    if (property === undefined && additionalProperties === false) return [`has no property ${name}, which {{${name}}} stands for`]
    const isThere = (Array.isArray(required) && required.includes(name)) || (isJsonFields(property) && Object.hasOwn(property, 'default'))
    return isThere || optional ? [] : [`${name} may be absent: write {{${name}?}}, which leaves it out then, or require it`]
  })
}

/** A tool that sends one HTTP request, built by tools/. */
export const httpToolSetting = z
  .strictObject({
    ...common,
    name: z.string().regex(/^http\.[\w./-]{1,59}$/, 'must be a name such as http.tickets.open, at most 64 characters'),
    description: z.string().trim().min(1).max(1000).meta({ description: 'For the model.' }),
    method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
    input: objectSchema.optional().meta({
      description:
        'JSON Schema of its input. Unless set, each `{{slot}}` is a text. A body value that is only `{{slot}}` keeps its type. ' +
        'An input that takes more than 50,000 comparisons with its schema, such as a long list of many alternatives, is refused.',
      examples: [{ type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] }],
    }),
    body: z.union([z.string(), z.array(z.json()), z.record(z.string(), z.json())]).optional(),
    max_response_bytes: z.int().min(1).max(1_048_576).optional(),
    idempotence_key: z.string().min(1).max(400).refine(slotsOnly, NO_SLOT).refine(noneOptional, ALWAYS).optional().meta({
      description:
        'Identifies an effect that must happen once in this scope, such as `refund:{{order}}`, or with the prefix `global:` once in the deployment. Omit it for steps of plans that are undone and repeated: a plan has its own key.',
    }),
    destinations: paths.optional().meta({
      description:
        'Arguments that decide where it goes or on whom it acts, as paths. Unset: assumed from formats and names (docs/security.md). An empty list: none.',
      examples: [['recipient']],
    }),
    untrusted,
    repeatable: z.boolean().optional().meta({ description: 'It has no side effects: a call that a crash interrupts is repeated.' }),
    undoes: z
      .strictObject({ tool: z.string().min(1).max(128), match: z.array(z.string().min(1).max(64)).min(1).max(16) })
      .optional()
      .meta({
        description: 'It undoes a call of `tool` with equal values of the slots `match`. Learned skills need it for steps that act.',
      }),
  })
  .refine(({ method, body }) => method !== 'GET' || body === undefined, { path: ['body'], message: 'must be absent for GET' })
  .superRefine((tool, context) => {
    for (const message of slotProblems(tool)) context.addIssue({ code: 'custom', path: ['input'], message })
  })
  .refine((tool) => fitsBytes(JSON.stringify(tool), 8000), 'must be at most 8000 bytes of JSON')
export type HttpToolSetting = z.infer<typeof httpToolSetting>

/** A server whose tools a scope may use under the names `mcp.NAME.TOOL`. */
const mcpServerSetting = z.strictObject({
  ...common,
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, 'must be 1 to 32 of a-z 0-9 _ and -'),
  type: z.enum(['http', 'sse']).optional(),
  destinations: z.record(z.string().min(1).max(128), paths).optional().meta({
    description: 'For each tool, the arguments that decide where it goes or on whom it acts. Unset: assumed from formats and names.',
  }),
  untrusted: z
    .union([z.boolean(), paths])
    .optional()
    .meta({ description: 'Strangers write what its tools give, or those by these names. Unset: true for tools that read an address.' }),
})
export type McpServerSetting = z.infer<typeof mcpServerSetting>

const httpTools = namedOnce(httpToolSetting, 50)
const mcpServers = namedOnce(mcpServerSetting, 5)

function hasOne(headers: object, names: ReadonlySet<string>): boolean {
  return Object.keys(headers).some((name) => names.has(name.toLowerCase()))
}

/** The settings of tools outside the deployment. */
export const outsideTools = {
  allowed_hosts: setting(
    z
      .array(
        z
          .string()
          .regex(/^(?:\*\.)?[a-z0-9.-]{1,253}(?::\d{1,5})?$/, 'a host is a lower-case name, optionally after `*.` or before a port'),
      )
      .max(100),
    'Hosts that HTTP and MCP tools may reach: `api.example.com`, or `*.example.com` for its subdomains.',
    ['api.example.com', '*.acme.dev'],
  ),
  http_tools: setting(httpTools, 'Tools that send one HTTP request to one of `allowed_hosts`. See docs/outside-tools.md.', [
    {
      name: 'http.tickets.open',
      description: 'Opens a ticket',
      method: 'POST',
      url: 'https://tickets.example.com/v2/tickets',
      body: { title: '{{title}}' },
    },
  ]),
  mcp_servers: mcpServers.meta({
    description: 'MCP servers on `allowed_hosts` whose tools the scope may use under the names `mcp.NAME.TOOL`.',
    examples: [[{ name: 'files', url: 'https://mcp.acme.dev/mcp' }]],
  }),
}

/** True for the name of a tool that the settings of a scope declare. */
export const isOutside = (name: string): boolean => /^(http|mcp)\./.test(name)
