import { asSchema } from 'ai'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { write } from '../../support/reflex-chain.ts'
import { framesOf } from '../../support/socket-frames.ts'
import { call, problem, scopePath } from '../../support/http.ts'
import { mcpAnswer, outside, type OutsideRequest } from '../../support/mock-fetch.ts'
import { called, configure, HOST, open, propose, scopeWith, server, skillOf } from '../../support/scope-with-remote-tools.ts'
import { entriesOf, evict, freshScope, hurry, inObject, logOf, note, send, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'
import { unpack } from '../../../src/engine/log/log.ts'

let world: ReturnType<typeof outside>
let answer: (request: OutsideRequest) => Response | Promise<Response>

beforeEach(() => {
  answer = () => Response.json({ opened: true })
  world = outside(HOST, (request) => answer(request))
})
afterEach(() => world.restore())

describe('an HTTP tool that the settings declare', () => {
  test('is called by a turn, with its secret, which is in no log', async () => {
    answer = ({ headers }) => Response.json({ echo: headers.get('authorization'), ['ticket-secret']: 1 })
    const scope = await scopeWith({ http_tools: [open] })
    expect(await called(scope, 'http.tickets.open', { title: 'it burns' })).toEqual({ output: { echo: '[secret]', '[secret]': 1 } })
    expect(world.requests).toMatchObject([{ method: 'POST', body: '{"title":"it burns"}' }])
    expect(world.requests[0]?.headers.get('authorization')).toBe('Bearer ticket-secret')
    expect(JSON.stringify(await logOf(stubOf(scope)))).not.toContain('ticket-secret')
    expect(await entriesOf(stubOf(scope), 'effect-ended')).toMatchObject([{ tool: 'http.tickets.open', status: 'ok' }])
  })

  test("is a plan's step, which carries the plan's key", async () => {
    const scope = await scopeWith({ http_tools: [open] })
    expect(await propose(scope, skillOf(open.name, { title: '{{title}}' }))).toMatchObject({ status: 'ok' })
    expect(world.requests[0]?.headers.get('idempotency-key')).toContain('open%3Ait%20burns')
  })

  test('takes values of the types of its schema, and what cannot be one is found at registration and in tests', async () => {
    const name = `http.refund-${crypto.randomUUID()}`
    const input = { type: 'object', properties: { amount: { type: 'number' }, cc: { type: 'string' } }, required: ['amount'] }
    const refund = { ...open, name, input, body: { amount: '{{amount}}', cc: '{{cc?}}' } }
    const scope = await scopeWith({ http_tools: [refund] })
    await sendAndSettle(stubOf(scope), note(scope, 'go'))
    const listed = async () => (await call(`/v1/scopes?search=${encodeURIComponent(scope)}`)).text.includes(scope)
    await until(listed, 'the scope is listed')
    const withInput = (type: string) => {
      const inputs = [
        { name: 'title', type: 'string', required: true },
        { name: 'amount', type, required: true },
        { name: 'cc', type: 'string' },
      ]
      return skillOf(name, { amount: '{{amount}}', cc: '{{cc?}}' }, { signature: { inputs } })
    }
    const message = expect.stringContaining('is the input amount (string), where the tool takes number')
    expect(await call('/v1/skills', { json: withInput('string') })).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'plan.steps.0.args.amount', message }] },
    })
    const manifest = withInput('number')
    expect((await call('/v1/skills', { json: manifest })).status).toBe(201)
    expect((await call(`/v1/skills/${manifest.id}/state`, { json: { state: 'active' } })).status).toBe(200)
    const json = { skill_id: manifest.id, inputs: { title: 'late', amount: 12.5 }, why: 'a ticket' }
    expect((await call(scopePath(scope, '/skills/propose'), { json })).body).toMatchObject({ status: 'ok' })
    expect(world.requests.map(({ body }) => body)).toEqual(['{"amount":12.5}'])
    await configure(scope, { http_tools: [{ ...open, name, body: { amount: '{{amount}}' } }] })
    expect((await call(`/v1/skills/${manifest.id}/test`, { method: 'POST' })).body).toMatchObject({
      passed: false,
      failures: expect.arrayContaining([
        expect.objectContaining({ reason: expect.stringContaining('is the input amount (number), where the tool takes string') }),
      ]),
    })
  })

  test('is sent the flags and the state of the trace that a proposal named', async () => {
    const scope = await scopeWith({ http_tools: [open] })
    const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
    const headers = { traceparent: `00-${trace_id}-00f067aa0ba902b7-03`, tracestate: 'vendor=1, FOO=2' }
    expect(await propose(scope, skillOf(open.name, { title: '{{title}}' }), headers)).toMatchObject({ status: 'ok', trace_id })
    const sent = world.requests[0]?.headers
    expect(sent?.get('traceparent')).toMatch(new RegExp(`^00-${trace_id}-[0-9a-f]{16}-03$`))
    expect(sent?.get('tracestate')).toBe('vendor=1')
    const [root, ...below] = (await logOf(stubOf(scope))).filter((entry) => entry.trace_id === trace_id)
    expect(root).toMatchObject({ kind: 'call-received', trace_flags: '03', tracestate: 'vendor=1' })
    expect(JSON.stringify(below)).not.toContain('vendor')
  })

  test('is listed with the arguments that are taken for destinations, and with those that it declares', async () => {
    const mail = { ...open, name: 'http.mail.send', body: { to: '{{whom}}', text: '{{text}}' } }
    const told = { ...mail, name: 'http.mail.told', destinations: ['text'] }
    const read = { name: 'http.pages.get', description: 'Reads', method: 'GET', url: `https://${HOST}/{{page}}?host={{of}}` }
    const scope = await scopeWith({ http_tools: [mail, told, read] })
    const { items } = (await call(scopePath(scope, '/tools'))).body
    const outside = items.filter(({ name }: { name: string }) => name.startsWith('http.'))
    expect(outside).toEqual([
      { name: mail.name, description: mail.description, acts: true, plans_only: false, destinations: ['whom'], assumed: true },
      { name: told.name, description: mail.description, acts: true, plans_only: false, destinations: ['text'], assumed: false },
      { name: read.name, description: 'Reads', acts: false, plans_only: false, destinations: ['of'], assumed: true },
    ])
    expect(items).toContainEqual(expect.objectContaining({ name: 'act' }))
  })

  test('is called by a reflex, and one that fails hands its event to the slow path', async () => {
    const scope = await scopeWith({ http_tools: [open] })
    const { id } = await write(`return { action_type: 'call_tool', tool: 'http.tickets.open', args: { title: context.event.text } }`)
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    answer = () => new Response('no', { status: 400 })
    expect(await sendAndSettle(stubOf(scope), note(scope, 'b'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(world.requests.map(({ body }) => body)).toEqual(['{"title":"a"}', '{"title":"b"}'])
  })

  test('is compared by an evaluation, though the settings alone know it', async () => {
    const scope = await scopeWith({ http_tools: [open] })
    await called(scope, open.name, { title: 'it burns' })
    const acts = (title: string) => `return { action_type: 'call_tool', tool: '${open.name}', args: { title: '${title}' } }`
    const evaluate = async (title: string) =>
      (await call(`/v1/reflexes/${(await write(acts(title))).id}/evaluate`, { json: { scope, window: '10m' } })).body
    expect(await evaluate('it burns')).toMatchObject({ fires: 1, agreement: { agreed: 1, disagreed: 0, not_compared: 0 } })
    expect(await evaluate('it rains')).toMatchObject({ fires: 1, agreement: { agreed: 0, disagreed: 1, not_compared: 0 } })
  })

  test('that only skills may call is called by nobody else', async () => {
    const scope = await scopeWith({ http_tools: [{ ...open, plans_only: true }] })
    expect(await called(scope, open.name, { title: 'x' })).toEqual({ error: expect.stringContaining('only for the steps of skills') })
    expect(world.requests).toEqual([])
    expect(await propose(scope, skillOf(open.name, { title: '{{title}}' }))).toMatchObject({ status: 'ok' })
    expect(world.requests).toHaveLength(1)
  })

  test('is shown to a model under a name that providers take', async () => {
    const scope = await scopeWith({ http_tools: [open] })
    let shown: string[] = []
    behaviours.set(scope, async (_, deps) => void (shown = Object.keys(deps.tools)))
    await sendAndSettle(stubOf(scope), note(scope, 'go'))
    expect(shown).toContain('http_tickets_open')
  })

  test.each([
    ['whose host is not allowed', { allowed_hosts: [] }, /not available: the host tickets.example.com is not among.*allowed_hosts/],
    ['that is not named in the allow-list', { tools: ['act'] }, /not allowed in scope/],
    ['that is not declared', { http_tools: [] }, /not in scope .*: declare it in the setting http_tools/],
  ])('%s is not called: the reason names the setting, to a turn and to a proposal', async (_, settings, reason) => {
    const scope = await scopeWith({ http_tools: [open], ...settings })
    expect(await called(scope, open.name, { title: 'x' })).toEqual({ error: expect.stringMatching(reason) })
    const { status, decision } = await propose(scope, skillOf(open.name, { title: '{{title}}' }))
    expect({ status, to_pass: decision.to_pass }).toEqual({ status: 'refused', to_pass: [expect.stringMatching(reason)] })
    expect(world.requests).toEqual([])
  })

  test('is tried again by a plan where the other side is only busy', async () => {
    let asked = 0
    answer = () => ((asked += 1) === 1 ? new Response('later', { status: 503 }) : Response.json({}))
    const scope = await scopeWith({ http_tools: [open] })
    const manifest = skillOf(open.name, { title: '{{title}}' })
    const [step] = manifest.plan.steps
    const plan = { ...manifest.plan, steps: [{ ...step, retry: { max_attempts: 2 } }] }
    expect(await propose(scope, { ...manifest, plan } as typeof manifest)).toMatchObject({ status: 'ok' })
    expect(asked).toBe(2)
  })

  test('with a key of its own has its effect once, also for another turn; with a wrong input none', async () => {
    const scope = await scopeWith({ http_tools: [{ ...open, idempotence_key: 'open:{{title}}' }] })
    await called(scope, open.name, { title: 'x' })
    await evict(stubOf(scope))
    expect(await called(scope, open.name, { title: 'x' })).toEqual({ output: { opened: true } })
    expect(await called(scope, open.name, {})).toEqual({ error: expect.stringContaining('bad input') })
    expect(world.requests).toHaveLength(1)
  })

  test.each([
    ['a secret of the deployment that is not for tools', { secret_headers: { authorization: 'REFLEX_ADMIN_KEY' } }, /REFLEX_TOOL_/],
    ['a credential in the open', { headers: { Authorization: 'Bearer x' } }, /secret_headers/],
    ['a header of the request itself', { headers: { host: 'x' } }, /request sets itself/],
    ['a secret in the place of its host', { secret_headers: { Host: 'REFLEX_TOOL_TICKETS' } }, /request sets itself/],
    ['a secret in the place of its key', { secret_headers: { 'idempotency-key': 'REFLEX_TOOL_TICKETS' } }, /request sets itself/],
    ['the hosts of a secret for a secret', { secret_headers: { authorization: 'REFLEX_TOOL_TICKETS_HOSTS' } }, /must not end with _HOSTS/],
    ['a slot in its host', { url: 'https://{{title}}.example.com/' }, /scheme and host/],
    ['a password in its address', { url: `https://me:word@${HOST}/` }, /scheme and host/],
    ['a place in its address that is no slot', { url: `https://${HOST}/{{ticket.id}}` }, /malformed/],
    ['a key that would be the same for all calls', { idempotence_key: 'open:{{inputs.title}}' }, /malformed/],
    ['another name', { name: 'tickets' }, /http\./],
    ['a body to get', { method: 'GET' }, /absent for GET/],
    ['more than there is room for', { body: { title: 'x'.repeat(9000) } }, /8000/],
  ])('is refused with %s', async (_, changes, message) => {
    const answered = await configure(freshScope(), { http_tools: [{ ...open, ...changes }] })
    expect(answered).toMatchObject(problem(400))
    expect(JSON.stringify(answered.body.errors)).toMatch(message)
  })

  test('whose name models could not tell from another is not available, with the reason, and the first one is', async () => {
    const second = { ...open, name: 'http.tickets_open', url: `https://${HOST}/second` }
    const scope = await scopeWith({ http_tools: [open, second] })
    const reason = `models would know it as http_tickets_open, as they know ${open.name}: rename one`
    const { items } = (await call(scopePath(scope, '/tools'))).body
    expect(items.filter(({ name }: { name: string }) => name.startsWith('http.'))).toEqual([
      expect.objectContaining({ name: second.name, unavailable: reason }),
      expect.objectContaining({ name: open.name, description: open.description }),
    ])
    let shown: string[] = []
    behaviours.set(scope, async (_, deps) => {
      shown = Object.keys(deps.tools)
      await deps.tools['http_tickets_open']?.execute?.({ title: 'x' }, { toolCallId: 'c', messages: [], context: {} })
    })
    await sendAndSettle(stubOf(scope), note(scope, 'go'))
    expect(shown.filter((name) => name.startsWith('http'))).toEqual(['http_tickets_open'])
    expect(world.requests.map(({ url }) => new URL(url).pathname)).toEqual(['/tickets'])
    expect(await called(scope, second.name, { title: 'x' })).toEqual({ error: expect.stringContaining(reason) })
    await configure(scope, { tools: [second.name] })
    expect(await called(scope, second.name, { title: 'x' })).toEqual({ output: { opened: true } })
  })

  test('is refused twice under one name, and in an allow-list that names what is not declared', async () => {
    expect(await configure(freshScope(), { http_tools: [open, open] })).toMatchObject(problem(400))
    const scope = freshScope()
    expect(await configure(scope, { tools: [open.name] })).toMatchObject(problem(400))
    expect(await configure(scope, { tools: [open.name], http_tools: [open] })).toMatchObject({ status: 200 })
  })
})

describe('a secret is for the hosts that the deployment names beside it', () => {
  const evil = 'evil.example.com'
  const refusal = (detail: RegExp) => ({ ...problem(400), body: { detail: expect.stringMatching(detail) as unknown } })

  test.each([
    ['the secret of a tool', { http_tools: [{ ...open, url: `https://${evil}/tickets` }] }],
    ['the secret of a server', { mcp_servers: [{ ...server, url: `https://${evil}/`, secret_headers: open.secret_headers }] }],
    ['one host further', { http_tools: [{ ...open, url: `https://${HOST}.${evil}/tickets` }] }],
    ['another port', { http_tools: [{ ...open, url: `https://${HOST}:8443/tickets` }] }],
  ])('an operator who allows an own host does not get there %s', async (_, settings) => {
    const allowed_hosts = [evil, `*.${evil}`, `${HOST}:8443`]
    const told = /REFLEX_TOOL_TICKETS is not sent there.*REFLEX_TOOL_TICKETS_HOSTS/
    expect(await configure(freshScope(), { allowed_hosts, ...settings })).toMatchObject(refusal(told))
    expect(world.requests).toEqual([])
  })

  test('one without such hosts is sent nowhere: the patch says what is to be set', async () => {
    const secret_headers = { authorization: 'REFLEX_TOOL_NOWHERE' }
    const told = /REFLEX_TOOL_NOWHERE is sent nowhere: .*in the variable REFLEX_TOOL_NOWHERE_HOSTS/
    const tool = { http_tools: [{ ...open, secret_headers }] }
    expect(await configure(freshScope(), { allowed_hosts: [HOST], ...tool })).toMatchObject(refusal(told))
    const asked = { mcp_servers: [{ ...server, secret_headers }] }
    expect(await configure(freshScope(), { allowed_hosts: [HOST], ...asked })).toMatchObject(refusal(told))
  })

  test('nor does a redirect of its own host lead it elsewhere', async () => {
    answer = () => new Response(null, { status: 307, headers: { location: `https://${evil}/` } })
    const scope = await scopeWith({ allowed_hosts: [HOST, evil], http_tools: [open] })
    expect(await called(scope, open.name, { title: 'x' })).toEqual({ error: expect.stringMatching(/secret must not be sent there.*evil/) })
    expect(world.requests).toHaveLength(1)
  })

  test('a tool that needs no secret goes wherever the settings allow', async () => {
    const { secret_headers: _, ...plain } = { ...open, url: `https://${evil}/tickets` }
    expect(await configure(freshScope(), { allowed_hosts: [evil], http_tools: [plain] })).toMatchObject({ status: 200 })
  })
})

describe('a secret of the deployment, wherever it is written', () => {
  const SECRET = 'ticket-secret'
  /** Hashes are bytes that nobody has packed. */
  const textOf = (value: Parameters<typeof unpack>[0]): string => {
    try {
      return unpack(value)
    } catch {
      return typeof value === 'string' ? value : Buffer.from(value).toString('latin1')
    }
  }
  /** All that a scope and D1 keep. */
  const kept = async (scope: string): Promise<string> => {
    const scopes = await inObject(stubOf(scope), ({ storage }) =>
      storage.sql
        .exec<{ name: string }>(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'`)
        .toArray()
        .flatMap(({ name }) => storage.sql.exec(`SELECT * FROM ${name}`).toArray())
        .map((row) => Object.values(row).map((value) => (value === null || typeof value === 'number' ? value : textOf(value)))),
    )
    const tables = await Promise.all(
      ['events', 'dead_letters', 'approvals'].map((table) => env.DB.prepare(`SELECT * FROM ${table} WHERE scope = ?`).bind(scope).all()),
    )
    return JSON.stringify([scopes, tables.map(({ results }) => results)])
  }
  const forms = [SECRET, `Bearer ${SECRET}`, btoa(`x${SECRET}`), `a=${encodeURIComponent(`Bearer ${SECRET}`)}`]

  test.each(forms)('in an event (%s): neither its agent sees it, nor does anything keep it', async (form) => {
    const scope = freshScope()
    let seen = ''
    behaviours.set(scope, async (context) => void (seen = JSON.stringify(context.events)))
    const event = { type: 'test.note', text: `it is ${form}.` }
    const direct = await call(scopePath(scope, '/events?wait=outcome'), { json: event })
    expect(direct).toMatchObject({ status: 200 })
    expect(await call('/v1/events', { json: { ...event, scope } })).toMatchObject({ status: 202 })
    await until(async () => (await call(`/v1/events?scope=${scope}&status=completed`)).body.items.length === 2, 'D1 knows of both')
    expect(seen).toContain('it is ')
    expect(seen).toContain('[secret]')
    const shown = [(await call(`/v1/events?scope=${scope}`)).text, JSON.stringify(await logOf(stubOf(scope))), await kept(scope), seen]
    for (const text of shown) expect(text).not.toContain(form)
    expect(shown.join('')).not.toContain(SECRET)
  })

  test('in what a model or a trigger says, or in an error: nothing keeps it', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, deps) => {
      deps.reply(`it is ${SECRET}`)
      deps.stream(`it is ${SECRET}`)
      throw new Error(`cannot continue: ${SECRET}`)
    })
    const connect = { connection_id: 'v', key_id: 'admin', source: 'v', may_send: false, decides_as: null, after: null }
    const headers = { Upgrade: 'websocket', 'x-reflex-connect': JSON.stringify(connect) }
    const { webSocket } = await stubOf(scope).fetch('https://scope/ws', { headers })
    if (!webSocket) throw new Error('no socket')
    const socket = framesOf<{ type: string; content?: string }>(webSocket)
    await stubOf(scope).configure({ max_attempts: 1 }, 'ops')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'go'))).toMatchObject([{ error: expect.stringContaining('continue: [secret]') }])
    await until(async () => (await call(`/v1/dlq?scope=${scope}`)).body.items.length === 1, 'D1 knows')
    expect(await kept(scope)).not.toContain(SECRET)
    expect(JSON.stringify(await logOf(stubOf(scope)))).not.toContain(SECRET)
    expect(await socket.frame('delta')).toMatchObject({ content: 'it is [secret]' })
    expect((await call(`/v1/dlq?scope=${scope}`)).text).not.toContain(SECRET)
  })

  test('that a tool sends back, of another tool or encoded, reaches nobody', async () => {
    answer = () => Response.json({ a: `nowhere-secret`, b: btoa('Bearer ticket-secret') })
    const scope = await scopeWith({ http_tools: [open] })
    expect(await called(scope, open.name, { title: 'x' })).toEqual({ output: { a: '[secret]', b: expect.stringContaining('[secret]') } })
    answer = () => new Response('nowhere-secret', { status: 400 })
    expect(await called(scope, open.name, { title: 'y' })).toEqual({ error: expect.not.stringContaining('nowhere-secret') })
    expect(await kept(scope)).not.toContain('nowhere-secret')
  })

  test('in what a person sends is refused, by its name', async () => {
    const scope = freshScope()
    const refused = await call(scopePath(scope), { method: 'PATCH', json: { instructions: `use ${SECRET}` } })
    expect(refused).toMatchObject(problem(400))
    expect(refused.body.detail).toContain('REFLEX_TOOL_TICKETS')
    expect(refused.text).not.toContain(SECRET)
    expect(await call(scopePath(scope, '/events'), { json: { type: 'test.note', text: 'x', id: SECRET } })).toMatchObject(problem(400))
  })
})

describe('a secret input', () => {
  /** Its name is its own, so that no other test's skill takes a secret from the same place. */
  function secretWorld() {
    const name = `credential_${crypto.randomUUID().slice(0, 8)}`
    const manifest = skillOf(
      'http.echo',
      { title: '{{credential}}' },
      {
        signature: {
          inputs: [
            { name: 'title', type: 'string', required: true },
            { name: 'credential', type: 'string', required: true, secret: true },
          ],
          blackboard_bindings: { inputs: { credential: `ctx.${name}` }, outputs: { said: `ctx.${name}` } },
          outputs: [{ name: 'said', type: 'object' }],
        },
        effects: { writes: [`ctx.${name}`] },
        plan: {
          budget: { max_cost_usd: 1, max_latency_ms: 10_000 },
          steps: [{ name: 'ask', tool: 'http.echo', args: { title: '{{credential}}' }, timeout_ms: 5000 }],
          result_map: { said: '{{work.steps.ask}}' },
        },
      },
    )
    const holding = (value: unknown) => ({ ctx: { [name]: value, other: 'seen' } })
    return { manifest, holding, named: holding({ secret: 'REFLEX_TOOL_TICKETS' }) }
  }
  const { secret_headers: _secret, ...plain } = open
  const echo = { ...plain, name: 'http.echo', repeatable: true }

  test('is named on the blackboard, and its value is in the call of a step alone', async () => {
    answer = ({ body }) => Response.json({ got: JSON.parse(body) })
    const { manifest, named } = secretWorld()
    const scope = await scopeWith({ http_tools: [echo], blackboard: named })
    const result = await propose(scope, manifest)
    expect(world.requests).toMatchObject([{ body: '{"title":"Bearer ticket-secret"}' }])
    expect(result).toMatchObject({ status: 'ok', outputs: { said: { got: { title: '[secret]' } } } })
    expect(JSON.stringify([result, await logOf(stubOf(scope))])).not.toContain('ticket-secret')
    const rows = await inObject(stubOf(scope), ({ storage }) =>
      ['skill_runs', 'skill_outputs', 'effects', 'state'].map((table) => storage.sql.exec(`SELECT * FROM ${table}`).toArray()),
    )
    expect(JSON.stringify(rows)).not.toContain('ticket-secret')
    expect((await call(scopePath(scope))).body.settings.blackboard).toEqual(named)
  })

  test.each([
    ['a host that it is not for', 'REFLEX_TOOL_TICKETS', 'other.example.com'],
    ['a secret that is sent nowhere', 'REFLEX_TOOL_NOWHERE', HOST],
    ['a secret that is not set', 'REFLEX_TOOL_MISSING', HOST],
  ])('is not sent: %s', async (_what, secret, host) => {
    const { manifest, holding } = secretWorld()
    const settings = { allowed_hosts: [host], http_tools: [{ ...echo, url: `https://${host}/tickets` }], blackboard: holding({ secret }) }
    expect(await propose(await scopeWith(settings), manifest)).toMatchObject({ status: 'failed', reason: expect.stringContaining(secret) })
    expect(world.requests).toEqual([])
  })

  test('is given to no tool that does not say where it sends it', async () => {
    const { manifest, named } = secretWorld()
    const scope = await scopeWith({ blackboard: named })
    const plan = { ...manifest.plan, steps: [{ name: 'ask', tool: 'act', args: { text: '{{credential}}' }, timeout_ms: 5000 }] }
    const result = await propose(scope, { ...manifest, plan })
    expect(result).toMatchObject({ status: 'failed', reason: expect.stringContaining('tool act is given no secret') })
  })

  test('is named by settings alone: neither by who proposes, nor by what a tool gives', async () => {
    const { manifest, named } = secretWorld()
    const scope = await scopeWith({ http_tools: [echo] })
    expect(await propose(scope, manifest)).toMatchObject({ status: 'clarify' })
    const json = { skill_id: manifest.id, inputs: { title: 'x', credential: { secret: 'REFLEX_TOOL_TICKETS' } }, why: 'open a ticket' }
    expect((await call(scopePath(scope, '/skills/propose'), { json })).body).toMatchObject({ status: 'refused' })
    expect(world.requests).toEqual([])
    answer = () => Response.json({ secret: 'REFLEX_TOOL_NOWHERE' })
    await configure(scope, { blackboard: named })
    const again = await call(scopePath(scope, '/skills/propose'), { json: { ...json, inputs: { title: 'x' } } })
    expect(again.body).toMatchObject({ status: 'partial_failure', reason: expect.stringContaining('names a secret') })
  })

  test('as a plain value is refused once a skill has it, and shown nowhere where it was there before', async () => {
    const { manifest, holding, named } = secretWorld()
    const scope = await scopeWith({ http_tools: [echo], blackboard: holding('plain-credential') })
    expect(await propose(scope, manifest)).toMatchObject({ status: 'ok' })
    expect((await call(scopePath(scope))).body.settings.blackboard).toEqual(holding('[secret]'))
    expect((await call(scopePath(scope, '/log?limit=1000'))).text).not.toContain('plain-credential')
    await evict(stubOf(scope))
    expect((await call(scopePath(scope))).text).not.toContain('plain-credential')
    const refused = await configure(scope, { blackboard: holding('plain-credential') })
    expect(refused).toMatchObject(problem(400))
    expect(refused.body.detail).toContain('{"secret": "REFLEX_TOOL_NAME"}')
    expect(await configure(scope, { blackboard: named })).toMatchObject({ status: 200 })
  })
})

describe("an MCP server's tools", () => {
  beforeEach(() => {
    answer = mcpAnswer
  })

  test('are shown to a turn with the schema of their server, and called by it', async () => {
    const scope = await scopeWith({ mcp_servers: [{ ...server, secret_headers: { authorization: 'REFLEX_TOOL_TICKETS' } }] })
    let shown: unknown
    behaviours.set(scope, async (_, deps) => {
      const { mcp_sky_look } = deps.tools
      shown = mcp_sky_look && [mcp_sky_look.description, await asSchema(mcp_sky_look.inputSchema).jsonSchema]
      return deps.call('mcp.sky.look', { at: 'the moon' })
    })
    expect(await sendAndSettle(stubOf(scope), note(scope, 'go'))).toMatchObject([
      { outcome: { result: { content: [{ text: 'saw the moon' }] } } },
    ])
    expect(shown).toMatchObject(['Looks at something', { properties: { at: { type: 'string' } } }])
    expect(await called(scope, 'mcp.sky.look', { at: 'nothing' })).toEqual({ error: expect.stringContaining('nothing to see') })
    expect(await called(scope, 'mcp.sky.sing', {})).toEqual({ error: expect.stringContaining('has no such tool') })
  })

  test('are listed with what is assumed of the schema of their server, before any call', async () => {
    answer = async (request) => {
      const given = mcpAnswer(request)
      return new Response((await given.text()).replace('"at":{', '"at":{"format":"uri",') || null, given)
    }
    const look = async (settings: object) => {
      const scope = await scopeWith({ mcp_servers: [{ ...server, ...settings }] })
      const { items } = (await call(scopePath(scope, '/tools'))).body
      return items.find(({ name }: { name: string }) => name === 'mcp.sky.look')
    }
    expect(await look({})).toMatchObject({ description: 'Looks at something', acts: true, destinations: ['at'], assumed: true })
    expect(await look({ destinations: { look: [] } })).toMatchObject({ destinations: [], assumed: false })
  })

  test('are listed as one that is unavailable, with the reason, while their server does not list them', async () => {
    answer = async () => new Response('<html>', { headers: { 'content-type': 'text/html' } })
    const scope = await scopeWith({ mcp_servers: [server], http_tools: [{ ...open, secret_headers: {}, url: 'https://elsewhere.test/' }] })
    const { items } = (await call(scopePath(scope, '/tools'))).body
    expect(items).toContainEqual(expect.objectContaining({ name: 'mcp.sky', unavailable: expect.stringContaining('text/html') }))
    expect(items).toContainEqual(expect.objectContaining({ name: open.name, unavailable: expect.stringContaining('allowed_hosts') }))
    expect(items.filter(({ name }: { name: string }) => name.startsWith('mcp.'))).toHaveLength(1)
  })

  test('that their server describes wrongly are unavailable alone: nobody calls them, and all learn why', async () => {
    answer = async (request) => {
      const given = mcpAnswer(request)
      return new Response((await given.text()).replace('"tools":[', '"tools":[{"name":"sing"},') || null, given)
    }
    const scope = await scopeWith({ mcp_servers: [server] })
    const reason = expect.stringContaining('its server describes it wrongly: inputSchema: ')
    const { items } = (await call(scopePath(scope, '/tools'))).body
    expect(items.filter(({ name }: { name: string }) => name.startsWith('mcp.'))).toEqual([
      expect.objectContaining({ name: 'mcp.sky.sing', unavailable: reason }),
      expect.objectContaining({ name: 'mcp.sky.look', description: 'Looks at something' }),
    ])
    expect(await called(scope, 'mcp.sky.sing', {})).toEqual({ error: reason })
    expect(await called(scope, 'mcp.sky.look', { at: 'mars' })).toMatchObject({ output: { content: [{ text: 'saw mars' }] } })
  })

  test('are fetched once, and again in an object that restarts', async () => {
    const scope = await scopeWith({ mcp_servers: [server] })
    const asked = () => world.requests.filter(({ body }) => body.includes('tools/list')).length
    behaviours.set(scope, async () => null)
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    await sendAndSettle(stubOf(scope), note(scope, 'b'))
    expect(asked()).toBe(1)
    await evict(stubOf(scope))
    await sendAndSettle(stubOf(scope), note(scope, 'c'))
    expect(asked()).toBe(2)
  })

  test('are asked with the secret of their server, which they cannot tell anybody', async () => {
    const telling = {
      name: 'look',
      description: 'Bearer ticket-secret',
      inputSchema: { type: 'object', properties: { at: { description: 'Bearer ticket-secret', default: 'Bearer ticket-secret' } } },
    }
    const named = { ...telling, name: 'Bearer ticket-secret' }
    answer = (request) => {
      if (request.headers.get('authorization') !== 'Bearer ticket-secret') return new Response(null, { status: 401 })
      const { id, method = '' }: { id?: number; method?: string } = request.method === 'POST' ? JSON.parse(request.body) : {}
      if (method === 'tools/list') return Response.json({ jsonrpc: '2.0', id, result: { tools: [telling, named] } })
      if (method !== 'tools/call') return mcpAnswer(request)
      return Response.json({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'it is Bearer ticket-secret' }] } })
    }
    const scope = await scopeWith({ mcp_servers: [{ ...server, secret_headers: { authorization: 'REFLEX_TOOL_TICKETS' } }] })
    expect(await called(scope, 'mcp.sky.look', {})).toMatchObject({ output: { content: [{ text: 'it is [secret]' }] } })
    expect(JSON.stringify(await logOf(stubOf(scope)))).not.toContain('ticket-secret')
    let shown: unknown
    behaviours.set(scope, async (_, deps) => {
      shown = Object.values(deps.tools).map(({ inputSchema }) => asSchema(inputSchema).jsonSchema)
      return Object.keys(deps.tools)
    })
    await sendAndSettle(stubOf(scope), note(scope, 'look around'))
    expect(shown).toContainEqual({
      type: 'object',
      properties: { at: { description: '[secret]', default: '[secret]' } },
      additionalProperties: false,
    })
    expect(JSON.stringify([shown, (await call(scopePath(scope, '/tools'))).body])).not.toContain('ticket-secret')
  })

  test('are steps of a plan', async () => {
    const scope = await scopeWith({ mcp_servers: [server] })
    expect(await propose(scope, skillOf('mcp.sky.look', { at: '{{title}}' }))).toMatchObject({ status: 'ok' })
  })

  test('are called by a reflex also before the server was asked what it has', async () => {
    const scope = await scopeWith({ mcp_servers: [server] })
    const { id } = await write(`return { action_type: 'call_tool', tool: 'mcp.sky.look', args: { at: 'mars' } }`)
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(await entriesOf(stubOf(scope), 'effect-ended')).toMatchObject([{ tool: 'mcp.sky.look', status: 'ok' }])
  })

  test('are compared by an evaluation also before the server was asked what it has', async () => {
    const scope = await scopeWith({ mcp_servers: [server] })
    const acts = (at: string) => `return { action_type: 'call_tool', tool: 'mcp.sky.look', args: { at: '${at}' } }`
    const { id } = await write(acts('mars'))
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    answer = () => new Response('away', { status: 500 })
    await evict(stubOf(scope))
    const evaluate = async (at: string) =>
      (await call(`/v1/reflexes/${(await write(acts(at))).id}/evaluate`, { json: { scope, window: '10m' } })).body
    expect(await evaluate('mars')).toMatchObject({ fires: 1, agreement: { agreed: 1, disagreed: 0, not_compared: 0 } })
    expect(await evaluate('venus')).toMatchObject({ fires: 1, agreement: { agreed: 0, disagreed: 1, not_compared: 0 } })
  })

  test('of a server that is away are not available, and the scope carries on', async () => {
    answer = () => new Response('away', { status: 500 })
    const scope = await scopeWith({ mcp_servers: [server] })
    expect(await called(scope, 'mcp.sky.look', { at: 'mars' })).toEqual({
      error: expect.stringContaining('tool mcp.sky.look is not available: '),
    })
    const { status, decision } = await propose(scope, skillOf('mcp.sky.look', { at: '{{title}}' }))
    expect({ status, to_pass: decision.to_pass }).toEqual({
      status: 'refused',
      to_pass: [expect.stringContaining('mcp.sky.look is not available')],
    })
    expect(await called(scope, 'act', { text: 'still here' })).toEqual({ output: { did: 'still here' } })
  })

  test('that never answer hold a turn up for so long and no longer', async () => {
    answer = () => new Promise(() => {})
    const scope = await scopeWith({ mcp_servers: [{ ...server, timeout_ms: 50 }] })
    expect(await called(scope, 'mcp.sky.look', {})).toEqual({ error: expect.stringContaining('took longer than 50 ms') })
  })
})

describe('the blackboard of a scope', () => {
  const account = { name: 'http.account', description: 'Reads the account', method: 'GET', url: `https://${HOST}/account` }
  const probes = [{ name: 'account', tool: account.name, ttl_s: 60 }]
  const guarded = (invariant: string) => skillOf('act', { text: '{{title}}' }, { preconditions: { invariants: [invariant] } })
  const again = async (scope: string, { id }: { id: string }) =>
    (await call(scopePath(scope, '/skills/propose'), { json: { skill_id: id, inputs: { title: 'b' }, why: 'another ticket' } })).body
  const seeds = (scope: string) => entriesOf(stubOf(scope), 'blackboard-seeded')

  test('has what an HTTP tool reads, once for all turns within its time to live', async () => {
    const scope = await scopeWith({ http_tools: [account], blackboard: { env: { account: { id: 'old' } } }, blackboard_probes: probes })
    answer = () => Response.json({ id: 'acme' })
    const manifest = guarded("env.account.id == 'acme'")
    expect(await propose(scope, manifest)).toMatchObject({ status: 'ok' })
    answer = () => Response.json({ id: 'other' })
    expect(await again(scope, manifest)).toMatchObject({ status: 'ok' })
    expect(world.requests).toHaveLength(1)
    expect(await seeds(scope)).toMatchObject([
      {
        blackboard: { env: { account: { id: 'acme' } } },
        sources: { 'env.account': 'probes' },
        ages_ms: { 'env.account': expect.any(Number) },
      },
      { sources: { 'env.account': 'probes' } },
    ])
    await evict(stubOf(scope))
    expect(await again(scope, manifest)).toMatchObject({ status: 'refused' })
    expect(world.requests).toHaveLength(2)
  })

  test('lacks a value that cannot be read, with the reason in the log: what needs it is refused', async () => {
    const scope = await scopeWith({ http_tools: [account], blackboard_probes: probes })
    const manifest = guarded("env.account.id == 'acme'")
    answer = () => new Response('no', { status: 403 })
    expect(await propose(scope, manifest)).toMatchObject({ status: 'refused' })
    expect(await seeds(scope)).toMatchObject([{ blackboard: { env: {} }, omitted: { 'env.account': expect.stringContaining('403') } }])
    await evict(stubOf(scope))
    answer = () => Response.json({ secret: 'REFLEX_TOOL_TICKETS' })
    expect(await again(scope, manifest)).toMatchObject({ status: 'refused' })
    expect((await seeds(scope))[1]).toMatchObject({ omitted: { 'env.account': expect.stringContaining('names a secret') } })
    await evict(stubOf(scope))
    answer = () => Response.json({ id: 'x'.repeat(20_000) })
    await again(scope, manifest)
    expect((await seeds(scope))[2]).toMatchObject({ omitted: { 'env.account': expect.stringMatching(/takes 20009 bytes/) } })
  })

  test('has the keys of the scratch that the settings export, in place of what they set', async () => {
    const scope = await scopeWith({ blackboard: { ctx: { mood: 'calm', place: 'here' } }, blackboard_scratch: ['mood', 'absent'] })
    behaviours.set(scope, async (context) => void Object.assign(context.scratch, { mood: 'alarmed', hidden: true }))
    await sendAndSettle(stubOf(scope), note(scope, 'go'))
    expect(await propose(scope, guarded("ctx.mood == 'alarmed' && ctx.place == 'here'"))).toMatchObject({ status: 'ok' })
    expect((await seeds(scope)).at(-1)).toMatchObject({
      blackboard: { ctx: { mood: 'alarmed', place: 'here' } },
      sources: { 'ctx.mood': 'agent_state', 'ctx.place': 'settings' },
    })
    expect(JSON.stringify(await seeds(scope))).not.toContain('hidden')
  })

  test.each([
    ['a tool that does more than read', { http_tools: [open], blackboard_probes: [{ name: 'account', tool: open.name }] }, /only reads/],
    ['a tool that is not declared', { blackboard_probes: probes }, /http_tools/],
    [
      'a probe that the agent does not have',
      { blackboard_probes: [{ name: 'window', probe: 'deploy_window' }] },
      /has no probe deploy_window/,
    ],
    ['both a tool and a probe', { blackboard_probes: [{ name: 'x', tool: 'http.x', probe: 'y' }] }, /either a tool or a probe/],
    ['one name twice', { http_tools: [account], blackboard_probes: [...probes, ...probes] }, /two of one name/],
  ])('takes no probe that names %s', async (_, settings, message) => {
    const answered = await configure(freshScope(), { allowed_hosts: [HOST], ...settings })
    expect(answered).toMatchObject(problem(400))
    expect(answered.text).toMatch(message)
  })

  test("has what the agent's own probe answers", async () => {
    const scope = freshScope('deploy')
    await stubOf(scope).configure({ blackboard_probes: [{ name: 'window', probe: 'deploy_window', args: ['staging'] }] }, 'ops')
    const project = freshScope('project')
    await stubOf(scope).configure({ project }, 'ops')
    const manifest = skillOf('act', { text: 'x' }, { compat: { project }, preconditions: { invariants: ["env.window == 'open'"] } })
    const { decision } = await propose(scope, manifest)
    expect(await seeds(scope)).toMatchObject([{ blackboard: { env: { window: 'open' } }, sources: { 'env.window': 'probes' } }])
    expect(JSON.stringify(decision.to_pass)).not.toContain('env.window')
  })
})

test('an effect that only looks is made again after a crash cut it off', async () => {
  const look = { name: 'http.look', description: 'Looks', method: 'GET', url: `https://${HOST}/x`, repeatable: true }
  const scope = await scopeWith({ http_tools: [look], max_attempts: 2 })
  answer = () => Promise.reject(new Error('Network connection lost.'))
  behaviours.set(scope, async (_, deps) => deps.call('http.look', {}))
  const [id = ''] = await send(stubOf(scope), note(scope, 'go'))
  await until(async () => world.requests.length === 1, 'it was asked')
  answer = () => Response.json({ seen: true })
  await hurry(stubOf(scope))
  expect(await until(async () => (await stubOf(scope).event(id))?.status === 'completed', 'it is done')).toBe(true)
})
