import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { sortAll } from '../../support/sort-told.ts'
import type { Env, QueueMessage } from '../../../src/env.ts'
import worker from '../../support/worker.ts'
import { consumeEvents, enqueue, pack } from '../../../src/events/queue.ts'
import { listEvents } from '../../../src/store/events.ts'
import { scopeTotals } from '../../../src/features/statistics/store/packed.ts'
import { newBatchId, noteQueued, seqAt } from '../../../src/store/queued.ts'
import { scopeStatements } from '../../../src/store/scope-rows.ts'
import { listScopes, scopeExists, setWake } from '../../../src/store/scopes.ts'
import { sweep } from '../../support/sweep.ts'
import { sweep as sweepWith } from '../../../src/events/sweep.ts'
import { call, keyFor } from '../../support/http.ts'
import { behaviours } from '../../support/test-agents.ts'
import { acting } from '../../support/reflex-chain.ts'
import { rowsWritten } from '../../support/rows.ts'
import { metricsOf } from '../../../src/store/artifacts/reflex-metrics.ts'
import { evict, freshScope, inObject, note, type Note, runAlarm, stubOf, until } from '../../support/scopes.ts'

async function deliver(queue: string, bodies: unknown[], attempts = 1, bindings: Env = env) {
  const batch = createMessageBatch(
    queue,
    bodies.map((body, index) => ({ id: `m${index}-${crypto.randomUUID()}`, timestamp: new Date(), attempts, body })),
  )
  const context = createExecutionContext()
  await worker.queue(batch, bindings)
  return getQueueResult(batch, context)
}
const row = (scope: string) => env.DB.prepare('SELECT * FROM events WHERE scope = ?').bind(scope).first()
const listed = async (scope: string) => (await listEvents(env.DB, { scope, patterns: ['*'], limit: 10 })).items
/** The newest event that D1 has of a scope, beyond the note of what was sent. */
const replicated = async (scope: string) => (await listed(scope)).find(({ status }) => status !== 'queued')
const letters = async (scope: string) => (await env.DB.prepare('SELECT * FROM dead_letters WHERE scope = ?').bind(scope).all()).results

beforeEach(async () => {
  await env.DB.exec('DELETE FROM dead_letters; DELETE FROM queued')
})

describe('the consumer', () => {
  test('delivers a batch scope by scope, and drops what a redelivered message brings twice', async () => {
    const [one, two] = [freshScope(), freshScope()]
    const [a, b, c] = [note(one, 'a'), note(one, 'b'), note(two, 'c')]
    const bodies = [
      { scope: one, events: [a] },
      { scope: two, events: [c] },
      { scope: one, events: [b] },
    ]
    expect((await deliver('reflex-events', bodies)).explicitAcks).toHaveLength(3)
    expect((await deliver('reflex-events', bodies.slice(0, 1))).explicitAcks).toHaveLength(1)
    expect(await stubOf(one).outcomes([a.id, b.id], 15_000)).toMatchObject({ settled: true })
    expect((await stubOf(one).state()).counters).toMatchObject({ accepted: 2, duplicates: 1 })
  })

  test('completes events of another Worker, and buries alone those that cannot be events, which restart no scope', async () => {
    const scope = freshScope()
    const other = freshScope()
    const short = { id: 'short', scope, type: 'note', text: 'a' }
    const bad: Record<string, object> = {
      'no-trace-id': { meta: { trace_id: 'mine' } },
      'no-time': { timestamp: 'yesterday' },
      'no-meta': { meta: 7 },
      'of-the-scope': { type: 'approval.ended' },
      long: { text: 'x'.repeat(110_000) },
    }
    const refused = Object.entries(bad).map(([id, fields]) => ({ ...short, id, ...fields }))
    const events = [
      short,
      ...refused,
      { ...short, id: 'last', timestamp: '2026-01-02T03:04:05+01:00' },
      { ...short, id: 'b', scope: other },
    ]
    const result = await deliver('reflex-events', [{ events, sender: 'meter-7' }])
    expect([result.explicitAcks.length, result.retryMessages.length]).toEqual([1, 0])
    expect(await stubOf(scope).outcomes(['short', 'last'], 15_000)).toMatchObject({ settled: true })
    expect((await stubOf(scope).event('short'))?.event).toMatchObject({
      source: 'queue',
      timestamp: expect.stringMatching(/Z$/),
      meta: { sender: 'meter-7', trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) },
    })
    expect((await stubOf(scope).event('last'))?.event.timestamp).toBe('2026-01-02T02:04:05.000Z')
    expect(await stubOf(other).event('b')).toMatchObject({ event: { id: 'b' } })
    const buried = await letters(scope)
    expect(new Set(buried.map(({ event_id }) => event_id))).toEqual(new Set(Object.keys(bad)))
    for (const letter of buried) expect(letter['error']).toMatch(/^not an event: /)
    expect((await stubOf(scope).state()).counters).toMatchObject({ accepted: 2 })
    const ids = buried.map(({ id }) => String(id))
    const answers = await Promise.all(ids.map((id) => call(`/v1/dlq/${id}/retry`, { method: 'POST' })))
    for (const { status, body } of answers)
      expect([status, body.detail]).toEqual([409, expect.stringContaining('no event that could be parsed')])
    expect((await stubOf(scope).state()).counters).toMatchObject({ accepted: 2 })
  })

  test('an event without a name keeps back no other one of its message, and is a letter of its own', async () => {
    const [scope, other] = [freshScope(), freshScope()]
    const nameless = [{ scope, type: 'note', text: 'no id' }, null, { id: 'x', type: 'note', text: 'no scope' }]
    const events = [
      { id: 'a', scope, type: 'note', text: 'a' },
      ...nameless,
      { id: 'no-time', scope, type: 'note', text: 'a', timestamp: 'yesterday' },
      { id: 'b', scope: other, type: 'note', text: 'b' },
    ]
    const result = await deliver('reflex-events', [{ events, sender: 'meter-7' }])
    expect([result.explicitAcks.length, result.retryMessages.length]).toEqual([1, 0])
    expect((await stubOf(scope).event('a'))?.event.meta.sender).toBe('meter-7')
    expect(await stubOf(other).event('b')).toMatchObject({ event: { id: 'b' } })
    const { results } = await env.DB.prepare('SELECT payload FROM dead_letters WHERE scope IS NULL').all<{ payload: string }>()
    expect(results.map(({ payload }) => JSON.parse(payload) as unknown)).toEqual(expect.arrayContaining(nameless))
    expect(results).toHaveLength(nameless.length)
    expect((await letters(scope)).map(({ event_id }) => event_id)).toEqual(['no-time'])
  })

  test('an event without a name that D1 did not take is a letter of its own once the queue gives up on its message', async () => {
    const scope = freshScope()
    const nameless = { scope, type: 'note', text: 'no id' }
    const events = [{ id: 'a', scope, type: 'note', text: 'a' }, nameless]
    const DB = new Proxy(env.DB, {
      get: () => () => {
        throw new Error('D1 is away')
      },
    })
    const tried = await deliver('reflex-events', [{ events, sender: 'meter-7' }], 1, { ...env, DB })
    expect([tried.explicitAcks.length, tried.retryMessages.length]).toEqual([0, 1])
    const given_up = { events: [...events, { id: 'left', scope, type: 'note', text: 'b' }], sender: 'meter-7' }
    expect((await deliver('reflex-dead-letters', [given_up], 6)).explicitAcks).toHaveLength(1)
    expect((await letters(scope)).map(({ event_id }) => event_id)).toContain('left')
    const { results } = await env.DB.prepare('SELECT payload FROM dead_letters WHERE scope IS NULL').all<{ payload: string }>()
    expect(results.map(({ payload }) => JSON.parse(payload) as unknown)).toEqual([nameless])
  })

  test('a message of another Worker that the queue gave up on is completed when its letter is retried', async () => {
    const scope = freshScope()
    await deliver('reflex-dead-letters', [{ scope, events: [{ id: 'short', scope, type: 'note', text: 'a' }], sender: 'meter-7' }], 6)
    const [letter] = await letters(scope)
    expect((await call(`/v1/dlq/${String(letter?.['id'])}/retry`, { method: 'POST' })).status).toBe(200)
    expect(await stubOf(scope).outcomes(['short'], 15_000)).toMatchObject({ settled: true })
    expect(await letters(scope)).toEqual([])
  })

  test('takes the sender that the message names, whatever its events say', async () => {
    const scope = freshScope()
    const [own, none] = [note(scope, 'a'), note(scope, 'b')]
    const events = [{ ...own, meta: { ...own.meta, sender: 'key:abc', role: 'admin' } }, none]
    await deliver('reflex-events', [{ scope, sender: 'meter-7', events }])
    const metas = await Promise.all([own, none].map(async ({ id }) => (await stubOf(scope).event(id))?.event.meta))
    expect(metas.map((meta) => [meta?.sender, meta?.role])).toEqual([
      ['meter-7', undefined],
      ['meter-7', undefined],
    ])
  })

  test.each([
    ['a string'],
    [null],
    [{ scope: 'x', sender: 7, events: [{ scope: 'x', id: 'a', type: 'test.note' }] }],
    [{ scope: 'bad scope!', events: [] }],
    [{ scope: 'x', events: 'none' }],
    [{ scope: 'x', events: [{ id: 'a', type: 'test.note' }] }],
  ])('a message that cannot be read (%j) goes to the dead letters at once, and the others are delivered', async (body) => {
    const scope = freshScope()
    const event = note(scope, 'fine')
    const result = await deliver('reflex-events', [body, { scope, events: [event] }])
    expect(result.explicitAcks).toHaveLength(2)
    expect(result.retryMessages).toEqual([])
    const { results } = await env.DB.prepare('SELECT * FROM dead_letters WHERE scope IS NULL').all()
    expect(results).toMatchObject([
      { origin: 'queue', payload: JSON.stringify(body), error: expect.stringContaining('each event with `id`, `type` and `scope`') },
    ])
  })

  test('a dead letter of a message that cannot be read has no secret of the deployment', async () => {
    await deliver('reflex-events', [{ said: 'it is nowhere-secret' }])
    const { results } = await env.DB.prepare('SELECT payload FROM dead_letters WHERE scope IS NULL').all<{ payload: string }>()
    expect(results).toMatchObject([{ payload: expect.stringContaining('it is ') }])
    expect(results[0]?.payload).not.toContain('nowhere-secret')
  })

  test('an event that its scope cannot take goes back alone: the others of its message, and other messages, are accepted', async () => {
    const scope = freshScope()
    const poison = note(scope, 'poison')
    const stub = stubOf(scope)
    const accept = async (events: Note[]) => {
      if (events.some(({ id }) => id === poison.id)) throw new Error('the scope restarts after a failure')
      return stub.accept(events, 'queue')
    }
    const sent: [QueueMessage, unknown][] = []
    const EVENTS = { send: async (message: QueueMessage, options: unknown) => void sent.push([message, options]) }
    const failing = Object.assign({}, env, { SCOPE: { getByName: () => ({ accept }) }, EVENTS })
    const others = Array.from({ length: 20 }, (_, index) => note(scope, `other ${index}`))
    const bodies = [
      { scope, events: [...others.slice(0, 7), poison, ...others.slice(7, 15)] },
      { scope, events: others.slice(15) },
    ]
    expect((await deliver('reflex-events', bodies, 1, failing)).retryMessages).toHaveLength(2)
    const second = await deliver('reflex-events', bodies, 2, failing)
    expect(second).toMatchObject({ retryMessages: [], explicitAcks: [expect.anything(), expect.anything()] })
    expect(sent).toMatchObject([[{ scope, events: [poison], attempts: 2 }, { delaySeconds: 8 }]])
    expect((await stub.state()).counters.accepted).toBe(20)
    const buried = await deliver('reflex-dead-letters', bodies.slice(0, 1), 6)
    expect(buried.explicitAcks).toHaveLength(1)
    await until(async () => (await letters(scope)).length <= 1, 'the outbox has told of the others')
    expect(await letters(scope)).toMatchObject([{ event_id: poison.id }])
  })

  test('events of many scopes in one message are delivered to each, and those that one did not take are sent again with their own count', async () => {
    const [fine, other, away] = [freshScope(), freshScope(), freshScope()]
    const sent: QueueMessage[] = []
    const SCOPE = { getByName: (name: string) => (name === away ? { accept: () => Promise.reject(new Error('away')) } : stubOf(name)) }
    const failing = Object.assign({}, env, { SCOPE, EVENTS: { send: async (message: QueueMessage) => void sent.push(message) } })
    const [one, two, three] = [note(fine, 'a'), note(other, 'b'), note(away, 'c')]
    const bodies = [{ events: [one, three, two], batch: '7', sender: 'meter-7' }]
    expect((await deliver('reflex-events', bodies, 1, failing)).explicitAcks).toHaveLength(1)
    expect((await stubOf(fine).state()).counters.accepted).toBe(1)
    expect((await stubOf(other).event(two.id))?.event.meta.sender).toBe('meter-7')
    expect(sent).toMatchObject([
      { events: [{ ...three, meta: { sender: 'meter-7' } }], batch: '7', attempts: 1, first_at: expect.any(Number) },
    ])
    // Four more attempts fail as a whole, and the last one buries it by the count of all.
    expect((await deliver('reflex-events', sent, 4, failing)).retryMessages).toHaveLength(1)
    expect((await deliver('reflex-events', sent, 5, failing)).explicitAcks).toHaveLength(1)
    expect(await letters(away)).toMatchObject([{ event_id: three.id, attempts: 6 }])
    expect(sent).toHaveLength(1)
  })

  test('a sender of many scopes has few of them called at once, and another sender has the next turn', async () => {
    const called: string[] = []
    let [open, most] = [0, 0]
    const accept = async (events: Note[]) => {
      called.push(events[0]?.scope ?? '')
      open += 1
      most = Math.max(most, open)
      await scheduler.wait(5)
      open -= 1
      return { ok: true, receipts: [] }
    }
    const many = Array.from({ length: 200 }, (_, index) => note(`many/${index}`, 'a'))
    const bodies = [
      { events: many, batch: '7', sender: 'meter-7' },
      { events: [note('lone/1', 'b')], batch: '8', sender: 'lone' },
    ]
    const slow = Object.assign({}, env, { SCOPE: { getByName: () => ({ accept }) } })
    expect((await deliver('reflex-events', bodies, 1, slow)).explicitAcks).toHaveLength(2)
    expect(new Set(called).size).toBe(201)
    expect(most).toBeLessThanOrEqual(16)
    expect(called.indexOf('lone/1')).toBe(1)
  })

  test('a scope that gives no answer keeps neither the events nor the outcomes of others in its batch', async () => {
    const [fine, silent] = [freshScope(), freshScope()]
    let calls = 0
    const hangs = { accept: () => ((calls += 1), new Promise(() => {})) }
    const SCOPE = { getByName: (name: string) => (name === silent ? hangs : stubOf(name)) }
    const bodies = [{ events: [note(fine, 'a')] }, { events: [note(silent, 'b'), note(silent, 'c')], attempts: 2 }]
    const messages = bodies.map((body, index) => ({ id: String(index), timestamp: new Date(), attempts: 1, body }))
    const batch = createMessageBatch('reflex-events', messages)
    await consumeEvents(batch, Object.assign({}, env, { SCOPE }), 100)
    const result = await getQueueResult(batch, createExecutionContext())
    expect(result.explicitAcks).toEqual(['0'])
    expect(result.retryMessages).toMatchObject([{ msgId: '1' }])
    expect(calls).toBe(1)
    await until(
      async () => (await row(fine))?.['status'] === 'completed' || (await listed(fine))[0]?.status === 'completed',
      'D1 has the outcome',
    )
  })

  test('a message whose rest the queue does not take is delivered again as a whole', async () => {
    const [fine, away] = [freshScope(), freshScope()]
    const SCOPE = { getByName: (name: string) => (name === away ? { accept: () => Promise.reject(new Error('away')) } : stubOf(name)) }
    const failing = Object.assign({}, env, { SCOPE, EVENTS: { send: () => Promise.reject(new Error('the queue is away')) } })
    const bodies = [{ events: [note(fine, 'a'), note(away, 'b')] }]
    expect(await deliver('reflex-events', bodies, 1, failing)).toMatchObject({ explicitAcks: [], retryMessages: [expect.anything()] })
    await deliver('reflex-events', bodies, 2)
    expect((await stubOf(fine).state()).counters).toMatchObject({ accepted: 1, duplicates: 1 })
    expect((await stubOf(away).state()).counters.accepted).toBe(1)
  })

  test('outcomes of few events are packed together when the batch was delivered, and those of redelivered ones again', async () => {
    const scopes = [freshScope(), freshScope(), freshScope()]
    const events = scopes.map((scope) => note(scope, 'noise'))
    const packs = async () =>
      (await env.DB.prepare('SELECT events FROM packs').all<{ events: number }>()).results.map((pack) => pack.events)
    await env.DB.exec('DELETE FROM packs')
    const bodies = [{ events }]
    await deliver('reflex-events', bodies)
    expect(await packs()).toEqual([3])
    await env.DB.exec('DELETE FROM packs')
    await deliver('reflex-events', bodies, 2)
    expect(await packs()).toEqual([3])
    for (const [index, scope] of scopes.entries()) expect(await listed(scope)).toMatchObject([{ id: events[index]!.id, status: 'ignored' }])
  })

  test('outcomes whose pack D1 does not take are reported by their scopes, later', async () => {
    const scope = freshScope()
    const event = note(scope, 'noise')
    const away = Object.assign({}, env, {
      DB: { prepare: (sql: string) => env.DB.prepare(sql), batch: () => Promise.reject(new Error('D1 is away')) },
    })
    expect((await deliver('reflex-events', [{ events: [event] }], 1, away)).explicitAcks).toHaveLength(1)
    await until(async () => (await row(scope))?.['status'] === 'ignored', 'D1 knows')
    const deaf = {
      accept: (...given: Parameters<ReturnType<typeof stubOf>['accept']>) => stubOf(scope).accept(...given),
      unpacked: () => Promise.reject(new Error('away')),
    }
    const lost = Object.assign({}, away, { SCOPE: { getByName: () => deaf } })
    expect((await deliver('reflex-events', [{ events: [note(scope, 'noise')] }], 1, lost)).retryMessages).toHaveLength(1)
  })

  test('a new scope is listed by the answer to its first delivery, and wakes for nothing but its retention', async () => {
    const scope = freshScope()
    await deliver('reflex-events', [{ events: [note(scope, 'noise')] }])
    expect(await scopeExists(env.DB, scope)).toBe(true)
    expect((await stubOf(scope).state()).outbox.waiting).toBe(0)
    const alarm = await inObject(stubOf(scope), async ({ storage }) => storage.getAlarm())
    expect((alarm ?? 0) - Date.now()).toBeGreaterThan(86_400_000)
    const wakes = await env.DB.prepare('SELECT wake_at FROM scopes WHERE scope = ?').bind(scope).first<number>('wake_at')
    expect(wakes).toBeGreaterThanOrEqual(alarm ?? Infinity)
  })

  test('a new scope whose answer D1 does not take lists itself, also if it restarts, and so does one that is asked again', async () => {
    const [lost, repeated] = [freshScope(), freshScope()]
    const away = Object.assign({}, env, {
      DB: { prepare: (sql: string) => env.DB.prepare(sql), batch: () => Promise.reject(new Error('D1 is away')) },
    })
    await deliver('reflex-events', [{ events: [note(lost, 'noise')] }], 1, away)
    await evict(stubOf(lost))
    await until(async () => scopeExists(env.DB, lost), 'D1 lists the scope')
    const event = note(repeated, 'noise')
    const unheard = await stubOf(repeated).accept([event], 'queue', 'rows, too')
    expect(unheard).toMatchObject({ outcomes: expect.stringContaining('"row":{') })
    await evict(stubOf(repeated))
    await deliver('reflex-events', [{ events: [event] }], 2)
    expect(await scopeExists(env.DB, repeated)).toBe(true)
  })

  test('a caller that writes no rows of scopes is given none, and the scope lists itself', async () => {
    const scope = freshScope()
    const accepted = await stubOf(scope).accept([note(scope, 'noise')], 'queue', true)
    expect(accepted).toMatchObject({ outcomes: expect.not.stringContaining('"row":') })
    await until(async () => scopeExists(env.DB, scope), 'D1 lists the scope')
  })

  test('a burst of events with the longest ids is accepted in one call', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ agent: 'perceiver' }, 'test')
    const events = Array.from({ length: 6000 }, (_, index) => ({
      ...note(scope, 'x'),
      id: `${String(index).padStart(6, '0')}${'漢'.repeat(122)}`,
    }))
    const result = await deliver('reflex-events', [{ scope, events }])
    expect(result.explicitAcks).toHaveLength(1)
    expect((await stubOf(scope).state()).counters.accepted).toBe(events.length)
  })

  test('events of a megabyte of three-byte characters are accepted, and replicated to D1', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ agent: 'perceiver' }, 'test')
    const events = Array.from({ length: 30 }, (_, index) => note(scope, `${index}${'漢'.repeat(33_000)}`))
    expect((await deliver('reflex-events', [{ scope, events }])).explicitAcks).toHaveLength(1)
    await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'the outbox is empty')
    expect((await stubOf(scope).state()).counters.accepted).toBe(events.length)
  })

  test('a full inbox sends the message back', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ consumer: 'pull', inbox_limit: 2 }, 'test')
    expect((await deliver('reflex-events', [{ scope, events: [note(scope, 'first')] }])).explicitAcks).toHaveLength(1)
    const result = await deliver('reflex-events', [{ scope, events: [note(scope, 'a'), note(scope, 'b')] }])
    expect(result.explicitAcks).toEqual([])
    expect(result.retryMessages).toHaveLength(1)
  })

  test('of two messages that are too much together, a full inbox takes the one that it has room for', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull', inbox_limit: 2 }, 'test')
    await stub.accept([note(scope, 'first')], 'http')
    const bodies = ['a', 'b'].map((text) => ({ scope, events: [note(scope, text)] }))
    const { explicitAcks, retryMessages } = await deliver('reflex-events', bodies)
    expect([explicitAcks.length, retryMessages.length]).toEqual([1, 1])
    expect((await stub.state()).counters.accepted).toBe(2)
  })

  test('the sweep leaves a batch alone for as long as the queue waits before it delivers the batch again', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ consumer: 'pull', inbox_limit: 1 }, 'test')
    await stubOf(scope).accept([note(scope, 'first')], 'http')
    const events = [note(scope, 'a')]
    const now = Date.now()
    const batch = newBatchId(now)
    await noteQueued(env.DB, [{ id: batch, events }], now)
    const { retryMessages } = await deliver('reflex-events', [{ scope, events, batch }])
    expect(retryMessages).toHaveLength(1)
    // Half a minute for the pause, and half a minute for the delivery.
    expect((await sweep(env, now + 59_000)).sent_again).toBe(0)
    expect((await sweep(env, now + 70_000)).sent_again).toBe(1)
  })

  test.each([1, 2])('a full inbox is asked once for as many events, in delivery %i', async (attempt) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull', inbox_limit: 4 }, 'test')
    // An empty inbox takes whatever comes.
    await stub.accept([note(scope, 'first')], 'http')
    const asked: number[] = []
    const accept = (events: Note[], via: 'queue') => {
      asked.push(events.length)
      return stub.accept(events, via)
    }
    const counted = Object.assign({}, env, { SCOPE: { getByName: () => ({ accept }) } })
    const bodies = [4, 4, 5, 2, 2, 1, 1, 1].map((count) => ({
      scope,
      events: Array.from({ length: count }, (_, index) => note(scope, `${index}`)),
    }))
    const { explicitAcks, retryMessages } = await deliver('reflex-events', bodies, attempt, counted)
    // All 20 together are tried first, where none was delivered before.
    expect(asked).toEqual([...(attempt === 1 ? [20] : []), 4, 2, 2, 1, 1])
    expect([explicitAcks.length, retryMessages.length]).toEqual([2, 6])
    expect((await stub.state()).counters.accepted).toBe(4)
  })

  test('an undeliverable event ends as a dead letter, unless its scope has it', async () => {
    const [lost, delivered] = [freshScope(), freshScope()]
    const [a, b] = [note(lost, 'a'), note(delivered, 'b')]
    await stubOf(delivered).accept([b], 'queue')
    await until(async () => (await replicated(delivered))?.status === 'completed', 'D1 knows')
    expect(
      (
        await deliver(
          'reflex-dead-letters',
          [
            { scope: lost, events: [a] },
            { scope: delivered, events: [b] },
          ],
          6,
        )
      ).explicitAcks,
    ).toHaveLength(2)
    expect(await letters(lost)).toMatchObject([{ origin: 'queue', event_id: a.id, attempts: 6 }])
    expect(await row(lost)).toMatchObject({ status: 'dead_lettered' })
    expect(await letters(delivered)).toEqual([])
    expect(await replicated(delivered)).toMatchObject({ status: 'completed' })
  })

  test('a D1 that is down keeps a dead letter in its queue', async () => {
    await env.DB.exec('ALTER TABLE dead_letters RENAME TO away')
    try {
      const result = await deliver('reflex-dead-letters', [{ scope: 'x', events: [note('x', 'a')] }])
      expect(result.retryMessages).toHaveLength(1)
      expect(result.explicitAcks).toEqual([])
    } finally {
      await env.DB.exec('ALTER TABLE away RENAME TO dead_letters')
    }
  })
})

describe('the queue path', () => {
  test('is in D1 as queued at once, and gets its outcome', async () => {
    const scope = freshScope()
    const event = note(scope, 'a')
    await enqueue(env, createExecutionContext(), [event], Date.now())
    expect(['queued', 'pending', 'completed']).toContain((await listed(scope))[0]?.status)
    await until(async () => (await listed(scope))[0]?.status === 'completed', 'the outcome is in D1')
    expect((await listed(scope))[0]?.event).toEqual(event)
    expect(await row(scope)).toBeNull()
    expect(await enqueue(env, createExecutionContext(), [event], Date.now())).toEqual({
      known: new Map([[`${scope} ${event.id}`, event.meta.trace_id]]),
      unsure: new Set(),
    })
  })

  test('does not need D1', async () => {
    const scope = freshScope()
    const event = note(scope, 'a')
    await env.DB.exec('ALTER TABLE events RENAME TO events_away')
    try {
      expect(await enqueue(env, createExecutionContext(), [event], Date.now())).toEqual({ known: new Map(), unsure: new Set() })
      await until(async () => (await stubOf(scope).event(event.id))?.status === 'completed', 'the scope has it')
    } finally {
      await env.DB.exec('ALTER TABLE events_away RENAME TO events')
    }
  })

  test('that took a part of the events tells the rest, and the sweep sends the rest again', async () => {
    const [taken, refused] = [freshScope(), freshScope()]
    // Three fill a batch of their own.
    const large = (scope: string) => Array.from({ length: 3 }, (_, index) => note(scope, `${index}`.repeat(70_000)))
    const [first, second] = [large(taken), large(refused)]
    // It takes the one scope's, and loses them.
    const EVENTS = {
      sendBatch: async (batch: { body: { scope: string } }[]) => {
        if (batch.some(({ body }) => body.scope === refused)) throw new Error('away')
      },
    }
    const failing = Object.assign({}, env, { EVENTS })
    const now = Date.now() - 31_000
    const { known, unsure } = await enqueue(failing, createExecutionContext(), [...first, ...second], now)
    expect({ known, unsure }).toEqual({ known: new Map(), unsure: new Set(second) })
    expect((await sweep(failing, now + 31_000)).sent_again).toBe(first.length)
    expect((await sweep(env, now + 31_000)).sent_again).toBe(second.length)
    await until(async () => (await stubOf(refused).state()).counters.accepted === second.length, 'the rest is delivered')
  })

  test('packs many events into a message, those of one scope in their order, none over the limit', () => {
    const events = [
      ...Array.from({ length: 300 }, (_, index) => note('a', `${index}`.repeat(100))),
      ...Array.from({ length: 3 }, () => note('b', '€'.repeat(20_000))),
    ]
    const packed = pack(events)
    expect(packed.length).toBeLessThan(10)
    for (const { message, bytes } of packed) {
      expect(bytes).toBeLessThanOrEqual(100_000)
      expect(message.events.length).toBeLessThanOrEqual(100)
      const scopes = new Set(message.events.map(({ scope }) => scope))
      expect(message.scope).toBe(scopes.size === 1 ? [...scopes][0] : undefined)
    }
    expect(packed.flatMap(({ message }) => message.events)).toEqual(events)
    const lone = Array.from({ length: 250 }, (_, index) => note(`lone/${index}`, 'a'))
    expect(pack(lone).map(({ message }) => message.events.length)).toEqual([100, 100, 50])
  })

  test('shares a message and a note among the requests that arrive during a send', async () => {
    const scopes = Array.from({ length: 20 }, () => freshScope())
    const { promise, resolve } = Promise.withResolvers<void>()
    const sent: QueueMessage[][] = []
    const EVENTS = {
      sendBatch: async (batch: { body: QueueMessage }[]) => {
        sent.push(batch.map(({ body }) => body))
        if (sent.length === 1) await promise
      },
    }
    const slow = Object.assign({}, env, { EVENTS })
    const request = (scope: string) => enqueue(slow, createExecutionContext(), [note(scope, 'a')], Date.now())
    const first = request(freshScope())
    await until(async () => sent.length === 1, 'the first is being sent')
    const requests = [first, ...scopes.map(request)]
    resolve()
    for (const answer of await Promise.all(requests)) expect(answer).toEqual({ known: new Map(), unsure: new Set() })
    expect(sent.map((batch) => batch.map(({ events }) => events.length))).toEqual([[1], [20]])
    expect(await env.DB.prepare('SELECT count(*) AS n FROM queued').first('n')).toBe(2)
  })

  test('tells each request of a shared send that failed, and the next is sent', async () => {
    const [one, two] = [note(freshScope(), 'a'), note(freshScope(), 'b')]
    let away = true
    const EVENTS = { sendBatch: async () => (away ? Promise.reject(new Error('away')) : undefined) }
    const failing = Object.assign({}, env, { EVENTS })
    const requests = [one, two].map((event) => enqueue(failing, createExecutionContext(), [event], Date.now()))
    expect((await Promise.all(requests)).map(({ unsure }) => [...unsure])).toEqual([[one], [two]])
    away = false
    // It may be lost: it is no duplicate of itself.
    expect(await enqueue(failing, createExecutionContext(), [two], Date.now())).toEqual({ known: new Map(), unsure: new Set() })
  })

  test('starts another send for those who arrive when the next one has a full message', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const sent: number[][] = []
    const EVENTS = {
      sendBatch: async (batch: { body: QueueMessage }[]) => {
        sent.push(batch.map(({ body }) => body.events.length))
        if (sent.length === 1) await promise
      },
    }
    const slow = Object.assign({}, env, { EVENTS })
    const request = (count: number) => {
      const scope = freshScope()
      const events = Array.from({ length: count }, (_, index) => note(scope, `${index}`))
      return enqueue(slow, createExecutionContext(), events, Date.now())
    }
    const first = request(1)
    await until(async () => sent.length === 1, 'the first is being sent')
    const requests = [first, request(60), request(60), request(60)]
    resolve()
    for (const answer of await Promise.all(requests)) expect(answer.unsure.size).toBe(0)
    expect(sent).toEqual([[1], [100, 20], [60]])
  })

  test('gives an event that is sent again the trace of the first that had its id', async () => {
    const event = note(freshScope(), 'a')
    const withTrace = (trace_id: string) => ({ ...event, meta: { ...event.meta, trace_id } })
    const [one, other, later] = ['1', '2', '3'].map((digit) => withTrace(digit.repeat(32)))
    const EVENTS = { sendBatch: async () => {} }
    const fine = Object.assign({}, env, { EVENTS })
    const sent = (events: Note[]) => enqueue(fine, createExecutionContext(), events, Date.now())
    expect((await sent([one, other] as Note[])).known).toEqual(new Map())
    expect((await sent([later] as Note[])).known).toEqual(new Map([[`${event.scope} ${event.id}`, '1'.repeat(32)]]))
  })

  test('does not wait for a send whose request has ended without an answer', async () => {
    const now = Date.now()
    let sends = 0
    const EVENTS = {
      sendBatch: async () => {
        sends += 1
        if (sends === 1) await new Promise(() => {})
      },
    }
    const stuck = Object.assign({}, env, { EVENTS })
    void enqueue(stuck, createExecutionContext(), [note(freshScope(), 'a')], now)
    await until(async () => sends === 1, 'the first is being sent')
    expect((await enqueue(stuck, createExecutionContext(), [note(freshScope(), 'b')], now + 3000)).unsure.size).toBe(0)
    expect(sends).toBe(2)
  })
})

describe('the sweep', () => {
  test('sends again what stayed queued for half a minute, and not what is younger or was just sent', async () => {
    const [late, young] = [freshScope(), freshScope()]
    const now = Date.now()
    const put = async (scope: string, at: number) => {
      await noteQueued(env.DB, [{ id: newBatchId(at), events: [note(scope, 'a')] }], at + 30_000)
    }
    await put(late, now - 31_000)
    await put(young, now - 29_000)
    expect((await sweep(env, now)).sent_again).toBe(1)
    expect((await sweep(env, now + 1000)).sent_again).toBe(0)
    await until(async () => (await listed(late))[0]?.status === 'completed', 'the late one is delivered')
    expect(await listed(young)).toMatchObject([{ status: 'queued' }])
    await env.DB.exec('DELETE FROM queued')
  })

  test('sends again what is lost although another scope has an event of that id', async () => {
    const [had, lost] = [freshScope(), freshScope()]
    const now = Date.now()
    const event = note(had, 'a')
    await stubOf(had).configure({ consumer: 'pull' }, 'test')
    await stubOf(had).accept([event], 'http')
    await until(async () => (await listed(had))[0]?.status === 'pending', 'D1 has it')
    await noteQueued(env.DB, [{ id: newBatchId(now - 31_000), events: [{ ...event, scope: lost }] }], now - 1000)
    expect((await sweep(env, now)).sent_again).toBe(1)
    await until(async () => (await listed(lost))[0]?.status === 'completed', 'it is delivered')
    await env.DB.exec('DELETE FROM queued')
  })

  test('sends again what a clock sent that was ahead, although the queue delivers what is sent now', async () => {
    const [ahead, had, rest] = [freshScope(), freshScope(), freshScope()]
    const now = Date.now()
    const [a, b] = [note(had, 'a'), note(rest, 'b')]
    await noteQueued(env.DB, [{ id: newBatchId(now + 3_600_000), events: [note(ahead, 'ahead')] }], now + 3_630_000)
    await noteQueued(env.DB, [{ id: newBatchId(now - 1000), events: [a, b] }], now + 29_000)
    await stubOf(had).accept([a], 'http')
    await until(async () => replicated(had), 'D1 knows what arrived of the newer batch')
    expect((await sweep(env, now)).sent_again).toBe(1)
    expect((await sweep(env, now + 1000)).sent_again).toBe(0)
    await until(async () => (await listed(ahead))[0]?.status === 'completed', 'it is delivered')
    await env.DB.exec('DELETE FROM queued')
  })

  test('sends the rest of a batch again that arrived in part, and then what the queue lost after it, although nothing newer comes', async () => {
    const [had, rest, after] = [freshScope(), freshScope(), freshScope()]
    const now = Date.now()
    const [a, b, c] = [note(had, 'a'), note(rest, 'b'), note(after, 'c')]
    await noteQueued(env.DB, [{ id: newBatchId(now - 32_000), events: [a, b] }], now - 2000)
    await noteQueued(env.DB, [{ id: newBatchId(now - 31_000), events: [c] }], now - 1000)
    await stubOf(had).accept([a], 'http')
    await until(async () => replicated(had), 'D1 knows the part that arrived')
    // The rest may be in a later message.
    for (const later of [0, 20_000]) expect((await sweep(env, now + later)).sent_again).toBe(0)
    expect((await sweep(env, now + 31_000)).sent_again).toBe(1)
    await until(async () => (await listed(rest))[0]?.status === 'completed', 'the rest is delivered')
    await sweep(env, now + 32_000)
    await sweep(env, now + 33_000)
    await until(async () => (await listed(after))[0]?.status === 'completed', 'the next batch is delivered')
    await env.DB.exec('DELETE FROM queued')
  })

  test('does not send again what may be a little behind the newest batch that arrived', async () => {
    const [had, rest, behind] = [freshScope(), freshScope(), freshScope()]
    const now = Date.now()
    await noteQueued(env.DB, [{ id: newBatchId(now - 35_000), events: [note(behind, 'behind')] }], now - 5000)
    const [a, b] = [note(had, 'a'), note(rest, 'b')]
    await noteQueued(env.DB, [{ id: newBatchId(now - 32_000), events: [a, b] }], now - 2000)
    await stubOf(had).accept([a], 'http')
    await until(async () => replicated(had), 'D1 knows what arrived of the newer batch')
    expect((await sweep(env, now)).sent_again).toBe(0)
    await noteQueued(env.DB, [{ id: newBatchId(now - 43_000), events: [note(behind, 'far behind')] }], now - 13_000)
    expect((await sweep(env, now)).sent_again).toBe(1)
    await env.DB.exec('DELETE FROM queued')
  })

  test('tries no further batches while the queue takes none', async () => {
    const now = Date.now()
    const late = Array.from({ length: 40 }, (_, index) => ({ id: newBatchId(now - 60_000 + index), events: [note(freshScope(), 'a')] }))
    await noteQueued(env.DB, late, now - 30_000)
    let tried = 0
    const EVENTS = { sendBatch: () => ((tried += 1), Promise.reject(new Error('the queue is away'))) }
    expect((await sweep(Object.assign({}, env, { EVENTS }), now)).sent_again).toBe(0)
    expect(tried).toBe(1)
    // They stay overdue.
    expect((await sweep(env, now)).sent_again).toBe(40)
    await env.DB.exec('DELETE FROM queued')
  })

  test('does not send again what a scope has accepted, however long its turn takes', async () => {
    const scope = freshScope()
    const { promise: gate, resolve } = Promise.withResolvers<void>()
    behaviours.set(scope, () => gate)
    await enqueue(env, createExecutionContext(), [note(scope, 'slow')], Date.now())
    await until(async () => (await listed(scope))[0]?.status === 'processing', 'D1 knows that the scope has it')
    for (const late of [31_000, 600_000]) expect((await sweep(env, Date.now() + late)).sent_again).toBe(0)
    resolve()
    behaviours.delete(scope)
  })

  test('sends again and wakes scopes before the steps of features, which may be slow', async () => {
    const scope = freshScope()
    const now = Date.now()
    await noteQueued(env.DB, [{ id: newBatchId(now - 31_000), events: [note(scope, 'a')] }], now - 1000)
    const late = 'SELECT count(*) AS n FROM queued WHERE due_at < ?'
    const slow = { name: 'slow', run: async () => (await env.DB.prepare(late).bind(now).first<number>('n')) ?? -1 }
    const done = await sweepWith(env, now, { features: [{ sweeps: [slow] }] })
    expect([done.sent_again, done.steps['slow']]).toEqual([1, 0])
    await env.DB.exec('DELETE FROM queued')
  })

  test('wakes a scope whose alarm is overdue, once', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.setTimer('beat', { every_s: 3600 }, 'ops')
    await stub.accept([note(scope, 'a')], 'http')
    await until(async () => replicated(scope), 'D1 knows the scope')
    await env.DB.prepare('UPDATE scopes SET wake_at = ? WHERE scope = ?')
      .bind(Date.now() - 120_000, scope)
      .run()
    expect((await sweep(env, Date.now())).poked).toBe(1)
    expect((await sweep(env, Date.now())).poked).toBe(0)
  })

  test('wakes a scope that reported by a clock that was ahead, once', async () => {
    const HOUR = 3_600_000
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.setTimer('beat', { every_s: 3600 }, 'ops')
    await stub.accept([note(scope, 'a')], 'http')
    await until(async () => replicated(scope), 'D1 knows the scope')
    await env.DB.prepare('UPDATE scopes SET updated_at = updated_at + ?2, wake_at = wake_at + ?2 WHERE scope = ?1')
      .bind(scope, 2 * HOUR)
      .run()
    expect((await sweep(env, Date.now())).poked).toBe(0)
    const later = Date.now() + 2 * HOUR
    const newest = `INSERT INTO events (seq, id, scope, type, payload, status, accepted_at) VALUES (CAST(? AS INTEGER), 'ahead', ?, ?, '{}', ?, ?)`
    await env.DB.prepare(newest).bind(seqAt(later), scope, 'test.note', 'completed', later).run()
    expect((await sweep(env, Date.now())).poked).toBe(1)
    expect((await sweep(env, Date.now())).poked).toBe(0)
    await env.DB.prepare(`DELETE FROM events WHERE id = 'ahead'`).run()
  })

  test('believes the report of a scope after its clock was set back, and none that a newer one overtook', async () => {
    const scope = freshScope()
    const now = Date.now()
    const report = async (updated_at: number, open: number) => {
      const counts = { agent: 'test', wake_at: null, parked: 0, spans_exported: 0, spans_dropped: 0 }
      await env.DB.batch(scopeStatements(env.DB, [{ scope, open, updated_at, ...counts }]))
      return env.DB.prepare('SELECT open FROM scopes WHERE scope = ?').bind(scope).first<number>('open')
    }
    expect(await report(now, 1)).toBe(1)
    expect(await report(now - 1000, 2)).toBe(1)
    expect(await report(now - 3_600_000, 3)).toBe(3)
    expect(await report(now - 3_599_000, 4)).toBe(4)
    expect(await report(now + 1000, 5)).toBe(5)
    await setWake(env.DB, { scope, wake_at: null, now })
    expect(await report(now + 500, 6)).toBe(5)
  })

  test('forgets in D1 until nothing is left, whatever came in, but no dead letter, no open event, and nothing for a clock that was ahead', async () => {
    const DAY = 86_400_000
    const now = Date.now()
    const insert = (id: string, count: number, status: string, at: number) =>
      env.DB.prepare(
        `INSERT INTO events (id, scope, type, payload, status, accepted_at)
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
          SELECT ?1 || i, 'old/1', 'test.note', '{}', ?3, ?4 FROM n`,
      )
        .bind(id, count, status, at)
        .run()
    await env.DB.exec('DELETE FROM events')
    // The first were accepted by a clock a day ahead: later ones are older by its time.
    await insert('ahead', 1500, 'completed', now + DAY)
    await insert('old', 3500, 'completed', now - 31 * DAY)
    await insert('dead', 2, 'dead_lettered', now - 31 * DAY)
    await insert('open', 2, 'pending', now - 31 * DAY)
    await insert('young', 3, 'ignored', now - 29 * DAY)
    expect((await call('/health/detailed')).body.retention).toMatchObject({ days: 30, backlog: 3500 })
    // Each event of other tenants would show in it.
    const key = await keyFor(['viewer'], ['new/*'])
    expect((await call('/health/detailed', { key })).body.retention).toMatchObject({ days: 30, backlog: 3000 })
    expect((await sweep(env, now)).forgotten).toBe(3500)
    const left = await env.DB.prepare(
      `SELECT status, count(*) AS n FROM events WHERE scope = 'old/1' GROUP BY status ORDER BY status`,
    ).all()
    expect(left.results).toEqual([
      { status: 'completed', n: 1500 },
      { status: 'dead_lettered', n: 2 },
      { status: 'ignored', n: 3 },
      { status: 'pending', n: 2 },
    ])
    expect((await sweep({ ...env, REFLEX_RETENTION_DAYS: 'a week' }, now + 60 * DAY)).forgotten).toBe(0)
    expect((await sweep({ ...env, REFLEX_RETENTION_DAYS: '7' }, now)).forgotten).toBe(3)
    await env.DB.exec(`DELETE FROM events WHERE scope = 'old/1'`)
  })

  test('forgets a scope a year after its last report, however soon it forgets events', async () => {
    const DAY = 86_400_000
    const now = Date.now()
    const report = (scope: string, days: number) =>
      env.DB.prepare(`INSERT INTO scopes (scope, agent, open, updated_at) VALUES (?, 'test', 0, ?)`)
        .bind(scope, now - days * DAY)
        .run()
    await report('silent/40', 40)
    await report('silent/366', 366)
    await sweep({ ...env, REFLEX_RETENTION_DAYS: '7' }, now)
    const left = await env.DB.prepare(`SELECT scope FROM scopes WHERE scope LIKE 'silent/%'`).all()
    expect(left.results).toEqual([{ scope: 'silent/40' }])
    await env.DB.exec(`DELETE FROM scopes WHERE scope LIKE 'silent/%'`)
  })

  test('comes within half a minute also where the clock was ahead when its alarm was set', async () => {
    const sweeper = env.SWEEPER.getByName('ahead')
    const alarmIn = (work: (storage: DurableObjectStorage) => Promise<unknown>) =>
      inObject(sweeper as never, ({ storage }) => work(storage))
    await alarmIn((storage) => storage.setAlarm(Date.now() + 80_000_000))
    await sweeper.arm()
    const at = (await alarmIn((storage) => storage.getAlarm())) as number
    expect(at - Date.now()).toBeLessThanOrEqual(30_000)
    await alarmIn((storage) => storage.deleteAlarm())
  })

  test('is armed before the answer also where the clock was ahead when it was armed before', async () => {
    let armed = 0
    const arm = async () => void (armed += 1)
    const bindings = { ...env, SWEEPER: { getByName: () => ({ arm }) } as unknown as Env['SWEEPER'] }
    const scope = freshScope()
    for (const now of [Date.now() + 86_400_000, Date.now(), Date.now()])
      await enqueue(bindings, createExecutionContext(), [note(scope, 'a')], now)
    expect(armed).toBe(2)
  })

  test('by the sweeper survives without a cron: it is armed before the answer, and its alarm comes by itself', async () => {
    const sweeper = env.SWEEPER.getByName('sweeper')
    await sweeper.arm()
    expect(await runAlarm(sweeper)).toBe(true)
    expect(await runAlarm(sweeper)).toBe(true)
  })
})

/** Sends events by the queue, and waits until D1 has their outcomes. */
async function sendAll(scope: string, events: Note[], bindings: Env = env): Promise<void> {
  await enqueue(bindings, createExecutionContext(), events, Date.now())
  const done = async () => (await listEvents(env.DB, { scope, patterns: ['*'], limit: 1000 })).items
  const isOver = (status: string) => status === 'completed' || status === 'ignored'
  const ids = new Set(events.map(({ id }) => id))
  await until(async () => (await done()).filter(({ id, status }) => ids.has(id) && isOver(status)).length === events.length, 'D1 has them')
}

/** The first event creates the scope's tables, and lists it in D1. */
async function begun(scope: string, text: string): Promise<void> {
  await sendAll(scope, [note(scope, text)])
  const counted = async () => {
    await sortAll(env.DB)
    return (await scopeTotals(env.DB, [scope])).size > 0
  }
  await until(async () => (await scopeExists(env.DB, scope)) && counted(), 'D1 knows the scope')
}

describe('an event of a hundred by the queue', () => {
  test.each([
    ['filtered out', 'noise', { scope: 2.2, d1: 0.1 }],
    ['considered by a turn that says no', 'a', { scope: 4.3, d1: 0.1 }],
  ])('that is %s writes few rows', async (_how, text, most) => {
    const scope = freshScope()
    await begun(scope, text)
    const rows = await rowsWritten(scope, () =>
      sendAll(
        scope,
        Array.from({ length: 100 }, (_, index) => note(scope, `${text}${text === 'a' ? index : ''}`)),
      ),
    )
    const each = { scope: rows.scope / 100, d1: rows.d1 / 100 }
    expect(each.scope).toBeLessThanOrEqual(most.scope)
    expect(each.d1).toBeLessThanOrEqual(most.d1)
    // Something was counted: the note of the request, and the pack.
    expect(rows.d1).toBeGreaterThanOrEqual(2)
    expect(each.scope).toBeGreaterThanOrEqual(2)
  })
})

describe('an event alone by the queue', () => {
  test('writes its note and a pack with its statistics in D1, and neither a row of these nor of its scope', async () => {
    const scope = freshScope()
    await begun(scope, 'the first one')
    const each: number[] = []
    while (each.length < 10) each.push((await rowsWritten(scope, () => sendAll(scope, [note(scope, `one of ${each.length}`)]))).d1)
    expect(each).toEqual(each.map(() => 2))
    const rows = await env.DB.prepare('SELECT count(*) AS n FROM statistics WHERE scope = ?').bind(scope).first('n')
    expect(rows).toBe(0)
    await sortAll(env.DB)
    expect((await scopeTotals(env.DB, [scope])).get(scope)).toMatchObject({ accepted: 11 })
  })

  test('once a day writes as little, and the list of scopes has its time', async () => {
    const scope = freshScope()
    await begun(scope, 'the first one')
    const [first] = await listScopes(env.DB, { patterns: [scope], after: '', limit: 1 })
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const each: number[] = []
      while (each.length < 3) {
        vi.setSystemTime(Date.now() + 86_400_000)
        await evict(stubOf(scope))
        const event = { ...note(scope, `one of ${each.length}`), timestamp: new Date().toISOString() }
        each.push((await rowsWritten(scope, () => sendAll(scope, [event]))).d1)
      }
      // A week may begin on one of these days: the row says then that the scope is in use.
      expect(each.filter((rows) => rows === 2).length).toBeGreaterThanOrEqual(2)
      await sortAll(env.DB)
      const [last] = await listScopes(env.DB, { patterns: [scope], after: '', limit: 1 })
      expect(Date.parse(last!.updated_at) - Date.parse(first!.updated_at)).toBeGreaterThanOrEqual(2.9 * 86_400_000)
    } finally {
      vi.useRealTimers()
    }
  })

  test('that a reflex answers writes as little, and the metrics of the reflex are read from there', async () => {
    const { id, scope } = await acting(`return { action_type: 'reply', content: 'heard' }`)
    await begun(scope, 'the first one')
    const each: number[] = []
    const scope_rows: number[] = []
    while (each.length < 10) {
      const rows = await rowsWritten(scope, () => sendAll(scope, [note(scope, `one of ${each.length}`)]))
      each.push(rows.d1)
      scope_rows.push(rows.scope)
    }
    expect(each).toEqual(each.map(() => 2))
    // The event with its index, and the row of the log, which has what the reflex has done, too.
    expect(Math.min(...scope_rows)).toBe(3)
    await sortAll(env.DB)
    expect(await metricsOf(env.DB, id)).toMatchObject([{ scope, metrics: { fired: 11 } }])
  })

  test('sent directly is a pack with its statistics, written by its scope, and no other row of D1', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const isOver = async () => (await stub.state()).outbox.waiting === 0 || null
    const alone = async (text: string) => {
      await stub.accept([note(scope, text)], 'http')
      await until(async () => (await replicated(scope))?.status === 'completed' && isOver(), 'D1 has it')
    }
    await alone('the first one')
    await until(isOver, 'D1 lists the scope')
    const each: number[] = []
    while (each.length < 5) each.push((await rowsWritten(scope, () => alone(`one of ${each.length}`))).d1)
    expect(Math.min(...each)).toBe(1)
    await sortAll(env.DB)
    expect((await scopeTotals(env.DB, [scope])).get(scope)).toMatchObject({ accepted: 6 })
  })

  test('sets no alarm of its scope where its outcome is known at once', async () => {
    const scope = freshScope()
    await begun(scope, 'the first one')
    let alarms = 0
    await inObject(stubOf(scope), ({ storage }) => {
      const setAlarm = storage.setAlarm.bind(storage)
      storage.setAlarm = async (at: number | Date) => {
        alarms += 1
        return setAlarm(at)
      }
    })
    const each: number[] = []
    while (each.length < 10 && !each.includes(0)) {
      alarms = 0
      await sendAll(scope, [note(scope, `one of ${each.length}`)])
      each.push(alarms)
    }
    expect(Math.min(...each)).toBe(0)
  })

  describe('in a deployment that relies on its queue', () => {
    const relying: Env = { ...env, REFLEX_QUEUE_NOTES: 'off' }
    const notesOf = (scope: string) => env.DB.prepare('SELECT count(*) AS n FROM queued WHERE instr(events, ?) > 0').bind(scope).first('n')

    test('has no note in D1', async () => {
      const [noted, relied] = [freshScope(), freshScope()]
      await enqueue(env, createExecutionContext(), [note(noted, 'with a note')], Date.now())
      await enqueue(relying, createExecutionContext(), [note(relied, 'without one')], Date.now())
      expect(await notesOf(noted)).toBe(1)
      expect(await notesOf(relied)).toBe(0)
    })

    test('is found in its scope as soon as that has it, and has its first trace when it is sent again', async () => {
      const scope = freshScope()
      const event = note(scope, 'sent twice')
      await enqueue(relying, createExecutionContext(), [event], Date.now())
      await until(async () => stubOf(scope).event(event.id), 'its scope has it')
      expect((await call(`/v1/events/${event.id}?scope=${encodeURIComponent(scope)}`)).status).toBe(200)
      const again = { ...event, meta: { ...event.meta, trace_id: crypto.randomUUID().replaceAll('-', '') } }
      const { known } = await enqueue(relying, createExecutionContext(), [again], Date.now())
      expect(known.get(`${scope} ${event.id}`)).toBe(event.meta.trace_id)
    })
  })
})
