import { describe, expect, test } from 'vitest'
import { SqlEventStore, type SqlEventStoreOptions } from '../../../src/core/event-store.ts'
import { buildEvent } from '../../support/build-event.ts'
import { claimNext } from '../../support/claim-next.ts'
import { openEvents } from '../../support/sqlite.ts'

function setUp(options: Partial<SqlEventStoreOptions> = {}) {
  const clock = { now: 1_000_000 }
  const { run, rows } = openEvents()
  const store = new SqlEventStore({ run, now: () => clock.now, random: () => 0, poll_ms: 60_000, ...options })
  return { store, rows, run, clock }
}

const all = async <Item>(items: AsyncIterable<Item>): Promise<Item[]> => {
  const list: Item[] = []
  for await (const item of items) list.push(item)
  return list
}

/** Claims the next event, which must be there. */
async function claim(store: SqlEventStore, subscription = {}) {
  const delivery = await claimNext(store, subscription)
  if (!delivery) throw new Error('nothing to claim')
  return delivery
}

describe('publish', () => {
  test('stores an event whole', async () => {
    const { store, rows } = setUp()
    const event = buildEvent({ content: 'quotes " and \u0000 and 😀', extra: { deep: [1, 2.5, null] } })
    expect(await store.publish(event)).toEqual([{ id: event.id, scope: 'default', status: 'accepted' }])
    const { payload, ...row } = rows()[0] ?? {}
    expect(row).toMatchObject({ id: event.id, scope: 'default', type: 'ws.message', source: 'ws:alice', trace_id: event.meta.trace_id })
    expect(row).toMatchObject({ status: 'pending', attempts: 0, accepted_at: 1_000_000, ended_at: null })
    expect(JSON.parse(String(payload))).toEqual(event)
  })

  test('answers a second delivery as a duplicate and changes nothing', async () => {
    const { store, rows } = setUp()
    const event = buildEvent()
    await store.publish(event)
    const before = rows()
    expect(await store.publish(Object.assign(buildEvent({ content: 'changed' }), { id: event.id }))).toMatchObject([
      { status: 'duplicate' },
    ])
    expect(rows()).toEqual(before)
  })

  test('takes the first of two equal ids in one call', async () => {
    const { store } = setUp()
    const event = buildEvent()
    expect(await store.publish(event, buildEvent(), event)).toMatchObject([
      { status: 'accepted' },
      { status: 'accepted' },
      { status: 'duplicate' },
    ])
  })

  test('takes one id once in each scope', async () => {
    const { store, rows } = setUp()
    const receipts = await store.publish(buildEvent({ id: 'same', scope: 'one' }), buildEvent({ id: 'same', scope: 'two' }))
    expect(receipts.map(({ status }) => status)).toEqual(['accepted', 'accepted'])
    expect(rows()).toHaveLength(2)
  })

  test('a duplicate of an event that has ended does not bring it back', async () => {
    const { store } = setUp()
    const event = buildEvent()
    await store.publish(event)
    await store.ack((await claim(store)).ack_token)
    await store.publish(event)
    expect(await claimNext(store)).toBeUndefined()
  })

  test('of nothing is nothing', async () => {
    expect(await setUp().store.publish()).toEqual([])
  })
})

describe('subscribe', () => {
  test('yields events in the order of acceptance, whatever their timestamps', async () => {
    const { store } = setUp()
    const events = [
      buildEvent({ timestamp: '2026-03-01T00:00:00.000Z' }),
      buildEvent({ timestamp: '2026-01-01T00:00:00.000Z' }),
      buildEvent({ timestamp: '2026-02-01T00:00:00.000Z' }),
    ]
    await store.publish(...events)
    const claimed = [await claim(store), await claim(store), await claim(store)]
    expect(claimed.map(({ event }) => event)).toEqual(events)
    expect(new Set(claimed.map(({ ack_token }) => ack_token)).size).toBe(3)
  })

  test('yields only the types and the scope that it was asked for', async () => {
    const { store } = setUp()
    const [other, , wanted] = [buildEvent({ type: 'a' }), buildEvent({ type: 'b' }), buildEvent({ type: 'b', scope: 'ops' })]
    await store.publish(other, buildEvent({ type: 'b' }), wanted)
    expect((await claim(store, { types: ['b', 'c'], scope: 'ops' })).event).toEqual(wanted)
    expect(await claimNext(store, { types: ['c'] })).toBeUndefined()
    expect(await claimNext(store, { types: [] })).toBeUndefined()
    expect((await claim(store)).event).toEqual(other)
  })

  test('gives one event to one of several subscribers', async () => {
    const { store } = setUp()
    await store.publish(buildEvent())
    const claims = await Promise.all([claimNext(store), claimNext(store), claimNext(store)])
    expect(claims.filter(Boolean)).toHaveLength(1)
  })

  test('wakes all that wait, also where another of another type came later', async () => {
    const { store } = setUp()
    const signal = AbortSignal.timeout(5000)
    const first = store.subscribe({ types: ['a'], signal }).next()
    const second = store.subscribe({ types: ['b'], signal }).next()
    await new Promise(setImmediate)
    await store.publish(buildEvent({ type: 'a' }), buildEvent({ type: 'b' }))
    const found = await Promise.all([first, second])
    expect(found.map(({ value }) => value?.event.type)).toEqual(['a', 'b'])
  })

  test('misses nothing that is published while it looks', async () => {
    const { run } = openEvents()
    let late = true
    const store: SqlEventStore = new SqlEventStore({
      poll_ms: 60_000,
      run: async (statement) => {
        const rows = await run(statement)
        if (late && statement.sql.includes('lease_until = ?2')) {
          late = false
          await store.publish(buildEvent({ id: 'late' }))
        }
        return rows
      },
    })
    const found = await store.subscribe({ signal: AbortSignal.timeout(5000) }).next()
    expect(found.value?.event.id).toBe('late')
  })

  test('finds by polling what another process has published', async () => {
    const { run } = openEvents()
    const [here, there] = [new SqlEventStore({ run, poll_ms: 1 }), new SqlEventStore({ run })]
    const found = here.subscribe({ signal: AbortSignal.timeout(5000) }).next()
    await new Promise(setImmediate)
    await there.publish(buildEvent({ id: 'elsewhere' }))
    expect((await found).value?.event.id).toBe('elsewhere')
  })

  test('ends at once where its signal aborts while it waits', async () => {
    const { store } = setUp()
    const controller = new AbortController()
    const waiting = all(store.subscribe({ signal: controller.signal }))
    await new Promise(setImmediate)
    controller.abort()
    expect(await waiting).toEqual([])
  })

  test('claims nothing once its signal has aborted', async () => {
    const { store, rows } = setUp()
    await store.publish(buildEvent())
    expect(await all(store.subscribe({ signal: AbortSignal.abort() }))).toEqual([])
    expect(rows()).toMatchObject([{ status: 'pending', attempts: 0 }])
  })

  test('claims no more than it hands over', async () => {
    const { store, rows } = setUp()
    await store.publish(buildEvent(), buildEvent())
    for await (const _ of store.subscribe()) break
    expect(rows().map((row) => row['status'])).toEqual(['processing', 'pending'])
  })
})

describe('ack and nack', () => {
  test('an acked event is completed and does not come again', async () => {
    const { store, rows, clock } = setUp()
    await store.publish(buildEvent())
    const { ack_token } = await claim(store)
    clock.now += 5
    expect(await store.ack(ack_token)).toBe(true)
    expect(rows()).toMatchObject([
      { status: 'completed', attempts: 1, error: null, ended_at: 1_000_005, ack_token: null, lease_until: null },
    ])
    clock.now += 1e9
    expect(await claimNext(store)).toBeUndefined()
  })

  test('a token settles once', async () => {
    const { store, rows } = setUp()
    await store.publish(buildEvent())
    const { ack_token } = await claim(store)
    await store.ack(ack_token)
    const before = rows()
    expect([await store.ack(ack_token), await store.nack(ack_token, 'late'), await store.ack('unknown')]).toEqual([false, false, false])
    expect(rows()).toEqual(before)
  })

  test('a nacked event waits longer after each attempt, and says why', async () => {
    const { store, rows, clock } = setUp({ max_attempts: 5 })
    await store.publish(buildEvent())
    for (const delay of [500, 1000, 2000, 4000]) {
      expect(await store.nack((await claim(store)).ack_token, `no luck at ${delay}`)).toBe(true)
      expect(rows()).toMatchObject([{ status: 'pending', error: `no luck at ${delay}`, due_at: clock.now + delay, ended_at: null }])
      clock.now += delay - 1
      expect(await claimNext(store)).toBeUndefined()
      clock.now += 1
    }
    expect((await claim(store)).attempts).toBe(5)
  })

  test('jitter spreads a retry over the second half of its delay', async () => {
    const { store, rows, clock } = setUp({ random: () => 0.999 })
    await store.publish(buildEvent())
    await store.nack((await claim(store)).ack_token)
    expect(rows()[0]?.['due_at']).toBe(clock.now + 999)
  })

  test('no delay is longer than five minutes', async () => {
    const { store, rows, clock } = setUp({ max_attempts: 99 })
    await store.publish(buildEvent())
    for (let attempt = 1; attempt < 40; attempt += 1) {
      await store.nack((await claim(store)).ack_token)
      expect(Number(rows()[0]?.['due_at']) - clock.now).toBeLessThanOrEqual(150_000)
      clock.now += 300_000
    }
    expect(rows()).toMatchObject([{ status: 'pending', attempts: 39 }])
  })

  test('a retry does not hold up younger events', async () => {
    const { store, clock } = setUp()
    const [first, second] = [buildEvent(), buildEvent()]
    await store.publish(first, second)
    await store.nack((await claim(store)).ack_token)
    expect((await claim(store)).event).toEqual(second)
    clock.now += 500
    expect((await claim(store)).event).toEqual(first)
  })

  test('a nacked event goes to the dead letters after max_attempts', async () => {
    const { store, rows, clock } = setUp({ max_attempts: 2 })
    await store.publish(buildEvent())
    await store.nack((await claim(store)).ack_token, 'first')
    clock.now += 500
    await store.nack((await claim(store)).ack_token, 'second')
    expect(rows()).toMatchObject([{ status: 'dead_lettered', attempts: 2, error: 'second', ended_at: clock.now, ack_token: null }])
    clock.now += 1e9
    expect(await claimNext(store)).toBeUndefined()
  })

  test('an ack forgets the error of an earlier attempt', async () => {
    const { store, rows, clock } = setUp()
    await store.publish(buildEvent())
    await store.nack((await claim(store)).ack_token, 'first')
    clock.now += 500
    await store.ack((await claim(store)).ack_token)
    expect(rows()).toMatchObject([{ status: 'completed', attempts: 2, error: null }])
  })
})

describe('a lease', () => {
  test('that runs out gives the event to the next subscriber, the attempt counted', async () => {
    const { store, rows, clock } = setUp()
    await store.publish(buildEvent())
    const first = await claim(store, { lease_ms: 100 })
    clock.now += 99
    expect(await claimNext(store)).toBeUndefined()
    clock.now += 1
    expect(await claimNext(store)).toBeUndefined()
    expect(rows()).toMatchObject([{ status: 'pending', attempts: 1, error: 'the lease ran out', due_at: clock.now + 500 }])
    clock.now += 500
    const second = await claim(store)
    expect(second).toMatchObject({ event: first.event, attempts: 2 })
    expect(await store.ack(first.ack_token)).toBe(false)
    expect(await store.nack(first.ack_token)).toBe(false)
    expect(await store.ack(second.ack_token)).toBe(true)
  })

  test('that runs out may still be acked until another looks', async () => {
    const { store, clock } = setUp()
    await store.publish(buildEvent())
    const { ack_token } = await claim(store, { lease_ms: 100 })
    clock.now += 1000
    expect(await store.ack(ack_token)).toBe(true)
  })

  test('that runs out at the last attempt ends in the dead letters', async () => {
    const { store, rows, clock } = setUp({ max_attempts: 1 })
    await store.publish(buildEvent())
    await claim(store, { lease_ms: 100 })
    clock.now += 100
    expect(await claimNext(store)).toBeUndefined()
    expect(rows()).toMatchObject([{ status: 'dead_lettered', attempts: 1, ended_at: clock.now }])
  })
})

describe('replay', () => {
  const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString()

  test('yields history oldest first, across pages, and changes nothing', async () => {
    const { store, rows } = setUp()
    const seconds = Array.from({ length: 250 }, (_, index) => (index * 7) % 37)
    await store.publish(...seconds.map((second) => buildEvent({ timestamp: at(second) })))
    const before = rows()
    const replayed = await all(store.replay({ start: at(0) }))
    const expected = before.map((row) => [String(row['timestamp']), Number(row['seq']), String(row['id'])] as const)
    expected.sort((left, right) => left[0].localeCompare(right[0]) || left[1] - right[1])
    expect(replayed.map(({ id }) => id)).toEqual(expected.map(([, , id]) => id))
    expect(rows()).toEqual(before)
  })

  test('ends where a page is exactly full', async () => {
    const { store } = setUp()
    await store.publish(...Array.from({ length: 100 }, () => buildEvent()))
    expect(await all(store.replay({ start: at(0) }))).toHaveLength(100)
  })

  test('includes the start and not the end, however precise they are written', async () => {
    const { store } = setUp()
    const [first, second, third] = [0, 1, 2].map((second) => buildEvent({ timestamp: at(second) }))
    if (!first || !second || !third) throw new Error('unreachable')
    await store.publish(third, first, second)
    expect(await all(store.replay({ start: at(0), end: at(2) }))).toEqual([first, second])
    expect(await all(store.replay({ start: '2026-01-01T00:00:01Z', end: '2026-01-01T01:00:02+01:00' }))).toEqual([second])
    expect(await all(store.replay({ start: at(1) }))).toEqual([second, third])
  })

  test('without an end reaches the last year there is', async () => {
    const { store } = setUp()
    await store.publish(buildEvent({ timestamp: '9999-12-31T23:59:59.999Z' }))
    expect(await all(store.replay({ start: at(0) }))).toHaveLength(1)
  })

  test('yields only the types and the scope that it was asked for, whatever became of them', async () => {
    const { store } = setUp({ max_attempts: 1 })
    const wanted = buildEvent({ type: 'a', scope: 'ops' })
    await store.publish(wanted, buildEvent({ type: 'a' }), buildEvent({ type: 'b', scope: 'ops' }))
    await store.nack((await claim(store)).ack_token)
    expect(await all(store.replay({ start: at(0), types: ['a'], scope: 'ops' }))).toEqual([wanted])
    expect(await all(store.replay({ start: at(0), types: [] }))).toEqual([])
  })
})

test('a table may have another name', async () => {
  const { run, rows } = openEvents('inbox')
  const store = new SqlEventStore({ run, table: 'inbox' })
  await store.publish(buildEvent())
  await store.ack((await claim(store)).ack_token)
  expect(rows()).toMatchObject([{ status: 'completed' }])
})
