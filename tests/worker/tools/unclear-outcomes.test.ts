import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { write } from '../../support/reflex-chain.ts'
import { mcpAnswer, outside, type OutsideRequest } from '../../support/mock-fetch.ts'
import { called, HOST, open, propose, scopeWith, server, skillOf } from '../../support/scope-with-remote-tools.ts'
import { entriesOf, hurry, note, send, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'

let world: ReturnType<typeof outside>
let answer: (request: OutsideRequest) => Response | Promise<Response>

beforeEach(() => {
  world = outside(HOST, (request) => answer(request))
})
afterEach(() => world.restore())

const lost = () => Promise.reject(new Error('Network connection lost.'))
const status = (code: number) => () => new Response('sorry', { status: code })
/** Good news whose body breaks off. */
const brokenOff = () => new Response(new ReadableStream({ start: (body) => body.error(new Error('Network connection lost.')) }))
const halfOf = (code: number) => () =>
  new Response('{"id": "Bearer ticket-secret', { status: code, headers: { 'content-type': 'application/problem+json; charset=utf-8' } })
const seeOther = () => new Response(null, { status: 303, headers: { location: 'https://elsewhere.example.com/' } })

const endsOf = async (scope: string) => (await entriesOf(stubOf(scope), 'effect-ended')).map((entry) => entry.status)

describe('a call of an HTTP tool', () => {
  test.each<[string, typeof answer, string]>([
    ['that loses its connection', lost, 'unknown'],
    ['that is answered 502', status(502), 'unknown'],
    ['that is answered 504', status(504), 'unknown'],
    ['whose good answer breaks off', brokenOff, 'unknown'],
    ['whose good answer is too large', () => new Response('x'.repeat(2_000_000)), 'unknown'],
    ['whose good answer is half of the JSON that it says', halfOf(200), 'unknown'],
    ['whose error is half of the JSON that it says', halfOf(422), 'failed'],
    ['that was carried out, and redirects to where nobody may follow', seeOther, 'unknown'],
    [
      'that is sent elsewhere before it is carried out',
      () => new Response(null, { status: 307, headers: { location: 'https://a.b/' } }),
      'failed',
    ],
    ['that is answered 500', status(500), 'failed'],
    ['that is answered 503', status(503), 'failed'],
    ['that is answered 400', status(400), 'failed'],
  ])('%s ends as it did', async (_, answered, expected) => {
    answer = answered
    const scope = await scopeWith({ http_tools: [open] })
    const { error } = (await called(scope, open.name, { title: 'x' })) as { error: string }
    expect(error.includes('it may have happened: ')).toBe(expected === 'unknown')
    expect(await endsOf(scope)).toEqual([expected])
  })

  test.each<[string, Record<string, unknown>]>([
    ['a GET', { method: 'GET' }],
    ['one that only looks', { method: 'POST', repeatable: true }],
  ])('has failed where it is %s, for nothing can have happened', async (_, changes) => {
    const scope = await scopeWith({ http_tools: [{ name: 'http.look', description: 'Looks', url: `https://${HOST}/x`, ...changes }] })
    answer = status(504)
    await called(scope, 'http.look', {})
    answer = lost
    await called(scope, 'http.look', {})
    answer = halfOf(200)
    expect(await called(scope, 'http.look', {})).toEqual({ error: expect.stringContaining('is not the JSON that its Content-Type says') })
    expect(await endsOf(scope)).toEqual(['failed', 'failed', 'failed'])
  })

  test('whose good answer is not the JSON that it says learns what the answer was, without its secret', async () => {
    answer = halfOf(200)
    const scope = await scopeWith({ http_tools: [open] })
    const { error } = (await called(scope, open.name, { title: 'x' })) as { error: string }
    expect(error).toMatch(
      /it may have happened: http\.tickets\.open: 200 the response is not the JSON .* unexpected end: \{"id": "\[secret\]$/,
    )
  })

  test.each([
    ['nothing', ''],
    ['a word', 'OK'],
    ['several values', '{"a":1}\n{"a":2}'],
    ['a value that JSON does not have', '{"price": NaN, "of": "a \\"[\\" of {"}'],
  ])('whose good answer says JSON and is %s was carried out, and has that as its output', async (_, text) => {
    answer = () => new Response(text, { headers: { 'content-type': 'application/json' } })
    const scope = await scopeWith({ http_tools: [open] })
    expect(await called(scope, open.name, { title: 'x' })).toEqual({ output: text })
    expect(await endsOf(scope)).toEqual(['ok'])
  })

  test('that may have happened leaves its turn completed in part, if the turn continues', async () => {
    answer = status(504)
    const scope = await scopeWith({ http_tools: [open] })
    behaviours.set(scope, async (_, deps) => deps.call(open.name, { title: 'x' }).catch(() => 'went on'))
    expect(await sendAndSettle(stubOf(scope), note(scope, 'go'))).toMatchObject([
      { status: 'completed', outcome: { partial: true, result: 'went on' } },
    ])
    expect(world.requests).toHaveLength(1)
  })

  test('that may have happened is made once: its event waits for a person', async () => {
    answer = status(504)
    const scope = await scopeWith({ http_tools: [open] })
    behaviours.set(scope, async (_, deps) => deps.call(open.name, { title: 'x' }))
    const [id = ''] = await send(stubOf(scope), note(scope, 'go'))
    await until(async () => (await endsOf(scope)).length === 1, 'it was made')
    await hurry(stubOf(scope))
    const ended = await until(async () => {
      const record = await stubOf(scope).event(id)
      return record?.status === 'dead_lettered' && record
    }, 'the event is a dead letter')
    expect(ended.error).toContain('has an unknown outcome and no idempotency key')
    expect(world.requests).toHaveLength(1)
  })

  test('that may have happened is made again under its key', async () => {
    answer = lost
    const scope = await scopeWith({ http_tools: [{ ...open, idempotence_key: 'open:{{title}}' }] })
    await called(scope, open.name, { title: 'x' })
    answer = () => Response.json({ opened: true })
    expect(await called(scope, open.name, { title: 'x' })).toEqual({ output: { opened: true } })
    expect(await endsOf(scope)).toEqual(['unknown', 'ok'])
  })

  test("a reflex's is not made again by the slow path", async () => {
    answer = lost
    const scope = await scopeWith({ http_tools: [open] })
    const { id } = await write(`return { action_type: 'call_tool', tool: 'http.tickets.open', args: { title: context.event.text } }`)
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ status: 'dead_lettered' }])
    expect(world.requests).toHaveLength(1)
  })

  test("a plan's without a key is not made again, and is undone; under the plan's key it is made again", async () => {
    const close = { ...open, name: 'http.tickets.close', url: `https://${HOST}/close` }
    const scope = await scopeWith({ http_tools: [open, close] })
    const { plan } = skillOf(open.name, { title: '{{title}}' })
    const steps = plan.steps.map((step) => ({ ...step, name: 'open', retry: { max_attempts: 3 } }))
    const compensation = [{ when: 'partial_failure', tool: close.name, args: { title: '{{title}}' }, step: 0 }]
    const { idempotence_key: _, ...keyless } = { ...plan, steps, compensation }
    const made = () => world.requests.map(({ url }) => new URL(url).pathname)
    answer = ({ url }) => (url.endsWith('/tickets') ? lost() : Response.json({}))

    expect(await propose(scope, skillOf(open.name, {}, { plan: keyless }))).toMatchObject({
      status: 'partial_failure',
      reason: expect.stringMatching(/^it may have happened: Network/) as unknown,
    })
    expect(made()).toEqual(['/tickets', '/close'])
    await propose(scope, skillOf(open.name, {}, { plan: { ...plan, steps } }))
    expect(made().slice(2)).toEqual(['/tickets', '/tickets', '/tickets'])
  })
})

describe("a call of an MCP server's tool", () => {
  const says =
    (json: object) =>
    ({ body }: OutsideRequest) =>
      Response.json({ jsonrpc: '2.0', id: (JSON.parse(body) as { id: number }).id, ...json })

  test.each<[string, typeof answer, string]>([
    ['that loses its connection', lost, 'unknown'],
    ['that is answered 502', status(502), 'unknown'],
    ['whose response is not JSON', () => new Response('<html>', { headers: { 'content-type': 'text/html' } }), 'unknown'],
    ['whose answer breaks off', brokenOff, 'unknown'],
    ['that is answered 503', status(503), 'failed'],
    ['that is answered by an error of the protocol', says({ error: { code: -32602, message: 'no' } }), 'failed'],
    ['that says itself that it failed', says({ result: { isError: true, content: [] } }), 'failed'],
  ])('%s ends as it did', async (_, answered, expected) => {
    answer = (request) => (request.body.includes('tools/call') ? answered(request) : mcpAnswer(request))
    const scope = await scopeWith({ mcp_servers: [server] })
    await called(scope, 'mcp.sky.look', { at: 'mars' })
    expect(await endsOf(scope)).toEqual([expected])
  })

  test('that was not made, for the server was away before, has failed', async () => {
    answer = lost
    const scope = await scopeWith({ mcp_servers: [server] })
    const { id } = await write(`return { action_type: 'call_tool', tool: 'mcp.sky.look', args: { at: 'mars' } }`)
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    expect((await endsOf(scope))[0]).toBe('failed')
  })
})
