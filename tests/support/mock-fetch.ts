import { vi } from 'vitest'

export type OutsideRequest = { method: string; url: string; headers: Headers; body: string }
type Answer = Response | Promise<Response>

/**
 * The network outside the Worker, with `host` as its only host. `requests`: those that reached it.
 */
export function outside(host: string, answer: (request: OutsideRequest) => Answer) {
  const requests: OutsideRequest[] = []
  const fetched = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const request = new Request(input, init)
    if (new URL(request.url).host !== host) throw new Error(`nobody is at ${request.url}`)
    const { method, url, headers } = request
    const seen = { method, url, headers, body: await request.text() }
    requests.push(seen)
    return answer(seen)
  })
  return { requests, restore: () => fetched.mockRestore() }
}

/** An MCP server with the tool `look`, as `outside` answers. */
export function mcpAnswer({ method, body }: OutsideRequest): Response {
  if (method !== 'POST') return new Response(null, { status: 405 })
  const message = JSON.parse(body) as { id?: number; method: string; params?: { arguments?: { at?: string } } }
  if (message.id === undefined) return new Response(null, { status: 202 })
  const result = mcpResults[message.method]?.(message.params?.arguments ?? {})
  const answered = result === undefined ? { error: { code: -32601, message: 'no such method' } } : { result }
  return Response.json({ jsonrpc: '2.0', id: message.id, ...answered })
}

const mcpResults: Record<string, (given: { at?: string }) => unknown> = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'sky', version: '1' } }),
  'tools/list': () => ({
    tools: [{ name: 'look', description: 'Looks at something', inputSchema: { type: 'object', properties: { at: { type: 'string' } } } }],
  }),
  'tools/call': ({ at = '' }) =>
    at === 'nothing'
      ? { isError: true, content: [{ type: 'text', text: 'there is nothing to see' }] }
      : { content: [{ type: 'text', text: `saw ${at}` }] },
}
