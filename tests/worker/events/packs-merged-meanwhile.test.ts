import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Event } from '../../../src/core/event.ts'
import { addDeadLetters, deadLettersOf } from '../../../src/store/dead-letters.ts'
import { findEvent, listEvents } from '../../../src/store/events.ts'
import { mergePacks } from '../../../src/store/packs/merge.ts'
import { replicateEvents } from '../../../src/store/replicate.ts'
import { eventsOfTraces } from '../../../src/store/traces/traces.ts'
import { eventAt, packedNotes, reportOf, scopeRow } from '../../support/packs.ts'

const DAY_MS = 86_400_000
const START = Math.floor(Date.now() / DAY_MS) * DAY_MS - 3 * DAY_MS + DAY_MS / 2
const ALL = ['*']

beforeEach(() => env.DB.exec('DELETE FROM events; DELETE FROM packs; DELETE FROM pack_index; DELETE FROM queued; DELETE FROM dead_letters'))

const count = (table: string) => env.DB.prepare(`SELECT count(*) AS n FROM ${table}`).first<number>('n')

/** D1 that does something once, after a statement that the pattern finds has answered. */
function interrupted(pattern: RegExp, act: () => Promise<unknown>): D1Database {
  let is_done = false
  const texts = new WeakMap<D1PreparedStatement, { sql: string; inner: D1PreparedStatement }>()
  const after = async <Answer>(sql: string, work: Promise<Answer>): Promise<Answer> => {
    const answer = await work
    if (!is_done && pattern.test(sql)) {
      is_done = true
      await act()
    }
    return answer
  }
  const watched = (sql: string, inner: D1PreparedStatement): D1PreparedStatement => {
    const one = {
      bind: (...values: unknown[]) => watched(sql, inner.bind(...values)),
      run: () => after(sql, inner.run()),
      all: () => after(sql, inner.all()),
      first: (column: string) => after(sql, inner.first(column)),
    } as unknown as D1PreparedStatement
    texts.set(one, { sql, inner })
    return one
  }
  return {
    prepare: (sql: string) => watched(sql, env.DB.prepare(sql)),
    batch: (list: D1PreparedStatement[]) =>
      after(list.map((one) => texts.get(one)?.sql ?? '').join(';'), env.DB.batch(list.map((one) => texts.get(one)?.inner ?? one))),
  } as unknown as D1Database
}

describe('a merge between the search of packs and their reading', () => {
  const merge = () => mergePacks(env.DB, START + DAY_MS)
  const packed = async () => {
    const events: Event[] = []
    for (let nth = 0; nth < 3; nth += 1) events.push(...(await packedNotes('a', 4, START + nth * 60_000)))
    return events
  }

  test('takes no event from a list', async () => {
    const events = await packed()
    const db = interrupted(/AS edge, events/, merge)
    const { items, next_cursor } = await listEvents(db, { patterns: ALL, limit: 100 })
    expect({ events: items.length, next_cursor }).toEqual({ events: events.length, next_cursor: null })
  })

  test('takes no event from a list that has shown a part of what merges, and repeats none', async () => {
    // The later pack is read alone, since the other is large.
    const large = Array.from({ length: 8 }, (_, index) => {
      const bytes = crypto.getRandomValues(new Uint8Array(45_000))
      return eventAt('a', START + index * 1000, { text: btoa(String.fromCharCode(...bytes)) })
    })
    const reports = large.map((event, index) => reportOf(event, { nth: index + 1 }))
    await replicateEvents(env.DB, reports, scopeRow('a'), { least_packed: 1 })
    const later = await packedNotes('a', 4, START + 60_000)
    const db = interrupted(/hex\(data\)/, merge)
    const { items } = await listEvents(db, { patterns: ALL, limit: 100 })
    expect(items.map(({ id }) => id)).toEqual([...large, ...later].map(({ id }) => id).toReversed())
  })

  test.each([
    ['what it is to merge', /octet_length\(data\) AS bytes/],
    ['the events in it', /hex\(data\)/],
  ])('takes the work from a merge that has read %s', async (_, pattern) => {
    const events = await packed()
    expect(await mergePacks(interrupted(pattern, merge), START + DAY_MS)).toBe(0)
    expect(await count('packs')).toBe(1)
    const { items } = await listEvents(env.DB, { patterns: ALL, limit: 100 })
    expect(items.map(({ id }) => id)).toEqual(events.map(({ id }) => id).toReversed())
  })

  test('hides no event from a look-up by its id', async () => {
    const [event] = await packed()
    expect(await findEvent(interrupted(/instr\(hashes/, merge), event!.id, { patterns: ALL })).toMatchObject({ id: event!.id })
  })

  test('hides no event from a look-up by its trace', async () => {
    const [event] = await packed()
    expect(await eventsOfTraces(interrupted(/instr\(hashes/, merge), [event!.meta.trace_id], ALL)).toHaveLength(1)
  })

  test('does not make a dead letter of an event that has completed', async () => {
    const [event] = await packed()
    const letters = deadLettersOf([event!], { id: 'm', attempts: 6, body: {} }, 'not delivered')
    await addDeadLetters(interrupted(/instr\(hashes/, merge), letters)
    expect([await count('events'), await count('dead_letters')]).toEqual([0, 0])
  })

  test('does not make an event that changes lose the traits of its pack', async () => {
    const [event] = await packed()
    const changed = reportOf(event!, { nth: null, status: 'cancelled', revision: 9, kinds: 4, log_from: 30 })
    await replicateEvents(interrupted(/instr\(hashes/, merge), [changed], scopeRow('a'))
    expect(await eventsOfTraces(env.DB, [event!.meta.trace_id], ALL)).toMatchObject([{ kinds: 5, log_from: 1 }])
  })
})
