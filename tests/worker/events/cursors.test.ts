import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { listEvents } from '../../../src/store/events.ts'
import { seqAt, SLOT } from '../../../src/store/queued.ts'
import { listTraces } from '../../../src/store/traces/traces.ts'
import { eventAt } from '../../support/packs.ts'

const MINUTE_MS = 60_000
const START = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 60 * MINUTE_MS
/** More than a page looks at, some milliseconds apart. */
const OTHERS = 20_500
const APART_MS = 60

/** Rows of a scope, of so many events from this time on. */
const rows = (scope: string, count: number, from: number) =>
  env.DB.prepare(
    `INSERT INTO events (seq, id, scope, type, trace_id, trace_key, payload, status, accepted_at)
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)
      SELECT CAST(?5 AS INTEGER) + i * ${APART_MS} * ${SLOT}, ?1 || ' ' || (?3 + i), ?1, 'test.note', printf('%032x', ?3 + i), printf('%032x', ?3 + i), ?4, 'completed', ?3 + i * ${APART_MS} FROM n`,
  )
    .bind(scope, count, from, JSON.stringify(eventAt(scope, from)), seqAt(from))
    .run()

const lists = {
  'of events': (cursor: string | undefined) => listEvents(env.DB, { patterns: ['mine'], limit: 10, cursor }),
  'of events, oldest first': (cursor: string | undefined) => listEvents(env.DB, { patterns: ['mine'], limit: 10, cursor, rising: true }),
  'of traces': (cursor: string | undefined) => listTraces(env.DB, { patterns: ['mine'], limit: 10, cursor }),
}

test('a cursor of a key that sees one scope tells no time of what happened in others, and leads to all of its own', async () => {
  await env.DB.exec('DELETE FROM events; DELETE FROM calls; DELETE FROM packs')
  await rows('mine', 3, START - MINUTE_MS)
  await rows('other', OTHERS, START + 12_345)
  await rows('mine', 1, START + OTHERS * APART_MS + MINUTE_MS)
  for (const [name, list] of Object.entries(lists)) {
    let found = 0
    const cursors: string[] = []
    let cursor: string | undefined
    do {
      const page: { items: unknown[]; next_cursor: string | null } = await list(cursor)
      found += page.items.length
      cursor = page.next_cursor ?? undefined
      if (cursor !== undefined) cursors.push(cursor)
    } while (cursor !== undefined && cursors.length < 10)
    const minute = SLOT * BigInt(MINUTE_MS)
    const beside = cursors.map((one) => (BigInt(one) + 1n) % minute)
    expect({ name, found, beside }).toEqual({ name, found: 4, beside: beside.map(() => (name.endsWith('first') ? 0n : 1n)) })
    expect(cursors.length).toBeGreaterThan(0)
  }
})
