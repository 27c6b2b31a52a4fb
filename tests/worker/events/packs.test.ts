import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import * as fc from 'fast-check'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Event } from '../../../src/core/event.ts'
import { outcomesSender } from '../../../src/events/outcomes.ts'
import { addDeadLetters, deadLettersOf } from '../../../src/store/dead-letters.ts'
import { findEvent, forgetEvents, listEvents, replayEvents, retentionBacklog, type EventListing } from '../../../src/store/events.ts'
import type { EventFilter } from '../../../src/store/event-filter.ts'
import { archiveDays, leavingFor } from '../../../src/store/packs/archived.ts'
import type { PackedEvent } from '../../../src/store/packs/format.ts'
import { forgetPacks, forgetPacksBeyond, mergePacks, oldestPacked } from '../../../src/store/packs/merge.ts'
import { retentionReport } from '../../../src/http/operations/health-report.ts'
import { repeatedAmong } from '../../../src/store/packs/find.ts'
import { nameOf, newBatchId, noteQueued, seqAt } from '../../../src/store/queued.ts'
import { packEvents } from '../../../src/store/packs/write.ts'
import { packable, replicateEvents, type Report } from '../../../src/store/replicate.ts'
import { eventsOfTraces, listTraces } from '../../../src/store/traces/traces.ts'
import { packDatabases, storeOf } from '../../../src/store/store.ts'
import { clearArchive } from '../../support/pack-archive.ts'
import { sortAll } from '../../support/sort-told.ts'
import { scopeTotals } from '../../../src/features/statistics/store/packed.ts'
import { severalDatabases } from '../../support/pack-databases.ts'
import { assertProperty } from '../../support/property.ts'
import { eventAt, packedNotes, reportOf, scopeRow } from '../../support/packs.ts'
import { evict, freshScope, note, stubOf, until } from '../../support/scopes.ts'
import { sweep } from '../../support/sweep.ts'
import worker from '../../support/worker.ts'

const DAY_MS = 86_400_000
/** Noon of a day, so that tests know what is of one day. */
const START = Math.floor(Date.now() / DAY_MS) * DAY_MS - 3 * DAY_MS + DAY_MS / 2
const ALL = ['*']

/** The databases that these functions use. */
let store: D1Database = env.DB
const clear = async () => {
  const tables = ['events', 'packs', 'pack_index', 'queued', 'dead_letters']
  for (const { db } of packDatabases(store)) await db.exec(tables.map((table) => `DELETE FROM ${table}`).join(';'))
}
beforeEach(async () => {
  store = env.DB
  await clear()
})

const write = (scope: string, reports: Report[], least_packed = 1) => replicateEvents(store, reports, scopeRow(scope), { least_packed })
const packsOf = async () =>
  (await env.DB.prepare('SELECT events FROM packs ORDER BY id').all<{ events: number }>()).results.map(({ events }) => events)
const count = (table: string) => env.DB.prepare(`SELECT count(*) AS n FROM ${table}`).first<number>('n')

async function listed(filter: Partial<EventFilter> = {}, { limit = 100, rising = false } = {}): Promise<EventListing[]> {
  const items: EventListing[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Awaited<ReturnType<typeof listEvents>> = await listEvents(store, {
      patterns: ALL,
      archived: true,
      ...filter,
      limit,
      rising,
      cursor,
    })
    expect(page.next_cursor).not.toBe(cursor)
    items.push(...page.items)
    cursor = page.next_cursor
  }
  return items
}

async function replayed(): Promise<Event[]> {
  const events: Event[] = []
  for await (const event of replayEvents(store, { patterns: ALL })) events.push(event)
  return events
}

describe('a pack of events', () => {
  test('is one row, whose events are listed, found by id and by trace, and replayed as rows are', async () => {
    const events = await packedNotes('a', 80, START)
    expect([await count('events'), await packsOf()]).toEqual([0, [80]])
    expect((await listed({}, { limit: 30 })).map(({ event }) => event)).toEqual(events.toReversed())
    expect((await listed({}, { limit: 7, rising: true })).map(({ event }) => event)).toEqual(events)
    const [first] = events
    expect(await findEvent(env.DB, first!.id, { patterns: ALL })).toMatchObject({ id: first!.id, status: 'completed', event: first })
    expect(await eventsOfTraces(env.DB, [first!.meta.trace_id], ALL)).toMatchObject([{ id: first!.id, scope: 'a', status: 'completed' }])
    expect(await replayed()).toEqual(events)
    expect((await listTraces(env.DB, { patterns: ALL, limit: 100 })).items).toHaveLength(80)
  })

  test('is replayed with a rest after each page, of which the first comes before the first event', async () => {
    await packedNotes('a', 600, START)
    const told: string[] = []
    const rest = async (events: number) => void told.push(`read ${events}`)
    for await (const _event of replayEvents(store, { patterns: ALL, rest })) if (told.at(-1) !== 'given') told.push('given')
    expect(told).toEqual(['read 0', 'read 500', 'given', 'read 100', 'given'])
  })

  test('of large events is several rows, none too large for D1', async () => {
    const large = Array.from({ length: 30 }, (_, index) => {
      const bytes = crypto.getRandomValues(new Uint8Array(45_000))
      return eventAt('a', START + index * 1000, { text: btoa(String.fromCharCode(...bytes)) })
    })
    await write(
      'a',
      large.map((event, index) => reportOf(event, { nth: index })),
    )
    expect(await count('events')).toBe(0)
    expect(await count('packs')).toBeGreaterThan(1)
    expect((await listed()).map(({ event }) => event)).toEqual(large.toReversed())
  })

  test('has ordinary events only, and only many of them', async () => {
    const note = (index: number, fields: Partial<Report>) => reportOf(eventAt('a', START + index * 1000), { nth: index, ...fields })
    const ordinary = Array.from({ length: 64 }, (_, index) => note(index, {}))
    await write('a', ordinary.slice(0, 63), 64)
    expect([await count('events'), await count('packs')]).toEqual([63, 0])
    const late = reportOf(eventAt('a', START), { nth: 70, accepted_at: START + 15_000 })
    const others = [note(71, { status: 'pending' }), note(72, { status: 'dead_lettered' }), note(73, { nth: null }), late]
    await clear()
    await write('a', [...ordinary, ...others], 64)
    expect([await count('events'), await packsOf()]).toEqual([4, [64]])
  })

  test('has events that came some seconds after they happened, and the history has them in order', async () => {
    const reports = Array.from({ length: 1300 }, (_, index) => {
      const accepted_at = START + index * 10
      return reportOf(eventAt('a', accepted_at - ((index * 7919) % 9500)), { nth: index, accepted_at })
    })
    await write('a', reports)
    expect(await count('events')).toBe(0)
    const times = (await replayed()).map(({ timestamp }) => timestamp)
    expect(times).toEqual(reports.map(({ timestamp }) => timestamp).toSorted())
  })

  test('tells a key that may see some scopes of those alone', async () => {
    await packedNotes('a', 3, START)
    const [own] = await packedNotes('b/1', 3, START + 500)
    expect(await listed({ patterns: ['b/*'] }, { limit: 2 })).toHaveLength(3)
    expect(await listed({ patterns: ['c/*'] })).toEqual([])
    expect(await findEvent(env.DB, own!.id, { patterns: ['a'] })).toBeNull()
    expect(await eventsOfTraces(env.DB, [own!.meta.trace_id], ['a'])).toEqual([])
    expect((await listTraces(env.DB, { patterns: ['a'], limit: 10 })).items).toHaveLength(3)
  })

  test.each([
    ['scope', { scope: 'b' }, 3],
    ['type', { types: ['test.other'] }, 3],
    ['status', { status: 'ignored' as const }, 3],
    ['time', { since: new Date(START + 99_000).toISOString() }, 3],
    ['partial', { partial: true }, 0],
  ])('is searched by %s', async (_, filter, found) => {
    await packedNotes('a', 5, START)
    const others = Array.from({ length: 3 }, (__, index) => eventAt('b', START + 100_000 + index, { type: 'test.other' }))
    await write(
      'b',
      others.map((event, index) => reportOf(event, { nth: index, status: 'ignored' })),
    )
    expect(await listed(filter)).toHaveLength(found)
  })

  test('whose bytes are damaged is named by a list, which has the rest, and fails what needs it alone', async () => {
    const [lost] = await packedNotes('a', 3, START)
    const [fine] = await packedNotes('b', 3, START + 60_000)
    await env.DB.exec(`UPDATE packs SET data = substr(data, 1, 40) WHERE scopes = '["a"]'`)
    const id = await env.DB.prepare(`SELECT CAST(id AS TEXT) AS id FROM packs WHERE scopes = '["a"]'`).first<string>('id')
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const page = await listEvents(env.DB, { patterns: ALL, limit: 10 })
    expect(page).toMatchObject({ damaged: [`DB ${id}`], next_cursor: null })
    expect(page.items.map(({ scope }) => scope)).toEqual(['b', 'b', 'b'])
    expect(await listTraces(env.DB, { patterns: ALL, limit: 10 })).toMatchObject({ damaged: [`DB ${id}`], items: [{}, {}, {}] })
    expect(await listEvents(env.DB, { patterns: ['a', 'c'], limit: 10 })).toEqual({ items: [], next_cursor: null, damaged: ['DB'] })
    const ofOthers = await listEvents(env.DB, { patterns: ['b'], limit: 10 })
    expect(Object.keys(ofOthers)).toEqual(['items', 'next_cursor'])
    await expect(replayed()).rejects.toMatchObject({ detail: `Packs of events cannot be read: DB ${id}.` })
    await expect(findEvent(env.DB, lost!.id, { patterns: ALL })).rejects.toThrow(/The pack \d+ of the event log cannot be read/)
    expect(await findEvent(env.DB, fine!.id, { patterns: ALL })).toMatchObject({ id: fine!.id })
    await mergePacks(env.DB, START + DAY_MS)
    expect(await packsOf()).toEqual([3, 3])
  })

  test('whose bytes are damaged fails no look-up of an event of the same id in a scope that it does not have', async () => {
    const [one] = await packedNotes('a', 3, START)
    const same = eventAt('b', START + 60_000, { id: one!.id })
    await write('b', [reportOf(same, { nth: 1 })])
    await env.DB.exec(`UPDATE packs SET data = substr(data, 1, 40) WHERE scopes = '["a"]'`)
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    expect(await findEvent(env.DB, one!.id, { patterns: ['b'] })).toMatchObject({ scope: 'b' })
    expect(await findEvent(env.DB, one!.id, { patterns: ALL, scope: 'b' })).toMatchObject({ scope: 'b' })
    expect(await findEvent(env.DB, one!.id, { patterns: ['c'] })).toBeNull()
    const refusal = await findEvent(env.DB, one!.id, { patterns: ['a', 'c'] }).catch((error: unknown) => error)
    expect(refusal).toMatchObject({
      status: 500,
      detail: expect.stringMatching(/^A pack of the event log cannot be read: it is in DB,[^\d]*$/),
    })
  })

  test('whose bytes are damaged does not stop the sweep from sending lost events again', async () => {
    const [event] = await packedNotes('a', 3, START)
    await env.DB.exec('UPDATE packs SET data = substr(data, 1, 40)')
    await noteQueued(env.DB, [{ id: newBatchId(START), events: [event!] }], START)
    const lost = eventAt('b', START + 1)
    await noteQueued(env.DB, [{ id: newBatchId(START + 1), events: [lost] }], START)
    const later = eventAt('b', START + 20_000)
    await write('b', [reportOf(later, { nth: 1 })])
    await noteQueued(env.DB, [{ id: newBatchId(START + 20_000), events: [later] }], START)
    const sent: string[] = []
    const EVENTS = {
      sendBatch: async (messages: Iterable<{ body: { events: Event[] } }>) =>
        void sent.push(...[...messages].flatMap(({ body }) => body.events.map(({ id }) => id))),
    }
    await sweep(Object.assign({}, env, { EVENTS }), START + 60_000)
    expect(sent).toContain(lost.id)
  })

  test('whose bytes are damaged does not stop a scope from reporting what changed', async () => {
    const [event] = await packedNotes('a', 3, START)
    await env.DB.exec('UPDATE packs SET data = substr(data, 1, 40)')
    await write('a', [reportOf(event!, { nth: null, status: 'cancelled', revision: 9 })])
    expect(await count('events')).toBe(1)
  })

  test('whose bytes are damaged may have an event of before, which is then a row', async () => {
    const packed = packable([reportOf(eventAt('a', START), { nth: 1 })], 'a')
    await packEvents(env.DB, packed)
    expect(await repeatedAmong(env.DB, packed)).toEqual(new Set())
    await env.DB.exec(`UPDATE packs SET data = x'00'`)
    expect(await repeatedAmong(env.DB, packed)).toEqual(new Set(packed.map(nameOf)))
  })

  test('whose bytes are damaged does not stop the queue from giving up on an event', async () => {
    const [event] = await packedNotes('a', 3, START)
    await env.DB.exec('UPDATE packs SET data = substr(data, 1, 40)')
    await addDeadLetters(env.DB, deadLettersOf([event!], { id: 'm', attempts: 6, body: {} }, 'not delivered'))
    expect([await count('events'), await count('dead_letters')]).toEqual([1, 1])
  })
})

describe('an id that two scopes have', () => {
  test('is the newest of both for a look-up without a scope, whichever of them is packed', async () => {
    const [first, second] = [eventAt('a', START), eventAt('b', START + 1000)]
    for (const [packed, row] of [
      ['a', 'b'],
      ['b', 'a'],
    ] as const) {
      await clear()
      const events = { a: first, b: { ...second, id: first.id } }
      await write(packed, [reportOf(events[packed], { nth: 1 })])
      await write(row, [reportOf(events[row], { nth: null })])
      expect([await count('events'), await count('packs')]).toEqual([1, 1])
      expect(await findEvent(env.DB, first.id, { patterns: ALL })).toMatchObject({ event: { scope: 'b' } })
    }
  })
})

describe('an event that changes after it was packed', () => {
  test('is what its row says, in lists, look-ups and traces, and keeps the traits of its pack', async () => {
    const [event] = await packedNotes('a', 5, START)
    await write('a', [reportOf(event!, { nth: null, status: 'dead_lettered', revision: 9, kinds: 4, log_from: 30, skills: '\nx\n' })])
    expect(await listed({ status: 'completed' })).toHaveLength(4)
    expect(await listed({ status: 'dead_lettered' })).toHaveLength(1)
    expect(await listed()).toHaveLength(5)
    expect(await findEvent(env.DB, event!.id, { patterns: ALL })).toMatchObject({ status: 'dead_lettered' })
    expect(await eventsOfTraces(env.DB, [event!.meta.trace_id], ALL)).toMatchObject([{ status: 'dead_lettered', kinds: 5, log_from: 1 }])
  })

  test('is not shown as it was when retention takes its row: that stays as long as its pack', async () => {
    const [event] = await packedNotes('a', 5, START)
    await write('a', [reportOf(event!, { nth: null, status: 'cancelled', revision: 9 })])
    // A part of a day as the time of retention is no whole number of ms.
    const before = START + 2000.5
    expect(await forgetPacks(env.DB, before, 10)).toBe(0)
    const forgetRows = async (time: number) =>
      forgetEvents(env.DB, { before: time, after: '-1', limit: 10, packed: await oldestPacked(env.DB) })
    expect(await forgetRows(before)).toMatchObject({ forgotten: 0 })
    expect(await retentionBacklog(env.DB, START + 60_000)).toEqual({ events: 6, oldest: START })
    expect(await forgetPacks(env.DB, START + 60_000, 10)).toBe(5)
    expect(await forgetRows(START + 60_000)).toMatchObject({ forgotten: 1 })
  })
})

describe('a note of what was sent', () => {
  const sent = async () => {
    const events = [eventAt('a', START), eventAt('a', START + 1)]
    await noteQueued(env.DB, [{ id: newBatchId(START), events }], START)
    await write(
      'a',
      events.slice(0, 1).map((event) => reportOf(event, { nth: 1 })),
    )
    return events
  }

  test('does not list what a pack has, and is dropped once packs have all of it', async () => {
    const [, waiting] = await sent()
    expect((await listed()).map(({ status }) => status).toSorted()).toEqual(['completed', 'queued'])
    expect(await listed({ status: 'queued' })).toHaveLength(1)
    await write('a', [reportOf(waiting!, { nth: 2 })])
    expect(await listed()).toHaveLength(2)
    await sweep(env, START + 1000)
    expect(await count('queued')).toBe(0)
  })

  test('is dropped by the consumer that packs all of its events, and kept if one is left', async () => {
    const scopes = [freshScope(), freshScope()]
    const events = Array.from({ length: 20 }, (_, index) => note(scopes[index % 2]!, 'noise'))
    const [whole, other] = [newBatchId(START), newBatchId(START + 1)]
    await noteQueued(
      env.DB,
      [
        { id: whole, events },
        { id: other, events: [...events, note(scopes[0]!, 'noise')] },
      ],
      START,
    )
    const deliver = (batch: string) => {
      const message = { id: crypto.randomUUID(), timestamp: new Date(), attempts: 1, body: { batch, events } }
      return worker.queue(createMessageBatch('reflex-events', [message]), env)
    }
    await deliver(other)
    expect(await count('queued')).toBe(2)
    await deliver(whole)
    const { results } = await env.DB.prepare('SELECT CAST(id AS TEXT) AS id FROM queued').all()
    expect(results).toEqual([{ id: other }])
  })

  test.each([
    ['newest first', false, 0],
    ['newest first, of a batch with a later time', false, 5],
    ['oldest first', true, 0],
    ['oldest first, of a batch with a later time', true, 5],
  ])('neither repeats an event on a later page nor holds the list at one: %s', async (_, rising, lag_ms) => {
    const some = Array.from({ length: 10 }, () => eventAt('a', START))
    await noteQueued(env.DB, [{ id: seqAt(START + lag_ms), events: some }], START)
    await write(
      'a',
      some.map((event, index) => reportOf(event, { nth: index + 1 })),
    )
    const pages = await listed({}, { limit: 3, rising })
    expect(pages.map(({ id }) => id).toSorted()).toEqual(some.map(({ id }) => id).toSorted())
  })

  test('has only what is in no pack sent again', async () => {
    const [, waiting] = await sent()
    // The queue has delivered what was sent later.
    const [later] = await packedNotes('a', 1, START + 20_000)
    await noteQueued(env.DB, [{ id: newBatchId(START + 20_000), events: [later!] }], START)
    const bodies: { events: Event[] }[] = []
    const EVENTS = {
      sendBatch: async (messages: Iterable<{ body: { events: Event[] } }>) => bodies.push(...[...messages].map(({ body }) => body)),
    }
    await sweep(Object.assign({}, env, { EVENTS }), START + 60_000)
    expect(bodies.flatMap(({ events }) => events.map(({ id }) => id))).toEqual([waiting!.id])
  })

  test('that the queue gave up on is no dead letter if a pack has the event, whichever comes first', async () => {
    const [first] = await packedNotes('a', 3, START)
    const later = eventAt('a', START + 50_000)
    const bury = (event: Event) => addDeadLetters(env.DB, deadLettersOf([event], { id: 'm', attempts: 6, body: {} }, 'not delivered'))
    await bury(first!)
    expect([await count('events'), await count('dead_letters')]).toEqual([0, 0])
    await bury(later)
    expect([await count('events'), await count('dead_letters')]).toEqual([1, 1])
    await write('a', [reportOf(later, { nth: 4 })])
    expect([await count('events'), await count('dead_letters')]).toEqual([0, 0])
    expect(await listed({ scope: 'a' })).toHaveLength(4)
  })
})

describe('lone events of a deployment with a queue of outcomes', () => {
  /** The messages that scopes send to the queue. */
  async function sent(scopes: string[]): Promise<{ bodies: unknown[]; events: Event[] }> {
    const bodies: unknown[] = []
    const defer = outcomesSender(
      {
        OUTCOMES: { send: async (body: unknown) => void bodies.push(body) } as never,
        REFLEX_QUEUE_NOTES: 'off',
      },
      env.DB,
    )
    const events = scopes.map((scope) => eventAt(scope, START))
    for (const event of events)
      await replicateEvents(env.DB, [reportOf(event, { nth: 1 })], scopeRow(event.scope), { isWritten: true, defer })
    return { bodies, events }
  }

  test('are rows if a pack has another event of their id, which their scope has forgotten', async () => {
    const old = eventAt('a', START - DAY_MS)
    await write('a', [reportOf(old, { nth: 1 })])
    const defer = outcomesSender({}, env.DB)
    const again = { ...eventAt('a', START, { text: 'again' }), id: old.id }
    await replicateEvents(env.DB, [reportOf(again, { nth: 2, may_repeat: true })], scopeRow('a'), { defer })
    expect([await count('events'), await packsOf()]).toEqual([1, [1]])
    expect(await listed()).toMatchObject([{ id: old.id, event: { text: 'again' } }])
  })

  test('are packs of their own where a queue may forget its messages, as that of a local server does', async () => {
    const send = async (): Promise<never> => expect.fail('sent')
    const defer = outcomesSender({ OUTCOMES: { send } as never, REFLEX_QUEUE_NOTES: 'on' }, env.DB)
    await replicateEvents(env.DB, [reportOf(eventAt('a', START), { nth: 1 })], scopeRow('a'), { isWritten: true, defer })
    expect([await count('events'), await packsOf()]).toEqual([0, [1]])
  })

  async function deliver(queue: string, bodies: unknown[], bindings = env, attempts = 1) {
    const messages = bodies.map((body) => ({ id: crypto.randomUUID(), timestamp: new Date(), attempts, body }))
    const batch = createMessageBatch(queue, messages)
    await worker.queue(batch, bindings)
    return getQueueResult(batch, createExecutionContext())
  }

  test('write nothing to D1: they are packed with those of other scopes, and listed once if they arrive twice', async () => {
    const { bodies, events } = await sent(['a', 'b', 'c'])
    expect([await count('events'), await count('packs'), bodies.length]).toEqual([0, 0, 3])
    expect((await deliver('reflex-outcomes', bodies)).explicitAcks).toHaveLength(3)
    await deliver('reflex-outcomes', bodies.slice(1))
    expect([await count('events'), await packsOf()]).toEqual([0, [3, 2]])
    const ids = events.map(({ id }) => id).toSorted()
    expect((await listed({}, { limit: 1 })).map(({ id }) => id).toSorted()).toEqual(ids)
    expect(await findEvent(env.DB, events[1]!.id, { patterns: ['b'] })).toMatchObject({ event: events[1] })
    await mergePacks(env.DB, START + DAY_MS)
    expect(await packsOf()).toEqual([3])
  })

  test('take the numbers of their scope with them', async () => {
    const bodies: unknown[] = []
    const send = outcomesSender(
      {
        OUTCOMES: { send: async (body: unknown) => void bodies.push(body) } as never,
        REFLEX_QUEUE_NOTES: 'off',
      },
      env.DB,
    )
    const rows = [{ family: 'scope', bucket: 'all', start: 0, values: { '': { accepted: 3 } } }]
    const scope = freshScope()
    const packed = packable([reportOf(eventAt(scope, START), { nth: 1 })], scope)
    expect(await send?.(packed, { statistics: { scope, seq: 1, rows } })).toBe(true)
    expect((await deliver('reflex-outcomes', bodies)).explicitAcks).toHaveLength(1)
    await sortAll(env.DB)
    expect((await scopeTotals(env.DB, [scope])).get(scope)).toEqual({ accepted: 3 })
  })

  test('are packed by day, so that one scope with a clock ahead does not keep the events of all others', async () => {
    const bodies: unknown[] = []
    const defer = outcomesSender(
      {
        OUTCOMES: { send: async (body: unknown) => void bodies.push(body) } as never,
        REFLEX_QUEUE_NOTES: 'off',
      },
      env.DB,
    )
    for (const event of [eventAt('a', START), eventAt('ahead', START + 300 * DAY_MS), eventAt('b', START + 1)])
      await replicateEvents(env.DB, [reportOf(event, { nth: 1 })], scopeRow(event.scope), { isWritten: true, defer })
    await deliver('reflex-outcomes', bodies)
    await write('c', [reportOf(eventAt('c', START + 60_000), { nth: null })])
    const before = START + 30 * DAY_MS
    expect(await forgetPacks(env.DB, before, 100)).toBe(2)
    expect(await forgetEvents(env.DB, { before, after: '-1', limit: 10, packed: await oldestPacked(env.DB) })).toMatchObject({
      forgotten: 1,
    })
    expect((await listed()).map(({ scope }) => scope)).toEqual(['ahead'])
  })

  test('keep the newer state, and the traits of both, if they change before they are packed', async () => {
    const { bodies, events } = await sent(['a'])
    const [event] = events
    await write('a', [reportOf(event!, { nth: null, status: 'cancelled', revision: 9, kinds: 4, log_from: 30 })])
    await deliver('reflex-outcomes', bodies)
    expect((await listed()).map(({ status }) => status)).toEqual(['cancelled'])
    expect(await eventsOfTraces(env.DB, [event!.meta.trace_id], ALL)).toMatchObject([{ status: 'cancelled', kinds: 5, log_from: 1 }])
  })

  test('wait in the queue while D1 is away, and are packed also from the dead letters', async () => {
    const { bodies } = await sent(['a'])
    const away = Object.assign({}, env, {
      DB: { prepare: () => env.DB.prepare('SELECT 1'), batch: () => Promise.reject(new Error('away')) },
    })
    expect((await deliver('reflex-outcomes', bodies, away)).retryMessages).toHaveLength(1)
    expect((await deliver('reflex-dead-letters', bodies)).explicitAcks).toHaveLength(1)
    expect([await packsOf(), await count('dead_letters')]).toEqual([[1], 0])
  })

  test.each(['reflex-outcomes', 'reflex-dead-letters'])(
    'go back to their scopes from %s, which report them, if D1 stays away',
    async (queue) => {
      const scope = freshScope()
      const event = note(scope, 'noise')
      const accepted = await stubOf(scope).accept([event], 'queue', true)
      const bodies = [JSON.parse((accepted.ok && accepted.outcomes) || '{}') as unknown]
      expect(bodies).toMatchObject([{ outcomes: [{ id: event.id }] }])
      const away = Object.assign({}, env, {
        DB: { prepare: () => env.DB.prepare('SELECT 1'), batch: () => Promise.reject(new Error('away')) },
      })
      expect((await deliver(queue, bodies, away, 9)).retryMessages).toHaveLength(1)
      expect((await deliver(queue, bodies, away, 10)).explicitAcks).toHaveLength(1)
      await evict(stubOf(scope))
      await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'the scope has reported')
      expect((await listed({ scope })).map(({ id, status }) => [id, status])).toEqual([[event.id, 'ignored']])
    },
  )

  test('are packed beside a message that cannot be read, which becomes a dead letter', async () => {
    const { bodies } = await sent(['a'])
    const [whole] = bodies as { outcomes: object[] }[]
    const odd = [{ outcomes: [{}] }, { outcomes: [{ ...whole!.outcomes[0], seq: 'x' }] }]
    const { explicitAcks, retryMessages } = await deliver('reflex-outcomes', [odd[0], ...bodies, odd[1]])
    expect([await packsOf(), explicitAcks.length, retryMessages.length]).toEqual([[1], 1, 2])
    expect((await deliver('reflex-dead-letters', odd)).explicitAcks).toHaveLength(2)
    expect([await packsOf(), await count('dead_letters')]).toEqual([[1], 2])
  })

  test('of more bytes than a message takes are rows', async () => {
    const bodies: unknown[] = []
    const defer = outcomesSender(
      {
        OUTCOMES: { send: async (body: unknown) => void bodies.push(body) } as never,
        REFLEX_QUEUE_NOTES: 'off',
      },
      env.DB,
    )
    const large = eventAt('a', START, { text: 'x'.repeat(70_000) })
    await replicateEvents(env.DB, [reportOf(large, { nth: 1 })], scopeRow('a'), { defer })
    expect([await count('events'), bodies]).toEqual([1, []])
  })
})

describe('packs that have become many', () => {
  test('merge, and the events of full ones are found by the index', async () => {
    const events: Event[] = []
    for (let nth = 0; nth < 40; nth += 1) events.push(...(await packedNotes('a', 60, START + nth * 60_000)))
    await mergePacks(env.DB, START)
    const sizes = await packsOf()
    expect(sizes.reduce((sum, size) => sum + size)).toBe(2400)
    expect(sizes.length).toBeLessThan(20)
    await mergePacks(env.DB, START + DAY_MS)
    expect((await packsOf()).reduce((sum, size) => sum + size)).toBe(2400)
    expect(await count('pack_index')).toBe(1)
    const some = events.filter((_, index) => index % 300 === 0)
    for (const { id } of some) expect(await findEvent(env.DB, id, { patterns: ALL })).toMatchObject({ id })
    expect((await listed({}, { limit: 500 })).map(({ id }) => id)).toEqual(events.map(({ id }) => id).toReversed())
    expect(await forgetPacks(env.DB, START + DAY_MS, 10)).toBe(2400)
    expect([await count('packs'), await count('pack_index')]).toEqual([0, 0])
  })

  test('of one millisecond merge, too, and each of its events is on one page', async () => {
    const events = Array.from({ length: 2100 }, () => eventAt('a', START))
    for (let from = 0; from < events.length; from += 70)
      await write(
        'a',
        events.slice(from, from + 70).map((event, index) => reportOf(event, { nth: from + index + 1 })),
      )
    await mergePacks(env.DB, START + DAY_MS)
    expect(await packsOf()).toHaveLength(Math.ceil(2100 / 256))
    expect((await listed({}, { limit: 400 })).map(({ id }) => id)).toEqual(events.map(({ id }) => id).toReversed())
    expect(await findEvent(env.DB, events[1000]!.id, { patterns: ALL })).toMatchObject({ id: events[1000]!.id })
  })

  test.each([false, true])('have two scopes with events of one place, which are on one page (rising: %s)', async (rising) => {
    const scopes = ['a', 'b', 'c']
    const packed = scopes.flatMap((scope) => packable([reportOf(eventAt(scope, START), { nth: 1 })], scope))
    const [{ seq }] = packed as [PackedEvent]
    await packEvents(
      env.DB,
      packed.map((event) => ({ ...event, seq })),
    )
    expect((await listed({}, { limit: 1, rising })).map(({ scope }) => scope).toSorted()).toEqual(scopes)
  })

  test('of different days stay apart: retention takes whole packs', async () => {
    for (const day of [0, 0, 1, 1]) await packedNotes('a', 3, START + day * DAY_MS)
    await mergePacks(env.DB, START + 2 * DAY_MS)
    expect(await packsOf()).toEqual([6, 6])
  })

  /** Delivers the outcome of an event of its own scope. */
  async function deliverOutcome(nth: number, bindings = env) {
    const event = eventAt(`s/${nth}`, START + nth)
    const bodies: unknown[] = []
    const defer = outcomesSender(
      {
        OUTCOMES: { send: async (body: unknown) => void bodies.push(body) } as never,
        REFLEX_QUEUE_NOTES: 'off',
      },
      env.DB,
    )
    await replicateEvents(env.DB, [reportOf(event, { nth: 1 })], scopeRow(event.scope), { isWritten: true, defer })
    const messages = bodies.map((body) => ({ id: crypto.randomUUID(), timestamp: new Date(), attempts: 1, body }))
    const batch = createMessageBatch('reflex-outcomes', messages)
    await worker.queue(batch, bindings)
    return getQueueResult(batch, createExecutionContext())
  }

  test('merge as soon as a scope that packs its own makes them many, without a sweep', async () => {
    const defer = outcomesSender({}, env.DB)
    const report = (nth: number) =>
      replicateEvents(env.DB, [reportOf(eventAt('a', START + nth), { nth: nth + 1 })], scopeRow('a'), { isWritten: true, defer })
    for (let nth = 0; nth < 63; nth += 1) await report(nth)
    expect(await count('packs')).toBe(63)
    await report(63)
    expect(await packsOf()).toEqual([64])
    expect(await listed({}, { limit: 100 })).toHaveLength(64)
  })

  test('merge as soon as a delivery makes them many, without a sweep', async () => {
    for (let nth = 0; nth < 63; nth += 1) await deliverOutcome(nth)
    expect(await count('packs')).toBe(63)
    await deliverOutcome(63)
    expect(await packsOf()).toEqual([64])
    expect(await listed({}, { limit: 100 })).toHaveLength(64)
  })

  test('are left to the sweep, and the delivery stands, if they cannot be merged then', async () => {
    for (let nth = 0; nth < 63; nth += 1) await deliverOutcome(nth)
    const prepare = (sql: string) => {
      if (sql.includes('hex(data)')) throw new Error('D1 is away')
      return env.DB.prepare(sql)
    }
    const DB = { prepare, batch: (list: D1PreparedStatement[]) => env.DB.batch(list) }
    expect((await deliverOutcome(63, Object.assign({}, env, { DB }))).explicitAcks).toHaveLength(1)
    expect(await count('packs')).toBe(64)
    await mergePacks(env.DB, START)
    expect(await packsOf()).toEqual([64])
  })

  test('of many events merge as soon as these fill packs', async () => {
    const events = (nth: number) => Array.from({ length: 40 }, (_, index) => eventAt('a', START + nth * 100 + index))
    const packed = async (nth: number) => {
      const reports = events(nth).map((event, index) => reportOf(event, { nth: nth * 100 + index + 1 }))
      return packEvents(env.DB, packable(reports, 'a'))
    }
    const crowded: (D1Database | null)[] = []
    for (let nth = 0; nth < 52; nth += 1) crowded.push(await packed(nth))
    // The 52nd pack makes 2048 events of them.
    expect(crowded.flatMap((db, index) => (db === null ? [] : [index]))).toEqual([51])
  })

  test('merge only as long as there is time, and the rest of them later', async () => {
    for (let nth = 0; nth < 4; nth += 1) await packedNotes('a', 3, START + nth * 60_000)
    expect(await mergePacks(env.DB, START + DAY_MS, 0)).toBe(0)
    expect(await packsOf()).toEqual([3, 3, 3, 3])
    expect(await mergePacks(env.DB, START + DAY_MS)).toBe(1)
    expect(await packsOf()).toEqual([12])
  })

  test('are named by a row of the index only if it has entries of them', async () => {
    const part = 3 * 2 ** 44
    const hash = (nth: number) => nth.toString(16).padStart(16, '0')
    for (let row = 0; row < 8; row += 1) {
      const ids = Array.from({ length: 512 }, (_, nth) => String((1n << 62n) + BigInt(seqAt(START)) + BigInt(row * 512 + nth)))
      await env.DB.prepare(
        `INSERT INTO packs (id, first, last, events, accepted_at, raw_bytes, data) SELECT CAST(value AS INTEGER), ?2, ?2, 1, ?3, 1, x'00' FROM json_each(?1)`,
      )
        .bind(JSON.stringify(ids), seqAt(START), START)
        .run()
      await env.DB.prepare('INSERT INTO pack_index (place, accepted_at, packs, entries) VALUES (?1, ?2, ?3, unhex(?4))')
        .bind(part + row, START, JSON.stringify(ids), hash(row) + '0000')
        .run()
    }
    await packedNotes('a', 1024, START)
    await mergePacks(env.DB, START + DAY_MS)
    const { results } = await env.DB.prepare(
      `SELECT place, json_array_length(packs) AS packs, octet_length(entries) / 10 AS entries FROM pack_index WHERE place >= ?1`,
    )
      .bind(part)
      .all<{ packs: number; entries: number }>()
    for (const { packs, entries } of results) expect(packs).toBeLessThanOrEqual(entries)
  })

  test('are found by merged rows of the index as long as by the youngest of these, which name none that is gone', async () => {
    const part = 3 * 2 ** 44
    const ids = Array.from({ length: 8 }, (_, row) => String((1n << 62n) + BigInt(seqAt(START)) + BigInt(row)))
    for (const [row, id] of ids.entries()) {
      const pack = `INSERT INTO packs (id, first, last, events, accepted_at, raw_bytes, data) SELECT CAST(?1 AS INTEGER), ?2, ?2, 1, ?3, 1, x'00'`
      // Retention has taken the first.
      if (row > 0) await env.DB.prepare(pack).bind(id, seqAt(START), START).run()
      await env.DB.prepare('INSERT INTO pack_index (place, accepted_at, packs, entries) VALUES (?1, ?2, ?3, unhex(?4))')
        .bind(part + row, START + row, JSON.stringify([id]), `${row.toString(16).padStart(16, '0')}0000`)
        .run()
    }
    await packedNotes('a', 1024, START)
    await mergePacks(env.DB, START + DAY_MS)
    const merged = 'SELECT accepted_at, packs FROM pack_index WHERE place >= ?1'
    const { results } = await env.DB.prepare(merged).bind(part).all<{ accepted_at: number; packs: string }>()
    expect(results.map(({ accepted_at }) => accepted_at)).toEqual(results.map(() => START + 7))
    expect(results.flatMap(({ packs }) => JSON.parse(packs) as string[]).toSorted()).toEqual(ids.slice(1))
  })
})

describe('packs that take more than REFLEX_EVENTS_BYTES', () => {
  const bytes = async () =>
    (await env.DB.prepare('SELECT sum(octet_length(data) + octet_length(hashes)) AS n FROM packs').first<number>('n')) ?? 0

  test('leave D1 from the oldest on, and what changed of them stays a row', async () => {
    const [changed] = await packedNotes('a', 5, START)
    await write('a', [reportOf(changed!, { nth: null, status: 'cancelled', revision: 9 })])
    const kept = await packedNotes('a', 5, START + 600_000)
    const both = await bytes()
    expect(await forgetPacksBeyond(env.DB, both, 10)).toBe(0)
    expect(await forgetPacksBeyond(env.DB, both - 1, 10)).toBe(5)
    expect((await listed()).map(({ id }) => id)).toEqual([...kept.toReversed().map(({ id }) => id), changed!.id])
  })

  test('leave from the oldest on also if fewer leave at once than are too many', async () => {
    for (const nth of [0, 1, 2]) await packedNotes('a', 5, START + nth * 600_000)
    const newest = await env.DB.prepare(
      'SELECT octet_length(data) + octet_length(hashes) AS n FROM packs ORDER BY last DESC',
    ).first<number>('n')
    const oldest = await oldestPacked(env.DB)
    expect(await forgetPacksBeyond(env.DB, newest!, 1)).toBe(5)
    expect(BigInt((await oldestPacked(env.DB))!)).toBeGreaterThan(BigInt(oldest!))
  })

  test('are forgotten by the sweep, and none if the number is not valid', async () => {
    await packedNotes('a', 5, START)
    await sweep({ ...env, REFLEX_EVENTS_BYTES: 'few' }, START + 60_000)
    expect(await packsOf()).toEqual([5])
    expect((await sweep({ ...env, REFLEX_EVENTS_BYTES: '10' }, START + 60_000)).forgotten).toBe(5)
    expect(await packsOf()).toEqual([])
  })

  test('are foreseen by the report on health', async () => {
    await packedNotes('a', 5, START)
    const { packs } = await retentionReport({ ...env, REFLEX_EVENTS_BYTES: String(4 * (await bytes())) }, START + 2 * DAY_MS)
    expect(packs).toEqual({ bytes: await bytes(), most_bytes: 4 * (await bytes()), kept_days: 8, leave_in_days: 6 })
    expect((await retentionReport(env, START + 60_000)).packs).toMatchObject({ most_bytes: 6_000_000_000, kept_days: null })
    expect((await retentionReport({ ...env, REFLEX_EVENTS_BYTES: '-1' }, START)).packs.most_bytes).toBeNull()
  })

  test('tell a key of some scopes no rate, and no time, that is finer than the sizes that it sees', async () => {
    const seen = async () => {
      const { packs, databases } = await retentionReport(env, START + 2 * DAY_MS, ['team/*'])
      return { packs, rates: databases.map(({ bytes_per_day, kept_days }) => ({ bytes_per_day, kept_days })) }
    }
    await packedNotes('a', 5, START)
    const before = await seen()
    await packedNotes('b', 5, START)
    expect(await seen()).toEqual(before)
    expect(before.packs).toMatchObject({ bytes: 0, kept_days: null, leave_in_days: null })
  })
})

const eventsOf = (reports: readonly Report[]): Event[] => reports.map(({ payload }) => JSON.parse(payload) as Event)

/** A step of a random walk. `at` chooses one of the events or batches. */
type Act =
  | { do: 'accept'; scope: number; events: number; packs: boolean; note: number; days: number }
  | { do: 'change'; at: number; status: 'completed' | 'pending' | 'cancelled' }
  | { do: 'repeat'; at: number }
  | { do: 'merge'; days: number }
  | { do: 'bury'; at: number }
  | { do: 'leave'; packs: number; rows: boolean }
  | { do: 'again'; at: number; packs: boolean }

const nat = fc.nat({ max: 1000 })
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('accept'),
      scope: fc.nat({ max: 3 }),
      events: fc.integer({ min: 1, max: 9 }),
      packs: fc.boolean(),
      note: fc.integer({ min: -1, max: 3 }),
      // The clock jumps.
      days: fc.constantFrom(0, 0, 0, 1, 3, -1, -2),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('change'), at: nat, status: fc.constantFrom('completed', 'pending', 'cancelled') }) },
  fc.record({ do: fc.constant('repeat'), at: nat }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('merge'), days: fc.nat({ max: 2 }) }) },
  fc.record({ do: fc.constant('bury'), at: nat }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('again'), at: nat, packs: fc.boolean() }) },
)
const leave: fc.Arbitrary<Act> = fc.record({ do: fc.constant('leave'), packs: fc.integer({ min: 1, max: 3 }), rows: fc.boolean() })

/** Each event is once in each list of the store, as its newest report has it, after any steps. */
function eachOnceAfterSteps(bucket?: R2Bucket): fc.IAsyncPropertyWithHooks<[Act[], number]> {
  const steps = fc.array(bucket ? fc.oneof({ weight: 8, arbitrary: act }, { weight: 2, arbitrary: leave }) : act, {
    minLength: 3,
    maxLength: 25,
  })
  return fc.asyncProperty(steps, fc.integer({ min: 1, max: 6 }), async (acts, limit) => {
    await clear()
    if (bucket) await clearArchive()
    const model = new Map<string, { event: Event; report: Report }>()
    const nths = new Map<string, number>()
    const batches: { scope: string; reports: Report[] }[] = []
    let at = START
    let has_left = false
    const apply = async (one: Act) => {
      const known = [...model.values()]
      const chosen = 'at' in one ? known[one.at % known.length] : undefined
      if (one.do === 'accept') {
        const scope = `s/${one.scope}`
        at += one.days * DAY_MS
        const reports = Array.from({ length: one.events }, (_, index) => {
          const event = eventAt(scope, (at += index % 3 === 0 ? 0 : 700))
          const nth = (nths.get(scope) ?? 0) + 1
          nths.set(scope, nth)
          const report = reportOf(event, { nth: one.packs ? nth : null, status: index % 4 === 0 ? 'ignored' : 'completed' })
          model.set(event.id, { event, report })
          return report
        })
        batches.push({ scope, reports })
        // The note of what was sent stays until the sweep; the time of its batch may be later.
        const note = { id: `${BigInt(seqAt(at + 300 * one.note)) + BigInt(batches.length)}`, events: eventsOf(reports) }
        if (one.note >= 0) await noteQueued(store, [note], START)
        await write(scope, reports)
      } else if (one.do === 'change' && chosen) {
        const report = { ...chosen.report, nth: null, status: one.status, revision: chosen.report.revision + 1 }
        model.set(chosen.event.id, { ...chosen, report })
        await write(chosen.event.scope, [report])
      } else if (one.do === 'repeat') {
        const batch = batches[one.at % batches.length]
        // A batch that D1 took without an answer is sent again as rows; or it arrives twice.
        if (batch) await write(batch.scope, one.at % 2 === 0 ? batch.reports : batch.reports.map((report) => ({ ...report, nth: null })))
      } else if (one.do === 'merge') {
        for (const { db } of packDatabases(store)) await mergePacks(db, at + one.days * DAY_MS)
      } else if (one.do === 'leave' && bucket) {
        has_left = true
        // The sweep has seen the notes of events that are so old.
        await store.exec('DELETE FROM queued')
        for (const database of packDatabases(store)) await forgetPacksBeyond(database.db, 1, one.packs, leavingFor(store, bucket, database))
        const leaving = (rows: readonly PackedEvent[]) => archiveDays(store, bucket, rows)
        const packed = await oldestPacked(store)
        if (one.rows) await forgetEvents(store, { before: START + 90 * DAY_MS, after: '-1', limit: 1000, packed, leaving })
      } else if (one.do === 'again' && chosen) {
        // Its id is sent again after its scope forgot it, and after the sweep has seen its note.
        await store.exec('DELETE FROM queued')
        const { id, scope } = chosen.event
        const event = eventAt(scope, (at += 700), { id })
        const nth = (nths.get(scope) ?? 0) + 1
        nths.set(scope, nth)
        const report = reportOf(event, { nth: one.packs ? nth : null, revision: chosen.report.revision + 1, may_repeat: true })
        model.set(id, { event, report })
        // The scope has nothing to report of the earlier one.
        for (const batch of batches) batch.reports = batch.reports.filter((known) => known.id !== id || batch.scope !== scope)
        batches.push({ scope, reports: [report] })
        await write(scope, [report])
      } else if (one.do === 'bury' && chosen) {
        await addDeadLetters(store, deadLettersOf([chosen.event], { id: 'm', attempts: 6, body: {} }, 'not delivered'))
      }
    }
    // A scope repeats, and a queue buries, only what is newer than the window of D1.
    for (const one of acts) if (!has_left || !['repeat', 'bury', 'again'].includes(one.do)) await apply(one)
    const expected = [...model.values()].map(({ event, report }) => `${event.scope} ${event.id} ${report.status}`).toSorted()
    const shown = (items: EventListing[]) => items.map(({ scope, id, status }) => `${scope} ${id} ${status}`).toSorted()
    const falling = await listed({}, { limit })
    expect(shown(falling)).toEqual(expected)
    const times = falling.map(({ timestamp }) => Date.parse(timestamp))
    expect(times).toEqual(times.toSorted((one, other) => other - one))
    expect(shown(await listed({}, { limit, rising: true }))).toEqual(expected)
    for (const status of ['completed', 'ignored', 'pending'] as const)
      expect(shown(await listed({ status }, { limit }))).toEqual(expected.filter((line) => line.endsWith(` ${status}`)))
    expect(shown(await listed({ patterns: ['s/1', 's/2*'] }, { limit }))).toEqual(expected.filter((line) => /^s\/[12] /.test(line)))
    if (has_left) return
    expect((await replayed()).map(({ id }) => id).toSorted()).toEqual([...model.keys()].toSorted())
    for (const { event, report } of [...model.values()].slice(0, 5)) {
      expect(await findEvent(store, event.id, { patterns: ALL })).toMatchObject({ status: report.status, event })
      expect(await eventsOfTraces(store, [event.meta.trace_id], ALL)).toMatchObject([{ id: event.id, status: report.status }])
    }
  })
}

test('after any steps each event is once in each list, as its newest report has it', async () => {
  await expect(assertProperty('store/packs: any steps', eachOnceAfterSteps(), { numRuns: 25 })).resolves.toBeUndefined()
}, 600_000)

test('and so it is with an archive that packs and rows leave to', async () => {
  const ARCHIVE = env.TEST_ARCHIVE
  store = storeOf({ ...(await severalDatabases()), ARCHIVE })
  await expect(
    assertProperty('store/packs: any steps with an archive', eachOnceAfterSteps(ARCHIVE), { numRuns: 15 }),
  ).resolves.toBeUndefined()
}, 600_000)

test('and so it is in three databases', async () => {
  store = storeOf(await severalDatabases())
  await expect(assertProperty('store/packs: any steps in three databases', eachOnceAfterSteps(), { numRuns: 15 })).resolves.toBeUndefined()
}, 600_000)
