import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, test } from 'vitest'
import { foldStatistics, scopeTotals, waitToFold, type PackedStatistics } from '../../../src/features/statistics/store/packed.ts'
import { sumByScope, sumStatistics, writeStatistics } from '../../../src/features/statistics/store/query.ts'
import { sumEnded } from '../../../src/features/statistics/store/sums.ts'

const HOUR = 3_600_000
const START = 1_700_000_000_000 - (1_700_000_000_000 % HOUR)
const OLD = { family: 'scope', bucket: 'all', start: 0 } as const
const HOURLY = { family: 'scope', bucket: 'hour', start: START } as const

const answer = (scope: string, seq: number, accepted: number): PackedStatistics => ({
  scope,
  seq,
  rows: [OLD, HOURLY].map((bucket) => ({ ...bucket, values: { '': { accepted } } })),
})
const wait = (...answers: PackedStatistics[]) => waitToFold(env.DB, answers, START)
const fold = () => foldStatistics(env.DB, Infinity)
const totalOf = async (scope: string) => (await scopeTotals(env.DB, [scope])).get(scope)?.['accepted']
const asked = { family: 'scope', bucket: 'hour', since: START, until: START + 1, keys: ['accepted'] } as const
const sumOf = async (pattern: string) => (await sumStatistics(env.DB, { ...asked, patterns: [pattern], by: null }))[0]?.value
const count = (table: string) => env.DB.prepare(`SELECT count(*) AS n FROM ${table}`).first<number>('n')

beforeEach(() =>
  env.DB.exec('DELETE FROM statistics; DELETE FROM statistics_packs; DELETE FROM statistics_waiting; DELETE FROM statistics_sums'),
)

describe('statistics that scopes answer', () => {
  test('share a row for each bucket, and are read by scope, by pattern and in all', async () => {
    await wait(answer('a/1', 1, 3), answer('a/2', 1, 4))
    await wait(answer('b/1', 1, 5))
    expect(await count('statistics_waiting')).toBe(1)
    await fold()
    expect(await count('statistics_packs')).toBe(2)
    expect(await count('statistics_waiting')).toBe(0)
    expect([await sumOf('a/1'), await sumOf('a/*'), await sumOf('*'), await totalOf('b/1')]).toEqual([3, 7, 12, 5])
    const series = await sumByScope(env.DB, { ...asked, patterns: ['*'], by: 'scope' })
    expect(series?.map(({ series: scope, value }) => [scope, value]).toSorted()).toEqual([
      ['a/1', 3],
      ['a/2', 4],
      ['b/1', 5],
    ])
    // The sums over scopes have them, too.
    await sumEnded(env.DB, START + 2 * HOUR, 100)
    expect(await sumOf('*')).toBe(12)
  })

  test('count once, the newest of each scope, whichever way they come and however often', async () => {
    await wait(answer('a', 4, 4))
    await fold()
    await wait(answer('a', 2, 2), answer('a', 4, 4))
    await fold()
    expect([await sumOf('a'), await totalOf('a')]).toEqual([4, 4])
    // The scope has sent its own row, and then answers again.
    await writeStatistics(env.DB, 'a', answer('a', 6, 6).rows, 6)
    expect([await sumOf('*'), await totalOf('a')]).toEqual([6, 6])
    await wait(answer('a', 5, 5))
    await fold()
    expect([await sumOf('*'), await totalOf('a'), await count('statistics')]).toEqual([6, 6, 2])
    await wait(answer('a', 9, 9))
    await fold()
    expect([await sumOf('*'), await totalOf('a'), await count('statistics')]).toEqual([9, 9, 0])
  })

  test('are dropped from sums that they change', async () => {
    await wait(answer('a', 1, 1))
    await fold()
    await sumEnded(env.DB, START + 2 * HOUR, 100)
    await wait(answer('b', 1, 1))
    await fold()
    expect(await sumOf('*')).toBe(2)
  })

  test('are split into parts once a row is long, each scope in one', { timeout: 60_000 }, async () => {
    const scopes = Array.from({ length: 1500 }, (_, index) => `many/${index}`)
    const long = 'x'.repeat(400)
    const wide = (scope: string): PackedStatistics => ({
      ...answer(scope, 1, 1),
      rows: [{ ...HOURLY, values: { '': { accepted: 1, [long]: 1 } } }],
    })
    await wait(...scopes.map(wide))
    await fold()
    await wait(...scopes.slice(0, 100).map((scope) => ({ ...wide(scope), seq: 2 })), wide('many/other'))
    await fold()
    expect(await count('statistics_packs')).toBe(16)
    expect([await sumOf('many/*'), await sumOf('many/7'), await sumOf('many/1499')]).toEqual([1501, 1, 1])
  })

  test('are read and changed in rows of before, whose values are text', async () => {
    await wait(answer('a', 1, 1), answer('b', 1, 2))
    await fold()
    await env.DB.exec('UPDATE statistics_packs SET scopes = json(scopes)')
    expect([await sumOf('*'), await totalOf('a'), await totalOf('b')]).toEqual([3, 1, 2])
    await wait(answer('a', 2, 5))
    await fold()
    expect([await sumOf('*'), await totalOf('a'), await totalOf('b')]).toEqual([7, 5, 2])
  })

  test('give no totals of a scope that has none', async () => {
    await wait(answer('a', 1, 1))
    await fold()
    expect(await scopeTotals(env.DB, ['a', 'a.b', 'other'])).toEqual(new Map([['a', { accepted: 1 }]]))
  })

  test('are not lost when two sort at once, or something waits in between', async () => {
    await wait(answer('a', 1, 1))
    await Promise.all([fold(), wait(answer('b', 1, 1)), fold()])
    await fold()
    expect([await sumOf('*'), await count('statistics_waiting')]).toEqual([2, 0])
  })

  test('wait no longer once they are sorted, also with names beyond the basic plane', async () => {
    await wait({ scope: 'a', seq: 1, rows: [{ ...OLD, values: { 'model-🚀': { calls: 1 } } }] })
    await fold()
    expect(await count('statistics_waiting')).toBe(0)
  })

  test('that cannot be read hold no others', async () => {
    await wait(answer('a', 1, 1))
    await env.DB.prepare('INSERT INTO statistics_waiting (id, answers) VALUES (1, ?)')
      .bind('{"scope":"b","seq":1,"rows":[{"family":"no"}]},{')
      .run()
    await fold()
    expect([await sumOf('*'), await count('statistics_waiting')]).toEqual([1, 0])
  })
})
