import { createMCPClient, type MCPClient, MCPClientError } from '@ai-sdk/mcp'
import type { ToolSet } from 'ai'
import { z } from 'zod'
import { checkJson, fieldError } from '../base/check-json.ts'
import { messageOf } from '../base/error-text.ts'
import { sameJson } from '../base/json.ts'
import type { Result } from '../base/result.ts'
import { checkUrl, guardedFetch } from './guarded-fetch.ts'
import { CutOff, answerLeavesOpen, mayHaveBeenSent } from './may-have-happened.ts'
import { type Allowance, limitBody, responseOf } from './response-body.ts'

export type McpServer = {
  url: string
  type?: 'http' | 'sse'
  headers?: Readonly<Record<string, string>>
  /** Put before the tools' names, such as `github.`: servers do not know of each other. */
  prefix?: string
  /** The time limit of the start; a call has the limit of its tool. */
  timeout_ms?: number
}

type McpOptions = {
  allowed_hosts: readonly string[]
  /** The hosts of each secret in the headers: the server must be on one of them, too. */
  secret_hosts?: readonly (readonly string[])[]
  /** Removes the secrets in the headers from what the server says of its tools. */
  hide?: (described: unknown) => unknown
  fetch?: typeof fetch
}

const TIMEOUT_MS = 15_000
/** Size limit of a list of tools with all of its pages, and of a tool's output. */
const MOST_BYTES = 4 * 1024 * 1024
/** A server may name a next page of its list without end. */
const MOST_REQUESTS = 100
/** Size limit of what a server says of all of its tools: each call of a model carries it. */
const MOST_SHOWN = 256 * 1024

/** A tool in a server's list that cannot be called, and why. */
export type RefusedTool = { name: string; reason: string }

/**
 * The tools of an MCP server, from allowed hosts only. Calls throw CutOff if the effect may have
 * happened. A tool that the list describes wrongly, or in two ways, is refused alone.
 */
export async function mcpTools(
  { url, type = 'http', headers = {}, prefix = '', timeout_ms = TIMEOUT_MS }: McpServer,
  { allowed_hosts, secret_hosts = [], hide = (described) => described, fetch: send = fetch }: McpOptions,
): Promise<{ tools: ToolSet; refused: RefusedTool[]; close: () => Promise<void> }> {
  const checked = checkUrl(url, allowed_hosts)
  if (!checked.ok) throw new Error(`MCP server: ${checked.reason}`)
  let listing: Listing | null = { requests: 0, size: { ...responseOf(MOST_BYTES), what: 'the list of tools' } }
  const guarded = (async (target: string | URL, init: RequestInit = {}) => {
    if (listing) countRequest(listing)
    const size = listing?.size ?? responseOf(MOST_BYTES)
    return limitBody(await guardedFetch(target, init, { allowed_hosts, secret_hosts, fetch: send }), size)
  }) as typeof fetch
  const client = await createMCPClient({
    transport: { type, url: checked.url.href, headers: { ...headers }, redirect: 'error', fetch: guarded },
    clientName: 'reflex',
    initializationOptions: { timeout: timeout_ms },
  })
  try {
    const definitions = await definitionsOf(client)
    listing = null
    const { tools, refused } = offered(client, definitions, hide)
    return {
      tools: Object.fromEntries(tools.map(([name, tool]) => [`${prefix}${name}`, tellingCutOff(tool)])),
      refused: refused.map(({ name, reason }) => ({ name: `${prefix}${name}`, reason })),
      close: () => client.close(),
    }
  } catch (error) {
    await client.close()
    throw error
  }
}

const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().nullish() })

/** The client's `tools` fails as a whole for one tool that is malformed. */
async function definitionsOf(client: MCPClient): Promise<unknown[]> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only way to a list that is not judged yet; tests notice a version without it
  const { request } = client as unknown as Requesting
  const tools: unknown[] = []
  let cursor: string | null | undefined
  do {
    const params = cursor ? { params: { cursor } } : {}
    const found = await request.call(client, { request: { method: 'tools/list', ...params }, resultSchema: page })
    tools.push(...found.tools)
    cursor = found.nextCursor
    // Servers also say null or an empty text of the last page.
  } while (cursor)
  return tools
}

type Requesting = { request: (asked: { request: object; resultSchema: typeof page }) => Promise<z.infer<typeof page>> }

const definition = z.looseObject({
  name: z.string().min(1),
  description: z.string().optional(),
  // Providers take no other schema: each call of a model would fail, with all tools.
  inputSchema: z
    .looseObject({ type: z.literal('object').default('object'), properties: z.looseObject({}).optional() })
    .superRefine((schema, context) => {
      const checked = checkJson(schema)
      if (!checked.ok) context.addIssue({ code: 'custom', message: checked.error.message })
    }),
  annotations: z.looseObject({ destructiveHint: z.boolean().optional() }).optional(),
  _meta: z.record(z.string(), z.unknown()).optional(),
})

type Offered = { tools: [string, ToolSet[string]][]; refused: RefusedTool[] }

/** A tool that two pages list alike is one; of unlike tools of one name none is chosen. */
function offered(client: MCPClient, definitions: readonly unknown[], hide: NonNullable<McpOptions['hide']>): Offered {
  const named = Map.groupBy(definitions.entries(), ([at, found]) => nameIn(found) ?? `tools[${at}]`)
  const tools: Offered['tools'] = []
  const refused: RefusedTool[] = []
  let shown = 0
  for (const [name, [[, first] = [], ...more]] of named) {
    const made = toolOf(client, first, { room: MOST_SHOWN - shown, hide })
    // A text of what is nested without end would overflow the stack.
    const isOne = more.every(([, other]) => checkJson(other).ok && checkJson(first).ok && sameJson(other, first))
    if (!made.ok) refused.push({ name, reason: made.detail })
    else if (!isOne) refused.push({ name, reason: 'its server lists different tools of this name' })
    else {
      tools.push([made.name, made.tool])
      shown += made.size
    }
  }
  return { tools, refused }
}

type Showing = { room: number; hide: NonNullable<McpOptions['hide']> }

function toolOf(client: MCPClient, found: unknown, { room, hide }: Showing): Result<{ name: string; tool: ToolSet[string]; size: number }> {
  const wrong = (detail: string) => ({ ok: false as const, detail: `its server describes it wrongly: ${detail}` })
  const { success, data, error } = definition.safeParse(found)
  if (!success) return wrong(flawOf(error))
  const size = JSON.stringify([data.description, data.inputSchema]).length
  if (size > room) return { ok: false, detail: `what its server says of its tools is longer than ${MOST_SHOWN} characters` }
  // After the check of its depth, beyond which nothing is searched.
  const described = hide(data) as typeof data
  try {
    const { [described.name]: tool } = client.toolsFromDefinitions({ tools: [described] })
    return tool ? { ok: true, name: described.name, tool, size } : wrong('inputSchema: an x-mcp-header of it is not valid')
  } catch (thrown) {
    return wrong(messageOf(thrown))
  }
}

const nameIn = (found: unknown): string | undefined => z.object({ name: z.string().min(1) }).safeParse(found).data?.name

function flawOf({ issues: [issue] }: z.ZodError): string {
  const { path, message } = fieldError(issue?.path ?? [], issue?.message ?? 'unknown')
  return path === '' ? message : `${path}: ${message}`
}

/** The requests and bytes that the start of a session and the list of the tools have taken. */
type Listing = { requests: number; size: Allowance }

function countRequest(listing: Listing): void {
  listing.requests += 1
  if (listing.requests > MOST_REQUESTS) throw new Error(`the list of tools takes more than ${MOST_REQUESTS} requests`)
}

function tellingCutOff(tool: ToolSet[string]): ToolSet[string] {
  const { execute } = tool
  if (!execute) return tool
  const telling: typeof execute = async (input, options) => {
    try {
      return (await execute(input, options)) as unknown
    } catch (error) {
      throw mayHaveHappened(error) ? new CutOff(`it may have happened: ${messageOf(error)}`, { cause: error }) : error
    }
  }
  return { ...tool, execute: telling }
}

/** True if a failed call may have been executed, by the protocol's error or the HTTP status. */
function mayHaveHappened(error: unknown): boolean {
  if (!MCPClientError.isInstance(error)) return mayHaveBeenSent(error)
  return error.code === undefined && (error.statusCode === undefined || answerLeavesOpen(error.statusCode))
}
