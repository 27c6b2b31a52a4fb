import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mcpTools } from '../../../src/standalone/index.ts'

let server: Server
let host = ''
const methods: string[] = []
/** Adds something to each page of the list of tools. */
let more: object = {}
/** The answer to the next request for the list, as text: no object may be nested so deep. */
let listed: ((id: number) => string) | null = null

type Message = { id?: number; method: string; params?: { name?: string; arguments?: { at?: string } } }

const results: Record<string, (message: Message) => unknown> = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'sky', version: '1' } }),
  'tools/list': () => ({
    tools: [{ name: 'look', description: 'Looks', inputSchema: { type: 'object', properties: { at: { type: 'string' } } } }],
    ...more,
  }),
  'tools/call': ({ params }) => ({
    content: [{ type: 'text', text: params?.arguments?.at === 'everything' ? 'x'.repeat(5_000_000) : `saw ${params?.arguments?.at}` }],
  }),
}

beforeAll(async () => {
  server = createServer((incoming, response) => {
    let body = ''
    incoming.on('data', (chunk) => (body += String(chunk)))
    incoming.on('end', () => {
      if (incoming.url === '/moved') {
        response.writeHead(307, { location: 'https://evil.example.com/' }).end()
        return
      }
      if (incoming.method !== 'POST') {
        response.writeHead(405).end()
        return
      }
      const message = JSON.parse(body) as Message
      methods.push(message.method)
      if (message.id === undefined) {
        response.writeHead(202).end()
        return
      }
      if (listed && message.method === 'tools/list') {
        response.setHeader('content-type', 'application/json').end(listed(message.id))
        return
      }
      const result = results[message.method]?.(message)
      const answer = result === undefined ? { error: { code: -32601, message: 'no such method' } } : { result }
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

test('the tools of an MCP server can be called', async () => {
  const { tools, close } = await mcpTools({ url: `http://${host}/mcp`, prefix: 'sky.' }, { allowed_hosts: [host] })
  expect(Object.keys(tools)).toEqual(['sky.look'])
  const output = await tools['sky.look']?.execute?.({ at: 'the moon' }, { toolCallId: 'c', messages: [], context: {} })
  expect(output).toMatchObject({ content: [{ type: 'text', text: 'saw the moon' }] })
  expect(methods).toContain('tools/call')
  const everything = tools['sky.look']?.execute?.({ at: 'everything' }, { toolCallId: 'd', messages: [], context: {} })
  // It was done all the same.
  await expect(everything).rejects.toMatchObject({
    name: 'CutOff',
    message: expect.stringContaining('larger than 4194304 bytes') as unknown,
  })
  await close()
})

test('a server on a host that is not allowed is not asked, nor one that it leads to', async () => {
  await expect(mcpTools({ url: 'https://mcp.example.com' }, { allowed_hosts: [host] })).rejects.toThrow(
    'MCP server: the host mcp.example.com is not',
  )
  const bound = { allowed_hosts: [host], secret_hosts: [[host], ['mcp.example.com']] }
  await expect(mcpTools({ url: `http://${host}/mcp` }, bound)).rejects.toThrow('a secret must not be sent there')
  await expect(mcpTools({ url: `http://${host}/moved` }, { allowed_hosts: [host] })).rejects.toThrow(
    'evil.example.com is not among those allowed',
  )
})

test('a list of tools that has no end is read no further than a list may be long, in pages and in bytes', async () => {
  const pages = () => methods.filter((method) => method === 'tools/list').length
  const list = async (page: object) => {
    more = page
    const before = pages()
    const failure = await mcpTools({ url: `http://${host}/mcp` }, { allowed_hosts: [host] }).catch((error: unknown) => String(error))
    more = {}
    return { failure, read: pages() - before }
  }
  expect(await list({ nextCursor: 'more' })).toEqual({
    failure: expect.stringContaining('the list of tools takes more than 100 requests') as unknown,
    read: expect.toSatisfy((count: number) => count < 100) as unknown,
  })
  expect(await list({ nextCursor: 'more', _meta: { padding: 'x'.repeat(1_500_000) } })).toEqual({
    failure: expect.stringContaining('the list of tools is larger than 4194304 bytes') as unknown,
    read: 3,
  })
})

test('a tool whose schema no model can be shown is refused alone, wherever it is in the list', async () => {
  const nested = Array.from({ length: 70 }).reduce<object>((inner) => ({ type: 'object', properties: { a: inner } }), {})
  const long = { type: 'object', description: 'x'.repeat(300_000) }
  const tool = (name: string, inputSchema: object = { type: 'object' }) => ({ name, inputSchema })
  more = { tools: [tool('deep', nested), tool('long', long), tool('look'), tool('odd', { type: 'object', title: '\ud800' })] }
  const { tools, refused, close } = await mcpTools({ url: `http://${host}/mcp` }, { allowed_hosts: [host] })
  more = {}
  expect(Object.keys(tools)).toEqual(['look'])
  expect(refused).toEqual([
    { name: 'deep', reason: 'its server describes it wrongly: inputSchema: is nested deeper than 64 levels' },
    { name: 'long', reason: 'what its server says of its tools is longer than 262144 characters' },
    { name: 'odd', reason: 'its server describes it wrongly: inputSchema: contains a lone surrogate' },
  ])
  await close()
})

test('a tool that is nested without end and listed twice is refused alone', async () => {
  const schema = `{"type":"object","properties":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`
  const deep = `{"name":"deep","inputSchema":${schema}}`
  listed = (id) => `{"jsonrpc":"2.0","id":${id},"result":{"tools":[${deep},${deep},{"name":"look","inputSchema":{"type":"object"}}]}}`
  const { tools, refused, close } = await mcpTools({ url: `http://${host}/mcp` }, { allowed_hosts: [host] })
  listed = null
  expect(Object.keys(tools)).toEqual(['look'])
  expect(refused).toMatchObject([{ name: 'deep', reason: expect.stringContaining('nested deeper than 64 levels') }])
  await close()
})
