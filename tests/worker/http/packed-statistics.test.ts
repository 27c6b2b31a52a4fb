import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, test } from 'vitest'
import { sortAll } from '../../support/sort-told.ts'
import { scopeTotals, type PackedStatistics } from '../../../src/features/statistics/store/packed.ts'
import { sumByScope, sumStatistics } from '../../../src/features/statistics/store/query.ts'
import { writeStatistics } from '../../../src/features/statistics/store/write.ts'
import { sumEnded } from '../../../src/features/statistics/store/sums.ts'
import { addDeadLetters, deadLettersOf } from '../../../src/store/dead-letters.ts'
import { forgetPacks, mergePacks } from '../../../src/store/packs/merge.ts'
import { sortTold, waitStatements } from '../../../src/store/packs/told.ts'
import { sortersOf } from '../../../src/events/sweep.ts'
import { features } from '../../../src/features/index.ts'
import { packTold } from '../../../src/store/packs/write.ts'
import { packable } from '../../../src/store/replicate.ts'
import { eventAt, reportOf } from '../../support/packs.ts'

const HOUR = 3_600_000
const START = 1_700_000_000_000 - (1_700_000_000_000 % HOUR)
const OLD = { family: 'scope', bucket: 'all', start: 0 } as const
const HOURLY = { family: 'scope', bucket: 'hour', start: START } as const

const answer = (scope: string, seq: number, accepted: number): PackedStatistics => ({
  scope,
  seq,
  rows: [OLD, HOURLY].map((bucket) => ({ ...bucket, values: { '': { accepted } } })),
})
const toldOf = (statistics: PackedStatistics) => ({ statistics })
const wait = (...answers: PackedStatistics[]) => env.DB.batch(waitStatements(env.DB, answers.map(toldOf), START))
const fold = () => sortAll(env.DB)
const totalOf = async (scope: string) => (await scopeTotals(env.DB, [scope])).get(scope)?.['accepted']
const asked = { family: 'scope', bucket: 'hour', since: START, until: START + 1, keys: ['accepted'] } as const
const sumOf = async (pattern: string) => (await sumStatistics(env.DB, { ...asked, patterns: [pattern], by: null }))[0]?.value
const count = (table: string) => env.DB.prepare(`SELECT count(*) AS n FROM ${table}`).first<number>('n')

/** Calls `seen` with each statement that is bound, and its parameters. */
const watched = (db: D1Database, seen: (sql: string, params: unknown[]) => void): D1Database =>
  new Proxy(db, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name)
      if (name !== 'prepare') return typeof value === 'function' ? (value.bind(target) as unknown) : value
      return (sql: string) => {
        const statement = target.prepare(sql)
        const bind = statement.bind.bind(statement)
        statement.bind = (...params: unknown[]) => (seen(sql, params), bind(...params))
        return statement
      }
    },
  })

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

  test('are not hidden by a row of the scope that D1 writes later than newer numbers', async () => {
    await wait(answer('a', 9, 9), answer('b', 1, 1))
    await fold()
    await writeStatistics(env.DB, 'a', answer('a', 6, 6).rows, 6)
    expect([await sumOf('*'), await totalOf('a'), await count('statistics')]).toEqual([10, 9, 0])
    await writeStatistics(env.DB, 'a', answer('a', 12, 12).rows, 12)
    await writeStatistics(env.DB, 'a', answer('a', 10, 10).rows, 10)
    expect([await sumOf('*'), await totalOf('a')]).toEqual([13, 12])
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

  test('are sorted a few parts at a time, and the rest of them later when the time is over', { timeout: 60_000 }, async () => {
    const scopes = Array.from({ length: 80 }, (_, index) => `many/${index}`)
    const wide = (scope: string, seq: number): PackedStatistics => ({
      ...answer(scope, seq, 1),
      rows: [{ ...HOURLY, values: { '': { accepted: 1, ['x'.repeat(90_000)]: 1 } } }],
    })
    const parts: number[] = []
    const db = watched(env.DB, (sql, [listed]) => {
      if (sql.includes('json(scopes)')) parts.push((JSON.parse(String(listed)) as unknown[]).length)
    })
    const sort = (most_ms: number) => sortTold(db, { sorters: sortersOf(features), before: Infinity, now: START, most_ms })
    for (const scope of scopes) await wait(wide(scope, 1))
    expect([await sort(0), await count('statistics_waiting')]).toEqual([60, 20])
    expect([await sort(0), await count('statistics_waiting')]).toEqual([20, 0])
    for (const scope of scopes) await wait(wide(scope, 2))
    expect([await sort(60_000), await sumOf('many/*')]).toEqual([80, 80])
    expect(Math.max(...parts)).toBe(8)
    expect(parts.reduce((sum, some) => sum + some, 0)).toBeGreaterThan(16)
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

  test('are sorted as an earlier version left them', async () => {
    await env.DB.prepare('INSERT INTO statistics_waiting (id, answers) VALUES (1, ?)')
      .bind([answer('a', 1, 3), answer('b', 1, 4)].map((one) => JSON.stringify(one)).join(','))
      .run()
    await fold()
    expect([await sumOf('*'), await count('statistics_waiting')]).toEqual([7, 0])
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

  test('do not replace what the scope writes itself in between', async () => {
    await writeStatistics(env.DB, 'a', answer('a', 1, 1).rows, 1)
    await wait(answer('a', 2, 2))
    let batches = 0
    const written = async () => writeStatistics(env.DB, 'a', answer('a', 9, 9).rows, 9)
    const batch: D1Database['batch'] = async (statements) => {
      const answers = await env.DB.batch(statements)
      if ((batches += 1) === 1) await written()
      return answers as never
    }
    await sortAll({ prepare: (sql: string) => env.DB.prepare(sql), batch } as D1Database)
    expect([await sumOf('a'), await totalOf('a')]).toEqual([9, 9])
    await wait(answer('a', 10, 10))
    await fold()
    expect([await sumOf('a'), await totalOf('a'), await count('statistics')]).toEqual([10, 10, 0])
  })

  test('replace an older row of the scope, also if D1 writes it while they are sorted', async () => {
    await wait(answer('a', 9, 9))
    let batches = 0
    const batch: D1Database['batch'] = async (statements) => {
      const answers = await env.DB.batch(statements)
      if ((batches += 1) === 1) await writeStatistics(env.DB, 'a', answer('a', 6, 6).rows, 6)
      return answers as never
    }
    await sortAll({ prepare: (sql: string) => env.DB.prepare(sql), batch } as D1Database)
    expect([await sumOf('a'), await totalOf('a'), await count('statistics')]).toEqual([9, 9, 0])
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

describe('statistics that come with a pack', () => {
  let at = START
  const pack = (told: readonly PackedStatistics[], events = 1) => {
    const reports = Array.from({ length: events }, () => reportOf(eventAt('a', (at += 1)), { nth: at }))
    return packTold(env.DB, { events: packable(reports, 'a'), told: told.map(toldOf) })
  }

  beforeEach(() => env.DB.exec('DELETE FROM packs; DELETE FROM pack_index'))

  test('are a part of its row, and are sorted from there, each once', async () => {
    await pack([answer('a', 1, 3), answer('b', 1, 4)])
    await pack([answer('a', 2, 5)])
    expect([await count('packs'), await count('statistics_waiting')]).toEqual([2, 0])
    expect(await fold()).toBe(2)
    expect([await sumOf('*'), await totalOf('a')]).toEqual([9, 5])
    await pack([answer('b', 2, 6)])
    expect(await fold()).toBe(1)
    expect([await sumOf('*'), await fold()]).toEqual([11, 0])
  })

  test('are written to a bucket once, however many packs and rows they come from', async () => {
    for (let nth = 0; nth < 30; nth += 1) await pack([answer(`s/${nth}`, 1, 1)])
    await wait(answer('w', 1, 1))
    expect(await fold()).toBe(31)
    expect([await sumOf('*'), await count('statistics_waiting')]).toEqual([31, 0])
    expect(await env.DB.prepare('SELECT max(revision) AS n FROM statistics_packs').first('n')).toBe(1)
  })

  test('are sorted from a pack that takes the place of one that has merged since', async () => {
    const first = (at += 1)
    const packAt = (scope: string, time: number, told: PackedStatistics) =>
      packTold(env.DB, { events: packable([reportOf(eventAt(scope, time), { nth: 1 })], scope), told: [toldOf(told)] })
    await packAt('a', first, answer('a', 1, 3))
    for (let nth = 0; nth < 15; nth += 1) await pack([answer('c', nth + 1, nth + 1)])
    await fold()
    await mergePacks(env.DB, START + 24 * HOUR)
    expect(await count('packs')).toBeLessThan(16)
    // An event of the same millisecond ends late, with an answer of the same length.
    await packAt('b', first, answer('b', 1, 4))
    await fold()
    expect([await totalOf('a'), await totalOf('b')]).toEqual([3, 4])
  })

  test('wait apart if they are long, or if no event is packed', async () => {
    await pack([answer('a', 1, 3)], 0)
    await pack(Array.from({ length: 1000 }, (_, index) => answer(`many/${index}`, 1, 1)))
    expect([await count('packs'), await count('statistics_waiting')]).toEqual([1, 2])
    await fold()
    expect([await sumOf('a'), await sumOf('many/*')]).toEqual([3, 1000])
  })

  test('are kept when packs merge that nobody has sorted, and are no row more when somebody has', async () => {
    const few = async (seq: number) => {
      for (let nth = 0; nth < 20; nth += 1) await pack([answer('a', seq + nth, seq + nth)])
    }
    await few(1)
    await mergePacks(env.DB, START + 24 * HOUR)
    expect(await count('statistics_waiting')).toBe(1)
    await fold()
    expect(await sumOf('*')).toBe(20)
    await few(21)
    await fold()
    await mergePacks(env.DB, START + 24 * HOUR)
    expect([await count('statistics_waiting'), await count('packs'), await sumOf('*')]).toEqual([0, 1, 40])
  })

  test('are kept when retention takes packs that nobody has sorted', async () => {
    await pack([answer('a', 1, 3)])
    await pack([answer('b', 1, 4)])
    expect(await forgetPacks(env.DB, START + 48 * HOUR, 10)).toBe(2)
    expect([await count('packs'), await count('statistics_waiting')]).toEqual([0, 1])
    await fold()
    expect([await sumOf('*'), await totalOf('b')]).toEqual([7, 4])
  })

  test('take a pack alone, unless D1 has rows or letters of its events, which leave with it', async () => {
    const statements: number[] = []
    const db = new Proxy(env.DB, {
      get: (target, name) => {
        if (name === 'batch') return async (batch: D1PreparedStatement[]) => (statements.push(batch.length), target.batch(batch))
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    const [fresh, buried] = [eventAt('a', START), eventAt('a', START + 1)]
    const packOf = async (event: typeof fresh, seq: number) =>
      packTold(db, { events: packable([reportOf(event, { nth: seq, revision: 3 })], 'a'), told: [toldOf(answer('a', seq, seq))] })
    await packOf(fresh, 1)
    expect(statements).toEqual([1])
    await addDeadLetters(env.DB, deadLettersOf([buried], { id: 'm', attempts: 6, body: {} }, 'not delivered'))
    // Scopes of other tests may report at any time.
    const rows = () => Promise.all(['events', 'dead_letters'].map((table) => count(`${table} WHERE scope = 'a'`)))
    expect(await rows()).toEqual([1, 1])
    await packOf(buried, 2)
    expect([await rows(), await count('packs')]).toEqual([[0, 0], 2])
    expect([await fold(), await sumOf('a')]).toEqual([2, 2])
  })
})
