import { createMCPClient, MCPClientError } from '@ai-sdk/mcp'
import type { ToolSet } from 'ai'
import { messageOf } from '../base/error-text.ts'
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
  fetch?: typeof fetch
}

const TIMEOUT_MS = 15_000
/** Size limit of a list of tools with all of its pages, and of a tool's output. */
const MOST_BYTES = 4 * 1024 * 1024
/** A server may name a next page of its list without end. */
const MOST_REQUESTS = 100

/**
 * The tools of an MCP server, from allowed hosts only. Calls throw CutOff if the effect may have
 * happened.
 */
export async function mcpTools(
  { url, type = 'http', headers = {}, prefix = '', timeout_ms = TIMEOUT_MS }: McpServer,
  { allowed_hosts, secret_hosts = [], fetch: send = fetch }: McpOptions,
): Promise<{ tools: ToolSet; close: () => Promise<void> }> {
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
    const tools = await client.tools()
    listing = null
    return {
      tools: Object.fromEntries(Object.entries(tools).map(([name, tool]) => [`${prefix}${name}`, tellingCutOff(tool)])),
      close: () => client.close(),
    }
  } catch (error) {
    await client.close()
    throw error
  }
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
