import { beforeAll, describe, expect, test, vi } from 'vitest'
import { issueTicket } from '../../../../src/http/auth/ticket.ts'
import type { Env } from '../../../../src/env.ts'
import { randomHex } from '../../../../src/core/event.ts'
import { limits } from '../../../../src/base/limits.ts'
import { adminKey, answerOf, call, callWith, problem, fetchRaw, keyFor, message, scopePath, type Answer } from '../../../support/http.ts'
import { freshScope } from '../../../support/scopes.ts'

type Role = 'viewer' | 'publisher' | 'operator' | 'admin'
const roles: readonly Role[] = ['viewer', 'publisher', 'operator', 'admin']
const holders: Record<Role, Role[]> = {
  viewer: ['viewer', 'operator', 'admin'],
  publisher: ['publisher', 'operator', 'admin'],
  operator: ['operator', 'admin'],
  admin: ['admin'],
}

/** The contract, as design.md has it. */
const contract: [method: string, path: string, ...needs: Role[]][] = [
  ['GET', '/health/detailed', 'viewer'],
  ['POST', '/v1/events', 'publisher'],
  ['GET', '/v1/events', 'viewer'],
  ['GET', '/v1/events/{id}', 'viewer'],
  ['GET', '/v1/events/replay', 'viewer'],
  ['POST', '/v1/scopes/{scope}/events', 'publisher'],
  ['POST', '/v1/scopes/{scope}/decisions', 'publisher'],
  ['GET', '/v1/scopes', 'viewer'],
  ['GET', '/v1/scopes/{scope}', 'viewer'],
  ['PATCH', '/v1/scopes/{scope}', 'operator'],
  ['GET', '/v1/scopes/{scope}/offered-rules', 'operator'],
  ['GET', '/v1/settings/schema', 'viewer'],
  ['GET', '/v1/scopes/{scope}/chain', 'viewer'],
  ['POST', '/v1/scopes/{scope}/ask-model', 'operator'],
  ['GET', '/v1/scopes/{scope}/context', 'viewer'],
  ['GET', '/v1/scopes/{scope}/log', 'viewer'],
  ['GET', '/v1/scopes/{scope}/events', 'viewer'],
  ['GET', '/v1/scopes/{scope}/events/{id}', 'viewer'],
  ['GET', '/v1/scopes/{scope}/events/{id}/why', 'viewer'],
  ['GET', '/v1/scopes/{scope}/ws', 'viewer', 'publisher'],
  ['GET', '/v1/scopes/{scope}/stream', 'viewer'],
  ['POST', '/v1/scopes/{scope}/tickets', 'viewer', 'publisher'],
  ['POST', '/v1/scopes/{scope}/claim', 'publisher'],
  ['POST', '/v1/scopes/{scope}/ack', 'publisher'],
  ['POST', '/v1/scopes/{scope}/nack', 'publisher'],
  ['POST', '/v1/scopes/{scope}/cancel', 'operator'],
  ['GET', '/v1/scopes/{scope}/timers', 'operator'],
  ['PUT', '/v1/scopes/{scope}/timers/{name}', 'operator'],
  ['GET', '/v1/scopes/{scope}/timers/{name}', 'operator'],
  ['DELETE', '/v1/scopes/{scope}/timers/{name}', 'operator'],
  ['GET', '/v1/scopes/{scope}/tools', 'viewer'],
  ['GET', '/v1/scopes/{scope}/metrics', 'viewer'],
  ['GET', '/v1/scopes/{scope}/cost', 'viewer'],
  ['POST', '/v1/scopes/{scope}/ag-ui', 'publisher'],
  ['POST', '/v1/openai/chat/completions', 'publisher'],
  ['POST', '/v1/openai/responses', 'publisher'],
  ['POST', '/v1/anthropic/messages', 'publisher'],
  ['POST', '/v1/anthropic/v1/messages', 'publisher'],
  ['GET', '/v1/openai/models', 'publisher'],
  ['GET', '/v1/openai/models/{model}', 'publisher'],
  ['GET', '/v1/anthropic/models', 'publisher'],
  ['GET', '/v1/anthropic/models/{model}', 'publisher'],
  ['GET', '/v1/anthropic/v1/models', 'publisher'],
  ['GET', '/v1/anthropic/v1/models/{model}', 'publisher'],
  ['GET', '/v1/certificates', 'viewer'],
  ['POST', '/v1/reflexes', 'operator'],
  ['GET', '/v1/reflexes', 'viewer'],
  ['GET', '/v1/reflexes/templates', 'viewer'],
  ['GET', '/v1/reflexes/{ref}', 'viewer'],
  ['POST', '/v1/reflexes/{ref}/run', 'viewer'],
  ['POST', '/v1/reflexes/{ref}/state', 'operator'],
  ['POST', '/v1/reflexes/{ref}/copy', 'operator'],
  ['POST', '/v1/reflexes/{ref}/sharing', 'operator'],
  ['POST', '/v1/reflexes/{id}/off', 'operator'],
  ['POST', '/v1/reflexes/{id}/rollback', 'operator'],
  ['GET', '/v1/reflexes/{id}/scopes', 'viewer'],
  ['GET', '/v1/reflexes/{ref}/metrics', 'viewer'],
  ['POST', '/v1/reflexes/{ref}/evaluate', 'viewer'],
  ['POST', '/v1/skills', 'operator'],
  ['GET', '/v1/skills', 'viewer'],
  ['GET', '/v1/skills/schema', 'viewer'],
  ['GET', '/v1/skills/sync', 'viewer'],
  ['GET', '/v1/skills/{ref}', 'viewer'],
  ['POST', '/v1/policy/check', 'viewer'],
  ['POST', '/v1/promotions', 'operator'],
  ['GET', '/v1/promotions', 'operator'],
  ['GET', '/v1/promotions/{id}', 'operator'],
  ['POST', '/v1/promotions/{id}/approve', 'operator'],
  ['POST', '/v1/promotions/{id}/reject', 'operator'],
  ['POST', '/v1/telemetry', 'publisher'],
  ['GET', '/v1/telemetry', 'viewer'],
  ['POST', '/v1/skills/{ref}/state', 'operator'],
  ['POST', '/v1/skills/{ref}/test', 'operator'],
  ['GET', '/v1/skills/{ref}/test', 'viewer'],
  ['GET', '/v1/scopes/{scope}/bulletin', 'viewer'],
  ['POST', '/v1/scopes/{scope}/skills/propose', 'publisher'],
  ['POST', '/v1/mcp', 'viewer', 'publisher'],
  ['POST', '/v1/mcp/inspect', 'viewer'],
  ['POST', '/v1/scopes/{scope}/a2a', 'viewer', 'publisher'],
  ['POST', '/v1/scopes/{scope}/events/{id}/feedback', 'operator'],
  ['POST', '/v1/market/listings', 'operator'],
  ['GET', '/v1/market/listings/{id}', 'viewer'],
  ['DELETE', '/v1/market/listings/{id}', 'operator'],
  ['POST', '/v1/market/listings/{id}/offers', 'operator'],
  ['GET', '/v1/market/deals', 'viewer'],
  ['GET', '/v1/market/deals/{id}', 'viewer'],
  ['POST', '/v1/market/deals/{id}/accept', 'operator'],
  ['POST', '/v1/market/deals/{id}/reject', 'operator'],
  ['POST', '/v1/market/deals/{id}/cancel', 'operator'],
  ['POST', '/v1/market/deals/{id}/refund', 'operator'],
  ['POST', '/v1/market/contracts', 'operator'],
  ['GET', '/v1/market/contracts', 'viewer'],
  ['GET', '/v1/market/contracts/{id}', 'viewer'],
  ['POST', '/v1/market/contracts/{id}/accept', 'operator'],
  ['POST', '/v1/market/contracts/{id}/reject', 'operator'],
  ['POST', '/v1/market/contracts/{id}/end', 'operator'],
  ['POST', '/v1/market/contracts/{id}/dispute', 'operator'],
  ['POST', '/v1/learn', 'operator'],
  ['GET', '/v1/learn/runs', 'viewer'],
  ['GET', '/v1/learn/runs/{id}', 'viewer'],
  ['GET', '/v1/learn/runs/{id}/evidence', 'viewer'],
  ['GET', '/v1/approvals', 'operator'],
  ['GET', '/v1/audit', 'operator'],
  ['GET', '/v1/alerts', 'viewer'],
  ['GET', '/v1/approvals/{id}', 'operator'],
  ['GET', '/v1/approvals/{id}/steps', 'operator'],
  ['POST', '/v1/approvals/{id}/approve', 'operator'],
  ['POST', '/v1/approvals/{id}/reject', 'operator'],
  ['GET', '/v1/traces/{trace_id}/export', 'viewer'],
  ['GET', '/v1/traces/{trace_id}/receipt', 'viewer'],
  ['POST', '/v1/traces/{trace_id}/opening', 'admin'],
  ['POST', '/v1/traces/{trace_id}/replay', 'viewer'],
  ['POST', '/v1/scopes/{scope}/replay', 'viewer'],
  ['POST', '/v1/replay', 'viewer'],
  ['GET', '/v1/scopes/{scope}/archive', 'viewer'],
  ['GET', '/v1/traces', 'viewer'],
  ['GET', '/v1/activity', 'viewer'],
  ['GET', '/v1/traces/{trace_id}', 'viewer'],
  ['GET', '/v1/stats', 'viewer'],
  ['GET', '/v1/stats/summary', 'viewer'],
  ['GET', '/v1/key', 'viewer', 'publisher'],
  ['GET', '/metrics', 'viewer'],
  ['GET', '/v1/market/listings', 'viewer'],
  ['POST', '/v1/market/listings/{id}/try', 'viewer'],
  ['GET', '/v1/incidents', 'viewer'],
  ['POST', '/v1/incidents/{id}/close', 'operator'],
  ['GET', '/v1/blocks', 'viewer'],
  ['DELETE', '/v1/blocks/{id}', 'operator'],
  ['GET', '/v1/dlq', 'operator'],
  ['GET', '/v1/waiting', 'viewer'],
  ['GET', '/v1/dlq/{id}', 'operator'],
  ['POST', '/v1/dlq/{id}/retry', 'operator'],
  ['POST', '/v1/dlq/retry', 'operator'],
  ['GET', '/v1/dlq/groups', 'operator'],
  ['POST', '/v1/dlq/jobs', 'operator'],
  ['GET', '/v1/dlq/jobs/{id}', 'operator'],
  ['DELETE', '/v1/dlq/{id}', 'operator'],
  ['PUT', '/v1/hooks/{name}', 'admin'],
  ['GET', '/v1/hooks', 'admin'],
  ['GET', '/v1/hooks/{name}', 'admin'],
  ['DELETE', '/v1/hooks/{name}', 'admin'],
  ['POST', '/v1/ledger/transfers', 'publisher'],
  ['POST', '/v1/ledger/mint', 'admin'],
  ['GET', '/v1/ledger/accounts', 'viewer'],
  ['GET', '/v1/ledger/accounts/{id}', 'viewer'],
  ['GET', '/v1/ledger/accounts/{id}/statement', 'viewer'],
  ['GET', '/v1/ledger/accounts/{id}/report', 'viewer'],
  ['GET', '/v1/ledger/audit', 'viewer'],
  ['POST', '/v1/keys', 'admin'],
  ['GET', '/v1/keys', 'admin'],
  ['DELETE', '/v1/keys/{id}', 'admin'],
]

const scope = 'access/one'
const address = (path: string, of = scope) =>
  path
    .replace('{scope}', encodeURIComponent(of))
    .replace('{id}', 'none')
    .replace('{name}', 'none')
    .replace('{ref}', 'none')
    .replace('{trace_id}', 'a'.repeat(32))
const keys = new Map<Role, string>()
let elsewhere = ''

beforeAll(async () => {
  for (const role of roles) keys.set(role, await keyFor([role], ['*']))
  elsewhere = await keyFor(['admin'], ['team-a/*'])
})

test('the description has the routes of the contract, and no other that needs a key', async () => {
  const { body } = await call('/v1/openapi.json', { key: null })
  const paths: Record<string, Record<string, { security?: unknown[]; 'x-reflex-roles'?: string[] }>> = body.paths
  const described = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { security, ...operation }]) =>
      security?.length ? [[method.toUpperCase(), path, ...(operation['x-reflex-roles'] ?? []).toSorted()].join(' ')] : [],
    ),
  )
  expect(described.toSorted()).toEqual(contract.map(([method, path, ...needs]) => [method, path, ...needs.toSorted()].join(' ')).toSorted())
})

/** Clients of model providers know errors in the form of their provider. */
const refusal = (path: string, status: number) =>
  /^\/v1\/(?:openai|anthropic)\//.test(path) ? { status, body: { error: { message: expect.any(String) } } } : problem(status)

describe.each(contract)('%s %s', (method, path, ...needs) => {
  test('refuses who has no key, or one that is not known', async () => {
    for (const key of [null, 'wrong']) {
      const answer = await call(address(path), { method, key })
      expect(answer).toMatchObject(refusal(path, 401))
      expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer')
    }
  })

  test('refuses a key without the role, and takes one with it', async () => {
    const sufficient = new Set(needs.flatMap((role) => holders[role]))
    for (const role of roles) {
      const answer = await begin(method, address(path), keys.get(role) ?? '')
      const { status } = answer
      expect([401, 403].includes(status), `${role}: ${status}`).toBe(!sufficient.has(role))
      expect(answer).toMatchObject(sufficient.has(role) ? {} : refusal(path, 403))
    }
  })
})

describe.each(contract.filter(([, path]) => path.includes('{scope}')))('%s %s', (method, path) => {
  test('refuses a key that does not cover the scope', async () => {
    expect(await call(address(path, 'team-b/x'), { method, key: elsewhere })).toMatchObject(problem(403))
    expect([401, 403]).not.toContain((await begin(method, address(path, 'team-a/x'), elsewhere)).status)
  })
})

/** The answer, but not the body of one that was taken: a stream has no end to wait for. */
async function begin(method: string, path: string, key: string): Promise<Answer> {
  const response = await fetchRaw(path, { method, key })
  if (!response.ok) return answerOf(response)
  await response.body?.cancel()
  return { status: response.status, type: '', headers: response.headers, body: null, text: '' }
}

test.each([`rfx_${'0'.repeat(16)}_${'A'.repeat(43)}`, `${adminKey}x`, adminKey.slice(1), ''])('the key «%s» is refused', async (key) => {
  expect(await call('/v1/scopes', { key })).toMatchObject(problem(401))
})

test('a request without a key is refused for that, and not as if none were configured, where only others than the admin have keys', async () => {
  await keyFor(['viewer'])
  expect(await callWith({ REFLEX_ADMIN_KEY: undefined }, '/v1/scopes', { key: null })).toMatchObject(problem(401, 'unauthenticated'))
})

test('scopes outside of a key read as not found', async () => {
  const [mine, theirs] = [freshScope('team-a'), freshScope('team-b')]
  const key = await keyFor(['operator'], ['team-a/*'])
  expect(await call('/v1/events', { key, json: [message({ scope: mine }), message({ scope: theirs })] })).toMatchObject(problem(403))
  const refused = await call('/v1/events', { key, json: [message({ scope: mine }), message({ scope: theirs })] })
  expect(refused.body).toMatchObject({ detail: expect.stringContaining(theirs), errors: [{ index: 1, path: 'scope' }] })
  await call('/v1/events', { json: [message({ scope: mine, id: `${mine}!` }), message({ scope: theirs, id: `${theirs}!` })] })
  const listed = await call('/v1/events?limit=1000', { key })
  expect(listed.body.items.map(({ scope }: { scope: string }) => scope)).toEqual([mine])
  expect(await call(`/v1/events/${encodeURIComponent(`${theirs}!`)}`, { key })).toMatchObject({ status: 404 })
  expect(await call(`/v1/events/${encodeURIComponent(`${mine}!`)}`, { key })).toMatchObject({ status: 200, body: { scope: mine } })
  const replayed = await call('/v1/events/replay', { key })
  expect(replayed.text.trim().split('\n')).toHaveLength(1)
  expect(await call(`/v1/events/replay?scope=${encodeURIComponent(theirs)}`, { key })).toMatchObject(problem(403))
})

describe('a key', () => {
  test('is shown once, lists without itself or its hash, works, and is refused once deleted', async () => {
    const created = await call('/v1/keys', { json: { name: 'ci ✓', roles: ['viewer', 'skill:deploy'], scopes: ['team-a/*'] } })
    expect(created).toMatchObject({ status: 201, body: { name: 'ci ✓', roles: ['viewer', 'skill:deploy'], scopes: ['team-a/*'] } })
    const { id, key } = created.body
    const listed = await call('/v1/keys')
    expect(listed.body.items.find((item: { id: string }) => item.id === id)).toEqual({
      id,
      name: 'ci ✓',
      roles: ['viewer', 'skill:deploy'],
      scopes: ['team-a/*'],
      created_at: expect.any(String),
      used_at: null,
    })
    expect(listed.text).not.toContain(key)
    expect(listed.text).not.toContain('hash')
    expect(await call('/v1/scopes', { key })).toMatchObject({ status: 200 })
    expect(await call(`/v1/keys/${id}`, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' })
    expect(await call('/v1/scopes', { key })).toMatchObject(problem(401))
    expect(await call(`/v1/keys/${id}`, { method: 'DELETE' })).toMatchObject(problem(404))
  })

  test.each([
    [{ name: 'x', roles: [], scopes: ['*'] }, 'roles'],
    [{ name: 'x', roles: ['viewer'], scopes: [] }, 'scopes'],
    [{ name: 'x', roles: ['viewer'], scopes: ['a b'] }, 'scopes[0]'],
    [{ name: 'x', roles: ['no such role!'], scopes: ['*'] }, 'roles[0]'],
    [{ name: 'x', roles: ['viewr'], scopes: ['*'] }, 'roles'],
    [{ name: '', roles: ['viewer'], scopes: ['*'] }, 'name'],
    [{ roles: ['viewer'], scopes: ['*'] }, 'name'],
    [{ name: 'x', roles: ['viewer'], scopes: ['*'], hash: 'x' }, ''],
  ])('is not made of %j', async (json, path) => {
    const answer = await call('/v1/keys', { json })
    expect(answer).toMatchObject(problem(400))
    expect(answer.body.errors[0].path).toBe(path)
  })

  test('of some scopes is shown only keys within them, also by the cursor, and its pages are full', async () => {
    const key = await keyFor(['admin'], ['team-e/*'])
    const make = (scopes: string[]) => call('/v1/keys', { json: { name: 'k', roles: ['viewer'], scopes } })
    for (const scopes of [['team-e/1'], ['team-e/2', 'team-f/2'], [`team-e/${'long'.repeat(20)}*`]]) await make(scopes)
    const mine = (await call('/v1/keys?limit=1000', { key })).body.items.map(({ id }: { id: string }) => id)
    expect(mine).toHaveLength(3)
    const pages: { items: { id: string }[]; next_cursor: string | null }[] = []
    for (let cursor: string | null = ''; cursor !== null; cursor = pages.at(-1)?.next_cursor ?? null) {
      pages.push((await call(`/v1/keys?limit=1${cursor && `&cursor=${cursor}`}`, { key })).body)
    }
    expect(pages.map(({ items }) => items.map(({ id }) => id))).toEqual(mine.map((id: string) => [id]))
    expect(pages.map(({ next_cursor }) => next_cursor?.split('.')[1])).toEqual([...mine.slice(0, -1), undefined])
  })

  test('of some scopes makes, lists and deletes keys within them only', async () => {
    const key = await keyFor(['admin'], ['team-c/*'])
    expect(await call('/v1/keys', { key, json: { name: 'in', roles: ['viewer'], scopes: ['team-c/x*'] } })).toMatchObject({ status: 201 })
    expect(await call('/v1/keys', { key, json: { name: 'out', roles: ['viewer'], scopes: ['team-c/x', '*'] } })).toMatchObject(problem(403))
    const { body } = await call('/v1/keys', { json: { name: 'other', roles: ['viewer'], scopes: ['team-d/*'] } })
    expect(await call(`/v1/keys/${body.id}`, { key, method: 'DELETE' })).toMatchObject(problem(404))
    const listed = await call('/v1/keys?limit=1000', { key })
    for (const { scopes } of listed.body.items) expect(scopes[0]).toMatch(/^team-c\//)
  })

  test('lists page by page, newest first, none twice', async () => {
    for (let index = 0; index < 5; index += 1) await keyFor(['viewer'], ['*'], `page-${index}`)
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const { body } = await call(`/v1/keys?limit=2${cursor && `&cursor=${cursor}`}`)
      expect(body.items.length).toBeLessThanOrEqual(2)
      seen.push(...body.items.map(({ id }: { id: string }) => id))
      cursor = body.next_cursor
    }
    expect(new Set(seen).size).toBe(seen.length)
    const { body } = await call('/v1/keys?limit=1000')
    expect(seen).toEqual(body.items.map(({ id }: { id: string }) => id))
  })
})

describe('a ticket', () => {
  const connect = async (of: string, ticket: string, kind = 'ws') => {
    const headers = kind === 'ws' ? { Upgrade: 'websocket' } : {}
    const response = await fetchRaw(`${scopePath(of)}/${kind}?ticket=${encodeURIComponent(ticket)}`, { key: null, headers })
    response.webSocket?.accept()
    response.webSocket?.close()
    await response.body?.cancel()
    return response.status
  }
  const issue = async (of: string, key?: string) => {
    const issued = await call(`${scopePath(of)}/tickets`, { method: 'POST', ...(key ? { key } : {}) })
    expect(issued).toMatchObject({ status: 201, body: { ticket: expect.stringMatching(/^rft_/), expires_at: expect.any(String) } })
    return String(issued.body.ticket)
  }

  test.each(['ws', 'stream'])('opens one connection, once (%s)', async (kind) => {
    const of = freshScope()
    const ticket = await issue(of)
    expect(await connect(of, ticket, kind)).toBe(kind === 'ws' ? 101 : 200)
    expect(await connect(of, ticket, kind)).toBe(401)
  })

  test('is good for its scope only, and for nothing else there', async () => {
    const [of, other] = [freshScope(), freshScope()]
    const ticket = await issue(of)
    expect(await connect(other, ticket)).toBe(401)
    expect(await call(`${scopePath(of)}?ticket=${ticket}`, { key: null })).toMatchObject({ status: 401 })
    expect(await connect(of, ticket)).toBe(101)
  })

  test('is refused when it is forged or too old', async () => {
    const of = freshScope()
    for (const forged of ['', 'rft_', `rft_${'0'.repeat(64)}`, "' OR 1=1"]) expect(await connect(of, forged)).toBe(401)
    const principal = { key_id: 'admin', name: 'admin', roles: ['admin'], scopes: ['*'] }
    const sign = async (secret: string, now: number) =>
      (await issueTicket(secret, { scope: of, principal, nonce: randomHex(16), now })).ticket
    expect(await connect(of, await sign(adminKey, Date.now() - limits.ticket_ms))).toBe(401)
    expect(await connect(of, await sign('another secret', Date.now()))).toBe(401)
    expect(await connect(of, await sign(adminKey, Date.now()))).toBe(101)
  })

  test('that this deployment did not sign wakes no object, whatever its form and its scope', async () => {
    const getByName = vi.fn<Env['SCOPE']['getByName']>()
    const sign = async (scope: string) => issueTicket('another secret', { scope, principal: viewer, nonce: randomHex(16), now: Date.now() })
    const viewer = { key_id: 'k', name: 'k', roles: ['viewer'], scopes: ['*'] }
    for (let i = 0; i < 20; i += 1) {
      const of = freshScope('made-up')
      const { ticket } = await sign(of)
      for (const forged of [ticket, `rft_${String(i).padStart(64, '0')}`, `${ticket}x`, ticket.replace('.', '.x')])
        expect(await callWith({ SCOPE: { getByName } }, scopePath(of, `/stream?ticket=${forged}`), { key: null })).toMatchObject(
          problem(401),
        )
    }
    expect(getByName).not.toHaveBeenCalled()
  })

  test('is not issued where nothing is configured to sign it with, and is not accepted there', async () => {
    const of = freshScope()
    const key = await keyFor(['viewer'])
    const unset = { REFLEX_ADMIN_KEY: undefined }
    expect(await callWith(unset, scopePath(of, '/tickets'), { method: 'POST', key })).toMatchObject(problem(409, 'tickets-not-configured'))
    expect(await callWith(unset, scopePath(of, `/stream?ticket=${await issue(of, key)}`), { key: null })).toMatchObject(problem(401))
  })

  test('is signed with a secret of its own where there is one', async () => {
    const of = freshScope()
    const own = { REFLEX_TICKET_SECRET: 'a secret for tickets alone' }
    const { body } = await callWith(own, scopePath(of, '/tickets'), { method: 'POST' })
    expect(await connect(of, body.ticket)).toBe(401)
    expect(await callWith(own, scopePath(of, `/ws?ticket=${body.ticket}`), { key: null })).toMatchObject(problem(426))
  })

  test('has the roles of the key that asked for it', async () => {
    const of = freshScope()
    const key = await keyFor(['publisher'])
    expect(await connect(of, await issue(of, key), 'stream')).toBe(403)
  })
})
