import { call, type Answer, type Call } from './http.ts'

/** A message to the MCP server of a scope, as a client sends it. */
export function post(scope: string, json: unknown, { headers, ...more }: Call = {}): Promise<Answer> {
  const accept = { Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2025-06-18' }
  return call(`/v1/mcp?scope=${encodeURIComponent(scope)}`, { json, headers: { ...accept, ...headers }, ...more })
}

export const ask = (scope: string, method: string, params: object = {}, more: Call = {}): Promise<Answer> =>
  post(scope, { jsonrpc: '2.0', id: 1, method, params }, more)

export type Listed = { name: string; title: string; inputSchema: { properties: Record<string, object>; required: string[] } } & Record<
  string,
  unknown
>

/** Every tool, page by page. */
export async function toolsOf(scope: string): Promise<Listed[]> {
  const tools: Listed[] = []
  let cursor: string | undefined
  do {
    const { body } = await ask(scope, 'tools/list', cursor === undefined ? {} : { cursor })
    tools.push(...body.result.tools)
    cursor = body.result.nextCursor
  } while (cursor !== undefined)
  return tools
}

export type Called = { content: [{ text: string }]; structuredContent: Record<string, unknown>; isError: boolean }

/** The result of a tool, and its text as JSON. */
export async function useTool(
  scope: string,
  params: { name: string; arguments?: object; _meta?: object },
  key?: string,
): Promise<Called & { told: Record<string, unknown> }> {
  const { body, text } = await ask(scope, 'tools/call', params, key === undefined ? {} : { key })
  if (!body.result) throw new Error(text)
  const result: Called = body.result
  return { ...result, told: JSON.parse(result.content[0].text) }
}

/** The abilities of a client of the version 2026-07-28. */
export const withForms = { elicitation: { form: {} } }
export const withTasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

/** A message in the version 2026-07-28, which has no handshake. */
export function askModern(
  scope: string,
  method: string,
  params: Record<string, unknown> = {},
  more: Call & { capabilities?: object; path?: string } = {},
): Promise<Answer> {
  const { capabilities = {}, path = `/v1/mcp?scope=${encodeURIComponent(scope)}`, headers, ...rest } = more
  const { _meta, ...own } = params
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    ...(_meta as object | undefined),
  }
  const name = own['name'] ?? own['taskId']
  const routing = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...(typeof name === 'string' && { 'Mcp-Name': name }) }
  const accept = { Accept: 'application/json, text/event-stream', ...routing, ...headers }
  return call(path, { json: { jsonrpc: '2.0', id: 1, method, params: { ...own, _meta: meta } }, headers: accept, ...rest })
}
