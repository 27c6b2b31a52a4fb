import { env } from 'cloudflare:workers'
import * as fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import {
  bucketSteps,
  bucketStart,
  type Bucket,
  type Family,
  type StatisticsValues,
} from '../../../src/features/statistics/contract/statistics.ts'
import { rates } from '../../../src/features/statistics/http/cost.ts'
import { forgetStatistics, sumEnded } from '../../../src/features/statistics/store/sums.ts'
import { statisticsStatement, sumStatistics } from '../../../src/features/statistics/store/query.ts'
import { writeStatistics } from '../../../src/features/statistics/store/write.ts'
import { call, keyFor, problem, scopePath } from '../../support/http.ts'
import { putVersion } from '../../support/skills.ts'
import { evict, freshScope, inObject, note, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { assertProperty } from '../../support/property.ts'

const HOUR = bucketStart('hour', Date.now()) - bucketSteps.hour
type Written = { family?: Family; bucket?: Bucket; start?: number; values: StatisticsValues }
const write = (scope: string, { family = 'scope', bucket = 'hour', start = HOUR, values }: Written) =>
  writeStatistics(env.DB, scope, [{ family, bucket, start, values }])
const stats = async (query: Record<string, string>, key?: string) =>
  (await call(`/v1/stats?${new URLSearchParams(query).toString()}`, key === undefined ? {} : { key })).body

/** Prefixes of scopes that no other test has. */
const freshTeam = (): string => `team-${crypto.randomUUID().slice(0, 8)}`

test('estimates the cost of one scope from its own counts, for keys that cover it', async () => {
  const team = freshTeam()
  await write(`${team}/a`, { values: { '': { accepted: 1000, model_cost_usd: 0.25, model_calls: 2 } } })
  await write(`${team}/b`, { values: { '': { accepted: 7 } } })
  const key = await keyFor(['viewer'], [`${team}/a`])
  const cost = (scope: string) => call(`${scopePath(scope)}/cost?bucket=hour`, { key })
  expect((await cost(`${team}/a`)).body).toMatchObject({
    scope: `${team}/a`,
    counts: { events: 1000, model_calls: 2 },
    model_usd: 0.25,
    total_usd: { low: 0.25 + rates.event.low / 1000, high: 0.25 + rates.event.high / 1000 },
  })
  expect((await cost(`${team}/b`)).status).toBe(403)
})

describe('GET /v1/stats/summary', () => {
  test('sums several metrics of the scopes that the key covers, and refuses those of single reflexes', async () => {
    const team = freshTeam()
    await write(`${team}/a`, { values: { '': { accepted: 10, by_filter: 4, by_turn: 6, 'reflex_us.80': 3, 'turn_ms.56': 1 } } })
    await write(`${team}/b`, { start: HOUR - bucketSteps.hour, values: { '': { accepted: 5, by_reflex: 5 } } })
    await write(`${freshTeam()}/c`, { values: { '': { accepted: 100 } } })
    const key = await keyFor(['viewer'], [`${team}/*`])
    const names = 'events.accepted,events.by_filter,events.by_reflex,turns.p50_ms,reflexes.p95_ms'
    const { body } = await call(`/v1/stats/summary?metrics=${names}`, { key })
    const totals = (body.metrics as { metric: string; total: number }[]).map(({ metric, total }) => [metric, total])
    expect(Object.fromEntries(totals)).toEqual({
      'events.accepted': 15,
      'events.by_filter': 4,
      'events.by_reflex': 5,
      'turns.p50_ms': 134,
      'reflexes.p95_ms': 1.069,
    })
    expect(body.metrics[0].points.map(({ value }: { value: number }) => value)).toEqual([5, 10])
    expect(await call('/v1/stats/summary?metrics=turns,skill.calls', { key })).toMatchObject(problem(400))
    const nearest = { detail: expect.stringMatching(/there is no turnz here: the nearest is turns; the others are .*events/) }
    for (const query of ['stats?metric=turnz', 'stats/summary?metrics=turns,turnz'])
      expect((await call(`/v1/${query}`, { key })).body).toMatchObject(nearest)
  })
})

describe('GET /v1/stats', () => {
  test('sums the scopes that the key covers, in all and by scope', async () => {
    const [mine, other] = [freshTeam(), freshTeam()]
    await write(`${mine}/a`, { values: { '': { accepted: 2 } } })
    await write(`${mine}/b`, { values: { '': { accepted: 3 } } })
    await write(`${mine}/b`, { start: HOUR - bucketSteps.hour, values: { '': { accepted: 1 } } })
    await write(`${other}/c`, { values: { '': { accepted: 100 } } })
    const key = await keyFor(['viewer'], [`${mine}/*`, `${mine}/a`])
    expect(await stats({ metric: 'events.accepted' }, key)).toMatchObject({
      unit: 'count',
      bucket: 'hour',
      series: [
        {
          label: null,
          total: 6,
          points: [
            { at: new Date(HOUR - bucketSteps.hour).toISOString(), value: 1 },
            { at: new Date(HOUR).toISOString(), value: 5 },
          ],
        },
      ],
      more: false,
    })
    expect((await stats({ metric: 'events.accepted', by: 'scope' }, key)).series).toMatchObject([
      { label: `${mine}/b`, total: 4 },
      { label: `${mine}/a`, total: 2 },
    ])
    expect((await stats({ metric: 'events.accepted', scope: `${mine}/a` }, key)).series).toMatchObject([{ total: 2 }])
    expect((await call(`/v1/stats?metric=events.accepted&scope=${other}/c`, { key })).status).toBe(403)
    expect((await call('/v1/stats?metric=events.accepted', { key: await keyFor(['publisher']) })).status).toBe(403)
  })

  test('names the calls of unknown price beside the cost of models, also where nothing else is known', async () => {
    const team = freshTeam()
    await write(`${team}/priced`, { values: { '': { model_calls: 2, model_cost_usd: 3 } } })
    await write(`${team}/own`, { values: { '': { model_calls: 7, unpriced_calls: 7 } } })
    await write(`${team}/both`, { values: { '': { model_calls: 5, model_cost_usd: 1, unpriced_calls: 2 } } })
    const asked = { metric: 'model.cost_usd', scope: `${team}/*` }
    expect((await stats(asked)).series).toMatchObject([{ total: 4, unpriced_calls: 9 }])
    expect((await stats({ ...asked, by: 'scope' })).series).toMatchObject([
      { label: `${team}/priced`, total: 3, unpriced_calls: 0 },
      { label: `${team}/both`, total: 1, unpriced_calls: 2 },
      { label: `${team}/own`, total: 0, unpriced_calls: 7 },
    ])
    expect((await stats({ metric: 'turns', scope: `${team}/*` })).series[0]).not.toHaveProperty('unpriced_calls')
  })

  test('answers the 100 scopes with the largest sums, and says that there are more', async () => {
    const team = freshTeam()
    for (let place = 0; place < 103; place++)
      await write(`${team}/${place}`, {
        start: HOUR - (place % 2) * bucketSteps.hour,
        values: { '': { turns: 1 + place, 'turn_ms.8': 1 } },
      })
    const answer = await stats({ metric: 'turns', by: 'scope', scope: `${team}/*` })
    expect(answer.more).toBe(true)
    expect(answer.series.map(({ total }: { total: number }) => total)).toEqual(Array.from({ length: 100 }, (_, place) => 103 - place))
    expect(await stats({ metric: 'turns.p50_ms', by: 'scope', scope: `${team}/*` })).toMatchObject({ more: true, series: { length: 100 } })
  })

  test('compares the turns that ran a skill with those that did without it', async () => {
    const scope = `${freshTeam()}/a`
    await write(scope, { values: { '': { turns: 4, turn_cost_usd: 10, 'turn_ms.56': 2, 'turn_ms.80': 2 } } })
    await write(scope, {
      family: 'skill',
      values: { deploy: { calls: 2, ok: 1, failed: 1, turns: 2, turn_cost_usd: 2, 'turn_ms.56': 2, max_streak: 1 } },
    })
    const total = async (metric: string) => (await stats({ metric, scope, by: 'skill' })).series
    expect(await total('skill.success_rate')).toMatchObject([{ label: 'deploy', total: 0.5 }])
    expect(await total('skill.delta_cost_usd')).toMatchObject([{ label: 'deploy', total: -3 }])
    expect(await total('skill.delta_p95_ms')).toMatchObject([{ label: 'deploy', total: 134 - 1069 }])
    expect(await total('skill.failure_streak')).toMatchObject([{ label: 'deploy', total: 1 }])
    expect(await total('skill.last_ci_pass')).toMatchObject([{ label: 'deploy', total: null }])
  })

  test('knows when the test of a skill passed last, in the scopes of the key', async () => {
    const { id } = await putVersion({ scopes: [`${freshTeam()}/*`] })
    const asked = async (by?: string) => (await stats({ metric: 'skill.last_ci_pass', bucket: 'all', ...(by && { by }) })).series
    expect(await asked('skill')).toContainEqual(expect.objectContaining({ label: id, total: 1 }))
    expect(await asked()).toMatchObject([{ label: null, total: expect.any(Number) }])
    const elsewhere = await keyFor(['viewer'], [`${freshTeam()}/*`])
    expect((await stats({ metric: 'skill.last_ci_pass', bucket: 'all' }, elsewhere)).series).toMatchObject([{ total: null }])
  })

  test('takes the longest series of failures over the buckets, not their sum', async () => {
    const scope = `${freshTeam()}/a`
    for (const [place, max_streak] of [3, 5, 2].entries())
      await write(scope, { family: 'skill', start: HOUR - place * bucketSteps.hour, values: { deploy: { max_streak } } })
    expect((await stats({ metric: 'skill.failure_streak', scope })).series).toMatchObject([{ total: 5 }])
  })

  test.each([
    [{ metric: 'no.such' }],
    [{ metric: 'turns', by: 'skill' }],
    [{ metric: 'turns', bucket: 'minute', since: '2020-01-01T00:00:00Z' }],
    [{ metric: 'turns', since: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' }],
  ])('refuses %j', async (query) => {
    expect(await call(`/v1/stats?${new URLSearchParams(query).toString()}`)).toMatchObject(problem(400))
  })

  test('searches the primary key for each bucket and range of scopes, however many rows there are', async () => {
    const range = { since: HOUR, until: HOUR + 1, keys: ['accepted'], by: null }
    for (const patterns of [['*'], ['team-a/*', 'team-b/x']]) {
      const explained: string[] = []
      const spy = { prepare: (sql: string) => env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`) } as D1Database
      const { results } = await statisticsStatement(spy, { ...range, family: 'scope', bucket: 'hour', patterns }).all<{ detail: string }>()
      explained.push(...results.map(({ detail }) => detail).filter((detail) => /\bs\b/.test(detail)))
      expect(explained).toEqual(['SEARCH s USING PRIMARY KEY (family=? AND bucket=? AND start=? AND scope>? AND scope<?)'])
    }
  })

  const sorted = (sums: readonly object[]): string[] => sums.map((sum) => JSON.stringify(sum)).toSorted()
  const families = { scope: [''], reflex: ['greet', 'block'], skill: ['deploy', 'refund'], tool: ['act', 'http.send'], model: ['m', 'n'] }
  const numbers = fc.dictionary(fc.constantFrom('accepted', 'turn_ms.8', 'turn_ms.9', 'max_streak'), fc.integer({ min: 0, max: 9 }))
  const written = fc.record({
    family: fc.constantFrom(...(Object.keys(families) as Family[])),
    scope: fc.tuple(fc.constantFrom('', 'a/', 'a/b/', 'ab/'), fc.nat(40)).map(([folder, place]) => `${folder}${place}`),
    back: fc.nat(2),
    label: fc.nat(1),
    numbers,
  })

  test('answers the same from sums over scopes as from their rows, with what changes after the sums', async () => {
    let run = 0
    await assertProperty(
      'http/statistics',
      fc.asyncProperty(fc.array(written, { minLength: 60, maxLength: 120 }), fc.array(written, { maxLength: 5 }), async (before, after) => {
        const team = `${freshTeam()}/`
        // Its own days, since the sums over all scopes are of all runs.
        const first = bucketSteps.day * (100 + 10 * run++)
        const store = async (rows: typeof before) => {
          for (const { family, scope, back, label, numbers: values } of rows) {
            const start = first + back * bucketSteps.day
            await write(`${team}${scope}`, { family, bucket: 'day', start, values: { [families[family][label] ?? '']: values } })
          }
        }
        const answers = async () => {
          const found: unknown[] = []
          for (const family of Object.keys(families) as Family[])
            for (const patterns of [['*'], [`${team}*`], [`${team}a/*`, `${team}3`], [`${team}a*`], [`${team}a/b/*`, `${team}ab/*`]])
              for (const by of [null, 'label', 'scope'] as const) {
                const range = { family, bucket: 'day' as const, since: first, until: first + 3 * bucketSteps.day, patterns, by }
                const numbers = await sumStatistics(env.DB, { ...range, keys: ['accepted', 'max_streak'] })
                const histograms = await sumStatistics(env.DB, { ...range, keys: ['turn_ms'] })
                expect(sorted(await sumStatistics(env.DB, { ...range, keys: ['accepted', 'turn_ms', 'max_streak'] }))).toEqual(
                  sorted([...numbers, ...histograms]),
                )
                found.push(numbers, histograms)
              }
          return found
        }
        await store(before)
        const expected = await answers()
        while ((await sumEnded(env.DB, Date.now(), 100)) > 0);
        expect(await answers()).toEqual(expected)
        await store(after)
        const changed = await answers()
        while ((await sumEnded(env.DB, Date.now(), 100)) > 0);
        expect(await answers()).toEqual(changed)
      }),
      // It takes seconds; `npm run test:properties` runs it more often.
      { numRuns: 1 },
    )
  })

  test('reads one row for each ended bucket, however many scopes there are', async () => {
    const team = freshTeam()
    const start = HOUR - 48 * bucketSteps.hour
    for (let place = 0; place < 40; place++) await write(`${team}/${place}`, { start, values: { '': { accepted: 1 } } })
    const query = {
      family: 'scope',
      bucket: 'hour',
      since: start,
      until: start + 1,
      patterns: [`${team}/*`],
      keys: ['accepted'],
      by: null,
    } as const
    const read = async () => (await statisticsStatement(env.DB, query).all()).meta.rows_read
    const before = await read()
    while ((await sumEnded(env.DB, Date.now(), 100)) > 0);
    expect(before).toBeGreaterThan(40)
    expect(await read()).toBeLessThan(20)
    expect(await sumStatistics(env.DB, query)).toEqual([{ start, series: '', key: 'accepted', value: 40 }])
  })

  test('reads the sums of the hours and minutes that have ended, and few rows, for the day that has not', async () => {
    const { minute, hour, day } = bucketSteps
    const start = 500 * day
    const now = start + 10.5 * hour + 10_000
    vi.spyOn(Date, 'now').mockReturnValue(now)
    const team = freshTeam()
    // Each scope has an event at one time, and a few of them have one in the minute that is open.
    const times = (place: number) => [start + (place % 31) * 20 * minute, ...(place < 3 ? [now - 5000] : [])]
    const fill = async (from: number, end: number): Promise<void> => {
      for (let place = from; place < end; place++) {
        const rows = (['minute', 'hour', 'day'] as const).flatMap((bucket) =>
          Array.from(
            Map.groupBy(times(place), (at) => bucketStart(bucket, at)),
            ([of, some]) => ({
              family: 'scope' as const,
              bucket,
              start: of,
              values: { '': { accepted: some.length, max_streak: place, 'turn_ms.5': some.length } },
            }),
          ),
        )
        await writeStatistics(env.DB, `${team}/${place}`, rows)
      }
    }
    await fill(0, 120)
    const range = { family: 'scope', since: start, until: start + day, patterns: [`${team}/*`], by: null } as const
    const bucketed = { day: { ...range, bucket: 'day' }, hour: { ...range, bucket: 'hour', since: start + 10 * hour } } as const
    const keys = ['accepted', 'max_streak', 'turn_ms']
    const answers = async () => {
      const found: unknown[] = []
      for (const query of Object.values(bucketed)) {
        found.push(sorted(await sumStatistics(env.DB, { ...query, keys })))
        found.push(sorted(await sumStatistics(env.DB, { ...query, keys, patterns: [`${team}/7`, `${team}/1*`] })))
      }
      return found
    }
    const read = async () => (await statisticsStatement(env.DB, { ...bucketed.day, keys: ['accepted'] }).all()).meta.rows_read
    const sum = async () => {
      while ((await sumEnded(env.DB, now, 100)) > 0);
    }
    const expected = await answers()
    await sum()
    expect(await answers()).toEqual(expected)
    expect(expected[0]).toContain(JSON.stringify({ start, series: '', key: 'accepted', value: 123 }))
    const rows = await read()
    await fill(120, 240)
    await sum()
    expect(await read()).toBeLessThanOrEqual(rows)
    vi.restoreAllMocks()
  })

  test('forgets expired minutes and hours, and keeps days', async () => {
    const scope = `${freshTeam()}/a`
    const [now, year] = [Date.now(), 365 * bucketSteps.day]
    for (const bucket of ['minute', 'hour', 'day'] as const)
      for (const at of [now, now - year]) await write(scope, { bucket, start: bucketStart(bucket, at), values: { '': { accepted: 1 } } })
    await forgetStatistics(env.DB, now, 1000)
    const { results } = await env.DB.prepare('SELECT bucket FROM statistics WHERE scope = ? ORDER BY bucket').bind(scope).all()
    expect(results.map(({ bucket }) => bucket)).toEqual(['day', 'day', 'hour', 'minute'])
  })
})

describe('a scope', () => {
  const accepted = (scope: string) =>
    sumStatistics(env.DB, {
      family: 'scope',
      bucket: 'all',
      since: 0,
      until: 1,
      patterns: [scope],
      keys: ['accepted', 'ignored'],
      by: null,
    })

  test('replicates its numbers, once whatever happens to it', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await sendAndSettle(stub, note(scope, 'noise'), note(scope, 'noise'))
    await evict(stub)
    const sums = await until(async () => {
      const found = await accepted(scope)
      return found.length === 2 && found
    }, 'D1 has them')
    expect(sums.map(({ key, value }) => [key, value])).toEqual([
      ['accepted', 2],
      ['ignored', 2],
    ])
    // As after a death between D1's answer and the note of it.
    await inObject(stub, (state) => void state.storage.sql.exec(`DELETE FROM state WHERE key = 'statistics'`))
    await evict(stub)
    await sendAndSettle(stub, note(scope, 'noise'))
    await until(async () => (await accepted(scope)).some(({ value }) => value === 3), 'D1 is current')
    expect((await accepted(scope)).map(({ value }) => value)).toEqual([3, 3])
  })
})

describe('GET /metrics', () => {
  test('gives the totals of the scopes that the key covers, none of them by scope', async () => {
    const team = freshTeam()
    const all = { bucket: 'all', start: 0 } as const
    await write(`${team}/a`, { ...all, values: { '': { accepted: 2, turns: 2, 'turn_ms.56': 2, turn_time_ms: 260 } } })
    await write(`${team}/b`, { ...all, values: { '': { accepted: 3 } } })
    await write(`${team}/b`, { ...all, family: 'skill', values: { 'a"b': { calls: 7, ok: 6 } } })
    const { status, type, text } = await call('/metrics', { key: await keyFor(['viewer'], [`${team}/*`]) })
    expect({ status, type }).toEqual({ status: 200, type: 'text/plain; version=0.0.4; charset=utf-8' })
    const lines = text.split('\n')
    for (const line of [
      '# TYPE reflex_events_total counter',
      'reflex_events_total{status="accepted"} 5',
      'reflex_turns_total 2',
      'reflex_skill_calls_total{skill="a\\"b"} 7',
      'reflex_turn_duration_seconds_bucket{le="0.128"} 0',
      'reflex_turn_duration_seconds_bucket{le="0.256"} 2',
      'reflex_turn_duration_seconds_bucket{le="+Inf"} 2',
      'reflex_turn_duration_seconds_sum 0.26',
      'reflex_turn_duration_seconds_count 2',
    ])
      expect(lines).toContain(line)
    const { text: whole } = await call('/metrics')
    for (const store of ['database', 'ledger']) {
      expect(whole).toMatch(new RegExp(`^reflex_${store}_bytes [1-9]\\d+$`, 'm'))
      // It would show what others do.
      expect(text).toMatch(new RegExp(`^reflex_${store}_bytes 0$`, 'm'))
    }
    expect(text).not.toContain(team)
    for (const line of lines.filter((one) => one !== ''))
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{.+\})? -?\d+(\.\d+)?(e-?\d+)?)$/)
  })

  test('needs a key with the role viewer', async () => {
    expect((await call('/metrics', { key: null })).status).toBe(401)
    expect((await call('/metrics', { key: await keyFor(['publisher']) })).status).toBe(403)
  })
})
