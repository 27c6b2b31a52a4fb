import { sshGuard } from '../../../../examples/agents/ssh-guard/agent.ts'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { withDefaults, type Event } from '../../../../src/core/event.ts'
import { sweep } from '../../../support/sweep.ts'
import { sha256 } from '../../../../src/base/json.ts'
import { call, keyFor, problem } from '../../../support/http.ts'
import { createVersion, freshId } from '../../../support/reflexes.ts'
import { entriesOf, freshScope, sendAndSettle, stubOf } from '../../../support/scopes.ts'

const { default: code }: { default: string } = await import('../../../../examples/reflexes/ssh-brute-force.js?raw')
const ADDRESS = '203.0.113.7'
const DAY = 86_400_000

let lines = 0
function burst(scope: string): Event[] {
  return Array.from({ length: 5 }, () => {
    lines += 1
    const timestamp = new Date(Date.UTC(2026, 2, 9, 6) + lines * 1000).toISOString()
    const line = `Mar  9 ${timestamp.slice(11, 19)} web-1 sshd[${1000 + lines}]: Failed password for root from ${ADDRESS} port 4242 ssh2`
    return withDefaults({ type: 'log.line', host: 'web-1', line, timestamp }, { now: Date.now(), source: 'test', scope }) as Event
  })
}

const listed = async (what: 'blocks' | 'incidents', scope: string, query = '', key?: string) =>
  (await call(`/v1/${what}?scope=${encodeURIComponent(scope)}${query}`, key === undefined ? {} : { key })).body
const lift = (id: string, key?: string) => call(`/v1/blocks/${id}`, { method: 'DELETE', ...(key === undefined ? {} : { key }) })

async function blockRow(scope: string, address: string, blocked_at = 1000): Promise<string> {
  const id = crypto.randomUUID()
  await env.DB.prepare('INSERT INTO blocks (scope, address, reason, blocked_at, id) VALUES (?, ?, ?, ?, ?)')
    .bind(scope, address, 'x', blocked_at, id)
    .run()
  return id
}

async function incidentRow(scope: string, { opened_at = 1000, closed_at = null as number | null } = {}): Promise<string> {
  const id = `INC-${crypto.randomUUID().slice(0, 12)}`
  await env.DB.prepare('INSERT INTO incidents (scope, id, title, details, evidence, opened_at, closed_at) VALUES (?, ?, ?, ?, ?, ?, ?)')
    .bind(scope, id, 'an attack', 'five logins', '["a line"]', opened_at, closed_at)
    .run()
  return id
}

async function pages(path: string): Promise<string[][]> {
  const seen: string[][] = []
  let cursor: string | null = ''
  while (cursor !== null && seen.length < 9) {
    const { body } = await call(`${path}&limit=2${cursor && `&cursor=${cursor}`}`)
    seen.push(body.items.map(({ id }: { id: string }) => id))
    cursor = body.next_cursor
  }
  return seen
}

describe('a block', () => {
  test('is listed, and lifted by an operator: the address may be blocked again, and the log has who did it', async () => {
    const scope = freshScope('ssh')
    await sendAndSettle(stubOf(scope), ...burst(scope))
    const { items } = await listed('blocks', scope)
    expect(items).toEqual([
      {
        id: expect.any(String),
        scope,
        address: ADDRESS,
        reason: expect.stringContaining('failed logins'),
        blocked_at: expect.stringMatching(/Z$/),
      },
    ])
    const [{ id }] = items
    // Limits on the model do not apply to the operator.
    await stubOf(scope).configure({ tools: ['block'] }, 'ops')
    expect(await lift(id, await keyFor(['operator'], ['ssh/*'], 'olga'))).toMatchObject({ status: 204 })
    expect((await listed('blocks', scope)).items).toEqual([])
    expect((await entriesOf(stubOf(scope), 'effect-started')).at(-1)).toMatchObject({ tool: 'unblock', cause: { by: 'olga' } })
    const [called] = await entriesOf(stubOf(scope), 'call-received')
    expect(called).toMatchObject({ call: 'tool', name: 'unblock', by: 'olga', trace_id: expect.stringMatching(/[1-9a-f]/) })
    expect((await entriesOf(stubOf(scope), 'effect-started')).at(-1)).toMatchObject({
      trace_id: called?.trace_id,
      parent_id: called?.span_id,
    })
    expect(await lift(id)).toMatchObject(problem(404))
    await sendAndSettle(stubOf(scope), ...burst(scope))
    const [again] = (await listed('blocks', scope)).items
    expect(again).toMatchObject({ address: ADDRESS })
    expect(again.id).not.toBe(id)
    expect(await lift(again.id)).toMatchObject({ status: 204 })
    expect((await listed('blocks', scope)).items).toEqual([])
  })

  test('of a network is lifted by the tool for networks', async () => {
    const scope = freshScope('ssh')
    expect(await lift(await blockRow(scope, '203.0.113.0/24'))).toMatchObject({ status: 204 })
    expect((await listed('blocks', scope)).items).toEqual([])
    expect(await entriesOf(stubOf(scope), 'effect-ended')).toMatchObject([{ tool: 'unblock_network', status: 'ok' }])
  })

  test('is lifted whatever the journal says of an earlier one of the same address', async () => {
    const scope = freshScope('ssh')
    for (let round = 0; round < 2; round += 1) expect(await lift(await blockRow(scope, ADDRESS))).toMatchObject({ status: 204 })
    expect((await listed('blocks', scope)).items).toEqual([])
  })

  test('that a reflex made counts as overruled once it is lifted, and the reflex may make it again', async () => {
    const scope = freshScope('ssh')
    const { id: reflex_id } = await createVersion({ id: freshId('guard'), code, hash: await sha256(code) })
    await stubOf(scope).configure({ reflexes: [{ id: reflex_id }], parameters: { failures: 1000 } }, 'ops')
    await sendAndSettle(stubOf(scope), ...burst(scope))
    const [{ id }] = (await listed('blocks', scope)).items
    expect(await lift(id)).toMatchObject({ status: 204 })
    expect(await entriesOf(stubOf(scope), 'reflex-overruled')).toMatchObject([
      { reflex_id, turn_id: null, reason: 'admin called unblock, which undoes its block' },
    ])
    await sendAndSettle(stubOf(scope), ...burst(scope))
    expect((await listed('blocks', scope)).items).toMatchObject([{ address: ADDRESS }])
  })

  test('stays blocked if the tool fails, or if the agent has no such tool', async () => {
    const [scope, other] = [freshScope('ssh'), freshScope('chat')]
    const failed = await lift(await blockRow(scope, 'nowhere'))
    expect(failed).toMatchObject(problem(503, 'unavailable'))
    expect(failed.body.detail).toMatch(/^The block of nowhere could not be lifted: .*tool unblock was called with bad input/)
    const absent = await lift(await blockRow(other, ADDRESS))
    expect(absent).toMatchObject(problem(409, 'no-such-tool'))
    expect(absent.body.detail).toContain('the agent chat, which serves this scope, has no tool unblock')
    for (const of of [scope, other]) expect((await listed('blocks', of)).items).toHaveLength(1)
  })

  test('is there for keys that cover its scope, and for no other; a viewer does not lift it', async () => {
    const scope = freshScope('ssh')
    const id = await blockRow(scope, ADDRESS)
    const [elsewhere, viewer] = [await keyFor(['admin'], ['team-a/*']), await keyFor(['viewer'], ['ssh/*'])]
    expect((await listed('blocks', scope, '', elsewhere)).items).toEqual([])
    expect(await lift(id, elsewhere)).toMatchObject(problem(404))
    expect((await listed('blocks', scope, '', viewer)).items).toMatchObject([{ id }])
    expect(await lift(id, viewer)).toMatchObject(problem(403))
  })

  test('is listed newest first, page by page', async () => {
    const scope = freshScope('ssh')
    const ids: string[] = []
    for (const last of [1, 2, 3]) ids.push(await blockRow(scope, `203.0.113.${last}`, last))
    const [one, two, three] = ids
    expect(await pages(`/v1/blocks?scope=${encodeURIComponent(scope)}`)).toEqual([[three, two], [one]])
    expect(await call('/v1/blocks?cursor=x')).toMatchObject(problem(400))
  })
})

describe('an incident', () => {
  test('is listed with its evidence, by its state, for keys that cover its scope', async () => {
    const scope = freshScope('ssh')
    const [open, closed] = [await incidentRow(scope), await incidentRow(scope, { opened_at: 2000, closed_at: 3000 })]
    const viewer = await keyFor(['viewer'], ['ssh/*'])
    const rest = { scope, title: 'an attack', details: 'five logins', evidence: ['a line'] }
    expect((await listed('incidents', scope, '', viewer)).items).toEqual([
      { id: closed, ...rest, state: 'closed', opened_at: '1970-01-01T00:00:02.000Z', closed_at: '1970-01-01T00:00:03.000Z' },
      { id: open, ...rest, state: 'open', opened_at: '1970-01-01T00:00:01.000Z', closed_at: null },
    ])
    expect((await listed('incidents', scope, '&state=open')).items).toMatchObject([{ id: open }])
    expect((await listed('incidents', scope, '&state=closed')).items).toMatchObject([{ id: closed }])
    expect((await listed('incidents', scope, '', await keyFor(['admin'], ['team-a/*']))).items).toEqual([])
    expect(await call('/v1/incidents?state=lost')).toMatchObject(problem(400))
  })

  test('is listed newest first, page by page', async () => {
    const scope = freshScope('ssh')
    const ids: string[] = []
    for (const opened_at of [1, 2, 3]) ids.push(await incidentRow(scope, { opened_at }))
    const [one, two, three] = ids
    expect(await pages(`/v1/incidents?scope=${encodeURIComponent(scope)}`)).toEqual([[three, two], [one]])
  })

  test('is closed by an operator, whom the log names; once is enough, and only where the key covers its scope', async () => {
    const scope = freshScope('ssh')
    const id = await incidentRow(scope)
    const close = (key?: string, json: object = { reason: 'they are blocked' }) =>
      call(`/v1/incidents/${id}/close`, { json, ...(key === undefined ? {} : { key }) })
    expect(await close(await keyFor(['operator'], ['team-a/*']))).toMatchObject(problem(404))
    expect(await close(await keyFor(['viewer'], ['ssh/*']))).toMatchObject(problem(403))
    expect(await close(undefined, {})).toMatchObject(problem(400))
    expect((await listed('incidents', scope)).items).toMatchObject([{ id, state: 'open' }])
    const closed = await close(await keyFor(['operator'], ['ssh/*'], 'olga'))
    expect(closed).toMatchObject({ status: 200, body: { id, state: 'closed' } })
    expect(await close()).toMatchObject({ status: 200, body: closed.body })
    const started = await entriesOf(stubOf(scope), 'effect-started')
    expect(started).toMatchObject([{ tool: 'close_ticket', cause: { by: 'olga' } }])
  })

  test('is found by its id without a look through all of them', async () => {
    const { results } = await env.DB.prepare('EXPLAIN QUERY PLAN SELECT * FROM incidents WHERE id = ?').bind('INC-1').all()
    expect(results).toMatchObject([{ detail: 'SEARCH incidents USING INDEX incidents_id (id=?)' }])
  })

  test('of a scope whose agent has no tickets cannot be closed, and is said why', async () => {
    const id = await incidentRow(freshScope('test'))
    const refused = await call(`/v1/incidents/${id}/close`, { json: { reason: 'x' } })
    expect(refused).toMatchObject(problem(409))
    expect(refused.body.detail).toContain('has no tool close_ticket')
  })

  test('is forgotten by the sweep 30 days after it was closed, and never while it is open', async () => {
    const scope = freshScope('ssh')
    const now = Date.now()
    const at = (closed_days: number | null) => ({ opened_at: 1, closed_at: closed_days === null ? null : now - closed_days * DAY })
    const [open, young] = [await incidentRow(scope, at(null)), await incidentRow(scope, at(29))]
    await incidentRow(scope, at(31))
    await sweep(env, now, sshGuard.retention)
    const left = (await listed('incidents', scope)).items.map(({ id }: { id: string }) => id)
    expect(new Set(left)).toEqual(new Set([open, young]))
  })
})
