import * as fc from 'fast-check'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Bucket } from '../../../src/contract/reports/statistics.ts'
import type { NewEntry } from '../../../src/contract/log-entry.ts'
import { Follower, type Follows } from '../../../src/scope/log/follower.ts'
import { Log } from '../../../src/scope/log/log.ts'
import { scopeHead } from '../../../src/scope/log/spans.ts'
import { Statistics } from '../../../src/scope/statistics/statistics.ts'
import { Counters } from '../../../src/scope/storage/counters.ts'
import { Deferred, unitOfWork } from '../../../src/scope/storage/unit.ts'
import { part } from '../agents/agent-fixtures.ts'
import { assertProperty } from '../../support/property.ts'
import { openScopeStorage } from '../../support/scope-storage.ts'

const MINUTE_MS = 60_000
const failures = vi.spyOn(console, 'error')
beforeEach(() => void failures.mockReset())

const accepted: NewEntry = { ...scopeHead(), kind: 'event-accepted', event_type: 'test.note', source: 'test', via: 'http' }
const trimmed = (count: number): NewEntry => ({ ...scopeHead(), kind: 'context-trimmed', count, context_limit: 1 })

/** A scope on its disk. `died`: with what an object has not done yet when it dies. */
function scopeOnDisk() {
  const { database } = openScopeStorage()
  const clock = { now: Date.UTC(2026, 10, 24) }
  const now = () => clock.now
  /** An object that wakes. Without a follower, it dies between the commit and the following. */
  const wake = ({ follows = true } = {}) => {
    const log = new Log(database, now)
    const statistics = new Statistics({ database, log, db: part<D1Database>({}), scope: 'test', now, has_trigger: () => true })
    const unit = unitOfWork({
      database,
      log,
      counters: new Counters(database),
      buffered: [statistics],
      deferred: new Deferred(),
      guard: { failed: () => {} },
      alarm: { by: () => {} },
      changed: () => {},
      reset: () => {},
      now,
    })
    const follower = new Follower({ log, scope: 'test' })
    if (follows) follower.add(statistics)
    return { log, unit, statistics, follower }
  }
  return { clock, wake }
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
    expect(statistics.values('scope', 'all')['']).toEqual({ accepted: 3 })
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
  entries: NewEntry[]
  many: number
  dies: 'no' | 'before the commit' | 'before following' | 'after following'
  passes_ms: number
}
const life: fc.Arbitrary<Life> = fc.record({
  entries: fc.array(fc.constantFrom(accepted, trimmed(1)), { maxLength: 3 }),
  // Some units are so large that the next one stores the buckets.
  many: fc.integer({ min: 0, max: 19 }).map((roll) => (roll === 0 ? 2100 : 0)),
  dies: fc.constantFrom('no', 'no', 'before the commit', 'before following', 'after following'),
  passes_ms: fc.constantFrom(0, 1, MINUTE_MS),
})

/** Accepted events of the newest minute with entries, and of all: as written, and as counted. */
function countedOver(lives: readonly Life[]) {
  const { clock, wake } = scopeOnDisk()
  let object = wake()
  let [minute, in_minute, in_all] = [0, 0, 0]
  return lives.map(({ entries, many, dies, passes_ms }) => {
    const all = [...entries, ...Array.from({ length: many }, () => trimmed(1))]
    if (dies === 'before following') object = wake({ follows: false })
    if (dies !== 'before the commit' && all.length > 0) {
      object.unit((open) => open.log(...all))
      const accepts = entries.filter((entry) => entry === accepted).length
      if (minute !== Math.floor(clock.now / MINUTE_MS)) in_minute = 0
      ;[minute, in_minute, in_all] = [Math.floor(clock.now / MINUTE_MS), in_minute + accepts, in_all + accepts]
    }
    if (dies !== 'no') object = wake()
    clock.now += passes_ms
    const count = (bucket: Bucket) => object.statistics.values('scope', bucket)['']?.['accepted'] ?? 0
    return { written: [in_minute, in_all], counted: [count('minute'), count('all')] }
  })
}

describe('the statistics', () => {
  test('are those of the log, wherever the object dies around a commit and what follows it', () => {
    assertProperty(
      'scope/follower',
      fc.property(fc.array(life, { maxLength: 12 }), (lives) => {
        for (const { written, counted } of countedOver(lives)) expect(counted).toEqual(written)
      }),
    )
  })
})
