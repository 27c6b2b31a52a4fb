import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Database, Unit } from '../../../src/kernel/unit.ts'
import { Guard, MOST_DEATHS, together } from '../../../src/engine/upkeep/guard.ts'
import { part } from '../agents/agent-fixtures.ts'

const event = { kind: 'event', id: '7' } as const

/** The state on disk; `flushed` counts the waits for it. */
let sqlite: DatabaseSync
let flushed = 0
let logged: unknown[] = []

beforeEach(() => {
  sqlite = new DatabaseSync(':memory:')
  sqlite.exec(`CREATE TABLE guard (kind TEXT, id TEXT, deaths INTEGER, reason TEXT, at INTEGER, parked_at INTEGER, PRIMARY KEY (kind, id));
    CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT)`)
  flushed = 0
  logged = []
})

const unit = part<Unit>({ now: 1000, log: (...entries) => logged.push(...entries) })

/** The guard after a restart of the object. */
function started(): Guard {
  const all = (sql: string, ...params: SQLInputValue[]) => sqlite.prepare(sql).all(...params)
  const read = (key: string, otherwise: unknown): unknown => {
    const [row] = all('SELECT value FROM state WHERE key = ?', key)
    return row ? JSON.parse(String(row['value'])) : otherwise
  }
  const write = (key: string, value: unknown) => void all('INSERT OR REPLACE INTO state VALUES (?, ?)', key, JSON.stringify(value))
  const remove = (key: string) => void all('DELETE FROM state WHERE key = ?', key)
  const database = { laid: true, all, read, write, remove, sync: async () => void (flushed += 1) }
  return new Guard({ database: database as unknown as Database, now: () => 1000 })
}

describe('the guard', () => {
  test('has work begun five times, each counted on disk before it, and then no more', async () => {
    for (let death = 1; death <= MOST_DEATHS; death += 1) {
      expect(await started().begin(event)).toBe(true)
      expect(flushed).toBe(death)
    }
    expect(await started().begin(event)).toBe(false)
  })

  test('forgets the deaths of work that comes to its end', async () => {
    const guard = started()
    await guard.begin(event)
    guard.done(event)
    expect(started().deaths(event)).toBe(0)
  })

  test('counts a failure once, whether it was counted before or not, and keeps its reason', async () => {
    const guard = started()
    await guard.begin(event)
    guard.failed(event, new Error('too large'))
    expect(started().deaths(event)).toBe(1)
    started().failed(event, new Error('still too large'))
    expect(started().deaths(event)).toBe(2)
    expect(started().reason(event)).toBe('still too large')
  })

  test('does not count the failure of other work, and says what the object died of, once', async () => {
    const guard = started()
    await guard.begin({ kind: 'turn', id: '1' })
    guard.failed(event, new Error('too large'))
    const next = started()
    expect(next.deaths({ kind: 'turn', id: '1' })).toBe(0)
    expect([next.diedOf(), next.diedOf()]).toEqual(['event', null])
  })

  test('has work of a kind done piece by piece after a death at it, and only of that kind', () => {
    started().failed(together('event'), new Error('too large'))
    const guard = started()
    expect([guard.careful('event'), guard.careful('turn')]).toEqual([true, false])
    guard.done(together('event'))
    expect(started().careful('event')).toBe(false)
  })

  test('has all work done piece by piece where the object wakes a third time without having come to rest', async () => {
    for (const careful of [false, false, true]) {
      const guard = started()
      await guard.woke()
      expect(guard.careful('timer')).toBe(careful)
    }
    expect(flushed).toBe(3)
    const guard = started()
    await guard.woke()
    guard.rested()
    expect(guard.careful('timer')).toBe(false)
    const next = started()
    await next.woke()
    expect(next.careful('timer')).toBe(false)
  })

  test('lists parked work, logs it, and drops it when it is set again', () => {
    const guard = started()
    guard.failed(event, new Error('too large'))
    guard.park(unit, event, 'too large, again')
    expect(started().list()).toEqual([{ ...event, deaths: 1, reason: 'too large, again', parked_at: '1970-01-01T00:00:01.000Z' }])
    expect(logged).toMatchObject([{ kind: 'work-parked', work: 'event', id: '7', deaths: 1 }])
    guard.done(event)
    expect(started().count).toBe(1)
    guard.release(event)
    expect(started().count).toBe(0)
  })

  test('has work of a kind done together again once the piece that caused the crashes is parked', () => {
    const guard = started()
    guard.failed(together('event'), new Error('too large'))
    guard.park(unit, event, 'too large')
    expect([guard.careful('event'), started().careful('event')]).toEqual([false, false])
  })

  test('clears each count of an event that a person has retried, and of no other', async () => {
    const guard = started()
    for (const kind of ['event', 'turn', 'outbox', 'timer'] as const) await guard.begin({ kind, id: '7' })
    await guard.begin({ kind: 'event', id: '8' })
    guard.releaseEvent(7)
    const next = started()
    expect((['event', 'turn', 'outbox', 'timer'] as const).map((kind) => next.deaths({ kind, id: '7' }))).toEqual([0, 0, 0, 1])
    expect(next.deaths({ kind: 'event', id: '8' })).toBe(1)
  })

  test('forgets old counts, but no timer or setting, which stay parked until somebody sets them', () => {
    const kept = [
      { kind: 'timer', id: 'daily' },
      { kind: 'setting', id: 'agent' },
    ] as const
    const guard = started()
    for (const work of [event, ...kept]) guard.park(unit, work, 'it crashed')
    guard.forget(1000)
    expect(guard.count).toBe(3)
    guard.forget(1001)
    for (const work of [event, ...kept]) expect(started().parkedAt(work)).toBe(work === event ? null : 1000)
  })
})
