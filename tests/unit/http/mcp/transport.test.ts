import { McpServer } from '@modelcontextprotocol/server'
import { expect, test, vi } from 'vitest'
import { answerOnce } from '../../../../src/features/protocols/http/mcp/transport.ts'
import { Problem } from '../../../../src/contract/problem.ts'

const modern = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const headers = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' }
const versions = {
  '2025-11-25': { headers: { ...headers, 'MCP-Protocol-Version': '2025-11-25' }, meta: {} },
  '2026-07-28': {
    headers: { ...headers, 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'a' },
    meta: modern,
  },
}

/** A tool that tells of progress and fails then. */
async function answerOf(version: keyof typeof versions, error: Error): Promise<string> {
  const { headers, meta } = versions[version]
  const params = { name: 'a', arguments: {}, _meta: { progressToken: 1, ...meta } }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
  const request = new Request('https://reflex.test/v1/mcp', { method: 'POST', headers, body: JSON.stringify(body) })
  const response = await answerOnce(
    (trying) => {
      const mcp = new McpServer({ name: 'test', version: '1' }, { capabilities: { tools: {} } })
      mcp.server.setRequestHandler('tools/call', async (_, { mcpReq }) => {
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })
        await new Promise((resolve) => setTimeout(resolve, 20))
        return trying(() => Promise.reject(error))
      })
      return mcp
    },
    request,
    body,
  )
  expect([response.status, response.headers.get('Content-Type')]).toEqual([200, expect.stringContaining('text/event-stream')])
  return response.text()
}

test.each(['2025-11-25', '2026-07-28'] as const)(
  'an error after progress in the version %s is said in the stream, as a problem would say it',
  async (version) => {
    const errors = vi.spyOn(console, 'error').mockImplementation(() => {})
    const internal = await answerOf(version, new Error('the password is 1234'))
    expect(internal).toContain('notifications/progress')
    expect(internal).toMatch(/"code":-32603.*Internal error/)
    expect(internal).not.toContain('1234')
    expect(JSON.stringify(errors.mock.calls)).toContain('1234')
    const refused = new Problem({ status: 409, type: 'urn:reflex:problem:busy', title: 'Busy', detail: 'It is busy.' })
    expect(await answerOf(version, refused)).toMatch(/"code":-32603.*It is busy\./)
    errors.mockRestore()
  },
)
