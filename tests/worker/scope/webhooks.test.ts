import { generateText } from 'ai'
import { Webhook } from 'standardwebhooks'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { raiseAlerts } from '../../../src/features/alerts/events/raise.ts'
import { features } from '../../../src/features/index.ts'
import { call, keyFor, problem } from '../../support/http.ts'
import { outside, type OutsideRequest } from '../../support/mock-fetch.ts'
import { configure, HOST, scopeWith } from '../../support/scope-with-remote-tools.ts'
import { crash, entriesOf, evict, inObject, logOf, note, send, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'

const hook = { name: 'ops', url: `https://${HOST}/hooks`, secret: 'REFLEX_WEBHOOK_OPS', on: ['event.dead_lettered'] }
const hooked: string[] = []
async function withHook(changes: Record<string, unknown> = {}, settings: Record<string, unknown> = {}): Promise<string> {
  const scope = await scopeWith({ webhooks: [{ ...hook, ...changes }], max_attempts: 1, ...settings })
  hooked.push(scope)
  return scope
}

let world: ReturnType<typeof outside>
let answer: (request: OutsideRequest) => Response | Promise<Response>

beforeEach(() => {
  answer = () => new Response(null, { status: 204 })
  world = outside(HOST, (request) => answer(request))
})
afterEach(async () => {
  // A notice that still waits would reach the world of a later test.
  await Promise.all(hooked.splice(0).map((scope) => configure(scope, { webhooks: null })))
  world.restore()
})

/** Each request is answered by 500 once the test lets it, which waits for the request. */
function refusing(): () => Promise<void> {
  let [asked, refused] = [0, 0]
  answer = async () => {
    const own = (asked += 1)
    // No object can be woken by another's promise.
    await until(async () => refused >= own, 'the test refuses it')
    return new Response('no', { status: 500 })
  }
  return async () => {
    await until(async () => asked > refused, 'a request waits for its answer')
    refused += 1
  }
}

/** The body of a notice, as the official library verifies it. */
const verified = ({ body, headers }: OutsideRequest) =>
  new Webhook(String(env['REFLEX_WEBHOOK_OPS'])).verify(body, Object.fromEntries(headers)) as {
    type: string
    data: Record<string, unknown>
  }
const ended = (scope: string) => entriesOf(stubOf(scope), 'notice-ended')
const one = async (scope: string) => until(async () => (await ended(scope))[0], 'a notice has ended')
const jobsOf = (scope: string) =>
  inObject(stubOf(scope), ({ storage }) =>
    storage.sql.exec<{ payload: string; due_at: number; attempts: number }>("SELECT * FROM jobs WHERE kind = 'notice'").toArray(),
  )
/** Makes waiting attempts due. */
async function hurryNotices(scope: string): Promise<void> {
  await inObject(stubOf(scope), ({ storage }) => void storage.sql.exec("UPDATE jobs SET due_at = 0 WHERE kind = 'notice'"))
  await stubOf(scope).poke()
}
const fails = (scope: string) =>
  behaviours.set(scope, () => {
    throw new Error('the turn broke')
  })

describe('a webhook of a scope', () => {
  test('gets a dead letter, signed so that the official library verifies it', async () => {
    const scope = await withHook()
    fails(scope)
    const event = note(scope, 'x')
    await sendAndSettle(stubOf(scope), event)
    expect(await one(scope)).toMatchObject({ webhook: 'ops', status: 'delivered', attempts: 1, http_status: 204, error: null })
    const [request] = world.requests
    expect(verified(request as OutsideRequest)).toMatchObject({
      type: 'event.dead_lettered',
      data: { scope, event_id: event.id, trace_id: event.meta.trace_id, status: 'dead_lettered', error: 'the turn broke' },
    })
    expect(request?.headers.get('webhook-id')).toBe((await one(scope)).notice_id)
    expect(JSON.stringify(await logOf(stubOf(scope)))).not.toContain('dGhlLWtleS1v')
  })

  test('gets the types that it asks for, and no others', async () => {
    const scope = await withHook({ on: ['event.ended'] })
    await sendAndSettle(stubOf(scope), note(scope, 'x'))
    await one(scope)
    expect(world.requests.map((request) => verified(request).type)).toEqual(['event.ended'])
    expect(await entriesOf(stubOf(scope), 'notice-ended')).toHaveLength(1)
  })

  test('gets no notice of an event behind which ten notices stand: that is a loop, and the log says so', async () => {
    const scope = await withHook({ on: ['event.ended'] })
    const from = (sender: string) => {
      const event = note(scope, sender)
      return { ...event, meta: { ...event.meta, sender } }
    }
    await sendAndSettle(stubOf(scope), from('key:hook:ops#h9'))
    expect(await one(scope)).toMatchObject({ status: 'delivered', notice_id: expect.stringMatching(/_h10$/) })
    await sendAndSettle(stubOf(scope), from('key:hook:ops#h10'))
    const [, last] = await until(async () => ((await ended(scope)).length === 2 ? ended(scope) : null), 'the loop has ended')
    expect(last).toMatchObject({ status: 'failed', http_status: null, error: expect.stringContaining('loop') })
    expect([world.requests.length, await jobsOf(scope)]).toEqual([1, []])
  })

  test('gets no notice while a thousand wait, and the log says how many were lost', async () => {
    const scope = await withHook({}, { webhooks: ['ops', 'more'].map((name) => ({ ...hook, name, on: ['event.ended'] })) })
    await inObject(stubOf(scope), ({ storage }) => {
      const insert = `INSERT INTO jobs (kind, key, payload, locks, attempts, due_at) VALUES ('notice', ?, '{}', '[]', 0, 9e15)`
      for (let index = 0; index < 999; index += 1) storage.sql.exec(insert, `waits-${index}`)
    })
    await sendAndSettle(stubOf(scope), note(scope, 'lost'))
    await inObject(stubOf(scope), ({ storage }) => void storage.sql.exec(`DELETE FROM jobs WHERE key LIKE 'waits-%'`))
    await sendAndSettle(stubOf(scope), note(scope, 'told'))
    const both = await until(async () => ((await ended(scope)).length === 2 ? ended(scope) : null), 'both notices have ended')
    expect(both.map(({ status, dropped }) => ({ status, dropped })).toSorted((left) => (left.dropped === undefined ? 1 : -1))).toEqual([
      { status: 'delivered', dropped: 2 },
      { status: 'delivered', dropped: undefined },
    ])
  })

  test('has the place in the log that is reported kept again after some thousand entries', async () => {
    const scope = await withHook()
    const places = async () =>
      inObject(stubOf(scope), ({ storage }) =>
        storage.sql
          .exec<{ value: string }>(`SELECT value FROM state WHERE key = 'notices'`)
          .toArray()
          .map(({ value }) => (JSON.parse(value) as { seq: number }).seq),
      )
    await sendAndSettle(stubOf(scope), note(scope, 'first'))
    const [first = NaN] = await places()
    for (let batch = 0; batch < 3; batch += 1)
      await sendAndSettle(stubOf(scope), ...Array.from({ length: 500 }, (_, index) => note(scope, `${batch} ${index}`)))
    const { last_seq } = await stubOf(scope).state()
    expect(last_seq - first).toBeGreaterThan(2500)
    const [then = NaN] = await places()
    expect(last_seq - then).toBeLessThan(2500)
  })

  test('is tried again under the same id with growing pauses, and given up with a record', async () => {
    const refuse = refusing()
    const scope = await withHook()
    fails(scope)
    await sendAndSettle(stubOf(scope), note(scope, 'x'))
    const pauses: { least: number; most: number }[] = []
    for (let attempts = 1; attempts < 8; attempts++) {
      const before = Date.now()
      await refuse()
      const { due_at } = await until(async () => (await jobsOf(scope)).find((job) => job.due_at > 0), 'it waits')
      pauses.push({ least: due_at - Date.now(), most: due_at - before })
      await hurryNotices(scope)
      await until(async () => world.requests.length > attempts, 'it is sent again')
      expect(world.requests).toHaveLength(attempts + 1)
    }
    await refuse()
    expect(await one(scope)).toMatchObject({ status: 'failed', attempts: 8, http_status: 500, error: 'the webhook responded with 500' })
    const key = await keyFor(['viewer'], [scope])
    // Then it counts its log again, and writes to D1 at once instead of in a minute.
    await inObject(stubOf(scope), (state) => void state.storage.sql.exec(`DELETE FROM state WHERE key = 'statistics'`))
    await evict(stubOf(scope))
    await stubOf(scope).state()
    const counted = ['reflex_notices_total 1', 'reflex_notices_failed_total 1']
    await until(async () => {
      const lines = (await call('/metrics', { key })).text.split('\n')
      return counted.every((line) => lines.includes(line))
    }, 'it is counted for Prometheus')
    expect(new Set(world.requests.map(({ headers }) => headers.get('webhook-id'))).size).toBe(1)
    expect(pauses.every(({ most }, index) => most >= (pauses[index - 1]?.least ?? 0))).toBe(true)
    expect(pauses.at(-1)?.most).toBeGreaterThan(1000 * (pauses[0]?.least ?? Infinity))
    expect(await jobsOf(scope)).toEqual([])
  })

  test.each([['responds with 410', () => new Response(null, { status: 410 }), 'the webhook responded with 410']])(
    'that %s is not tried again',
    async (_, response, error) => {
      answer = response
      const scope = await withHook()
      fails(scope)
      await sendAndSettle(stubOf(scope), note(scope, 'x'))
      expect(await one(scope)).toMatchObject({ status: 'failed', attempts: 1, error })
    },
  )

  test('that the settings no longer name gets nothing that still waits', async () => {
    const refuse = refusing()
    const scope = await withHook()
    fails(scope)
    await sendAndSettle(stubOf(scope), note(scope, 'x'))
    await until(async () => world.requests.length === 1, 'it is sent')
    await configure(scope, { webhooks: null })
    await refuse()
    await until(async () => (await jobsOf(scope)).some(({ due_at }) => due_at > 0), 'it waits')
    await hurryNotices(scope)
    expect(await one(scope)).toMatchObject({ status: 'failed', error: 'the webhook was removed from the settings' })
    expect(world.requests).toHaveLength(1)
  })

  test('that redirects to another host gets nothing there', async () => {
    answer = () => new Response(null, { status: 307, headers: { location: 'https://10.0.0.1/' } })
    const scope = await withHook()
    fails(scope)
    await sendAndSettle(stubOf(scope), note(scope, 'x'))
    await until(async () => (await jobsOf(scope)).some(({ due_at }) => due_at > 0), 'it waits')
    expect([...new Set(world.requests.map(({ url }) => url))]).toEqual([hook.url])
  })

  test('gets a notice that a crash interrupted before and after its delivery, under one id', async () => {
    const scope = await withHook()
    fails(scope)
    answer = () => new Promise<Response>(() => {})
    await send(stubOf(scope), note(scope, 'x'))
    await until(async () => world.requests.length === 1, 'it is sent')
    answer = () => new Response(null, { status: 204 })
    await crash(scope)
    await stubOf(scope).poke()
    expect(await one(scope)).toMatchObject({ status: 'delivered', attempts: 2 })
    expect(new Set(world.requests.map(({ headers }) => headers.get('webhook-id'))).size).toBe(1)
    await evict(stubOf(scope))
    expect(await jobsOf(scope)).toEqual([])
    expect(await ended(scope)).toHaveLength(1)
  })

  test('gets one notice of a spent budget, however many turns wait for it', async () => {
    const scope = await withHook({ on: ['budget.spent'] }, { token_budget: { tokens: 0, per: 'day' } })
    behaviours.set(scope, async (_, deps) => (await generateText({ model: deps.model, prompt: 'hello' })).text)
    await send(stubOf(scope), note(scope, 'a'))
    await one(scope)
    await send(stubOf(scope), note(scope, 'b'))
    await until(async () => (await entriesOf(stubOf(scope), 'turn-ended')).length === 2, 'both turns waited')
    expect(world.requests.map((request) => verified(request))).toMatchObject([
      { type: 'budget.spent', data: { detail: expect.stringContaining('the token budget of 0 per day is spent') } },
    ])
    expect(await jobsOf(scope)).toEqual([])
  })

  test('gets an alert of the deployment once', async () => {
    const scope = await withHook({ on: ['alert.raised'] })
    const alert = { id: 'dead-letters:1', name: 'dead-letters' as const, summary: '12 new dead letters', details: { count: 12 } }
    expect(await stubOf(scope).raise(alert)).toBe(true)
    expect(await stubOf(scope).raise(alert)).toBe(false)
    await one(scope)
    expect(world.requests.map((request) => verified(request))).toMatchObject([
      { type: 'alert.raised', data: { name: 'dead-letters', summary: '12 new dead letters', details: { count: 12 } } },
    ])
  })

  test('gets the alerts that the sweep raises, also while the database is unavailable', async () => {
    const scope = await withHook({ on: ['alert.raised'] })
    const alerting = { ...env, REFLEX_ALERT_SCOPE: scope, REFLEX_ALERT_DEAD_LETTERS: '1' }
    const now = Date.now()
    await env.DB.prepare(
      "INSERT INTO dead_letters (id, origin, error, attempts, payload, dead_lettered_at) VALUES (?1, 'queue', 'lost', 5, 'null', ?2)",
    )
      .bind(crypto.randomUUID(), now)
      .run()
    expect(await raiseAlerts(alerting, now, features)).toBeGreaterThan(0)
    // D1 hears of the other tests' scopes while this one runs.
    await until(async () => (await raiseAlerts(alerting, now, features)) === 0, 'no alert is new')
    const away = {
      prepare: () => {
        throw new Error('D1 is away')
      },
    } as never
    expect(await raiseAlerts({ ...alerting, DB: away }, now, features)).toBe(1)
    const raised = (await entriesOf(stubOf(scope), 'alert-raised')).map(({ alert_id }) => alert_id)
    expect(new Set(raised).size).toBe(raised.length)
    await until(async () => (await ended(scope)).length === raised.length, 'all are delivered')
    const names = world.requests.map((request) => verified(request).data['name'])
    expect(names).toContain('dead-letters')
    expect(names).toContain('database-unavailable')
  })

  test.each([
    ['a host that the secret is not for', { url: 'https://other.example.com/' }, 'REFLEX_WEBHOOK_OPS_HOSTS'],
    ['http to another machine', { url: `http://${HOST}/hooks` }, 'is not https'],
    ['a private address', { url: 'https://10.0.0.1/' }, 'REFLEX_WEBHOOK_OPS_HOSTS'],
    ['a password in the address', { url: `https://me:secret@${HOST}/` }, 'webhooks'],
    ['a secret of another kind', { secret: 'REFLEX_TOOL_TICKETS' }, 'REFLEX_WEBHOOK_'],
    ['the variable with the hosts', { secret: 'REFLEX_WEBHOOK_OPS_HOSTS' }, '_HOSTS'],
    ['an unknown type', { on: ['event.exploded'] }, 'webhooks'],
    ['no type', { on: [] }, 'webhooks'],
  ])('is refused with %s', async (_, changes, detail) => {
    const scope = await scopeWith({})
    const refused = await configure(scope, { webhooks: [{ ...hook, ...changes }] })
    expect(refused).toMatchObject(problem(400))
    expect(refused.text).toContain(detail)
  })
})
