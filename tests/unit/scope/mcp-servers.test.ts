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
