import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Event } from '../../../src/core/event.ts'
import type { Env } from '../../../src/env.ts'
import { findEvent, listEvents, replayEvents } from '../../../src/store/events.ts'
import { retentionReport } from '../../../src/http/operations/health-report.ts'
import { newBatchId, noteQueued } from '../../../src/store/queued.ts'
import { replicateEvents } from '../../../src/store/replicate.ts'
import { packDatabases, storeOf } from '../../../src/store/store.ts'
import { eventsOfTraces, listTraces } from '../../../src/store/traces/traces.ts'
import { callWith, keyFor } from '../../support/http.ts'
import { severalDatabases } from '../../support/pack-databases.ts'
import { eventAt, reportOf, scopeRow } from '../../support/packs.ts'
import { evict, freshScope, note, send, stubOf, until } from '../../support/scopes.ts'
import { sweep } from '../../support/sweep.ts'

const DAY_MS = 86_400_000
const START = Math.floor(Date.now() / DAY_MS) * DAY_MS - 3 * DAY_MS + DAY_MS / 2
const ALL = ['*']

let several: Env
beforeEach(async () => {
  several = await severalDatabases()
  for (const { db } of packDatabases(storeOf(several)))
    await db.exec('DELETE FROM events; DELETE FROM packs; DELETE FROM pack_index; DELETE FROM queued; DELETE FROM dead_letters')
})

/** A pack of three events, whose first id chooses the database. */
async function pack(bound: Env, nth: number, scope = 'a'): Promise<Event[]> {
  const events = Array.from({ length: 3 }, (_, index) => eventAt(scope, START + nth * 60_000 + index * 1000, { id: `e-${nth}-${index}` }))
  await replicateEvents(
    storeOf(bound),
    events.map((event, index) => reportOf(event, { nth: nth * 3 + index })),
    scopeRow(scope),
    { least_packed: 1 },
  )
  return events
}

async function packs(bound: Env, count: number): Promise<Event[]> {
  const events: Event[] = []
  for (let nth = 0; nth < count; nth += 1) events.push(...(await pack(bound, nth)))
  return events
}

const counts = () =>
  Promise.all(
    [several.DB, several.EVENTS_DB_1, several.EVENTS_DB_2].map(async (db) =>
      db!.prepare('SELECT count(*) AS n FROM packs').first<number>('n'),
    ),
  )

async function listed(bound: Env, { rising = false } = {}) {
  const ids: string[] = []
  const missing = new Set<string>()
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Awaited<ReturnType<typeof listEvents>> = await listEvents(storeOf(bound), { patterns: ALL, limit: 4, rising, cursor })
    ids.push(...page.items.map(({ id }) => id))
    for (const name of page.missing ?? []) missing.add(name)
    cursor = page.next_cursor
  }
  return { ids, missing: [...missing] }
}

const idsOf = (events: readonly Event[]) => events.map(({ id }) => id)
const refused = () => Promise.reject(new Error('D1_ERROR: it is away'))
const statement = { bind: () => statement, first: refused, run: refused, all: refused, raw: refused } as unknown as D1PreparedStatement
const gone = { prepare: () => statement, batch: refused, exec: refused } as unknown as D1Database
/** Without a word to the log of the tests. */
const without = (name: 'EVENTS_DB_1' | 'EVENTS_DB_2'): Env => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  return { ...several, [name]: gone }
}

describe('packs in several databases', () => {
  test('are spread over all of them, and each event is listed once, in order', async () => {
    const events = await packs(several, 12)
    for (const count of await counts()) expect(count).toBeGreaterThan(0)
    expect(await listed(several)).toEqual({ ids: idsOf(events).toReversed(), missing: [] })
    expect(await listed(several, { rising: true })).toEqual({ ids: idsOf(events), missing: [] })
    for (const event of events) {
      expect(await findEvent(storeOf(several), event.id, { patterns: ALL })).toMatchObject({ event })
      expect(await eventsOfTraces(storeOf(several), [event.meta.trace_id], ALL)).toMatchObject([{ id: event.id }])
    }
    expect((await listTraces(storeOf(several), { patterns: ALL, limit: 100 })).items).toHaveLength(events.length)
  })

  test('stay where they are when a database is added', async () => {
    const events = await packs(env, 6)
    expect(await counts()).toEqual([6, 0, 0])
    expect((await listed(several)).ids).toEqual(idsOf(events).toReversed())
  })

  test('merge, and leave by age and by bytes, in each', async () => {
    await packs(several, 30)
    const spread = await counts()
    await sweep({ ...several, REFLEX_RETENTION_DAYS: '30' }, START + DAY_MS)
    expect((await counts()).every((count, index) => count! < spread[index]!)).toBe(true)
    expect((await listed(several)).ids).toHaveLength(90)
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    await sweep({ ...several, REFLEX_EVENTS_BYTES: '1' }, START + DAY_MS)
    expect(await counts()).toEqual([0, 0, 0])
    await packs(several, 12)
    await sweep({ ...several, REFLEX_RETENTION_DAYS: '30' }, START + 40 * DAY_MS)
    expect(await counts()).toEqual([0, 0, 0])
  })

  test('are in the report on health, each database with its fill and rate', async () => {
    await packs(several, 12)
    const report = await retentionReport({ ...several, REFLEX_EVENTS_BYTES: '100000' }, START + 2 * DAY_MS)
    expect(report.databases.map(({ name }) => name)).toEqual(['DB', 'EVENTS_DB_1', 'EVENTS_DB_2'])
    for (const one of report.databases) {
      expect(one).toMatchObject({ error: null, bytes: expect.any(Number), database_bytes: expect.any(Number) })
      expect(one.bytes_per_day! / one.bytes!).toBeCloseTo(0.5, 1)
      expect(one.kept_days! * one.bytes_per_day!).toBeGreaterThan(90_000)
    }
    const kept = report.databases.map(({ kept_days }) => kept_days!)
    expect(report.packs.kept_days).toBe(Math.min(...kept))
    const { databases } = await retentionReport(without('EVENTS_DB_1'), START + 2 * DAY_MS)
    expect(databases[1]).toMatchObject({ name: 'EVENTS_DB_1', error: 'D1_ERROR: it is away', bytes: null })
  })
})

describe('while one of several databases is away', () => {
  test('a list says which one is missing, and has the events of the others', async () => {
    const events = await packs(several, 12)
    const found = await listed(without('EVENTS_DB_1'))
    expect(found.missing).toEqual(['EVENTS_DB_1'])
    const rest = new Set(found.ids)
    expect(found.ids).toEqual(
      idsOf(events)
        .toReversed()
        .filter((id) => rest.has(id)),
    )
    expect(rest.size).toBe(36 - 3 * (await counts())[1]!)
    const traces = await listTraces(storeOf(without('EVENTS_DB_1')), { patterns: ALL, limit: 100 })
    expect(traces).toMatchObject({ missing: ['EVENTS_DB_1'] })
    expect(traces.items).toHaveLength(rest.size)
  })

  test('an event of another is found, and one that it may have is neither found nor said to be unknown', async () => {
    const events = await packs(several, 12)
    const away = without('EVENTS_DB_1')
    const { ids } = await listed(away)
    expect(await findEvent(storeOf(away), ids[0]!, { patterns: ALL })).toMatchObject({ id: ids[0] })
    const hidden = events.find(({ id }) => !ids.includes(id))!
    await expect(findEvent(storeOf(away), hidden.id, { patterns: ALL })).rejects.toMatchObject({
      status: 503,
      detail: expect.stringMatching(/^EVENTS_DB_1 did not answer/),
    })
    expect(await findEvent(storeOf(several), 'unknown', { patterns: ALL })).toBeNull()
  })

  test('an event of a scope that the request names is found there', async () => {
    const scope = freshScope()
    const event = note(scope, 'a')
    await stubOf(scope).accept([event], 'http')
    const found = await callWith({ ...without('EVENTS_DB_1'), DB: several.DB }, `/v1/events/${event.id}?scope=${scope}`)
    expect(found).toMatchObject({ status: 200, body: { id: event.id } })
    expect((await callWith(without('EVENTS_DB_1'), `/v1/events/unknown?scope=${scope}`)).status).toBe(503)
  })

  test('a replay of the history fails rather than lacking events', async () => {
    await packs(several, 12)
    const read = async (bound: Env) => {
      let count = 0
      for await (const event of replayEvents(storeOf(bound), { patterns: ALL })) count += event.id === '' ? 0 : 1
      return count
    }
    expect(await read(several)).toBe(36)
    await expect(read(without('EVENTS_DB_2'))).rejects.toMatchObject({ status: 503 })
  })

  test('DB takes the new packs of the one that is away', async () => {
    const events = await packs(without('EVENTS_DB_1'), 12)
    const [own, away, other] = await counts()
    expect([own! + other!, away]).toEqual([12, 0])
    expect((await listed(several)).ids).toEqual(idsOf(events).toReversed())
  })

  test('a pack whose write had no answer is listed once, although DB has it, too', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const silent = {
      prepare: (sql: string) => several.EVENTS_DB_1!.prepare(sql),
      batch: (list: D1PreparedStatement[]) => several.EVENTS_DB_1!.batch(list).then(refused),
    } as unknown as D1Database
    const events = await packs({ ...several, EVENTS_DB_1: silent }, 12)
    expect((await counts()).reduce<number>((sum, count) => sum + count!, 0)).toBeGreaterThan(12)
    expect((await listed(several)).ids).toEqual(idsOf(events).toReversed())
    expect((await listTraces(storeOf(several), { patterns: ALL, limit: 100 })).items).toHaveLength(36)
  })

  test('the sweep serves the others, and forgets no row that the one away may need', async () => {
    await packs(several, 30)
    const spread = await counts()
    const row = eventAt('b', START)
    await replicateEvents(storeOf(several), [reportOf(row, { nth: null, revision: 2 })], scopeRow('b'))
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await sweep({ ...without('EVENTS_DB_1'), REFLEX_RETENTION_DAYS: '30' }, START + 40 * DAY_MS)
    expect(await counts()).toEqual([0, spread[1], 0])
    expect(await env.DB.prepare('SELECT count(*) AS n FROM events').first('n')).toBe(1)
    await sweep({ ...several, REFLEX_RETENTION_DAYS: '30' }, START + 40 * DAY_MS)
    expect(await env.DB.prepare('SELECT count(*) AS n FROM events').first('n')).toBe(0)
  })

  test('a scope that woke meanwhile blames no event, and lists its events once all answer', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const scope = freshScope()
    const ids = await send(stubOf(scope), note(scope, 'a'), note(scope, 'b'))
    // After a restart, a pack may have them: every database is asked.
    await evict(stubOf(scope))
    const object = env.SCOPE.getByName(scope) as unknown as DurableObjectStub
    const bind = (db?: D1Database) =>
      runInDurableObject(object, (instance) => void Object.assign((instance as unknown as { env: Env }).env, { EVENTS_DB_1: db }))
    onTestFinished(() => bind())
    await bind(gone)
    for (let times = 0; times < 8; times += 1) await stubOf(scope).poke()
    expect(await stubOf(scope).state()).toMatchObject({
      parked: [],
      outbox: { last_error: expect.stringContaining('EVENTS_DB_1 does not answer') },
    })
    await bind()
    await stubOf(scope).poke()
    await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'the outbox is empty')
    const { items } = await listEvents(storeOf(env), { patterns: ALL, scope, limit: 10 })
    expect(items.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  })

  test('the sweep still sends lost events again', async () => {
    const lost = eventAt('a', START)
    await noteQueued(env.DB, [{ id: newBatchId(START), events: [lost] }], START)
    expect((await sweep(without('EVENTS_DB_1'), START + 60_000)).sent_again).toBe(1)
  })

  test('a list of tasks of another agent, which cannot say what it lacks, is refused', async () => {
    await packs(several, 12)
    const json = { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} }
    const tasks = (bound: Env) => callWith(bound, '/v1/scopes/a/a2a', { json, headers: { 'A2A-Version': '1.0' } })
    expect((await tasks(several)).body).toMatchObject({ result: { tasks: [] } })
    const refused = await tasks(without('EVENTS_DB_1'))
    expect(refused).toMatchObject({ status: 503, body: { detail: expect.stringContaining('EVENTS_DB_1 did not answer') } })
  })

  test('a key that may see some scopes learns the name of the database, and no more', async () => {
    await packs(several, 12)
    await pack(several, 12, 'mine/1')
    const key = await keyFor(['viewer'], ['mine/*'])
    const away = without('EVENTS_DB_1')
    const page = await callWith(away, '/v1/events', { key })
    expect(page.body.items.map(({ scope }: { scope: string }) => scope)).toSatisfy((scopes: string[]) =>
      scopes.every((one) => one === 'mine/1'),
    )
    expect(page.body).toMatchObject({ next_cursor: null, missing: ['EVENTS_DB_1'] })
    const [one, other] = await Promise.all(
      ['e-0-0', 'no-such-event'].map(async (id) => {
        const { status, body } = await callWith(away, `/v1/events/${id}`, { key })
        return [status, body.detail]
      }),
    )
    expect(one).toEqual(other)
  })
})

test('a damaged pack of one database takes nothing else from a list, and stops no sweep of another', async () => {
  await packs(several, 12)
  await several.EVENTS_DB_2!.exec('UPDATE packs SET data = substr(data, 1, 40) WHERE id = (SELECT min(id) FROM packs)')
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  const page = await listEvents(storeOf(several), { patterns: ALL, limit: 100 })
  expect(page.damaged).toEqual([expect.stringMatching(/^EVENTS_DB_2 \d+$/)])
  expect(page.items).toHaveLength(33)
  const spread = await counts()
  await sweep({ ...several, REFLEX_RETENTION_DAYS: '30' }, START + DAY_MS)
  const [own, one] = await counts()
  expect(own! < spread[0]! && one! < spread[1]!).toBe(true)
  const since = new Date(START + 6 * 60_000).toISOString()
  expect((await listEvents(storeOf(several), { patterns: ALL, limit: 100, since })).items).toHaveLength(18)
})

test('GET /health/detailed is degraded while a database of packs is away', async () => {
  const whole = await callWith(several, '/health/detailed')
  expect(whole.body).toMatchObject({ status: 'ok', retention: { databases: [{ name: 'DB' }, { error: null }, { error: null }] } })
  expect(whole.body.deployment.bindings.present).toEqual(expect.arrayContaining(['EVENTS_DB_1', 'EVENTS_DB_2']))
  expect((await callWith(without('EVENTS_DB_2'), '/health/detailed')).body.status).toBe('degraded')
})

test('a key that may see some scopes learns the day of the oldest event of all, and no time of it', async () => {
  await pack(several, 0)
  const oldestFor = async (scopes: string[]) => {
    const { body } = await callWith(several, '/health/detailed', { key: await keyFor(['viewer'], scopes) })
    return (body as { retention: { oldest: string } }).retention.oldest
  }
  expect(await oldestFor(['*'])).toBe(new Date(START).toISOString())
  expect(await oldestFor(['mine/*'])).toBe(new Date(START - (START % DAY_MS)).toISOString())
})

test('a search of the activity that finds nothing on a page still names the damaged pack of that page', async () => {
  await packs(several, 12)
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  const databases = packDatabases(storeOf(several))
  const newest = await Promise.all(
    databases.map(async ({ db }) => (await db.prepare('SELECT max(last) >> 21 AS at FROM packs').first<number>('at')) ?? 0),
  )
  const at = databases[newest.indexOf(Math.max(...newest))]!
  await at.db.exec('UPDATE packs SET data = substr(data, 1, 40) WHERE last = (SELECT max(last) FROM packs)')
  const { body } = await callWith(several, '/v1/activity?q=nothing-has-this&limit=1')
  expect(body).toMatchObject({ items: [], damaged: [expect.stringContaining(at.name)] })
})
