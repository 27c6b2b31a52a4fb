import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Event } from '../../../src/core/event.ts'
import { listEvents } from '../../../src/store/events.ts'
import { packedAmong } from '../../../src/store/packs/find.ts'
import { packStatement } from '../../../src/store/packs/rows.ts'
import { packEvents } from '../../../src/store/packs/write.ts'
import { mergePacks } from '../../../src/store/packs/merge.ts'
import { newBatchId, noteQueued, seqAt } from '../../../src/store/queued.ts'
import { replicateEvents, type Report } from '../../../src/store/replicate.ts'
import { eventsOfTraces, listTraces } from '../../../src/store/traces/traces.ts'
import { eventAt, packedNotes, reportOf, scopeRow } from '../../support/packs.ts'

const DAY_MS = 86_400_000
const START = Math.floor(Date.now() / DAY_MS) * DAY_MS - 3 * DAY_MS + DAY_MS / 2
const ALL = ['*']

beforeEach(() => env.DB.exec('DELETE FROM events; DELETE FROM packs; DELETE FROM pack_index; DELETE FROM queued; DELETE FROM dead_letters'))

const write = (scope: string, reports: Report[]) => replicateEvents(env.DB, reports, scopeRow(scope), { least_packed: 1 })

/** D1 that tells what each statement with rows has answered, and what is asked. */
function watchedD1(tell: (answer: D1Result<Record<string, unknown>>) => void, hear: (sql: string) => unknown = () => {}): D1Database {
  const inner = new WeakMap<D1PreparedStatement, D1PreparedStatement>()
  const watched = (statement: D1PreparedStatement): D1PreparedStatement => {
    const one = {
      bind: (...values: unknown[]) => watched(statement.bind(...values)),
      first: (column: string) => statement.first(column),
      run: () => statement.run(),
      all: async () => {
        const answer = await statement.all()
        tell(answer)
        return answer
      },
    } as unknown as D1PreparedStatement
    inner.set(one, statement)
    return one
  }
  return {
    prepare: (sql: string) => {
      hear(sql)
      return watched(env.DB.prepare(sql))
    },
    batch: (list: D1PreparedStatement[]) => env.DB.batch(list.map((one) => inner.get(one) ?? one)),
  } as unknown as D1Database
}

test('a search for the events of a page of notes fits into the 2 MB that D1 takes in a parameter', async () => {
  let largest = 0
  const measured = (statement: D1PreparedStatement): D1PreparedStatement =>
    ({
      bind: (...values: unknown[]) => {
        largest = Math.max(largest, ...values.map((value) => String(value).length))
        return statement.bind(...values)
      },
    }) as unknown as D1PreparedStatement
  const db = { prepare: (sql: string) => measured(env.DB.prepare(sql)), batch: (list: D1PreparedStatement[]) => env.DB.batch(list) }
  // A page of the sweep: 100 batches, of a request with 100 events each.
  const events = Array.from({ length: 10_000 }, (_, index) => ({ scope: 'a', id: `id-${index}` }))
  await packedAmong(db as unknown as D1Database, events, { since: START })
  expect(largest).toBeLessThan(2_000_000)
})

test('a page of traces has as many traces as it may, however many packed events one of them has', async () => {
  const [other] = await packedNotes('b', 1, START)
  const trace_id = other!.meta.trace_id.replace(/.{8}$/, '0badcafe')
  const events = Array.from({ length: 60 }, (_, index) => {
    const event = eventAt('a', START + 1000 + index * 10)
    return { ...event, meta: { ...event.meta, trace_id, parent_id: '00f067aa0ba902b7' } }
  })
  const reports = (nth: (index: number) => number | null) =>
    events.map((event, index) => reportOf(event, { nth: nth(index), parent_id: '00f067aa0ba902b7' }))
  await write(
    'a',
    reports(() => null),
  )
  const asRows = (await listTraces(env.DB, { patterns: ALL, limit: 10 })).items.map((item) => item.trace_id)
  await env.DB.exec('DELETE FROM events')
  await write(
    'a',
    reports((index) => index + 1),
  )
  const packed = (await listTraces(env.DB, { patterns: ALL, limit: 10 })).items.map((item) => item.trace_id)
  expect(asRows).toEqual([trace_id, other!.meta.trace_id])
  expect(packed).toEqual(asRows)
})

test('a look-up of a trace unpacks no more than a bounded number of its events', { timeout: 120_000 }, async () => {
  const trace_id = eventAt('a', START).meta.trace_id
  for (let nth = 0; nth < 60; nth += 1) {
    const events = Array.from({ length: 200 }, (_, index) => {
      const event = eventAt('a', START + nth * 60_000 + index)
      return { ...event, meta: { ...event.meta, trace_id } }
    })
    await write(
      'a',
      events.map((event, index) => reportOf(event, { nth: nth * 200 + index + 1, parent_id: '00f067aa0ba902b7' })),
    )
  }
  let packs = 0
  const db = watchedD1(({ results }) => (packs += results.filter(({ data }) => data !== undefined).length))
  expect(await eventsOfTraces(db, [trace_id], ALL)).toHaveLength(5000)
  // Five thousand events are in 25 packs.
  expect(packs).toBeLessThan(40)
})

describe('a row of the index', () => {
  const indexed = async (events: readonly Event[]) => {
    await write(
      'a',
      events.map((event, index) => reportOf(event, { nth: index + 1 })),
    )
    await mergePacks(env.DB, START + DAY_MS)
    expect(await env.DB.prepare('SELECT count(*) AS n FROM pack_index').first('n')).toBe(1)
  }

  test('finds its packs also if its hashes are not spread evenly', async () => {
    const events = Array.from({ length: 1100 }, (_, index) => eventAt('a', START + index))
    await indexed(events)
    const low = `${'0'.repeat(16)}0000`.repeat(3000)
    await env.DB.prepare('UPDATE pack_index SET entries = unhex(?1 || hex(entries))').bind(low).run()
    const asked = events.filter((_, index) => index % 20 === 0)
    expect((await packedAmong(env.DB, asked)).size).toBe(asked.length)
  })

  test('finds all packs of a trace that has many', async () => {
    const trace_id = eventAt('a', START).meta.trace_id
    const events = Array.from({ length: 1500 }, (_, index) => {
      const event = eventAt('a', START + index)
      return { ...event, meta: { ...event.meta, trace_id, parent_id: '00f067aa0ba902b7' } }
    })
    await indexed(events)
    expect(await eventsOfTraces(env.DB, [trace_id], ALL)).toHaveLength(1500)
  })
})

test('a page of the newest events does not read all packs', async () => {
  const ids = Array.from({ length: 2000 }, (_, nth) => String((1n << 62n) + BigInt(seqAt(START + nth * 60_000))))
  await env.DB.prepare(
    `INSERT INTO packs (id, first, last, events, accepted_at, raw_bytes, data)
      SELECT CAST(value AS INTEGER), CAST(value AS INTEGER) - (1 << 62), CAST(value AS INTEGER) - (1 << 62), 1, 0, 1, zeroblob(300000) FROM json_each(?1)`,
  )
    .bind(JSON.stringify(ids))
    .run()
  await packedNotes('a', 200, START + 2001 * 60_000)
  let read = 0
  const db = watchedD1(({ meta }) => (read += meta.rows_read))
  expect((await listEvents(db, { patterns: ALL, limit: 10 })).items).toHaveLength(10)
  expect(read).toBeLessThan(1500)
})

/** So many packs of one event, some a day, from a day on. */
async function onePacks(count: number, { from, a_day }: { from: number; a_day: number }): Promise<string[]> {
  const events = Array.from({ length: count }, (_, nth) => {
    const at = from + Math.floor(nth / a_day) * DAY_MS + (nth % a_day) * 60_000
    const { id, scope, type, timestamp, meta } = eventAt('a', at)
    const facts = { status: 'completed', attempts: 1, error: null, accepted_at: at, ended_at: at, revision: 1, agent: 'x', log_from: 1 }
    const seq = BigInt(seqAt(at)) + BigInt(nth)
    return { seq, id, scope, type, ...facts, trace_id: meta.trace_id, kinds: 1, skills: '', payload: { source: 'test', timestamp } }
  })
  for (let at = 0; at < count; at += 100) await env.DB.batch(events.slice(at, at + 100).map((event) => packStatement(env.DB, [event])))
  return events.map(({ id }) => id)
}

/** The rows that D1 reads for a page. */
async function rowsReadFor(page: object): Promise<number> {
  let read = 0
  const db = watchedD1(({ meta }) => (read += meta.rows_read))
  expect((await listEvents(db, { patterns: ALL, limit: 10, ...page })).items.length).toBeGreaterThan(0)
  return read
}

test.each([
  ['of the oldest events', { rising: true }],
  ['of the newest events', {}],
  ['of a day in between', { until: new Date(START - 2 * DAY_MS).toISOString() }],
  ['from a day in between on', { since: new Date(START - 2 * DAY_MS).toISOString(), rising: true }],
])('a page %s reads as many rows if twice as many packs are stored', { timeout: 60_000 }, async (_, page) => {
  const some = await onePacks(1500, { from: START - 4 * DAY_MS, a_day: 300 })
  const before = await rowsReadFor(page)
  const more = await onePacks(1500, { from: START + 2 * DAY_MS, a_day: 300 })
  const older = await onePacks(600, { from: START - 9 * DAY_MS, a_day: 300 })
  expect(await rowsReadFor(page)).toBeLessThanOrEqual(before + 10)
  await eachIsListedOnce([...older, ...some, ...more])
})

/** By pages, in both directions. */
async function eachIsListedOnce(ids: readonly string[]): Promise<void> {
  const place = new Map(ids.map((id, nth) => [id, nth]))
  for (const rising of [true, false]) {
    const found = (await pagesOf({ limit: 700, rising })).flat()
    const places = found.map((id) => place.get(id) ?? -1)
    expect(places.filter((nth, index) => nth !== (rising ? index : ids.length - 1 - index))).toEqual([])
    expect(places).toHaveLength(ids.length)
  }
}

/** The ids on each page of a list, up to its end. */
async function pagesOf(filter: Partial<Parameters<typeof listEvents>[1]>): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const listed: Awaited<ReturnType<typeof listEvents>> = await listEvents(env.DB, { patterns: ALL, limit: 10, cursor, ...filter })
    pages.push(listed.items.map(({ id }) => id))
    cursor = listed.next_cursor
  }
  return pages
}

test.each([true, false])('a search passes a day with more packs than it looks at together, rising: %s', async (rising) => {
  const midnight = START - DAY_MS / 2
  const at = midnight + (rising ? 1310 : 1) * 60_000
  await onePacks(1300, { from: midnight + 5 * 60_000, a_day: 1300 })
  const wanted = (await packedNotes('b', 5, at)).map(({ id }) => id)
  await env.DB.exec('UPDATE packs SET scopes = NULL')
  expect((await pagesOf({ scope: 'b', rising })).flat()).toEqual(rising ? wanted : wanted.toReversed())
})

test('a page ends where it has unpacked 32 MB without an event that is asked for, and its cursor continues there', async () => {
  await onePacks(5, { from: START, a_day: 5 })
  await env.DB.exec('UPDATE packs SET raw_bytes = 16000000, statuses = NULL')
  expect(await pagesOf({ status: 'ignored' })).toEqual([[], [], []])
})

test('a page of the newest events reads no note of older ones', async () => {
  const events = await packedNotes('a', 30, START)
  await env.DB.prepare(`INSERT INTO queued (id, due_at, events) VALUES (CAST(?1 AS INTEGER), 0, 'no JSON')`).bind(seqAt(START)).run()
  const { items } = await listEvents(env.DB, { patterns: ALL, limit: 10 })
  expect(items.map(({ id }) => id)).toEqual(Array.from(events.slice(-10).toReversed(), ({ id }) => id))
  await expect(listEvents(env.DB, { patterns: ALL, limit: 30 })).rejects.toThrow('malformed JSON')
})

test('a note of events that the page has from a pack costs no search for packs', async () => {
  const events = Array.from({ length: 30 }, () => eventAt('a', START))
  await noteQueued(env.DB, [{ id: newBatchId(START), events }], START)
  await write(
    'a',
    events.map((event, index) => reportOf(event, { nth: index + 1 })),
  )
  const asked: string[] = []
  const db = watchedD1(
    () => {},
    (sql) => asked.push(sql),
  )
  const { items } = await listEvents(db, { patterns: ALL, limit: 100 })
  expect(new Set(items.map(({ id }) => id))).toEqual(new Set(events.map(({ id }) => id)))
  expect(asked.filter((sql) => sql.includes('pack_index'))).toEqual([])
})

test('a page of large packed events unpacks about as many bytes as it shows', { timeout: 60_000 }, async () => {
  const text = 'a line of a log that compresses well. '.repeat(2500)
  const events = Array.from({ length: 400 }, (_, index) => eventAt('a', START + index * 1000, { text }))
  await write(
    'a',
    events.map((event, index) => reportOf(event, { nth: index + 1 })),
  )
  await mergePacks(env.DB, START + DAY_MS)
  const sizes = await env.DB.prepare('SELECT CAST(id AS TEXT) AS id, raw_bytes FROM packs').all<{ id: string; raw_bytes: number }>()
  const sizeOf = new Map(sizes.results.map(({ id, raw_bytes }) => [id, raw_bytes]))
  let unpacked = 0
  const db = watchedD1(({ results }) => {
    for (const { id, data } of results) if (data !== undefined) unpacked += sizeOf.get(String(id)) ?? 0
  })
  const { items } = await listEvents(db, { patterns: ALL, limit: 1000 })
  expect(items.length).toBeLessThan(50)
  expect(unpacked).toBeLessThan(16_000_000)
})

/** Packs, characters of packs and rows that D1 returns for a list, and the rows that it reads. */
async function workOf(page: object) {
  const work = { packs: 0, characters: 0, rows: 0, statements: 0 }
  const db = watchedD1(({ results, meta }) => {
    work.statements += 1
    work.rows += meta.rows_read
    for (const { data } of results) if (typeof data === 'string') work.characters += data.length
    work.packs += results.filter(({ data }) => data !== undefined).length
  })
  const { items } = await listEvents(db, { patterns: ALL, limit: 100, ...page })
  return { ...work, ids: items.map(({ id }) => id) }
}

/** Events of forty scopes in the packs of `lanes` consumers at a time, whose times overlap. */
async function overlapping({ lanes, each, from }: { lanes: number; each: number; from: number }): Promise<void> {
  for (let lane = 0; lane < lanes; lane += 1) {
    const events = Array.from({ length: each }, (_, nth) => {
      const at = from + nth * 100 + lane
      const { id, scope, type, timestamp, meta } = eventAt(`s/${nth % 40}`, at)
      const facts = { status: 'completed', attempts: 1, error: null, accepted_at: at, ended_at: at, revision: 1, agent: 'x', log_from: 1 }
      return {
        seq: BigInt(seqAt(at)),
        id,
        scope,
        type,
        ...facts,
        trace_id: meta.trace_id,
        kinds: 1,
        skills: '',
        payload: { source: 'test', timestamp },
      }
    })
    await packEvents(env.DB, events)
  }
}

test.each([
  ['of the newest events', {}],
  ['of a scope', { scope: 's/7', limit: 10 }],
])('a page %s does the same work if ten times as many events are stored', { timeout: 60_000 }, async (_, page) => {
  await overlapping({ lanes: 5, each: 1500, from: START })
  await mergePacks(env.DB, START)
  const few = await workOf(page)
  for (let nth = 1; nth <= 9; nth += 1) await overlapping({ lanes: 5, each: 1500, from: START - nth * 400_000 })
  for (let merges = 1; merges > 0;) merges = await mergePacks(env.DB, START, 60_000)
  const many = await workOf(page)
  expect(many.ids).toEqual(few.ids)
  // A pack has at most 256 events, and five overlap.
  expect(few.packs).toBeLessThanOrEqual(10)
  expect(many.packs).toBeLessThanOrEqual(few.packs + 2)
  expect(many.characters).toBeLessThanOrEqual(few.characters * 1.5)
  expect(many.statements).toBeLessThanOrEqual(few.statements + 2)
  expect(many.rows).toBeLessThan(1500)
})
