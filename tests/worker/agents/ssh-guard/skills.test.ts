import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, test } from 'vitest'
import { blockNetwork, unblockNetwork } from '../../../../examples/agents/ssh-guard/block-tools.ts'
import type { ToolCall, ToolDefinition } from '../../../../src/tools/define-tool.ts'
import { closeTicket, notify, openTicket } from '../../../../examples/agents/ssh-guard/incident-tools.ts'
import { withDefaults, type Event } from '../../../../src/core/event.ts'
import { write } from '../../../support/reflex-chain.ts'
import { call, keyFor } from '../../../support/http.ts'
import { entriesOf, freshScope, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { propose } from '../../../support/two-step-skill.ts'

const manifests = await Promise.all([
  import('../../../../examples/skills/incident-open.json'),
  import('../../../../examples/skills/network-block.json'),
])

beforeAll(async () => {
  for (const { default: manifest } of manifests) {
    await call('/v1/skills', { json: manifest })
    await call(`/v1/skills/${manifest.id}/state`, { json: { state: 'active' } })
  }
})

let lines = 0
function guess(scope: string, address: string): Event {
  lines += 1
  const timestamp = new Date(Date.UTC(2026, 2, 9, 6) + lines * 1000).toISOString()
  const line = `Mar  9 ${timestamp.slice(11, 19)} web-1 sshd[${1000 + lines}]: Failed password for root from ${address} port 4242 ssh2`
  return withDefaults({ type: 'log.line', host: 'web-1', line, timestamp }, { now: Date.now(), source: 'test', scope }) as Event
}
const burst = (scope: string, address: string) => Array.from({ length: 5 }, () => guess(scope, address))

const incidents = async (scope: string) => (await env.DB.prepare('SELECT * FROM incidents WHERE scope = ?').bind(scope).all()).results
const blocked = async (scope: string) =>
  (await env.DB.prepare('SELECT address FROM blocks WHERE scope = ? ORDER BY address').bind(scope).all<{ address: string }>()).results.map(
    ({ address }) => address,
  )

describe('the SSH guard', () => {
  test('opens an incident for a burst, with its log lines only', async () => {
    const scope = freshScope('ssh')
    await sendAndSettle(stubOf(scope), guess(scope, '203.0.113.70'), ...burst(scope, '203.0.113.7'))
    const [incident, ...others] = await incidents(scope)
    expect(others).toEqual([])
    expect(incident).toMatchObject({ id: expect.stringMatching(/^INC-/), details: '5 failed logins from 203.0.113.7', closed_at: null })
    expect(JSON.parse(String(incident?.['evidence']))).toEqual(Array(5).fill(expect.stringContaining('from 203.0.113.7 port')))
    expect(await entriesOf(stubOf(scope), 'skill-decided')).toMatchObject([
      { skill_id: 'incident.open', from: 'model', decision: { verdict: 'allow' } },
    ])
    expect(await blocked(scope)).toEqual(['203.0.113.7'])
    const [turn] = await entriesOf(stubOf(scope), 'reply-sent')
    expect(turn?.content).toContain(`incident.open: ok (${String(incident?.['id'])})`)
  })

  test('blocks a whole network only once somebody has approved it, and asks once', async () => {
    const scope = freshScope('ssh')
    for (const last of [4, 77, 140, 200]) await sendAndSettle(stubOf(scope), ...burst(scope, `198.51.100.${last}`))
    const each = ['198.51.100.140', '198.51.100.200', '198.51.100.4', '198.51.100.77']
    expect(await blocked(scope)).toEqual(each)
    const { body } = await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)
    expect(body.items).toMatchObject([
      {
        skill_id: 'network.block',
        status: 'pending',
        requested_by: 'agent:ssh-guard',
        requested_key: null,
        inputs: { network: '198.51.100.0/24' },
      },
    ])
    const key = await keyFor(['operator'], ['ssh/*'], 'olga')
    expect(await call(`/v1/approvals/${body.items[0].id}/approve`, { json: {}, key })).toMatchObject({ status: 200 })
    await until(async () => (await blocked(scope)).length === 5, 'the network is blocked')
    expect(await blocked(scope)).toEqual(['198.51.100.0/24', ...each])
  })

  test.each([
    ['a private network', { network: '10.0.0.0/24' }, 'Denied by the policy: is_private_network(network) holds'],
    ['what is no network', { network: '198.51.100.7/24' }, 'cannot be evaluated'],
  ])('has the gate refuse %s', async (_, inputs, why) => {
    const proposal = { inputs: { reason: 'x', ...inputs }, why: 'networks that attack' }
    const { status, decision } = await propose(freshScope('ssh'), 'network.block', proposal, await keyFor(['operator']))
    expect({ status, verdict: decision.verdict }).toEqual({ status: 'refused', verdict: 'deny' })
    expect(decision.to_pass.join()).toContain(why)
  })

  test.each(['block_network', 'open_ticket'])('lets no reflex call %s past the gate', async (tool) => {
    const scope = freshScope('ssh')
    const args = { network: '198.51.100.0/24', reason: 'x', title: 'x', details: 'x', evidence: [] }
    const { id } = await write(`return { action_type: 'call_tool', tool: '${tool}', args: ${JSON.stringify(args)} }`)
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    await sendAndSettle(stubOf(scope), guess(scope, '198.51.100.4'))
    expect(await entriesOf(stubOf(scope), 'reflex-passed')).toMatchObject([
      { reason: 'refused', error: expect.stringContaining('only for the steps of skills') },
    ])
    expect([await blocked(scope), await incidents(scope)]).toEqual([[], []])
  })
})

describe('the tools of its plans', () => {
  type Told = { url: string; key: string | null; body: unknown }
  const scope = 'ssh/tools'

  /** Runs a tool with webhooks that answer so. */
  async function run(tool: ToolDefinition, input: unknown, status = 200) {
    const told: Told[] = []
    const answering: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      told.push({ url: request.url, key: request.headers.get('idempotency-key'), body: await request.json() })
      return new Response('thanks', { status })
    }
    const webhooks = {
      TICKET_WEBHOOK_URL: 'https://desk.example/in',
      NOTIFY_WEBHOOK_URL: 'https://duty.example/in',
      BLOCK_WEBHOOK_URL: 'https://wall.example/in',
    }
    const given: ToolCall = {
      env: { ...env, ...webhooks },
      fetch: answering,
      scope,
      parameters: {},
      signal: new AbortController().signal,
      idempotence_key: 'run-1:step',
      now: () => 1000,
    }
    const answer = await tool.execute(tool.input.parse(input), given).catch((error: unknown) => error)
    return { told, answer }
  }
  const ticket = { title: 'SSH attack', details: 'five logins', evidence: ['a line'] }

  test('open a ticket by HTTP under an id that a repetition has again, and close that', async () => {
    const [first, again] = [await run(openTicket, ticket), await run(openTicket, ticket)]
    expect(again).toEqual(first)
    const id = (first.answer as { ticket: string }).ticket
    expect(first.told).toEqual([{ url: 'https://desk.example/in', key: `${id} open`, body: { id, scope, status: 'open', ...ticket } }])
    const closed = await run(closeTicket, { ticket: id, reason: 'a mistake' })
    expect(closed.told).toMatchObject([{ key: `${id} closed`, body: { id, status: 'closed', reason: 'a mistake' } }])
    expect(await incidents(scope)).toMatchObject([{ id, opened_at: 1000, closed_at: 1000 }])
  })

  test('open it also while D1 is unavailable: a ticket that exists is not reported as failed', async () => {
    await env.DB.exec('ALTER TABLE incidents RENAME TO incidents_away')
    try {
      expect(await run(openTicket, ticket)).toMatchObject({ answer: { reported: true }, told: [{ url: 'https://desk.example/in' }] })
    } finally {
      await env.DB.exec('ALTER TABLE incidents_away RENAME TO incidents')
    }
  })

  test('tell whoever is on duty, and the firewall of a network, under keys', async () => {
    expect(await run(notify, { message: 'hello' })).toEqual({
      answer: { told: 'duty.example' },
      told: [{ url: 'https://duty.example/in', key: `${scope} run-1:step`, body: { scope, message: 'hello' } }],
    })
    const network = '203.0.113.0/24'
    expect((await run(blockNetwork, { network, reason: 'x' })).told).toMatchObject([
      { key: `${scope} block:${network} 1000`, body: { address: network, reason: 'x' } },
    ])
    expect((await run(unblockNetwork, { network })).told).toMatchObject([
      { key: `${scope} unblock:${network} 1000`, body: { address: network, unblock: true } },
    ])
    expect(await blocked(scope)).toEqual([])
  })

  test.each([
    [503, true],
    [429, true],
    [400, false],
  ])('fail where HTTP answers %i; whether it may be tried again: %s', async (status, retryable) => {
    expect((await run(openTicket, ticket, status)).answer).toMatchObject({
      message: `the webhook at desk.example answered ${status}`,
      retryable,
    })
  })
})
