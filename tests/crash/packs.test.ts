import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, test } from 'vitest'
import { sortAll } from '../support/sort-told.ts'
import { forgetEvents, listEvents } from '../../src/store/events.ts'
import { scopeTotals } from '../../src/features/statistics/store/packed.ts'
import { writeStatistics } from '../../src/features/statistics/store/write.ts'
import { archiveDays, leavingFor } from '../../src/store/packs/archived.ts'
import type { PackedEvent } from '../../src/store/packs/format.ts'
import { forgetPacks, forgetPacksBeyond, mergePacks } from '../../src/store/packs/merge.ts'
import { METRICS, metricsOf } from '../../src/store/artifacts/reflex-metrics.ts'
import { waitStatements, type FeatureAnswers } from '../../src/store/packs/told.ts'
import { packTold } from '../../src/store/packs/write.ts'
import { emptyMetrics } from '../../src/reflexes/metrics.ts'
import { packable, replicateEvents } from '../../src/store/replicate.ts'
import { live, type Place } from '../support/crash-at-write.ts'
import { packDatabases, storeOf } from '../../src/store/store.ts'
import { clearArchive } from '../support/pack-archive.ts'
import { severalDatabases } from '../support/pack-databases.ts'
import { eventAt, packedNotes, reportOf, scopeRow } from '../support/packs.ts'
import { evict, freshScope, inObject, note, runAlarm, stubOf, until } from '../support/scopes.ts'
import worker from '../support/worker.ts'

const DAY_MS = 86_400_000
const START = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS
const sides = ['before', 'after'] as const

beforeEach(() => env.DB.exec('DELETE FROM events; DELETE FROM packs; DELETE FROM pack_index'))

async function listed(scope?: string, db: D1Database = env.DB): Promise<string[]> {
  const ids: string[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Awaited<ReturnType<typeof listEvents>> = await listEvents(db, {
      patterns: ['*'],
      scope,
      limit: 500,
      cursor,
      archived: true,
    })
    ids.push(...page.items.map(({ id }) => id))
    cursor = page.next_cursor
  }
  return ids
}

async function deliver(bindings: typeof env, attempts: number, bodies: object[]) {
  const messages = bodies.map((body, index) => ({ id: `m${index}`, timestamp: new Date(), attempts, body }))
  const batch = createMessageBatch('reflex-events', messages)
  await worker.queue(batch, bindings)
  return getQueueResult(batch, createExecutionContext())
}

/** D1 whose call number `at` is not made, or is made and not answered. It counts its calls. */
function dyingAt(place: Place | null): { db: D1Database; calls: () => number } {
  const { calls, around } = dyingAround(place)
  return { db: around(env.DB), calls }
}

/** The same for several databases, which count together. */
function dyingAround(place: Place | null): { around: (db: D1Database) => D1Database; bucket: R2Bucket; calls: () => number } {
  let calls = 0
  const made = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    calls += 1
    const is_here = calls === place?.at
    if (is_here && place?.side === 'before') throw new Error('the process died')
    const answer = await call()
    if (is_here) throw new Error('the process died')
    return answer
  }
  const around = (db: D1Database) =>
    ({
      prepare: (sql: string) => watched(db.prepare(sql)),
      batch: (list: D1PreparedStatement[]) => made(() => db.batch(list.map((statement) => inner.get(statement) ?? statement))),
    }) as unknown as D1Database
  const inner = new WeakMap<D1PreparedStatement, D1PreparedStatement>()
  function watched(statement: D1PreparedStatement): D1PreparedStatement {
    const one = {
      bind: (...values: unknown[]) => watched(statement.bind(...values)),
      run: () => made(() => statement.run()),
      all: () => made(() => statement.all()),
      first: (column: string) => made(() => statement.first(column)),
    } as D1PreparedStatement
    inner.set(one, statement)
    return one
  }
  const put = (...given: Parameters<R2Bucket['put']>) => made(() => env.TEST_ARCHIVE.put(...given))
  return { around, bucket: { put } as unknown as R2Bucket, calls: () => calls }
}

/**
 * Makes the work die at each of its calls of D1. Lists what is there then, and after the work is
 * made again.
 */
async function everywhere(ids: string, work: (db: D1Database) => Promise<unknown>): Promise<string[]> {
  await env.DB.exec('DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT * FROM packs')
  const calm = dyingAt(null)
  await work(calm.db)
  expect(calm.calls()).toBeGreaterThan(1)
  const faults: string[] = []
  for (let at = 1; at <= calm.calls(); at += 1) {
    for (const side of sides) {
      await env.DB.exec('DELETE FROM packs; DELETE FROM pack_index; INSERT INTO packs SELECT * FROM kept')
      await expect(work(dyingAt({ at, side }).db)).rejects.toThrow('the process died')
      if ((await listed()).toSorted().join() !== ids) faults.push(`${side} call ${at}`)
      await work(env.DB)
      if ((await listed()).toSorted().join() !== ids) faults.push(`${side} call ${at}, made again`)
    }
  }
  await env.DB.exec('DROP TABLE kept')
  return faults
}

describe('each event is listed once', () => {
  test('wherever a merge dies, also one that fills the index', { timeout: 120_000 }, async () => {
    const ids: string[] = []
    for (let nth = 0; nth < 9; nth += 1) ids.push(...(await packedNotes('a', 260, START + nth * 60_000)).map(({ id }) => id))
    expect(await everywhere(ids.toSorted().join(), (db) => mergePacks(db, START))).toEqual([])
    expect(await env.DB.prepare('SELECT count(*) AS n FROM pack_index').first('n')).toBe(1)
  })

  test('or not at all, wherever the oldest packs are deleted because of their bytes', async () => {
    for (const at of [1, 2, 3]) {
      for (const side of sides) {
        await env.DB.exec('DELETE FROM packs')
        await packedNotes('a', 5, START)
        await packedNotes('a', 5, START + 60_000)
        const most =
          ((await env.DB.prepare('SELECT sum(octet_length(data) + octet_length(hashes)) AS n FROM packs').first<number>('n')) ?? 0) - 1
        await expect(forgetPacksBeyond(dyingAt({ at, side }).db, most, 10)).rejects.toThrow('the process died')
        expect((await listed()).length).toBe(at === 3 && side === 'after' ? 5 : 10)
        await forgetPacksBeyond(env.DB, most, 10)
        expect((await listed()).length).toBe(5)
      }
    }
  })

  test('wherever packs and rows die on their way to the archive, which a list continues with', { timeout: 120_000 }, async () => {
    const several = { ...(await severalDatabases()), ARCHIVE: env.TEST_ARCHIVE }
    const events = Array.from({ length: 210 }, (_, index) => eventAt('b', START + index * 1000, { id: `to-leave-${index}` }))
    const ids = events.map(({ id }) => id).toSorted()
    const prepare = async () => {
      for (const { db } of packDatabases(storeOf(several))) await db.exec('DELETE FROM events; DELETE FROM packs')
      await clearArchive()
      for (const part of [0, 70, 140]) {
        const reports = events.slice(part, part + 70).map((event, index) => reportOf(event, { nth: part + index }))
        await replicateEvents(storeOf(several), reports, scopeRow('b'))
      }
      const changed = [reportOf(events[1]!, { nth: null, status: 'cancelled', revision: 3 })]
      await replicateEvents(storeOf(several), changed, scopeRow('b'))
    }
    const leave = async (place: Place | null) => {
      const { around, bucket, calls } = dyingAround(place)
      const bindings = Object.fromEntries(packDatabases(storeOf(several)).map(({ name, db }) => [name, around(db)]))
      const store = storeOf({ ...bindings, ARCHIVE: bucket } as unknown as typeof several)
      for (const database of packDatabases(store)) await forgetPacksBeyond(database.db, 1, 10, leavingFor(store, bucket, database))
      const leaving = (rows: readonly PackedEvent[]) => archiveDays(store, bucket, rows)
      await forgetEvents(store, { before: Date.now() + DAY_MS, after: '-1', limit: 100, packed: null, leaving })
      return calls()
    }
    const inAll = async () => (await listed(undefined, storeOf(several))).toSorted()
    await prepare()
    const calls = await leave(null)
    expect(calls).toBeGreaterThan(12)
    expect(await inAll()).toEqual(ids)
    for (const { db } of packDatabases(storeOf(several)))
      expect(await db.prepare('SELECT (SELECT count(*) FROM packs) + (SELECT count(*) FROM events) AS n').first('n')).toBe(0)
    for (let at = 1; at <= calls; at += 1) {
      for (const side of sides) {
        await prepare()
        await leave({ at, side }).catch(() => null)
        expect(await inAll()).toEqual(ids)
        await leave(null)
        expect(await inAll()).toEqual(ids)
      }
    }
  })

  test('when two merge at once', async () => {
    const ids: string[] = []
    for (let nth = 0; nth < 20; nth += 1) ids.push(...(await packedNotes('a', 5, START + nth * 60_000)).map(({ id }) => id))
    await Promise.allSettled([mergePacks(env.DB, START), mergePacks(env.DB, START + DAY_MS), forgetPacks(env.DB, START, 100)])
    expect((await listed()).toSorted()).toEqual(ids.toSorted())
  })

  test('wherever a report dies, and is made again as rows', async () => {
    const reports = Array.from({ length: 70 }, (_, index) => reportOf(note('b', `${index}`), { nth: index }))
    const ids = reports.map(({ id }) => id).toSorted()
    const calm = dyingAt(null)
    await replicateEvents(calm.db, reports, scopeRow('b'))
    for (let at = 1; at <= calm.calls(); at += 1) {
      for (const side of sides) {
        await env.DB.exec('DELETE FROM events; DELETE FROM packs')
        await expect(replicateEvents(dyingAt({ at, side }).db, reports, scopeRow('b'))).rejects.toThrow('the process died')
        await replicateEvents(
          env.DB,
          reports.map((report) => ({ ...report, nth: null })),
          scopeRow('b'),
        )
        expect((await listed()).toSorted()).toEqual(ids)
      }
    }
  })

  test('wherever a report dies whose pack is in another database, and is made again', async () => {
    const several = await severalDatabases()
    const events = Array.from({ length: 70 }, (_, index) => eventAt('b', START + index * 1000, { id: `in-another-${index}` }))
    const reports = events.map((event, index) => reportOf(event, { nth: index }))
    const ids = events.map(({ id }) => id).toSorted()
    const dying = (place: Place | null) => {
      const { around, calls } = dyingAround(place)
      const bindings = Object.fromEntries(packDatabases(storeOf(several)).map(({ name, db }) => [name, around(db)]))
      return { db: storeOf(bindings as unknown as typeof several), calls }
    }
    const clear = async () => {
      for (const { db } of packDatabases(storeOf(several))) await db.exec('DELETE FROM events; DELETE FROM packs')
    }
    const inAll = async () => (await listed(undefined, storeOf(several))).toSorted()
    await clear()
    const calm = dying(null)
    await replicateEvents(calm.db, reports, scopeRow('b'))
    expect([await inAll(), await env.DB.prepare('SELECT count(*) AS n FROM packs').first('n')]).toEqual([ids, 0])
    for (let at = 1; at <= calm.calls(); at += 1) {
      for (const side of sides) {
        await clear()
        // The pack is in DB, too, if its own database did not answer.
        await replicateEvents(dying({ at, side }).db, reports, scopeRow('b')).catch(() => null)
        expect(await inAll()).toEqual(ids)
        await replicateEvents(storeOf(several), reports, scopeRow('b'))
        expect(await inAll()).toEqual(ids)
        for (const { db } of packDatabases(storeOf(several))) await mergePacks(db, START + 9 * DAY_MS)
        expect(await inAll()).toEqual(ids)
      }
    }
  })

  test('wherever the consumer of the queue dies, once its message is delivered again', { timeout: 120_000 }, async () => {
    const run = async (place: Place | null, dies: 'D1' | 'answer') => {
      const events = [freshScope(), freshScope()].map((scope) => note(scope, 'noise'))
      const dying = dyingAt(dies === 'D1' ? place : null)
      const scopeOf = (name: string) => ({
        accept: async (...given: Parameters<ReturnType<typeof stubOf>['accept']>) => {
          const accepted = await stubOf(name).accept(...given)
          if (dies === 'answer' && name === events[place?.at ?? 9]?.scope) throw new Error('the process died')
          return accepted
        },
        unpacked: () => Promise.reject(new Error('the process died')),
      })
      const EVENTS = { send: () => Promise.reject(new Error('the process died')) }
      const bindings = Object.assign({}, env, { DB: dying.db, SCOPE: { getByName: scopeOf }, EVENTS }) as unknown as typeof env
      const first = await deliver(bindings, 1, [{ events }])
      const missing = async () => {
        const found = await Promise.all(events.map(async ({ scope }) => (await listed(scope)).length))
        return found.filter((count) => count !== 1).length
      }
      await deliver(env, 2, [{ events }])
      return { calls: dying.calls(), retried: first.retryMessages.length, missing: await missing() }
    }
    const calm = await run(null, 'D1')
    expect(calm.missing).toBe(0)
    expect(calm.calls).toBeGreaterThan(0)
    for (const side of sides) {
      expect(await run({ at: 1, side }, 'D1')).toMatchObject({ retried: 1, missing: 0 })
      for (const at of [0, 1]) expect(await run({ at, side }, 'answer')).toMatchObject({ retried: 1, missing: 0 })
    }
  })

  /** Finds what D1 has of a scope whose object died: all events, those in rows, and the counted. */
  async function afterDeath(scope: string) {
    await evict(stubOf(scope))
    await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'D1 has all')
    const own = await env.DB.prepare('SELECT count(*) AS n FROM events WHERE scope = ?').bind(scope).first('n')
    const counted = async () => {
      await sortAll(env.DB)
      return (await scopeTotals(env.DB, [scope])).get(scope)?.['accepted']
    }
    return { ids: await listed(scope), own, counted }
  }

  test('if its scope dies after the answer that it was packed by, which is written by no watermark', async () => {
    const scope = freshScope()
    const events = [note(scope, 'noise'), note(scope, 'noise'), note(scope, 'noise')]
    for (const event of events) await deliver(env, 1, [{ events: [event] }])
    const { ids, own, counted } = await afterDeath(scope)
    expect(ids.toSorted()).toEqual(events.map(({ id }) => id).toSorted())
    expect([own, await counted()]).toEqual([0, 3])
    const rows = await env.DB.prepare('SELECT count(*) AS n FROM statistics WHERE scope = ?').bind(scope).first('n')
    expect(rows).toBe(0)
    const state = await inObject(stubOf(scope), ({ storage }) =>
      storage.sql.exec(`SELECT value FROM state WHERE key IN ('replica', 'replicated')`).toArray(),
    )
    expect(state).toEqual([])
  })

  test('if D1 refused the pack, and the scope dies once it has heard so', async () => {
    const scope = freshScope()
    const first = note(scope, 'noise')
    await deliver(env, 1, [{ events: [first] }])
    const event = note(scope, 'noise')
    const refusing = Object.assign(dyingAt(null).db, { batch: () => Promise.reject(new Error('D1 is full')) })
    const bindings = Object.assign({}, env, { DB: refusing }) as unknown as typeof env
    expect((await deliver(bindings, 1, [{ events: [event] }])).retryMessages).toEqual([])
    const { ids, counted } = await afterDeath(scope)
    expect(ids.toSorted()).toEqual([first.id, event.id].toSorted())
    await until(async () => (await counted()) === 2, 'D1 has the numbers')
  })

  test('if its id comes again after its scope forgot it, wherever the consumer of the queue dies', { timeout: 120_000 }, async () => {
    const run = async (place: Place | null) => {
      const scope = freshScope()
      const [first, again] = [note(scope, 'noise'), note(scope, 'noise')].map((event) => ({ ...event, id: 'order-7' }))
      await deliver(env, 1, [{ events: [first] }])
      await inObject(stubOf(scope), ({ storage }) => {
        for (const aged of ['log SET at = at', 'events SET accepted_at = accepted_at']) storage.sql.exec(`UPDATE ${aged} - 864000000`)
      })
      await runAlarm(stubOf(scope))
      expect(await stubOf(scope).event('order-7')).toBeNull()
      const dying = dyingAt(place)
      await deliver(Object.assign({}, env, { DB: dying.db }), 1, [{ events: [again] }])
      await deliver(env, 2, [{ events: [again] }])
      await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'D1 has all')
      const { items } = await listEvents(env.DB, { patterns: [scope], limit: 9 })
      return { calls: dying.calls(), traces: items.map(({ trace_id }) => trace_id), expected: [again?.meta.trace_id] }
    }
    const calm = await run(null)
    expect(calm.traces).toEqual(calm.expected)
    for (let at = 1; at <= calm.calls; at += 1) {
      for (const side of sides) {
        const { traces, expected } = await run({ at, side })
        expect(traces).toEqual(expected)
      }
    }
  })

  test('and counted once, wherever sorting the statistics dies', async () => {
    const answer = (scope: string, seq: number) => ({
      scope,
      seq,
      rows: [{ family: 'scope' as const, bucket: 'all' as const, start: 0, values: { '': { accepted: seq } } }],
    })
    const wait = (...answers: object[]) =>
      env.DB.batch(
        waitStatements(
          env.DB,
          answers.map((statistics) => ({ statistics })),
          START,
        ),
      )
    const run = async (place: Place | null) => {
      await env.DB.exec('DELETE FROM statistics; DELETE FROM statistics_packs; DELETE FROM statistics_waiting')
      await writeStatistics(env.DB, 'a', answer('a', 1).rows, 1)
      await wait(answer('a', 2), answer('b', 5))
      const dying = dyingAt(place)
      await sortAll(dying.db).catch(() => null)
      await wait(answer('a', 3))
      await sortAll(env.DB)
      const totals = await scopeTotals(env.DB, ['a', 'b'])
      return { calls: dying.calls(), totals: ['a', 'b'].map((scope) => totals.get(scope)?.['accepted']) }
    }
    const calm = await run(null)
    expect(calm.calls).toBeGreaterThan(3)
    for (let at = 1; at <= calm.calls; at += 1) for (const side of sides) expect((await run({ at, side })).totals).toEqual([3, 5])
  })

  test('and counted once, wherever sorting what came with packs dies, or their merge, in whatever process', async () => {
    const metrics = (runs: number) => ({ ...emptyMetrics(), runs })
    const told = (scope: string, seq: number) => ({
      statistics: { scope, seq, rows: [{ family: 'scope', bucket: 'all', start: 0, values: { '': { accepted: seq } } }] },
      [METRICS]: { scope, seq, reports: [{ reflex_id: 'bell', version: 1, metrics: metrics(seq) }] },
    })
    let at = START
    const pack = (...answers: object[]) => {
      const reports = [reportOf(eventAt('a', (at += 1)), { nth: at })]
      return packTold(env.DB, { events: packable(reports, 'a'), told: answers as FeatureAnswers[] })
    }
    const run = async (place: Place | null) => {
      const tables = ['statistics', 'statistics_packs', 'statistics_waiting', 'reflex_metrics_packs', 'packs']
      await env.DB.exec(tables.map((table) => `DELETE FROM ${table}`).join('; '))
      for (let seq = 1; seq <= 8; seq += 1) await pack(told('a', seq), told('b', 9 - seq))
      const dying = dyingAt(place)
      await sortAll(dying.db).catch(() => null)
      await pack(told('a', 9))
      await mergePacks(dying.db, START + DAY_MS).catch(() => null)
      await mergePacks(env.DB, START + DAY_MS)
      await sortAll(env.DB)
      const totals = await scopeTotals(env.DB, ['a', 'b'])
      const runs = new Map((await metricsOf(env.DB, 'bell')).map((row) => [row.scope, row.metrics.runs]))
      return { calls: dying.calls(), counted: ['a', 'b'].map((scope) => [totals.get(scope)?.['accepted'], runs.get(scope)]) }
    }
    const calm = await run(null)
    expect(calm.calls).toBeGreaterThan(6)
    const counted = [
      [9, 9],
      [8, 8],
    ]
    expect(calm.counted).toEqual(counted)
    for (let place = 1; place <= calm.calls; place += 1) {
      for (const side of sides) expect((await run({ at: place, side })).counted).toEqual(counted)
    }
  })

  test.each([
    ['before', 0],
    ['after', 1],
  ] as const)('and accepted once, if the consumer dies %s it has sent again what a scope did not take', async (_side, sends) => {
    const [fine, away] = [freshScope(), freshScope()]
    const events = [note(fine, 'noise'), note(away, 'noise'), note(fine, 'noise')]
    const sent: object[] = []
    const send = async (message: object) => {
      if (sends > 0) sent.push(message)
      throw new Error('the process died')
    }
    const refuses = { accept: () => Promise.reject(new Error('away')) }
    const SCOPE = { getByName: (name: string) => (name === away ? refuses : stubOf(name)) }
    const dying = Object.assign({}, env, { SCOPE, EVENTS: { send } }) as unknown as typeof env
    expect((await deliver(dying, 1, [{ events }])).retryMessages).toHaveLength(1)
    expect(sent).toHaveLength(sends)
    // The queue has the old message, and perhaps the new one.
    await deliver(env, 2, [{ events }, ...sent])
    for (const [scope, count] of [
      [fine, 2],
      [away, 1],
    ] as const) {
      expect((await stubOf(scope).state()).counters.accepted).toBe(count)
      expect(await listed(scope)).toHaveLength(count)
    }
  })

  test.each(sides)('of a scope that packs, dying %s any write', { timeout: 120_000 }, async (side) => {
    const run = async (place: Place | null) => {
      const scope = freshScope()
      const stub = stubOf(scope)
      await stub.configure({ agent: 'perceiver' }, 'test')
      const life = await live(scope, place)
      const events = Array.from({ length: 80 }, (_, index) => note(scope, `${index}`))
      const accepted = async () =>
        stubOf(scope)
          .accept(events, 'http')
          .then(({ ok }) => ok)
          .catch(() => false)
      await until(accepted, 'the events are accepted')
      await until(
        async () =>
          (
            await stubOf(scope)
              .state()
              .catch(() => null)
          )?.outbox.waiting === 0,
        'D1 has them',
      )
      life.over = true
      if (life.died) await until(async () => life.buried, 'it has died')
      await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'D1 has them')
      return { life, scope, missing: events.length - new Set(await listed(scope)).size, listed: (await listed(scope)).length }
    }
    const calm = await run(null)
    expect(calm).toMatchObject({ missing: 0, listed: 80 })
    expect(await env.DB.prepare('SELECT count(*) AS n FROM packs').first('n')).toBe(1)
    for (let at = 1; at <= calm.life.writes; at += 1) expect(await run({ at, side })).toMatchObject({ missing: 0, listed: 80 })
  })
})
