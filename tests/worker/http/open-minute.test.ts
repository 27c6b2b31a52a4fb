import { env } from 'cloudflare:workers'
import { beforeEach, expect, test } from 'vitest'
import { sumStatistics } from '../../../src/features/statistics/store/query.ts'
import { writeStatistics } from '../../../src/features/statistics/store/write.ts'
import { sumEnded, sumOpenMinutes } from '../../../src/features/statistics/store/sums.ts'

const MINUTE_MS = 60_000
const START = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
const TABLES = ['statistics', 'statistics_packs', 'statistics_waiting', 'statistics_sums', 'statistics_changes']

/** The open minute of so many scopes in a row, each with two accepted events. */
async function pack(scopes: number): Promise<void> {
  const values = Object.fromEntries(Array.from({ length: scopes }, (_, nth) => [`team/${nth}`, { '': { accepted: 2, 'turn_ms.8': 1 } }]))
  const seqs = Object.fromEntries(Object.keys(values).map((scope) => [scope, 1]))
  await env.DB.batch([
    env.DB.prepare(
      `INSERT INTO statistics_packs (family, bucket, start, part, revision, scopes, seqs) VALUES ('scope', 'minute', ?1, '', 1, jsonb(?2), ?3)`,
    ).bind(START, JSON.stringify(values), JSON.stringify(seqs)),
    env.DB.prepare(`INSERT INTO statistics_changes (family, bucket, start) VALUES ('scope', 'minute', ?1)`).bind(START),
  ])
}

const sums = async () => (await env.DB.prepare('SELECT prefix, total FROM statistics_sums ORDER BY prefix').all()).results
async function accepted(...patterns: string[]): Promise<number> {
  const range = { bucket: 'minute', since: START, until: START + 1 } as const
  const found = await sumStatistics(env.DB, { ...range, family: 'scope', patterns, keys: ['accepted', 'turn_ms'], by: null })
  return found.find(({ key }) => key === 'accepted')?.value ?? 0
}

beforeEach(() => env.DB.exec(TABLES.map((table) => `DELETE FROM ${table}`).join(';')))

test('an open minute of many scopes is summed over all of them for its readers, and by folder once it has ended', async () => {
  await pack(1000)
  await sumOpenMinutes(env.DB, START)
  expect(await sums()).toEqual([{ prefix: '', total: '{"accepted":2000,"turn_ms.8":1000}' }])
  // The sum is what a reader of all scopes gets, and nobody else.
  await env.DB.exec(`UPDATE statistics_sums SET total = '{"accepted":7}'`)
  expect([await accepted('*'), await accepted('team/*'), await accepted('team/3')]).toEqual([7, 2000, 2])
  await sumEnded(env.DB, START + MINUTE_MS, 10)
  expect((await sums()).map(({ prefix }) => prefix)).toEqual(['', 'team/'])
})

test('a number that a scope reports after that counts at once', async () => {
  await pack(1000)
  await sumOpenMinutes(env.DB, START)
  await writeStatistics(env.DB, 'team/3', [{ family: 'scope', bucket: 'minute', start: START, values: { '': { accepted: 5 } } }], 2)
  expect(await sums()).toEqual([])
  expect(await accepted('*')).toBe(2003)
  await sumOpenMinutes(env.DB, START)
  expect(await accepted('*')).toBe(2003)
})

test('an open minute of few scopes is read as it is', async () => {
  await pack(20)
  await sumOpenMinutes(env.DB, START)
  expect(await sums()).toEqual([])
  expect(await accepted('*')).toBe(40)
})
