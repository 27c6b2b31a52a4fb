import { env } from 'cloudflare:workers'
import { parquetReadObjects } from 'hyparquet'
import { gunzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Env } from '../../../src/env.ts'
import type { EventFilter } from '../../../src/store/event-filter.ts'
import { findEvent, listEvents } from '../../../src/store/events.ts'
import { replicateEvents } from '../../../src/store/replicate.ts'
import { storeOf } from '../../../src/store/store.ts'
import { eventsOfTraces } from '../../../src/store/traces/traces.ts'
import { clearArchive } from '../../support/pack-archive.ts'
import { eventAt, packedNotes, reportOf, scopeRow } from '../../support/packs.ts'
import { sweep } from '../../support/sweep.ts'

const DAY_MS = 86_400_000
const START = Math.floor(Date.now() / DAY_MS) * DAY_MS - 3 * DAY_MS + DAY_MS / 2
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const ALL = ['*']
const bound = (bucket = env.TEST_ARCHIVE): Env => ({ ...env, ARCHIVE: bucket })

beforeEach(async () => {
  await env.DB.exec('DELETE FROM events; DELETE FROM packs; DELETE FROM pack_index; DELETE FROM queued; DELETE FROM dead_letters')
  await clearArchive()
})

const packBytes = () =>
  env.DB.prepare('SELECT sum(octet_length(data) + coalesce(octet_length(hashes), 0)) AS n FROM packs').first<number>('n')
const packCount = () => env.DB.prepare('SELECT count(*) AS n FROM packs').first<number>('n')
const list = (filter: Partial<EventFilter> = {}, of = bound()) =>
  listEvents(storeOf(of), { patterns: ALL, limit: 100, archived: true, ...filter })
const files = async () => (await env.TEST_ARCHIVE.list({ prefix: 'packs/' })).objects.map(({ key }) => key)

/** Two days of events, the first of which has left. */
async function twoDays() {
  const old = await packedNotes('a', 5, START - DAY_MS)
  const kept = await packedNotes('b', 5, START)
  await sweep({ ...bound(), REFLEX_EVENTS_BYTES: String((await packBytes())! - 1) }, START + 1000)
  return { old, kept, all: [...old, ...kept].map(({ id }) => id).toReversed() }
}

describe('packs beyond REFLEX_EVENTS_BYTES', () => {
  test('move to the archive, where a list continues and names the day', async () => {
    const { kept, all } = await twoDays()
    expect(await packCount()).toBe(1)
    const page = await list()
    expect(page.items.map(({ id }) => id)).toEqual(all)
    expect(page.archived).toEqual([dayOf(START - DAY_MS)])
    const newest = await list({ since: new Date(START - 1000).toISOString() })
    expect(newest.items.map(({ id }) => id)).toEqual(kept.map(({ id }) => id).toReversed())
    expect(newest).not.toHaveProperty('archived')
    const byPages: string[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const one: Awaited<ReturnType<typeof listEvents>> = await listEvents(storeOf(bound()), {
        patterns: ALL,
        limit: 3,
        archived: true,
        cursor,
      })
      byPages.push(...one.items.map(({ id }) => id))
      cursor = one.next_cursor
    }
    expect(byPages).toEqual(all)
  })

  test('are in the archive as JSONL and as Parquet, with the same rows', async () => {
    const { old } = await twoDays()
    const found = await files()
    const day = dayOf(START - DAY_MS)
    expect(found.map((key) => key.replace(/\d{19}-[0-9a-f]{16}/, 'FILE'))).toEqual([
      `packs/day=${day}/FILE.jsonl.gz`,
      `packs/day=${day}/FILE.parquet`,
    ])
    const [jsonl, parquet] = await Promise.all(found.map(async (key) => (await env.TEST_ARCHIVE.get(key))!.arrayBuffer()))
    const lines = gunzipSync(new Uint8Array(jsonl!))
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { seq: string; id: string })
    const compressors = { GZIP: (input: Uint8Array) => new Uint8Array(gunzipSync(input)) }
    const rows = await parquetReadObjects({ file: parquet!, compressors })
    expect(rows.map(({ seq, id, scope }) => [String(seq), id, scope])).toEqual(lines.map(({ seq, id }) => [seq, id, 'a']))
    expect(lines.map(({ id }) => id)).toEqual(old.map(({ id }) => id))
  })

  test('are found by a key of some scopes as far as it covers them, and nothing tells it of others', async () => {
    await twoDays()
    expect((await list({ patterns: ['a'] })).items).toHaveLength(5)
    expect(Object.keys(await list({ patterns: ['b'] }))).toEqual(['items', 'next_cursor'])
    const [key] = await files()
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const { customMetadata } = (await env.TEST_ARCHIVE.head(key!))!
    await env.TEST_ARCHIVE.put(key!, 'other bytes', { customMetadata: customMetadata! })
    const damaged = `ARCHIVE ${key!.replace('.jsonl.gz', '')}`
    expect(await list()).toMatchObject({ damaged: [damaged], items: [{}, {}, {}, {}, {}], next_cursor: null })
    expect(await list({ patterns: ['a', 'x'] })).toMatchObject({ damaged: ['ARCHIVE'], items: [] })
    expect(Object.keys(await list({ patterns: ['b'] }))).toEqual(['items', 'next_cursor'])
  })

  test('are listed as missing while R2 is away, and none is deleted then', async () => {
    const { kept } = await twoDays()
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const gone = () => Promise.reject(new Error('R2 is away'))
    const away = bound({ list: gone, get: gone, put: gone } as unknown as R2Bucket)
    const page = await list({}, away)
    expect(page).toMatchObject({ missing: ['ARCHIVE'], next_cursor: null })
    expect(page.items.map(({ id }) => id)).toEqual(kept.map(({ id }) => id).toReversed())
    await sweep({ ...away, REFLEX_EVENTS_BYTES: '1' }, START + 1000)
    expect(await packCount()).toBe(1)
  })

  test('keep their bytes if they cannot be read', async () => {
    await packedNotes('a', 5, START)
    await env.DB.exec('UPDATE packs SET data = substr(data, 1, 40)')
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    await sweep({ ...bound(), REFLEX_EVENTS_BYTES: '1' }, START + 1000)
    expect([await packCount(), (await files()).length]).toEqual([0, 1])
    expect(await list()).toEqual({ items: [], next_cursor: null })
  })
})

describe('an event that has left D1', () => {
  const timedId = (at: number, nth: number) => {
    const digits = at.toString(16).padStart(12, '0')
    return `${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-${String(nth).padStart(12, '0')}`
  }
  const traceOf = (at: number, nth: number) => timedId(at, nth).replaceAll('-', '')

  async function leftEvents() {
    const events = Array.from({ length: 4 }, (_, nth) => {
      const at = START - DAY_MS + nth * 1000
      return {
        ...eventAt(nth % 2 === 0 ? 'a' : 'b', at),
        id: timedId(at, nth),
        meta: { ...eventAt('a', at).meta, trace_id: traceOf(at, nth) },
      }
    })
    for (const scope of ['a', 'b']) {
      const own = events.filter((event) => event.scope === scope)
      await replicateEvents(
        env.DB,
        own.map((event, nth) => reportOf(event, { nth: nth + 1 })),
        scopeRow(scope),
        { least_packed: 1 },
      )
    }
    await sweep({ ...bound(), REFLEX_EVENTS_BYTES: '1' }, START + 1000)
    expect(await packCount()).toBe(0)
    return events
  }

  test('is found by its id, and its trace by its own, where they have a time', async () => {
    const events = await leftEvents()
    for (const { id, scope, meta } of events) {
      expect(await findEvent(storeOf(bound()), id, { patterns: ALL })).toMatchObject({ id, scope, status: 'completed' })
      expect(await findEvent(storeOf(bound()), id, { patterns: ['c'] })).toBeNull()
      expect(await eventsOfTraces(storeOf(bound()), [meta.trace_id], ALL)).toMatchObject([{ id, scope, trace_id: meta.trace_id }])
    }
    expect(await findEvent(storeOf(bound()), timedId(START - DAY_MS, 9), { patterns: ALL })).toBeNull()
    expect(await findEvent(storeOf(env), events[0]!.id, { patterns: ALL })).toBeNull()
  })

  test('is looked for in the files of its time alone, and in none if its id has no time', async () => {
    const [event] = await leftEvents()
    const asked: string[] = []
    const watched = {
      list: (options: R2ListOptions) => (asked.push(options.prefix ?? ''), env.TEST_ARCHIVE.list(options)),
      get: (key: string) => (asked.push(key), env.TEST_ARCHIVE.get(key)),
    } as unknown as R2Bucket
    for (const id of ['order-17', timedId(START - 5 * DAY_MS, 0)])
      expect(await findEvent(storeOf(bound(watched)), id, { patterns: ALL })).toBeNull()
    expect(asked).toEqual([])
    expect(await findEvent(storeOf(bound(watched)), timedId(START - DAY_MS + 3_600_000, 0), { patterns: ALL })).toBeNull()
    expect(asked).toHaveLength(1)
    await findEvent(storeOf(bound(watched)), event!.id, { patterns: ALL })
    expect(asked.length).toBeLessThanOrEqual(4)
  })

  test('is neither found nor said to be unknown while R2 is away', async () => {
    const [event] = await leftEvents()
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const gone = () => Promise.reject(new Error('R2 is away'))
    const away = bound({ list: gone, get: gone } as unknown as R2Bucket)
    await expect(findEvent(storeOf(away), event!.id, { patterns: ALL })).rejects.toThrow('ARCHIVE did not answer')
  })
})

test('events that retention deletes from D1 move to the archive, those with a row in their newest state', async () => {
  const old = await packedNotes('a', 3, START - DAY_MS)
  await sweep({ ...bound(), REFLEX_EVENTS_BYTES: '1' }, START + 1000)
  const changed = reportOf(old[1]!, { nth: null, status: 'cancelled', revision: 5 })
  const own = eventAt('b', START)
  await replicateEvents(env.DB, [changed], scopeRow('a'))
  await replicateEvents(env.DB, [reportOf(own, { nth: null })], scopeRow('b'))
  const states = async (filter: Partial<EventFilter> = {}) => (await list(filter)).items.map(({ id, status }) => `${id} ${status}`)
  const expected = [`${own.id} completed`, `${old[2]!.id} completed`, `${old[1]!.id} cancelled`, `${old[0]!.id} completed`]
  expect(await states()).toEqual(expected)
  await sweep(bound(), START + 60 * DAY_MS)
  expect(await env.DB.prepare('SELECT count(*) AS n FROM events').first('n')).toBe(0)
  expect(await states()).toEqual(expected)
  expect(await states({ status: 'completed' })).toEqual(expected.filter((line) => line.endsWith('completed')))
  expect(await states({ status: 'cancelled' })).toEqual([`${old[1]!.id} cancelled`])
})

test('an event of a pack that has a row leaves with its row, so that the archive has it once', async () => {
  const old = await packedNotes('a', 3, START - DAY_MS)
  await replicateEvents(env.DB, [reportOf(old[1]!, { nth: null, status: 'cancelled', revision: 5 })], scopeRow('a'))
  const archived = async () => {
    const keys = (await files()).filter((key) => key.endsWith('.jsonl.gz'))
    const bytes = await Promise.all(keys.map(async (key) => (await env.TEST_ARCHIVE.get(key))!.arrayBuffer()))
    const lines = bytes.flatMap((one) => gunzipSync(one).toString().trim().split('\n'))
    return lines.map((line) => JSON.parse(line) as { id: string; status: string }).map(({ id, status }) => `${id} ${status}`)
  }
  await sweep({ ...bound(), REFLEX_EVENTS_BYTES: '1' }, START + 1000)
  const without = [`${old[0]!.id} completed`, `${old[2]!.id} completed`]
  expect(await archived()).toEqual(without)
  await sweep(bound(), START + 60 * DAY_MS)
  expect((await archived()).toSorted()).toEqual([...without, `${old[1]!.id} cancelled`].toSorted())
})
