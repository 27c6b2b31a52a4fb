import { Webhook } from 'standardwebhooks'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, test } from 'vitest'
import { call, callWith, keyFor, problem, type Call } from '../../support/http.ts'
import { freshScope, logOf, stubOf, until } from '../../support/scopes.ts'
import github from '../../../templates/channels/github.json'
import slack from '../../../templates/channels/slack.json'
import telegram from '../../../templates/channels/telegram.json'

type Hook = { scope?: string; [field: string]: unknown }
const hookOf = async (name: string, changes: Hook = {}): Promise<string> => {
  const { scope = freshScope('hooks') } = changes
  const put = await call(`/v1/hooks/${name}`, { method: 'PUT', json: { scheme: schemes[name], ...changes, scope } })
  expect(put).toMatchObject({ status: 200, body: { name, scope, secret_set: true } })
  return scope
}
const schemes: Record<string, string> = { billing: 'standard', ci: 'github', shop: 'stripe', slack: 'slack', telegram: 'telegram' }
const secretOf = (name: string) => String(env[`REFLEX_HOOK_${name.toUpperCase()}`])

async function hmac(secret: string, text: string): Promise<string> {
  const encoder = new TextEncoder()
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(text)))
  return Array.from(signature, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

const push = {
  ref: 'refs/heads/main',
  after: '0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c',
  repository: { id: 186853002, full_name: 'Codertocat/Hello-World' },
  pusher: { name: 'Codertocat' },
  commits: [
    { id: 'a1', message: 'Fix the door', author: { name: 'Ann' } },
    { id: 'b2', message: 'Paint it', author: { name: 'Bob' } },
  ],
}

/** Signed as the official sender of each scheme does. */
const signed: Record<string, (body: string, options?: { id?: string; at?: number }) => Promise<Record<string, string>>> = {
  billing: async (body, { id = crypto.randomUUID(), at = Date.now() } = {}) => ({
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': new Webhook(secretOf('billing')).sign(id, new Date(at), body),
  }),
  ci: async (body, { id = crypto.randomUUID() } = {}) => ({
    'x-github-event': 'push',
    'x-github-delivery': id,
    'x-hub-signature-256': `sha256=${await hmac(secretOf('ci'), body)}`,
  }),
  shop: async (body, { at = Date.now() } = {}) => {
    const time = Math.floor(at / 1000)
    return { 'stripe-signature': `t=${time},v0=ignored,v1=${await hmac(secretOf('shop'), `${time}.${body}`)}` }
  },
  slack: async (body, { at = Date.now() } = {}) => {
    const time = String(Math.floor(at / 1000))
    return { 'x-slack-request-timestamp': time, 'x-slack-signature': `v0=${await hmac(secretOf('slack'), `v0:${time}:${body}`)}` }
  },
  telegram: async () => ({ 'x-telegram-bot-api-secret-token': secretOf('telegram') }),
}

async function deliver(name: string, content: unknown, { headers, ...options }: Call & { id?: string; at?: number } = {}) {
  const body = typeof content === 'string' ? content : JSON.stringify(content)
  const own = (await signed[name]?.(body, options)) ?? {}
  return call(`/v1/hooks/${name}`, {
    key: null,
    body,
    headers: { ...own, ...headers },
    ...(options.type !== undefined && { type: options.type }),
  })
}

const countsOf = async (name: string): Promise<Record<string, number>> => (await call(`/v1/hooks/${name}`)).body.counts
const bodies: Record<string, unknown> = {
  billing: { type: 'invoice.paid', data: { id: 'in_1' } },
  ci: push,
  shop: { id: 'evt_1', type: 'charge.failed' },
}

describe.each(['billing', 'ci', 'shop'])('a hook with the scheme of %s', (name) => {
  test('takes what its sender signed as an event of its scope', async () => {
    const scope = await hookOf(name)
    const { status, body } = await deliver(name, bodies[name])
    expect({ status, body }).toMatchObject({ status: 202, body: { accepted: 1, events: [{ scope, status: 'accepted' }] } })
    const record = await stubOf(scope).event(body.events[0].id)
    expect(record?.event).toMatchObject({ type: 'http.request', source: `hook:${name}`, path: `/v1/hooks/${name}`, body: bodies[name] })
  })

  test('gives a repeated delivery the receipt of the first, and accepts it once', async () => {
    const scope = await hookOf(name)
    const first = await deliver(name, bodies[name], { id: 'again' })
    const second = await deliver(name, bodies[name], { id: 'again' })
    const [receipt] = first.body.events
    expect(second).toMatchObject({ status: 202, body: { accepted: 0, events: [{ ...receipt, status: 'duplicate' }] } })
    expect((await stubOf(scope).state()).counters.accepted).toBe(1)
  })

  test('refuses a changed body, a wrong signature and none, and nothing is left of them', async () => {
    const scope = await hookOf(name)
    const body = JSON.stringify(bodies[name])
    const headers = (await signed[name]?.(body)) ?? {}
    const wrong = Object.fromEntries(
      Object.entries(headers).map(([header, value]) => [
        header,
        header.includes('signature') ? value.replace(/.{10}$/, 'AAAAAAAAAA') : value,
      ]),
    )
    for (const [sent, by] of [
      [`${body} `, headers],
      [body, wrong],
      [body, {}],
    ] as const)
      expect(await call(`/v1/hooks/${name}`, { key: null, body: sent, headers: by })).toMatchObject(problem(401, 'bad-signature'))
    expect(await logOf(stubOf(scope))).toEqual([])
    const counts = await until(async () => ((await countsOf(name))['bad-signature'] ?? 0) >= 3 && countsOf(name), 'they are counted')
    expect(counts['bad-signature']).toBeGreaterThanOrEqual(3)
  })

  test.each([
    ['a text', { content: 'hello', type: 'text/plain' }, 415, 'unsupported-media-type'],
    ['text that is not JSON', { content: 'not json' }, 400, 'malformed-body'],
    ['an empty body', { content: '' }, 400, 'malformed-body'],
    ['a body over the limit', { content: JSON.stringify({ text: 'x'.repeat(1_100_000) }) }, 413, 'body-too-large'],
    ['a body too large for an event', { content: JSON.stringify({ text: 'x'.repeat(200_000) }) }, 413, 'event-too-large'],
  ])('refuses %s', async (_, { content = '{}', type }: { content?: string; type?: string }, status, kind) => {
    const scope = await hookOf(name)
    const headers = (await signed[name]?.(content)) ?? {}
    const sent = { key: null, method: 'POST', headers, body: content, ...(type !== undefined && { type }) }
    expect(await call(`/v1/hooks/${name}`, sent)).toMatchObject(problem(status, kind))
    expect(await logOf(stubOf(scope))).toEqual([])
  })
})

test.each(['billing', 'shop'])('a delivery to %s that was signed long ago, or in the future, is refused', async (name) => {
  const scope = await hookOf(name)
  for (const at of [Date.now() - 600_000, Date.now() + 600_000])
    expect(await deliver(name, bodies[name], { at })).toMatchObject(problem(401, 'stale-delivery'))
  expect(await logOf(stubOf(scope))).toEqual([])
})

const FORM = 'application/x-www-form-urlencoded'

test('a body that is JSON is read as JSON, whatever its Content-Type says', async () => {
  const forged = { action: 'opened', issue: { title: 'ho&action=deploy-to-production&x=' } }
  for (const form of [false, true]) {
    const scope = await hookOf('ci', { form, event: { type: '"ws.message"', connection_id: '"gh"', content: 'body.action' } })
    const { body } = await deliver('ci', forged, { type: FORM })
    expect((await stubOf(scope).event(body.events[0].id))?.event).toMatchObject({ content: 'opened' })
    expect(await deliver('ci', forged, { type: 'text/plain' })).toMatchObject({ body: { events: [{ status: 'duplicate' }] } })
  }
})

test('a form is refused by a hook that does not expect forms', async () => {
  const scope = await hookOf('ci')
  const refused = await deliver('ci', 'tag=a', { type: FORM })
  expect(refused).toMatchObject(problem(400, 'malformed-body'))
  expect(refused.body.detail).toContain('set `form` of the hook to true')
  expect(await logOf(stubOf(scope))).toEqual([])
})

test('a form of GitHub is taken as the JSON in its field, under the signature of the whole form', async () => {
  const scope = await hookOf('ci', { form: true })
  const type = 'application/x-www-form-urlencoded'
  const { status, body } = await deliver('ci', `payload=${encodeURIComponent(JSON.stringify(push))}`, { type })
  expect({ status, body }).toMatchObject({ status: 202, body: { accepted: 1 } })
  expect((await stubOf(scope).event(body.events[0].id))?.event).toMatchObject({ body: push })
  expect(await deliver('ci', 'payload=%7Bbroken', { type })).toMatchObject(problem(400, 'malformed-body'))
})

test('deliveries are counted for Prometheus, for keys that cover the scope of the hook', async () => {
  const scope = await hookOf('shop')
  await deliver('shop', bodies['shop'])
  const line = /^reflex_hook_deliveries_total\{hook="shop",result="accepted"\} \d+$/m
  await until(async () => line.test((await call('/metrics', { key: await keyFor(['viewer'], [scope]) })).text), 'it is counted')
  expect((await call('/metrics', { key: await keyFor(['viewer'], ['elsewhere/*']) })).text).not.toContain('hook="')
})

test('any other form is an object of texts, and of lists where a field is repeated', async () => {
  const scope = await hookOf('ci', { form: true })
  const { body } = await deliver('ci', 'tag=a&text=two+words&tag=b', { type: 'application/x-www-form-urlencoded; charset=UTF-8' })
  expect((await stubOf(scope).event(body.events[0].id))?.event).toMatchObject({ body: { tag: ['a', 'b'], text: 'two words' } })
})

test('a body of GitHub that is replayed under another delivery id is a duplicate', async () => {
  const scope = await hookOf('ci')
  await deliver('ci', push, { id: 'one' })
  expect(await deliver('ci', push, { id: 'two' })).toMatchObject({ status: 202, body: { accepted: 0 } })
  expect((await stubOf(scope).state()).counters.accepted).toBe(1)
})

describe('a mapping', () => {
  test('makes the fields of one event for each item of a list', async () => {
    const scope = await hookOf('ci', {
      when: 'headers["x-github-event"] == "push" && body.ref == "refs/heads/main"',
      each: 'body.commits',
      event: {
        type: '"ws.message"',
        id: 'body.repository.full_name + ":" + item.id',
        connection_id: 'body.pusher.name',
        content: 'item.author.name + ": " + item.message',
        repository: 'body.repository.id',
      },
    })
    const { body } = await deliver('ci', push)
    expect(body).toMatchObject({ accepted: 2, events: [{ id: 'Codertocat/Hello-World:a1' }, { id: 'Codertocat/Hello-World:b2' }] })
    expect((await stubOf(scope).event('Codertocat/Hello-World:b2'))?.event).toMatchObject({
      content: 'Bob: Paint it',
      connection_id: 'Codertocat',
      repository: 186853002,
    })
  })

  test('ignores what its condition leaves out, without an event', async () => {
    const scope = await hookOf('ci', { when: 'body.ref == "refs/heads/main"' })
    expect(await deliver('ci', { ...push, ref: 'refs/heads/other' })).toMatchObject({ status: 202, body: { accepted: 0, events: [] } })
    expect(await logOf(stubOf(scope))).toEqual([])
    await until(async () => (await countsOf('ci'))['ignored'], 'it is counted')
  })

  test.each([
    ['a field that the body lacks', { event: { type: '"ws.message"', content: 'body.nothing.here' } }, 'invalid-request'],
    ['a text instead of a list', { each: 'body.ref' }, 'invalid-request'],
    ['an unknown type of event', { event: { type: 'body.ref' } }, 'unknown-type'],
    ['an event without a required field', { event: { type: '"ws.message"' } }, 'invalid-event'],
  ])('with %s refuses the delivery as a whole', async (_, mapping, kind) => {
    const scope = await hookOf('ci', mapping)
    expect(await deliver('ci', push)).toMatchObject(problem(400, kind))
    expect(await logOf(stubOf(scope))).toEqual([])
  })

  test.each([
    ['an expression that is not CEL', { when: 'body ==' }],
    ['a condition that is a number', { when: '1 + 1' }],
    ['an unknown variable', { when: 'secret == "x"' }],
    ['an unknown function', { event: { type: 'steal(body)' } }],
    ['a pattern that the sender writes', { when: 'body.ref.matches(body.pattern)' }],
    ['an event without a type', { event: { content: '"x"' } }],
    ['an event that names its scope', { event: { type: '"ws.message"', scope: '"other"' } }],
    ['an event that sets its trace', { event: { type: '"ws.message"', meta: 'body' } }],
    ['an unknown scheme', { scheme: 'trust-me' }],
    ['a scope that is not one', { scope: 'a b' }],
  ])('with %s is refused', async (_, changes) => {
    const json = { scope: freshScope('hooks'), scheme: 'github', ...changes }
    expect(await call('/v1/hooks/ci', { method: 'PUT', json })).toMatchObject(problem(400))
  })
})

describe('the types of a hook', () => {
  const mapping = { event: { type: '"mail.received"', subject: 'body.ref' } }
  const declare = (scope: string) =>
    call(`/v1/scopes/${encodeURIComponent(scope)}`, {
      method: 'PATCH',
      json: { event_types: { 'mail.received': { type: 'object', properties: { subject: { type: 'string' } }, required: ['subject'] } } },
    })

  test('are those of the deployment and those that its scope declares', async () => {
    const scope = freshScope('hooks')
    expect((await declare(scope)).status).toBe(200)
    await hookOf('ci', { scope, ...mapping })
    const { status, body } = await deliver('ci', push)
    expect({ status, body }).toMatchObject({ status: 202, body: { accepted: 1 } })
    expect((await stubOf(scope).event(body.events[0].id))?.event).toMatchObject({ type: 'mail.received', subject: push.ref })
    expect(await deliver('ci', { ref: 7 })).toMatchObject(problem(400, 'invalid-event'))
  })

  test('are checked when the hook is set: an unknown one is refused, and the known ones are named', async () => {
    const put = await call('/v1/hooks/ci', { method: 'PUT', json: { scope: freshScope('hooks'), scheme: 'github', ...mapping } })
    expect(put).toMatchObject(problem(400, 'unknown-type'))
    expect(put.body.detail).toMatch(/no type mail\.received.*ws\.message/)
  })
})

describe('a scope with placeholders', () => {
  const mapping = { event: { type: '"ws.message"', connection_id: '"mail"', content: 'body.text' } }

  test('is one scope for each value, and no value leaves its place', async () => {
    const prefix = freshScope('hooks')
    await hookOf('ci', { scope: `${prefix}/{{body.from}}`, ...mapping })
    const scopes = await Promise.all(
      ['ann@example.com', '../admin', 'ü'].map(async (from) => (await deliver('ci', { from, text: 'hi' })).body.events[0].scope),
    )
    expect(scopes).toEqual([`${prefix}/ann@example.com`, `${prefix}/..:2Fadmin`, `${prefix}/:C3:BC`])
    expect((await stubOf(`${prefix}/ann@example.com`).state()).counters.accepted).toBe(1)
    for (const from of ['', 'x'.repeat(120), ['a'], undefined])
      expect(await deliver('ci', { from, text: 'hi' })).toMatchObject(problem(400, 'invalid-request'))
  })

  test('is for admins who cover every scope that it can name', async () => {
    const key = await keyFor(['admin'], ['team-p/*', 'team-q/a'])
    const put = (scope: string) => call('/v1/hooks/places', { method: 'PUT', json: { scope, scheme: 'github' }, key })
    expect(await put('team-q/{{body.from}}')).toMatchObject(problem(403))
    expect(await put('team-p/{{body.from}}')).toMatchObject({ status: 200, body: { scope: 'team-p/{{body.from}}' } })
    expect((await call('/v1/hooks', { key })).body.items).toMatchObject([{ name: 'places', scope: 'team-p/{{body.from}}' }])
    expect((await call('/v1/hooks/places', { method: 'DELETE', key })).status).toBe(204)
  })

  test.each(['{{body.from}}', 'a/{{headers.host}}', 'a/{{item.id}}', 'a/{{body.from', 'a/{{}}', 'a b/{{body.from}}', 'a/{{1 +}}'])(
    'is refused as %s',
    async (scope) => {
      expect(await call('/v1/hooks/ci', { method: 'PUT', json: { scope, scheme: 'github' } })).toMatchObject(problem(400))
    },
  )

  test('warns of a type that the deployment does not have, since each scope has to declare it', async () => {
    const json = { scope: `${freshScope('hooks')}/{{body.from}}`, scheme: 'github', event: { type: '"mail.received"' } }
    const { body } = await call('/v1/hooks/ci', { method: 'PUT', json })
    expect(body.warnings).toEqual([expect.stringContaining('mail.received')])
  })
})

describe('hooks', () => {
  test('that read an unsigned header are taken with a warning, and signed ones without', async () => {
    const put = async (scheme: string, when: string) =>
      (await call('/v1/hooks/warned', { method: 'PUT', json: { scope: freshScope('hooks'), scheme, when } })).body.warnings
    expect(await put('github', 'headers["x-github-event"] == "push"')).toEqual([expect.stringMatching(/^when: .* header x-github-event/)])
    expect(await put('standard', 'headers["webhook-id"] != ""')).toBeUndefined()
    expect(await put('github', 'has(body.commits)')).toBeUndefined()
  })

  test('are for admins whose key covers the scope', async () => {
    const key = await keyFor(['admin'], ['team-h/*'])
    const json = { scope: 'team-h/one', scheme: 'github' }
    expect((await call('/v1/hooks/theirs', { method: 'PUT', json: { ...json, scope: 'team-i/one' } })).status).toBe(200)
    expect(await call('/v1/hooks/theirs', { method: 'PUT', json, key })).toMatchObject(problem(403))
    expect(await call('/v1/hooks/mine', { method: 'PUT', json: { ...json, scope: 'team-i/one' }, key })).toMatchObject(problem(403))
    expect((await call('/v1/hooks/mine', { method: 'PUT', json, key })).status).toBe(200)
    expect(await call('/v1/hooks/theirs', { key })).toMatchObject(problem(404))
    expect(await call('/v1/hooks/theirs', { method: 'DELETE', key })).toMatchObject(problem(404))
    expect((await call('/v1/hooks', { key })).body.items.map(({ name }: { name: string }) => name)).toEqual(['mine'])
    expect((await call('/v1/hooks/mine', { method: 'DELETE', key })).status).toBe(204)
    expect(await call('/v1/hooks/mine')).toMatchObject(problem(404))
  })

  test('take no secret that the deployment does not list for their scope, unless a key of all scopes says so', async () => {
    const key = await keyFor(['admin'], ['team-h/*', 'team-i/*'])
    const put = (name: string, scope: string, by?: string) =>
      call(`/v1/hooks/${name}`, { method: 'PUT', json: { scope, scheme: 'github' }, ...(by !== undefined && { key: by }) })
    expect(await put('untaken', 'team-h/one', key)).toMatchObject({
      status: 403,
      body: { detail: expect.stringContaining('REFLEX_HOOK_UNTAKEN_SCOPES') },
    })
    for (const by of [key, undefined]) expect(await put('mine', 'team-i/one', by)).toMatchObject(problem(403))
    const mine = await put('mine', 'team-h/one', key)
    expect(mine).toMatchObject({ status: 200 })
    const elsewhere = { REFLEX_HOOK_MINE: 'x', REFLEX_HOOK_MINE_SCOPES: 'team-i/*' }
    const [body, address] = ['{}', `/v1/hooks/${mine.body.address}`]
    expect(await callWith(elsewhere, address, { key: null, body })).toMatchObject(problem(401))
    const headers = { 'x-hub-signature-256': `sha256=${await hmac('x', body)}` }
    expect(await callWith(elsewhere, address, { key: null, body, headers })).toMatchObject({
      status: 503,
      body: { detail: expect.stringContaining('REFLEX_HOOK_MINE_SCOPES') },
    })
    expect((await put('kept', 'team-h/one')).status).toBe(200)
    expect(await put('kept', 'team-h/one', key)).toMatchObject({ status: 200 })
    expect(await put('kept', 'team-h/two', key)).toMatchObject(problem(403))
    const http_tools = [
      {
        name: 'http.x',
        description: 'x',
        method: 'GET',
        url: 'https://tickets.example.com/',
        secret_headers: { authorization: 'REFLEX_TOOL_NOWHERE' },
      },
    ]
    const patch = { method: 'PATCH', json: { http_tools, allowed_hosts: ['tickets.example.com'] }, key }
    const named = await call(`/v1/scopes/${encodeURIComponent('team-h/one')}`, patch)
    expect(named).toMatchObject({ status: 403, body: { detail: expect.stringContaining('REFLEX_TOOL_NOWHERE_SCOPES') } })
  })

  test.each(['no-such', 'UPPER', 'a-hosts', 'a-scopes'])('that do not exist, as %s, are refused', async (name) => {
    expect([400, 404]).toContain((await call(`/v1/hooks/${name}`, { key: null, json: {} })).status)
  })

  test('whose secret the deployment lacks take nothing, and say so to the admin', async () => {
    const json = { scope: freshScope('hooks'), scheme: 'github' }
    expect((await call('/v1/hooks/unset', { method: 'PUT', json })).body).toMatchObject({ secret: 'REFLEX_HOOK_UNSET', secret_set: false })
    expect(await call('/v1/hooks/unset', { key: null, json: {} })).toMatchObject(problem(503))
  })

  test('show no secret, and a malformed one is not quoted', async () => {
    await hookOf('billing')
    expect((await call('/v1/hooks')).text).not.toContain('whsec_')
    const refused = await callWith({ REFLEX_HOOK_BILLING: 'whsec_not base64 !' }, '/v1/hooks/billing', {
      key: null,
      body: '{}',
      headers: (await signed['billing']?.('{}')) ?? {},
    })
    expect(refused).toMatchObject(problem(503))
    expect(refused.text).not.toContain('base64 !')
  })
})

describe('hooks of one name in two tenants', () => {
  const tenants = { a: 'tenant-a', b: 'tenant-b' } as const
  const keys = { a: '', b: '' }
  beforeAll(async () => {
    for (const tenant of ['a', 'b'] as const) keys[tenant] = await keyFor(['admin'], [`${tenants[tenant]}/*`])
  })
  const secret = (tenant: 'a' | 'b') => `REFLEX_HOOK_CI_${tenant.toUpperCase()}`
  const put = (tenant: 'a' | 'b', { name = 'both', scope = 'x', ...more }: Record<string, unknown> = {}) => {
    const json = { scope: `${tenants[tenant]}/${String(scope)}`, scheme: 'github', secret: secret(tenant), ...more }
    return call(`/v1/hooks/${String(name)}`, { method: 'PUT', json, key: keys[tenant] })
  }
  const send = async (address: string, tenant: 'a' | 'b') => {
    const body = JSON.stringify(push)
    const headers = { 'x-hub-signature-256': `sha256=${await hmac(String(env[`REFLEX_HOOK_CI_${tenant === 'a' ? 'A' : 'B'}`]), body)}` }
    return call(`/v1/hooks/${address}`, { key: null, body, headers })
  }
  const known = (key: string) =>
    call('/v1/hooks', { key }).then(({ body }) => body.items.map(({ address }: { address: string }) => address))

  test('have an address, a secret, deliveries, counts and ids of their own', async () => {
    const [a, b] = [(await put('a')).body, (await put('b')).body]
    expect(a).toMatchObject({ name: 'both', scope: 'tenant-a/x', secret: 'REFLEX_HOOK_CI_A', secret_set: true })
    expect(a.address).toMatch(/^both\.[0-9a-f]{12}$/)
    expect(b.address).not.toBe(a.address)
    expect([a.warnings, b.warnings]).toEqual([undefined, undefined])
    // Each tenant's PUT and GET of the name mean its own hook.
    expect((await put('a', { when: 'has(body.commits)' })).body.address).toBe(a.address)
    expect((await call('/v1/hooks/both', { key: keys.b })).body).toMatchObject({ address: b.address, counts: {} })
    expect((await call('/v1/hooks/both', { key: keys.b })).body).not.toHaveProperty('when')

    const { body: first } = await send(a.address, 'a')
    expect(first).toMatchObject({ accepted: 1, events: [{ scope: 'tenant-a/x', status: 'accepted' }] })
    expect((await send(a.address, 'a')).body).toMatchObject({ accepted: 0, events: [{ status: 'duplicate' }] })
    // The secret of the one hook signs no delivery of the other.
    expect(await send(b.address, 'a')).toMatchObject(problem(401, 'bad-signature'))
    expect(await send('both', 'a')).toMatchObject(problem(404))
    const record = await stubOf('tenant-a/x').event(first.events[0].id)
    expect(record?.event).toMatchObject({ source: 'hook:both', path: `/v1/hooks/${a.address}` })
    expect((await stubOf('tenant-b/x').state()).counters.accepted).toBe(0)
    const own = { a: { accepted: 1, duplicate: 1 }, b: { 'bad-signature': 1 } }
    for (const tenant of ['a', 'b'] as const) {
      const counts = async () => (await call('/v1/hooks/both', { key: keys[tenant] })).body.counts
      const sum = (counted: object) => Object.values(counted).reduce((all: number, one: number) => all + one, 0)
      await until(async () => sum(await counts()) >= sum(own[tenant]), 'they are counted')
      expect(await counts()).toEqual(own[tenant])
    }
    const metrics = (await call('/metrics', { key: await keyFor(['viewer'], ['tenant-a/*']) })).text
    expect(metrics).toContain(`hook="${a.address}"`)
    expect(metrics).not.toContain(b.address)
  })

  test('are not seen, changed or deleted by the other tenant, which gets the answers of a name that is free', async () => {
    const a = (await put('a', { name: 'hidden' })).body
    // The plain name of this one is taken by a key of all scopes.
    await call('/v1/hooks/taken', { method: 'PUT', json: { scope: 'tenant-a/x', scheme: 'github' } })
    for (const name of ['hidden', 'taken', 'free', a.address]) {
      expect(await call(`/v1/hooks/${name}`, { key: keys.b })).toMatchObject(problem(404))
      expect(await call(`/v1/hooks/${name}`, { method: 'DELETE', key: keys.b })).toMatchObject(problem(404))
    }
    const answers = await Promise.all(['hidden', 'taken', 'free'].map(async (name) => (await put('b', { name, scope: name })).body))
    for (const answer of answers) {
      expect(answer.address).toMatch(/^[a-z]+\.[0-9a-f]{12}$/)
      expect(answer).not.toHaveProperty('warnings')
    }
    const refusals = await Promise.all(['hidden', 'taken', 'free'].map((name) => put('b', { name, secret: undefined })))
    for (const [index, name] of ['hidden', 'taken', 'free'].entries())
      expect(refusals[index]).toMatchObject({ status: 403, body: { detail: expect.stringContaining(`REFLEX_HOOK_${name.toUpperCase()}`) } })
    expect(await put('b', { name: a.address })).toMatchObject(problem(404))
    expect((await known(keys.b)).every((address: string) => address !== a.address && address !== 'taken')).toBe(true)
    expect((await call('/v1/hooks/hidden', { key: keys.a })).body).toMatchObject({ address: a.address, scope: 'tenant-a/x' })
    expect((await call('/v1/hooks/taken')).body).toMatchObject({ address: 'taken', scope: 'tenant-a/x' })
  })

  test('are distinguished by their addresses where a key covers both', async () => {
    const a = (await put('a', { name: 'shared' })).body
    const b = (await put('b', { name: 'shared' })).body
    const both = await keyFor(['admin'], ['tenant-a/*', 'tenant-b/*'])
    const refused = await call('/v1/hooks/shared', { key: both })
    expect(refused).toMatchObject(problem(409, 'ambiguous-name'))
    for (const { address } of [a, b]) expect(refused.body.detail).toContain(address)
    expect(await call('/v1/hooks/shared', { method: 'DELETE', key: both })).toMatchObject(problem(409))
    // A key of all scopes goes by addresses: the name is free for a hook of the deployment.
    expect(await call('/v1/hooks/shared')).toMatchObject(problem(404))
    const json = { scope: freshScope('hooks'), scheme: 'github' }
    expect((await call('/v1/hooks/shared', { method: 'PUT', json })).body).toMatchObject({ address: 'shared', name: 'shared' })
    expect((await call(`/v1/hooks/${a.address}`, { key: both })).body).toMatchObject({ scope: 'tenant-a/x' })
    expect((await call(`/v1/hooks/${a.address}`, { method: 'DELETE', key: both })).status).toBe(204)
    expect((await call('/v1/hooks/shared', { key: both })).body).toMatchObject({ address: b.address })
  })

  test('are one for each scope, also of those that are made at once, and move at their address', async () => {
    const made = await Promise.all(Array.from({ length: 4 }, () => put('a', { name: 'raced' })))
    expect(made.every(({ status }) => status === 200 || status === 409)).toBe(true)
    const { address } = (await call('/v1/hooks/raced', { key: keys.a })).body
    expect((await put('a', { name: address, scope: 'y' })).body).toMatchObject({ address, scope: 'tenant-a/y' })
    const other = (await put('a', { name: 'raced' })).body
    expect(other.warnings).toEqual([expect.stringContaining(`${address} of tenant-a/y`)])
    const names = (await call('/v1/hooks?limit=1', { key: keys.a })).body
    const next = (await call(`/v1/hooks?limit=100&cursor=${names.next_cursor}`, { key: keys.a })).body
    expect([...names.items, ...next.items].map((item: { address: string }) => item.address)).toEqual(await known(keys.a))
  })

  test('that stood before addresses keep their address, whoever sets them again', async () => {
    await env.DB.prepare(`INSERT INTO hooks (name, scope, scheme, mapping, created_at) VALUES ('older', 'tenant-a/x', 'github', ?, 1)`)
      .bind(JSON.stringify({ secret: 'REFLEX_HOOK_CI_A' }))
      .run()
    const { body } = await send('older', 'a')
    expect(body.events[0].id).toMatch(/^older:[0-9a-f]{40}$/)
    expect((await put('a', { name: 'older', scope: 'y' })).body).toMatchObject({ address: 'older', scope: 'tenant-a/y' })
    expect((await put('b', { name: 'older' })).body.address).toMatch(/^older\./)
    expect((await send('older', 'a')).body).toMatchObject({ events: [{ scope: 'tenant-a/y' }] })
  })
})

test('a delivery that is a notice counts the notices behind its events, in what is signed', async () => {
  const scope = await hookOf('billing')
  const uuid = crypto.randomUUID()
  const senderOf = async (id: string) => {
    const { body } = await deliver('billing', bodies['billing'], { id })
    return (await call(`/v1/scopes/${encodeURIComponent(scope)}/events/${body.events[0].id}`)).body.event.meta.sender
  }
  expect(await senderOf('msg_1')).toBe('key:hook:billing')
  expect(await senderOf(`ntc_${uuid}`)).toBe('key:hook:billing#h1')
  expect(await senderOf(`ntc_${uuid}_h9`)).toBe('key:hook:billing#h9')
})

/** As Slack and Telegram document their deliveries. */
const said = {
  token: 'XXYYZZ',
  team_id: 'T123ABC456',
  api_app_id: 'A123ABC456',
  event: {
    type: 'message',
    channel: 'C123ABC456',
    user: 'U123ABC456',
    text: 'Is the shop open?',
    ts: '1355517523.000005',
    event_ts: '1355517523.000005',
    channel_type: 'channel',
  },
  type: 'event_callback',
  event_id: 'Ev123ABC456',
  event_time: 1_355_517_523,
}
const update = {
  update_id: 10_000,
  message: {
    date: 1_441_645_532,
    chat: { last_name: 'Test', id: 1_111_111, first_name: 'Ann', username: 'Ann' },
    message_id: 1365,
    from: { last_name: 'Test', id: 1_111_111, first_name: 'Ann', username: 'Ann' },
    text: '/start',
  },
}

/** The delivery that GitHub documents for a comment on an issue, in part. */
const comment = {
  action: 'created',
  issue: { number: 1, title: 'Spelling error in the README file', user: { login: 'Codertocat' } },
  comment: { id: 492_700_400, user: { login: 'Codertocat' }, body: "You are totally right! I'll get this fixed right away." },
  repository: { id: 186_853_002, full_name: 'Codertocat/Hello-World' },
  sender: { login: 'Codertocat', type: 'User' },
}

describe('a channel', () => {
  test('of GitHub has a scope for each issue, and leaves out bots, edits and its own replies', async () => {
    const { scope: _scope, ...declared } = github
    const beginning = freshScope('github')
    await hookOf('ci', { ...declared, scope: `${beginning}/{{body.issue.number}}` })
    const sent = (changes: object) => deliver('ci', { ...comment, ...changes })
    const { status, body } = await sent({})
    expect({ status, body }).toMatchObject({ status: 202, body: { accepted: 1, events: [{ scope: `${beginning}/1` }] } })
    expect((await stubOf(`${beginning}/1`).event(body.events[0].id))?.event).toMatchObject({
      type: 'ws.message',
      connection_id: 'Codertocat',
      content: comment.comment.body,
    })
    for (const changes of [
      { action: 'edited' },
      { sender: { login: 'renovate[bot]', type: 'Bot' } },
      { comment: { ...comment.comment, body: '<!-- reflex -->\nHello.' } },
    ])
      expect((await sent(changes)).body).toEqual({ accepted: 0, events: [] })
  })

  test('that `reflex add channel` writes is a hook that the server takes', async () => {
    for (const [name, declared] of Object.entries({ ci: github, slack, telegram }))
      expect(await call(`/v1/hooks/${name}`, { method: 'PUT', json: declared })).toMatchObject({
        status: 200,
        body: { scope: declared.scope, scheme: declared.scheme },
      })
  })

  test('of Slack has a scope for each thread, ignores bots, and takes a delivery once', async () => {
    const beginning = freshScope('slack')
    await hookOf('slack', {
      scope: `${beginning}/{{body.event.channel}}/{{has(body.event.thread_ts) ? body.event.thread_ts : body.event.ts}}`,
      when: 'body.type == "event_callback" && body.event.type == "message" && !has(body.event.bot_id) && !has(body.event.subtype)',
      event: { type: '"ws.message"', connection_id: 'body.event.user', content: 'body.event.text' },
    })
    const scope = `${beginning}/C123ABC456/1355517523.000005`
    const { status, body } = await deliver('slack', said)
    expect({ status, body }).toMatchObject({ status: 202, body: { accepted: 1, events: [{ scope }] } })
    expect((await stubOf(scope).event(body.events[0].id))?.event).toMatchObject({
      content: 'Is the shop open?',
      connection_id: 'U123ABC456',
    })
    // Slack signs a repetition again, at its own time.
    expect((await deliver('slack', said, { at: Date.now() + 2000 })).body).toMatchObject({ accepted: 0, events: [{ status: 'duplicate' }] })
    const answer = { ...said, event_id: 'Ev2', event: { ...said.event, ts: '1355517599.000001', thread_ts: said.event.ts } }
    expect((await deliver('slack', answer)).body).toMatchObject({ accepted: 1, events: [{ scope }] })
    const bot = { ...said, event_id: 'Ev3', event: { ...said.event, bot_id: 'B1' } }
    expect((await deliver('slack', bot)).body).toEqual({ accepted: 0, events: [] })
  })

  test('of Slack answers the question for its address, if it is signed and new', async () => {
    await hookOf('slack')
    const question = {
      token: 'Jhj5dZrVaK7ZwHHjRyZWjbDl',
      challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P',
      type: 'url_verification',
    }
    expect(await deliver('slack', question)).toMatchObject({ status: 200, body: { challenge: question.challenge } })
    expect(await deliver('slack', question, { headers: { 'x-slack-signature': `v0=${'0'.repeat(64)}` } })).toMatchObject(problem(401))
    expect(await deliver('slack', question, { at: Date.now() - 400_000 })).toMatchObject(problem(401))
    expect(await deliver('slack', question, { headers: { 'x-slack-request-timestamp': '1' } })).toMatchObject(problem(401))
    expect(await deliver('slack', question, { headers: { 'x-slack-signature': '' } })).toMatchObject(problem(401))
  })

  test('of Telegram has a scope for each chat, and takes only its own secret', async () => {
    const beginning = freshScope('telegram')
    await hookOf('telegram', {
      scope: `${beginning}/{{body.message.chat.id}}`,
      when: 'has(body.message) && has(body.message.text)',
      event: { type: '"ws.message"', connection_id: 'string(body.message.from.id)', content: 'body.message.text' },
    })
    const scope = `${beginning}/1111111`
    expect((await deliver('telegram', update)).body).toMatchObject({ accepted: 1, events: [{ scope }] })
    expect((await deliver('telegram', update)).body).toMatchObject({ accepted: 0, events: [{ status: 'duplicate' }] })
    expect((await deliver('telegram', { ...update, update_id: 10_001 })).body).toMatchObject({ accepted: 1, events: [{ scope }] })
    for (const token of ['', 'another', `${secretOf('telegram')} `.repeat(2)]) {
      const headers = { 'x-telegram-bot-api-secret-token': token }
      expect(await deliver('telegram', { ...update, update_id: 10_002 }, { headers })).toMatchObject(problem(401))
    }
    expect((await stubOf(scope).state()).counters.accepted).toBe(2)
  })
})
