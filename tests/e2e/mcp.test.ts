import { createMCPClient } from '@ai-sdk/mcp'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, eventually, scopePath, temporaryState, wholeLog } from './api.ts'
import { script } from './command-line.ts'

const state = await temporaryState()
const SCOPE = 'ssh/e2e'
let server: LocalServer
let key = ''

/** Hears of each block, and takes its time over one address. */
const SLOW = '203.0.113.99'
const webhook = createServer((incoming, outgoing) => {
  let body = ''
  incoming.on('data', (bytes) => (body += String(bytes)))
  incoming.on('end', () => setTimeout(() => outgoing.end(), body.includes(SLOW) ? 2000 : 0))
}).listen(0, '127.0.0.1')
await once(webhook, 'listening')

/** Blocks an address, by the SSH guard's own tool. */
const skill = (id: string, policy: object) => ({
  id,
  version: '1.0.0',
  owner: 'security',
  description: 'Blocks an address that attacks',
  signature: { inputs: [{ name: 'address', type: 'string', required: true }], outputs: [{ name: 'blocked', type: 'boolean' }] },
  plan: {
    idempotence_key: `${id}:{{address}}`,
    budget: { max_cost_usd: 0, max_latency_ms: 10_000 },
    steps: [{ name: 'block', tool: 'block', args: { address: '{{address}}', reason: 'asked for over MCP' }, timeout_ms: 5000 }],
    compensation: [{ when: 'partial_failure', tool: 'unblock', args: { address: '{{address}}' } }],
    result_map: { blocked: '{{work.steps.block.blocked}}' },
  },
  effects: { external: ['blocked:address'] },
  activation: { required_slots: ['address'], keywords_any: ['block'], score_weights: { keyword_hit: 1 }, tau: 1 },
  policy,
})

beforeAll(async () => {
  const BLOCK_WEBHOOK_URL = `http://127.0.0.1:${(webhook.address() as AddressInfo).port}/`
  server = await startServer({ persist_to: state.directory, migrated: true, vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, BLOCK_WEBHOOK_URL } })
  const skills = [
    skill('address.block', { allow_roles: ['security'] }),
    skill('address.block_forever', { allow_roles: ['security'], needs_approval_if: ['true'] }),
  ]
  for (const body of skills) {
    await ask(server.url, '/v1/skills', { body })
    await ask(server.url, `/v1/skills/${body.id}/state`, { body: { state: 'active' } })
  }
  const body = { name: 'an agent elsewhere', roles: ['publisher', 'security'], scopes: ['ssh/*'] }
  key = (await ask<{ key: string }>(server.url, '/v1/keys', { body })).key
})
afterAll(async () => {
  await server?.stop()
  webhook.close()
  await state.remove()
})

const address = () => `${server.url}/v1/mcp?scope=${encodeURIComponent(SCOPE)}`

async function officialClient(key: string): Promise<Client> {
  const client = new Client({ name: 'e2e', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(address()), { requestInit }))
  return client
}

/** A client of the version 2026-07-28. `decide` answers the forms that its user would see. */
async function modernClient(
  key: string,
  decide: (form: { message: string }) => Record<string, string>,
  url = address(),
): Promise<ModernClient> {
  const options = { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } }
  const client = new ModernClient({ name: 'e2e', version: '1' }, options)
  client.setRequestHandler('elicitation/create', async ({ params }) => ({ action: 'accept', content: decide(params) }))
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new ModernTransport(new URL(url), { requestInit }))
  return client
}

type Told = { status: string; to_pass?: string[]; outputs?: object; approval?: { id: string; approve: string } }
/** The part of a result that the model reads. */
function toldBy({ content, isError }: object & { content?: unknown; isError?: unknown }): Told & { isError: unknown } {
  const [part] = content as { type: string; text: string }[]
  return { ...(JSON.parse(part?.text ?? '') as Told), isError }
}

const entriesOf = async (kind: string, skill_id: string): Promise<Record<string, unknown>[]> =>
  (await wholeLog(server.url, SCOPE)).filter((entry) => entry['kind'] === kind && entry['skill_id'] === skill_id)
const runsOf = (skill_id: string) => entriesOf('skill-applied', skill_id)

test('the official client lists the skills, has one run, is refused, and waits for an approval', async () => {
  const client = await officialClient(key)
  expect(client.getServerVersion()).toMatchObject({ name: 'reflex' })
  expect(client.getInstructions()).toContain('reflex_why')
  const { tools } = await client.listTools()
  expect(tools.map(({ name, title }) => ({ name, title }))).toEqual([
    { name: 'address__block', title: 'address.block@1.0.0' },
    { name: 'address__block_forever', title: 'address.block_forever@1.0.0' },
  ])

  const given = { address: '203.0.113.7', reflex_why: 'block who guesses passwords' }
  const done = await client.callTool({ name: 'address__block', arguments: given })
  expect(toldBy(done)).toMatchObject({ isError: false, status: 'ok', outputs: { blocked: true } })
  expect(done.structuredContent).toMatchObject({ skill_id: 'address.block', decision: { verdict: 'allow' }, idempotent: false })
  const again = await client.callTool({ name: 'address__block', arguments: given })
  expect(again.structuredContent).toMatchObject({ status: 'ok', idempotent: true })

  const refused = await client.callTool({ name: 'address__block', arguments: { ...given, reflex_why: 'say hello' } })
  expect(toldBy(refused)).toMatchObject({ isError: true, status: 'refused', to_pass: [expect.stringContaining('Score 0, needs ')] })

  const waiting = toldBy(await client.callTool({ name: 'address__block_forever', arguments: { ...given, address: '203.0.113.8' } }))
  expect(waiting).toMatchObject({ isError: true, status: 'needs_approval' })
  expect(await runsOf('address.block_forever')).toEqual([])
  const [, path = ''] = waiting.approval?.approve.split(server.url) ?? []
  expect(await ask(server.url, path, { method: 'POST' })).toMatchObject({ status: 'approved' })
  const run = await eventually(async () => (await runsOf('address.block_forever'))[0], 'what was approved has run')
  expect(run).toMatchObject({ status: 'ok' })
  await client.close()
})

test('the official client of 2026-07-28 asks its user for a missing input and for an approval, and gets the results', async () => {
  const asked: string[] = []
  const body = { name: 'a person', roles: ['admin', 'security'], scopes: ['*'] }
  const own = (await ask<{ key: string }>(server.url, '/v1/keys', { body })).key
  const client = await modernClient(own, ({ message }) => {
    asked.push(message)
    return message.includes('needs an approval') ? { decision: 'approve' } : { address: '203.0.113.11' }
  })
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['address__block', 'address__block_forever'])
  const reason = { reflex_why: 'block who guesses passwords' }
  const clarified = await client.callTool({ name: 'address__block', arguments: reason })
  expect(toldBy(clarified)).toMatchObject({ isError: false, status: 'ok', outputs: { blocked: true } })
  const approved = await client.callTool({ name: 'address__block_forever', arguments: { ...reason, address: '203.0.113.12' } })
  expect(toldBy(approved)).toMatchObject({ isError: false, status: 'ok', outputs: { blocked: true } })
  expect(asked).toEqual([
    expect.stringContaining('What is address'),
    expect.stringContaining('address.block_forever@1.0.0 needs an approval'),
  ])
  await client.close()
})

test('a coding agent with a viewer key asks what happened, and why', async () => {
  const body = { name: 'a coding agent', roles: ['viewer'], scopes: ['ssh/*'] }
  const viewer = (await ask<{ key: string }>(server.url, '/v1/keys', { body })).key
  const client = await modernClient(viewer, () => ({}), `${server.url}/v1/mcp/inspect`)
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toContain('explain_trace')
  const use = async (name: string, given: Record<string, unknown>) => {
    const { content } = await client.callTool({ name, arguments: given })
    return JSON.parse((content.at(-1) as { text: string }).text) as { items: { trace_id: string }[]; trace_id: string }
  }
  const [run] = (await use('read_log', { scope: SCOPE, kind: 'skill-applied' })).items
  expect(await use('explain_trace', { trace_id: run?.trace_id, scope: SCOPE })).toMatchObject({ trace_id: run?.trace_id })
  await client.close()
})

test('the client of the AI SDK gives them to a model as tools', async () => {
  const client = await createMCPClient({ transport: { type: 'http', url: address(), headers: { authorization: `Bearer ${key}` } } })
  const tools = await client.tools()
  expect(Object.keys(tools)).toEqual(['address__block', 'address__block_forever'])
  const input = { address: '203.0.113.9', reflex_why: 'block it' }
  const result = await tools['address__block']?.execute?.(input, { toolCallId: 'c', messages: [], context: {} })
  expect(toldBy(result as object)).toMatchObject({ isError: false, status: 'ok', outputs: { blocked: true } })
  await client.close()
})

test('a viewer key sees the tools and gets an error that names the missing role', async () => {
  const body = { name: 'a looker', roles: ['viewer'], scopes: ['ssh/*'] }
  const looker = (await ask<{ key: string }>(server.url, '/v1/keys', { body })).key
  const client = await officialClient(looker)
  expect((await client.listTools()).tools).toHaveLength(2)
  await expect(client.callTool({ name: 'address__block', arguments: { address: '203.0.113.10' } })).rejects.toThrow(
    'This needs the role publisher',
  )
  await client.close()
})

test('a client that hangs up does not stop the run', async () => {
  const client = await officialClient(key)
  const before = (await runsOf('address.block')).length
  const call = client.callTool({ name: 'address__block', arguments: { address: SLOW, reflex_why: 'block it' } })
  const cut = call.then(
    () => 'answered',
    (error: unknown) => String(error),
  )
  await eventually(async () => (await entriesOf('skill-started', 'address.block')).length > before, 'the run has begun')
  await client.close()
  expect(await cut).toContain('closed')
  expect(await runsOf('address.block')).toHaveLength(before)
  const run = await eventually(async () => (await runsOf('address.block'))[before], 'it is at its end')
  expect(run).toMatchObject({ status: 'ok' })
})

test('the example of an editor mounts both servers, asks what happened, and proposes a skill', async () => {
  const body = { name: 'an editor', roles: ['publisher', 'viewer', 'security'], scopes: ['ssh/*'] }
  const made = await ask<{ key: string }>(server.url, '/v1/keys', { body })
  const editor = (...args: string[]) => script('examples/editor/ask.ts', args, { env: { REFLEX_URL: server.url, REFLEX_KEY: made.key } })
  const listed = await editor()
  expect(listed).toMatchObject({ code: 0, stderr: '' })
  expect(listed.stdout).toMatch(/^reflex: 2 tools\n {2}address__block: [^]*\nreflex-inspect: \d+ tools\n {2}list_scopes: /)
  const proposed = await editor('reflex', 'address__block', '{"address": "203.0.113.7", "reflex_why": "block it"}')
  expect(proposed).toMatchObject({ code: 0, stdout: expect.stringContaining('"status":"ok"') })
  expect(await ask(server.url, scopePath('ssh/web-1'))).toMatchObject({ counters: { effects: 1 } })
  const log = await editor('reflex-inspect', 'read_log', '{"scope": "ssh/web-1", "kind": "skill-applied"}')
  expect(log.stdout).toMatch(/data, not instructions[^]*"kind":"skill-applied"/)
  expect(await editor('reflex-inspect', 'read_log', '{"scope": "other/scope"}')).toMatchObject({ code: 1 })
})
