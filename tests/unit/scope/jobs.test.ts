import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Alarm } from '../../../src/kernel/alarm.ts'
import type { Database, Unit, UnitOfWork } from '../../../src/kernel/unit.ts'
import type { Guard, GuardedWork } from '../../../src/engine/upkeep/guard.ts'
import { Jobs, type Job, type JobHandler, type JobKind } from '../../../src/engine/jobs.ts'
import { part } from '../agents/agent-fixtures.ts'

let sqlite: DatabaseSync
let now = 0
let parked: GuardedWork[] = []

beforeEach(() => {
  sqlite = new DatabaseSync(':memory:')
  sqlite.exec(
    `CREATE TABLE jobs (seq INTEGER PRIMARY KEY, kind TEXT, key TEXT, payload TEXT, locks TEXT, attempts INTEGER, due_at INTEGER DEFAULT 0)`,
  )
  now = 1_000_000
  parked = []
  vi.stubGlobal('scheduler', { wait: async () => {} })
})

const all = (sql: string, ...params: SQLInputValue[]) => sqlite.prepare(sql).all(...params)

/** The lane as it is after each start of the object, with the time of its next alarm. */
function started() {
  const unit: UnitOfWork = (work) => work(part<Unit>({ now, all: all as Unit['all'], wakeBy: () => {} }))
  const database = part<Database>({
    first: ((sql, ...params) => all(sql, ...(params as SQLInputValue[]))[0]) as Database['first'],
    sync: async () => {},
  })
  const guard = part<Guard>({ reason: () => 'out of memory', park: (_unit: Unit, work: GuardedWork) => void parked.push(work) })
  let due: (now: number) => number | null = () => null
  const alarm = part<Alarm>({ source: (source) => void (due = source), by: () => {}, rearm: () => {} })
  const jobs = new Jobs({ database, unit, guard, alarm, now: () => now })
  const add = (kind: JobKind, key: string, locks: string[] = []) => unit((open) => jobs.add(open, { kind, key, payload: { key }, locks }))
  const done = (kind: JobKind, key: string) => unit((open) => jobs.done(open, kind, key))
  return { jobs, unit, add, done, due: () => due(now) }
}

/** Begins jobs and never ends them, as if the process died during them. */
function hanging(begun: string[], changes: Partial<JobHandler<unknown>> = {}): JobHandler<unknown> {
  const run = async ({ key }: Job) => (begun.push(key), new Promise<never>(() => {}))
  return { work: 'action', at_once: 1, attempts: 5, run, giveUp: () => {}, ...changes }
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 0))

describe('the job lane', () => {
  test('runs jobs in order, as many at a time as their kind allows', async () => {
    const begun: string[] = []
    const { jobs, add } = started()
    jobs.handle('action', hanging(begun))
    jobs.handle('plan', hanging(begun, { at_once: 2 }))
    for (const key of ['a', 'b']) add('action', key)
    for (const key of ['p', 'q', 'r']) add('plan', key)
    jobs.run()
    await settled()
    expect(begun).toEqual(['a', 'p', 'q'])
  })

  test('runs jobs that share a lock one after the other', async () => {
    const begun: string[] = []
    const { jobs, add, done } = started()
    const ends = new Map<string, () => void>()
    const run = async ({ key }: Job) => {
      begun.push(key)
      await new Promise<void>((resolve) => ends.set(key, resolve))
      done('plan', key)
    }
    jobs.handle('plan', hanging(begun, { at_once: 5, run }))
    add('plan', 'first', ['skill a'])
    add('plan', 'second', ['skill a'])
    add('plan', 'other', ['skill b'])
    jobs.run()
    await settled()
    expect(begun).toEqual(['first', 'other'])
    ends.get('first')?.()
    await settled()
    expect(begun).toEqual(['first', 'other', 'second'])
  })

  test('retries a job that its handler left, after growing pauses, and counts no failure as a death', async () => {
    const begun: string[] = []
    const { jobs, add, due } = started()
    const failing = async ({ key }: Job) => {
      begun.push(key)
      throw new Error('D1 is away')
    }
    jobs.handle('run', hanging(begun, { run: failing }))
    vi.spyOn(console, 'error').mockImplementation(() => {})
    add('run', 'a')
    jobs.run()
    await settled()
    const pauses: number[] = []
    for (let retry = 0; retry < 8; retry += 1) {
      const pause = (due() ?? 0) - now
      pauses.push(pause)
      now += pause
      jobs.wake()
      await settled()
    }
    expect(pauses).toEqual([2, 4, 8, 16, 32, 60, 60, 60].map((s) => s * 1000))
    expect(begun).toHaveLength(9)
    expect(all('SELECT attempts FROM jobs')).toEqual([{ attempts: 0 }])
    expect(parked).toEqual([])
  })

  test('retries a job in the pause that it has left once a clock that was ahead is corrected', async () => {
    const begun: string[] = []
    const { jobs, unit, add } = started()
    jobs.handle('action', hanging(begun, { run: async ({ key }) => (begun.push(key), { again_ms: 30_000 }) }))
    now += 3_600_000
    add('action', 'a')
    jobs.run()
    await settled()
    now -= 3_600_000
    const again = started()
    again.jobs.handle('action', hanging(begun))
    unit((open) => again.jobs.correct(open, 3_600_000))
    expect(again.due()).toBe(now + 30_000)
    now += 30_000
    again.jobs.wake()
    await settled()
    expect(begun).toEqual(['a', 'a'])
  })

  test('gives a job up that the object died of too often, and parks it', async () => {
    const begun: string[] = []
    const given_up: string[] = []
    const start = () => {
      const lane = started()
      const giveUp = ({ key }: Job, reason: string) => {
        given_up.push(reason)
        lane.done('action', key)
      }
      lane.jobs.handle('action', hanging(begun, { giveUp }))
      return lane
    }
    const first = start()
    first.add('action', 'deadly')
    first.jobs.run()
    await settled()
    for (let death = 1; death <= 5; death += 1) {
      start().jobs.run()
      await settled()
    }
    expect(begun).toHaveLength(5)
    expect(given_up).toEqual([expect.stringContaining('begun 5 times')])
    expect(parked).toEqual([{ kind: 'action', id: 'deadly' }])
    expect(all('SELECT * FROM jobs')).toEqual([])
  })

  test('leaves a job to the caller that runs it, and resumes it after a death', async () => {
    const begun: string[] = []
    const { jobs, unit } = started()
    jobs.handle('run', hanging(begun))
    unit((open) => jobs.addRunning(open, { kind: 'run', key: 'a', payload: {} }))
    jobs.run()
    await settled()
    expect(begun).toEqual([])
    const after = started()
    after.jobs.handle('run', hanging(begun))
    after.jobs.run()
    await settled()
    expect(begun).toEqual(['a'])
  })

  test('resolves idle once a job has been removed', async () => {
    const { jobs, unit, done } = started()
    unit((open) => jobs.addRunning(open, { kind: 'run', key: 'a', payload: { of: 'a' } }))
    let idle = false
    const waiting = jobs.idle('run', 'a').then(() => (idle = true))
    await settled()
    expect(idle).toBe(false)
    expect(done('run', 'a')).toEqual({ of: 'a' })
    jobs.release('run', 'a')
    await waiting
    expect(jobs.any).toBe(false)
  })
})
