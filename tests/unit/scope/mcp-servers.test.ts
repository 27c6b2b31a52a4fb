import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Env } from '../../../src/env.ts'
import { defaultSettings, type Settings } from '../../../src/contract/settings/settings.ts'
import { McpServers } from '../../../src/engine/effects/declared-tools.ts'
import { mcpAnswer } from '../../support/mock-fetch.ts'
import { part } from '../agents/agent-fixtures.ts'

const server = { name: 'sky', url: 'https://sky.example.com/mcp' }
let time = 0
let listed = 0
let sent = 0
let answer: (request: Request) => Response | Promise<Response>
let settings: Settings
let servers: McpServers

beforeEach(() => {
  time = 1_000_000
  listed = 0
  sent = 0
  answer = async (request) => mcpAnswer({ method: request.method, url: request.url, headers: request.headers, body: await request.text() })
  settings = { ...defaultSettings, allowed_hosts: ['sky.example.com'], mcp_servers: [server] }
  servers = serversWith({})
  last = {}
})

afterEach(() => vi.useRealTimers())

const serversWith = (bindings: object) =>
  new McpServers({ scope: 's', env: part<Env>(bindings), settings: () => settings, now: () => time, fetch: part<typeof fetch>(send) })

async function send(input: string, init: RequestInit): Promise<Response> {
  sent += 1
  if (typeof init.body === 'string' && init.body.includes('tools/list')) listed += 1
  return answer(new Request(input, init))
}
const tools = () => {
  const catalogue = servers.catalogue(server)
  return catalogue?.ok ? [...catalogue.tools.keys()] : catalogue?.reason
}

test('a server is asked once, whoever comes meanwhile, and again when what it said is old', async () => {
  expect(tools()).toBeUndefined()
  await Promise.all([servers.ready(), servers.ready()])
  expect(tools()).toEqual(['look'])
  time += 599_999
  await servers.ready()
  expect(listed).toBe(1)
  time += 1
  await servers.ready()
  expect(listed).toBe(2)
})

test('one that is away is left alone for a while, and then asked again', async () => {
  const there = answer
  answer = () => new Response('away', { status: 500 })
  await servers.ready()
  expect(tools()).toContain('500')
  answer = there
  time += 29_999
  await servers.ready()
  expect(tools()).toContain('500')
  time += 1
  await servers.ready()
  expect(tools()).toEqual(['look'])
})

test('one that never answers when it is left has said what it has all the same', async () => {
  vi.useFakeTimers()
  const there = answer
  let leaving: AbortSignal | undefined
  answer = async (request) => {
    if (request.method === 'DELETE') {
      leaving = request.signal
      return new Promise<Response>(() => {})
    }
    const { status, body, headers } = await there(request)
    return new Response(body, { status, headers: { ...Object.fromEntries(headers), 'mcp-session-id': 's-1' } })
  }
  const ready = servers.ready()
  await vi.advanceTimersByTimeAsync(1000)
  await ready
  expect(tools()).toEqual(['look'])
  expect(leaving?.aborted).toBe(true)
})

const look = { name: 'look', description: 'Looks', inputSchema: { type: 'object' } }

/** The part of the last page of a list that is about a next one. */
let last: { nextCursor?: string | null } = {}

/** The tools that are taken and refused of a list, which comes in these pages. */
async function judged(...pages: unknown[][]) {
  answer = async (request) => {
    const body = await request.clone().text()
    if (!body.includes('tools/list')) return mcpAnswer({ method: request.method, url: request.url, headers: request.headers, body })
    const { id, params = {} } = JSON.parse(body) as { id: number; params?: { cursor?: string } }
    const at = Number(params.cursor ?? 0)
    const next = at + 1 < pages.length ? { nextCursor: String(at + 1) } : last
    return Response.json({ jsonrpc: '2.0', id, result: { tools: pages[at], ...next } })
  }
  await servers.ready()
  const catalogue = servers.catalogue(server)
  return catalogue?.ok ? { taken: [...catalogue.tools.keys()], refused: Object.fromEntries(catalogue.refused) } : catalogue
}

test.each<[string, unknown, Record<string, string>]>([
  ['without a schema', { name: 'sing' }, { sing: 'its server describes it wrongly: inputSchema: ' }],
  ['whose schema is no object', { ...look, name: 'sing', inputSchema: { type: 'string' } }, { sing: 'inputSchema.type: ' }],
  ['whose hint is a word', { ...look, name: 'sing', annotations: { destructiveHint: 'no' } }, { sing: 'annotations.destructiveHint: ' }],
  ['whose app has no address', { ...look, name: 'sing', _meta: { ui: { resourceUri: 7 } } }, { sing: 'Invalid MCP App resource URI' }],
  ['without a name', { ...look, name: '' }, { 'tools[0]': 'name: ' }],
  ['that is no object', null, { 'tools[0]': 'its server describes it wrongly: ' }],
])('a tool %s is refused alone, with the reason', async (_, broken, told) => {
  const reasons = Object.fromEntries(Object.entries(told).map(([name, reason]) => [name, expect.stringContaining(reason) as unknown]))
  expect(await judged([broken, look])).toEqual({ taken: ['look'], refused: reasons })
})

test.each([
  ['nothing', {}],
  ['null', { nextCursor: null }],
  ['an empty text', { nextCursor: '' }],
])('a list ends where its last page says %s of a next one', async (_, said) => {
  last = said
  expect(await judged([look], [{ ...look, name: 'sing' }])).toEqual({ taken: ['look', 'sing'], refused: {} })
})

test('models receive that the input of a tool is an object, if its server leaves it out', async () => {
  await judged([{ ...look, inputSchema: { properties: { at: { type: 'string' } } } }])
  const catalogue = servers.catalogue(server)
  const shown = catalogue?.ok ? catalogue.tools.get('look')?.shown_input.jsonSchema : null
  expect(await shown).toMatchObject({ type: 'object', properties: { at: { type: 'string' } } })
})

test('of two tools of one name none is taken, in whatever order they come, and one that is listed twice is one', async () => {
  const other = { ...look, annotations: { destructiveHint: true } }
  const refused = { look: 'its server lists different tools of this name' }
  expect(await judged([look, other, { ...look, name: 'sing' }])).toEqual({ taken: ['sing'], refused })
  servers = serversWith({})
  expect(await judged([other], [look])).toEqual({ taken: [], refused })
  servers = serversWith({})
  expect(await judged([look], [look])).toEqual({ taken: ['look'], refused: {} })
})

test('a tool beyond the hundredth is refused with the reason', async () => {
  const found = await judged(Array.from({ length: 101 }, (_, index) => ({ ...look, name: `look-${index}` })))
  expect(found).toMatchObject({ refused: { 'look-100': 'its server lists more than 100 tools' } })
})

test('another setting is another question', async () => {
  await servers.ready()
  settings = { ...settings, allowed_hosts: [] }
  expect(tools()).toBeUndefined()
  await servers.ready()
  expect(tools()).toContain('not among those allowed')
  expect(listed).toBe(1)
})

test.each([
  ['is not set', { REFLEX_TOOL_SKY_HOSTS: 'sky.example.com' }, 'the MCP server sky needs the secret REFLEX_TOOL_SKY, which is not set'],
  ['is for no host', { REFLEX_TOOL_SKY: 'x' }, /^the secret REFLEX_TOOL_SKY is sent nowhere: .* in the variable REFLEX_TOOL_SKY_HOSTS$/],
  [
    'is for another host',
    { REFLEX_TOOL_SKY: 'x', REFLEX_TOOL_SKY_HOSTS: 'sea.example.com' },
    /REFLEX_TOOL_SKY is not sent there: the host sky/,
  ],
])('one whose secret %s is not asked', async (_, bindings, reason) => {
  servers = serversWith(bindings)
  const declared = { ...server, secret_headers: { authorization: 'REFLEX_TOOL_SKY' } }
  settings = { ...settings, mcp_servers: [declared] }
  await servers.ready()
  expect(servers.catalogue(declared)).toEqual({ ok: false, reason: expect.stringMatching(reason) })
  expect(sent).toBe(0)
})
