import * as fc from 'fast-check'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Bucket } from '../../../src/features/statistics/contract/statistics.ts'
import type { NewEntry } from '../../../src/contract/log-entry.ts'
import { defaultSettings, type Settings } from '../../../src/contract/settings/settings.ts'
import type { Jobs } from '../../../src/engine/jobs.ts'
import { LogFollower, type Follows, Log } from '../../../src/engine/log/log.ts'
import { scopeHead } from '../../../src/engine/log/spans.ts'
import { Notices, type WaitingNotice } from '../../../src/features/notices/scope/notices.ts'
import { Statistics } from '../../../src/features/statistics/scope/statistics.ts'
import { ScopeCounters, type Database, Deferred, unitOfWork } from '../../../src/kernel/unit.ts'
import { part } from '../agents/agent-fixtures.ts'
import { assertProperty } from '../../support/property.ts'
import { openScopeStorage } from '../../support/scope-storage.ts'

const MINUTE_MS = 60_000
const failures = vi.spyOn(console, 'error')
beforeEach(() => void failures.mockReset())

const accepted: NewEntry = { ...scopeHead(), kind: 'event-accepted', event_type: 'test.note', source: 'test', via: 'http' }
const trimmed = (count: number): NewEntry => ({ ...scopeHead(), kind: 'context-trimmed', count, context_limit: 1 })

const ended = (id: string): NewEntry => ({
  ...scopeHead(),
  event_ids: [id],
  kind: 'event-ended',
  status: 'completed',
  attempts: 1,
  outcome: { by: 'perceive', reason: 'no trigger' },
  error: null,
})
const noticeIn = (payload: string) => (JSON.parse(payload) as WaitingNotice).notice.data['event_id']
const jobsOf = (database: Database) =>
  part<Jobs>({
    add: (_unit, { kind, key, payload }) =>
      void database.all(
        "INSERT INTO jobs (kind, key, payload, locks, attempts) VALUES (?, ?, ?, '[]', 1)",
        kind,
        key,
        JSON.stringify(payload),
      ),
    run: () => {},
  })

/** The disk of a scope with a webhook, and its clock. */
function scopeOnDisk() {
  const { database, rowsOf } = openScopeStorage()
  const clock = { now: Date.UTC(2026, 10, 24) }
  const now = () => clock.now
  const settings = {
    ...defaultSettings,
    webhooks: [{ name: 'ops', url: 'https://a.example', secret: 'S', on: ['event.ended'] }],
  } as Settings
  /** An object that wakes. If not all follow, it dies before that, or in the middle of it. */
  const wake = (follows: 'all' | 'statistics' | 'none' = 'all') => {
    const log = new Log(database, now)
    const statistics = new Statistics({
      database,
      log,
      db: part<D1Database>({}),
      scope: 'test',
      now,
      agent: () => ({ name: 'a', trigger: async () => null }),
      settings: () => defaultSettings,
    })
    const unit = unitOfWork({
      database,
      log,
      counters: new ScopeCounters(database),
      buffered: [{ changes: () => follower.changes() }],
      deferred: new Deferred(),
      guard: { failed: () => {} },
      alarm: { by: () => {} },
      outbox: { arm: () => {} },
      reset: () => {},
      now,
    })
    const follower = new LogFollower({ log, scope: 'test' })
    const dead = (one: Follows): Follows => ({ name: one.name, from: one.from, follow: () => {}, changes: () => one.changes?.() ?? [] })
    follower.add(follows === 'none' ? dead(statistics) : statistics)
    const notifying = part<LogFollower>({ add: (one) => follower.add(follows === 'all' ? one : dead(one)) })
    void new Notices({ scope: 'test', database, log, follower: notifying, unit, jobs: jobsOf(database), settings: () => settings })
    return { log, unit, statistics, follower }
  }
  const noticed = () =>
    rowsOf("SELECT payload FROM jobs WHERE kind = 'notice' ORDER BY seq").map(({ payload }) => noticeIn(String(payload)))
  return { clock, wake, settings, noticed }
}

describe('what follows the log', () => {
  const follows = (follow: Follows['follow'], from = 0): Follows => ({ name: 'test', from, follow })

  test('gets the entries of a unit once it is committed, in order, and after a death those that it does not have', () => {
    const { wake } = scopeOnDisk()
    const { unit, follower } = wake()
    const seen: number[] = []
    const follow: Follows['follow'] = (entries) => void seen.push(...entries.map(({ seq }) => seq))
    follower.add(follows(follow))
    unit((open) => {
      open.log(trimmed(1))
      unit((nested) => nested.log(trimmed(2)))
      expect(seen).toEqual([])
    })
    unit((open) => open.log(trimmed(3)))
    expect(seen.splice(0)).toEqual([1, 2, 3])
    wake().follower.add(follows(follow, 1))
    expect(seen).toEqual([2, 3])
  })

  test('never gets entries of a unit that is rolled back', () => {
    const { wake } = scopeOnDisk()
    const { unit, follower } = wake()
    const seen: number[] = []
    follower.add(follows((entries) => void seen.push(...entries.map(({ seq }) => seq))))
    const broken = () =>
      unit((open) => {
        open.log(accepted)
        throw new Error('the unit failed')
      })
    expect(broken).toThrow('the unit failed')
    expect(seen).toEqual([])
    const { statistics, log } = wake()
    expect(statistics.values('scope', 'all')).toEqual({})
    expect(log.entries(1, 10)).toEqual([])
  })

  test('may write a unit of its own, whose entries follow when all others have the first ones', () => {
    const { wake } = scopeOnDisk()
    const { unit, follower } = wake()
    const seen: string[] = []
    follower.add(
      follows((entries) => {
        for (const { seq } of entries) seen.push(`first ${seq}`)
        if (entries.some(({ entry }) => entry.kind === 'event-accepted')) unit((open) => open.log(trimmed(1)))
      }),
    )
    follower.add(follows((entries) => void seen.push(...entries.map(({ seq }) => `second ${seq}`))))
    unit((open) => open.log(accepted))
    expect(seen).toEqual(['first 1', 'second 1', 'first 2', 'second 2'])
  })

  test('undoes nothing if it fails: the output says so, and the others follow', () => {
    failures.mockImplementation(() => {})
    const { wake } = scopeOnDisk()
    const { unit, follower, statistics } = wake()
    const seen: number[] = []
    const fails = follows(() => {
      throw new Error('no such kind')
    })
    follower.add(fails)
    follower.add(follows((entries) => void seen.push(entries.length)))
    expect(unit((open) => open.log(accepted, accepted))).toBe(1)
    unit((open) => open.log(accepted))
    expect(seen).toEqual([2, 1])
    expect(statistics.values('scope', 'all')['']).toMatchObject({ accepted: 3 })
    expect(failures.mock.calls.map(([line]) => JSON.parse(String(line)) as unknown)).toMatchObject([
      { by: 'test', scope: 'test', first: 1, last: 2, error: 'no such kind' },
      { first: 3, last: 3 },
    ])
    // It wakes although it fails on each entry.
    wake().follower.add(fails)
    expect(failures).toHaveBeenCalledTimes(3)
  })
})

type Life = {
  entries: ('accepted' | 'ended' | 'trimmed')[]
  many: number
  dies: 'no' | 'before the commit' | 'before following' | 'in the middle' | 'after following'
  passes_ms: number
}
const life: fc.Arbitrary<Life> = fc.record({
  entries: fc.array(fc.constantFrom('accepted', 'ended', 'trimmed'), { maxLength: 3 }),
  // Some units are so large that the next one stores the buckets.
  many: fc.integer({ min: 0, max: 19 }).map((roll) => (roll === 0 ? 2100 : 0)),
  dies: fc.constantFrom('no', 'no', 'before the commit', 'before following', 'in the middle', 'after following'),
  passes_ms: fc.constantFrom(0, 1, MINUTE_MS),
})

/**
 * Accepted events of the newest minute with entries, and of all, and ends of events: as written,
 * and as counted and reported.
 */
function followedOver(lives: readonly Life[]) {
  const { clock, wake, noticed } = scopeOnDisk()
  const ends: string[] = []
  let object = wake()
  let [minute, in_minute, in_all] = [0, 0, 0]
  return lives.map(({ entries, many, dies, passes_ms }) => {
    const made = entries.map((kind) => (kind === 'accepted' ? accepted : kind === 'ended' ? ended(crypto.randomUUID()) : trimmed(1)))
    const all = [...made, ...Array.from({ length: many }, () => trimmed(1))]
    if (dies === 'before following') object = wake('none')
    if (dies === 'in the middle') object = wake('statistics')
    if (dies !== 'before the commit' && all.length > 0) {
      object.unit((open) => open.log(...all))
      ends.push(...made.flatMap(({ kind, event_ids }) => (kind === 'event-ended' ? event_ids : [])))
      const accepts = made.filter((entry) => entry === accepted).length
      if (minute !== Math.floor(clock.now / MINUTE_MS)) in_minute = 0
      ;[minute, in_minute, in_all] = [Math.floor(clock.now / MINUTE_MS), in_minute + accepts, in_all + accepts]
    }
    if (dies !== 'no') object = wake()
    clock.now += passes_ms
    const count = (bucket: Bucket) => object.statistics.values('scope', bucket)['']?.['accepted'] ?? 0
    return { written: [in_minute, in_all, ...ends], followed: [count('minute'), count('all'), ...noticed()] }
  })
}

describe('statistics and notices', () => {
  test('are those of the log, each once and in order, wherever the object dies around a commit and what follows it', () => {
    assertProperty(
      'scope/follower',
      fc.property(fc.array(life, { maxLength: 12 }), (lives) => {
        for (const { written, followed } of followedOver(lives)) expect(followed).toEqual(written)
      }),
      { numRuns: 40 },
    )
  })
})

describe('notices', () => {
  test('tell of nothing before their webhooks were set, also after a death', () => {
    const { wake, settings, noticed } = scopeOnDisk()
    const { webhooks } = settings
    wake().unit((open) => open.log(ended('told')))
    settings.webhooks = []
    const { unit } = wake()
    unit((open) => open.log(ended('to nobody')))
    settings.webhooks = [...webhooks]
    unit((open) => open.log(trimmed(1)))
    const dying = wake('none')
    dying.unit((open) => open.log(ended('told late')))
    wake()
    expect(noticed()).toEqual(['told', 'told late'])
  })
})
