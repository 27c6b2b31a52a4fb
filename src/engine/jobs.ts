import { backoff, pauses } from '../base/backoff.ts'
import { logError } from '../base/warn.ts'
import type { WorkKind } from '../contract/scope.ts'
import type { Alarm } from '../kernel/alarm.ts'
import type { Database, Unit, UnitOfWork } from '../kernel/unit.ts'
import type { Guard } from './upkeep/guard.ts'
import { inBackground } from './log/failures.ts'

/** The name of what handles the job. */
export type JobKind = string
export type Job<Payload = unknown> = { kind: JobKind; key: string; payload: Payload; attempts: number }
/** Jobs that share a lock run one after the other. */
type NewJob = { kind: JobKind; key: string; payload: unknown; locks?: readonly string[] }

export type JobHandler<Payload> = {
  /** The kind under which the guard parks it. */
  work: WorkKind
  /** Maximum number of concurrent jobs. */
  at_once: number
  attempts: number
  /**
   * Runs the job, and removes it (`Jobs.done`) in the unit that writes its result. A job that is
   * still there afterwards is retried: after `again_ms`, else by the lane's own policy.
   */
  run: (job: Job<Payload>) => Promise<{ again_ms: number } | void>
  /** Ends and removes a job that crashed the object too often. */
  giveUp: (job: Job<Payload>, reason: string) => Promise<void> | void
}

/** Interval of alarms while a job runs, which resume it after a crash. */
const HEARTBEAT_MS = 20_000

type JobRow = { seq: number; kind: JobKind; key: string; payload: string; locks: string; attempts: number }
type Running = Pick<JobRow, 'seq' | 'kind' | 'attempts'> & { locks: readonly string[]; ended: PromiseWithResolvers<void>; gone: boolean }
type JobParts = { database: Database; unit: UnitOfWork; guard: Guard; alarm: Alarm; now: () => number }

/**
 * The one lane of durable background work: reflexes' actions, runs of skills, approved runs, calls
 * of the decision model.
 *
 * A row is written in the unit that decides on the work, and deleted in the unit that records its
 * result. If the process dies before the first, nothing was decided; before the second, the job is
 * found on waking and runs again, so its handler must be safe to repeat. Each beginning is counted,
 * from the second one on on disk before it begins, so that a job which kills the object is parked.
 */
export class Jobs {
  readonly #parts: JobParts
  readonly #handlers = new Map<JobKind, JobHandler<never>>()
  readonly #running = new Map<string, Running>()
  /** Consecutive retries of each job since the object woke. */
  readonly #failures = new Map<number, number>()
  /** Jobs added since the object woke, whose first attempt is counted already. */
  readonly #counted = new Set<number>()
  #open: number
  /** False if no job can start; cached, since every event checks it. */
  #waiting: boolean

  constructor(parts: JobParts) {
    this.#parts = parts
    this.#open = parts.database.first<{ open: number }>('SELECT count(*) AS open FROM jobs')?.open ?? 0
    this.#waiting = this.#open > 0
    parts.alarm.source((now) => this.#nextDue(now))
  }

  handle<Payload>(kind: JobKind, handler: JobHandler<Payload>): void {
    if (this.#handlers.has(kind)) throw new Error(`jobs of the kind ${kind} have a handler already: a feature takes a name of its own`)
    this.#handlers.set(kind, handler)
  }

  get any(): boolean {
    return this.#open > 0
  }

  get busy(): boolean {
    return this.#running.size > 0
  }

  add(unit: Unit, job: NewJob): void {
    this.#counted.add(this.#insert(unit, job).seq)
    this.#waiting = true
  }

  /** Adds a job that the caller runs. After a crash it runs like any other. */
  addRunning(unit: Unit, job: NewJob): void {
    this.#start({ ...this.#insert(unit, job), locks: job.locks ?? [] })
  }

  /** Removes a running job, and returns its payload. */
  done(unit: Unit, kind: JobKind, key: string): unknown {
    const running = this.#running.get(nameOf(kind, key))
    if (!running) return undefined
    const gone = unit.all<{ payload: string }>('DELETE FROM jobs WHERE seq = ? RETURNING payload', running.seq)
    running.gone = true
    this.#failures.delete(running.seq)
    this.#open -= gone.length
    return gone[0] && JSON.parse(gone[0].payload)
  }

  /** Stores how far a running job is. */
  advanced(unit: Unit, kind: JobKind, key: string, payload: unknown): void {
    const running = this.#running.get(nameOf(kind, key))
    if (running) unit.all('UPDATE jobs SET payload = ? WHERE seq = ?', JSON.stringify(payload), running.seq)
    this.progressed(unit, kind, key)
  }

  /** Resets the attempts of a job that progressed: the crashes were of other work. */
  progressed(unit: Unit, kind: JobKind, key: string): void {
    const running = this.#running.get(nameOf(kind, key))
    if (!running || running.attempts <= 1) return
    running.attempts = 0
    unit.all('UPDATE jobs SET attempts = 0 WHERE seq = ?', running.seq)
  }

  /** Makes waiting retries of this kind due now. */
  hurry(unit: Unit, kind: JobKind): void {
    const hurried = unit.all('UPDATE jobs SET due_at = 0 WHERE kind = ? AND due_at > 0 RETURNING seq', kind)
    this.#waiting ||= hurried.length > 0
  }

  /** Ends the caller's run of a job from `addRunning`. */
  release(kind: JobKind, key: string): void {
    const name = nameOf(kind, key)
    const running = this.#running.get(name)
    if (!running) return
    this.#running.delete(name)
    running.ended.resolve()
    // Another job may wait for its locks.
    this.#waiting = this.any
  }

  /** Resolves once the job is removed or waits for a retry. */
  async idle(kind: JobKind, key: string): Promise<void> {
    await this.#running.get(nameOf(kind, key))?.ended.promise
  }

  /** True if such a job runs or waits. */
  has(kind: JobKind, key: string): boolean {
    return this.#parts.database.first('SELECT 1 AS one FROM jobs WHERE kind = ? AND key = ?', kind, key) !== undefined
  }

  /** Payloads of jobs with this value at this JSON path. */
  payloads<Payload>(kind: JobKind, path: string, value: string): Payload[] {
    const sql = 'SELECT payload FROM jobs WHERE kind = ? AND payload->>? = ?'
    return this.#parts.database.all<{ payload: string }>(sql, kind, path, value).map(({ payload }) => JSON.parse(payload) as Payload)
  }

  /** Corrects retries that a fast clock left too far in the future. */
  correct(unit: Unit, ahead_ms: number): void {
    unit.all('UPDATE jobs SET due_at = max(?1, due_at - ?2) WHERE due_at > ?1', unit.now, ahead_ms)
  }

  /** Starts jobs, including retries that became due. */
  wake(): void {
    this.#waiting = this.any
    this.run()
  }

  /** Starts all jobs that may start. */
  run(): void {
    if (!this.#waiting) return
    for (let job = this.#next(); job; job = this.#next())
      inBackground(this.#perform(job, this.#start({ ...job, locks: JSON.parse(job.locks) as string[] })))
    if (this.busy) this.#parts.alarm.by(this.#parts.now() + HEARTBEAT_MS)
  }

  async #perform({ kind, key, payload }: JobRow, running: Running): Promise<void> {
    const handler = this.#handlers.get(kind)
    if (!handler) throw new Error(`no handler runs jobs of kind ${kind}`)
    const attempts = await this.#countBeginning(running)
    const job = { kind, key, payload: JSON.parse(payload) as never, attempts }
    let again: { again_ms: number } | void = undefined
    try {
      if (attempts > handler.attempts) await this.#giveUp(job, handler)
      else again = await handler.run(job)
    } catch (error) {
      // The object survived, so this attempt does not count.
      running.attempts -= 1
      logError({ message: 'a job failed and will be retried', kind, key, error })
    }
    if (!running.gone) this.#retry(running, again?.again_ms)
    // Let callers of the object run between two jobs.
    await scheduler.wait(0)
    this.release(kind, key)
    this.run()
    if (!this.busy) this.#parts.alarm.rearm()
  }

  /** Counts an attempt, so that a job that crashes the object is not retried forever. */
  async #countBeginning(running: Running): Promise<number> {
    if (this.#counted.delete(running.seq)) return running.attempts
    const { unit, database } = this.#parts
    running.attempts += 1
    unit((counting) => counting.all('UPDATE jobs SET attempts = ?2 WHERE seq = ?1', running.seq, running.attempts))
    if (running.attempts > 1) await database.sync()
    return running.attempts
  }

  async #giveUp(job: Job<never>, { work: kind, attempts, giveUp }: JobHandler<never>): Promise<void> {
    const { guard, unit } = this.#parts
    const work = { kind, id: job.key }
    const reason = `it was begun ${attempts} times, and each time its scope died or lost a connection: ${guard.reason(work)}`
    unit((parking) => guard.park(parking, work, reason), work)
    await giveUp(job, reason)
  }

  #retry({ seq, attempts }: Running, again_ms?: number): void {
    const failures = (this.#failures.get(seq) ?? 0) + 1
    this.#failures.set(seq, failures)
    const after_ms = again_ms ?? backoff(pauses.job, failures)
    const sql = 'UPDATE jobs SET due_at = ?2, attempts = ?3 WHERE seq = ?1'
    this.#parts.unit((unit) => unit.all(sql, seq, unit.now + after_ms, attempts))
  }

  #insert(unit: Unit, { kind, key, payload, locks = [] }: NewJob): { seq: number; kind: JobKind; key: string; attempts: number } {
    // Count the first attempt with the insertion, to save a write.
    const attempts = 1
    const sql = 'INSERT INTO jobs (kind, key, payload, locks, attempts) VALUES (?, ?, ?, ?, ?) RETURNING seq'
    const [row] = unit.all<{ seq: number }>(sql, kind, key, JSON.stringify(payload), JSON.stringify(locks), attempts)
    this.#open += 1
    unit.wakeBy(unit.now + HEARTBEAT_MS)
    return { seq: row?.seq ?? 0, kind, key, attempts }
  }

  #start({ seq, kind, key, locks, attempts }: Pick<JobRow, 'seq' | 'kind' | 'key' | 'attempts'> & { locks: readonly string[] }): Running {
    const running = { seq, kind, locks, attempts, ended: Promise.withResolvers<void>(), gone: false }
    this.#running.set(nameOf(kind, key), running)
    return running
  }

  /** True if fewer jobs of this kind run than may. */
  isFree(kind: JobKind): boolean {
    const running = Array.from(this.#running.values()).filter((job) => job.kind === kind)
    return running.length < (this.#handlers.get(kind)?.at_once ?? Infinity)
  }

  /** The oldest job that may start. */
  #next(): JobRow | null {
    const running = Array.from(this.#running.values())
    // Jobs of a feature that the deployment left out wait for it.
    const free = Array.from(this.#handlers.keys()).filter((kind) => this.isFree(kind))
    const row = this.#parts.database.first<JobRow>(
      `SELECT seq, kind, key, payload, locks, attempts FROM jobs WHERE due_at <= ?1 AND seq NOT IN (SELECT value FROM json_each(?2))
        AND kind IN (SELECT value FROM json_each(?3))
        AND NOT EXISTS (SELECT 1 FROM json_each(locks) WHERE value IN (SELECT value FROM json_each(?4))) ORDER BY seq LIMIT 1`,
      this.#parts.now(),
      JSON.stringify(running.map(({ seq }) => seq)),
      JSON.stringify(free),
      JSON.stringify(running.flatMap(({ locks }) => locks)),
    )
    this.#waiting = row !== undefined
    return row ?? null
  }

  /** Time of the next retry. A running job sets a heartbeat, in case the object crashes. */
  #nextDue(now: number): number | null {
    if (this.#open === 0) return null
    const running = JSON.stringify(Array.from(this.#running.values(), ({ seq }) => seq))
    const sql = `SELECT min(due_at) AS at FROM jobs WHERE seq NOT IN (SELECT value FROM json_each(?1))
      AND kind IN (SELECT value FROM json_each(?2))`
    const kinds = JSON.stringify([...this.#handlers.keys()])
    const due = this.#parts.database.first<{ at: number | null }>(sql, running, kinds)?.at ?? Infinity
    if (due === Infinity && !this.busy) return null
    if (this.busy) return Math.min(now + HEARTBEAT_MS, due > now ? due : Infinity)
    return Math.max(due, now + pauses.job.first_ms / 2)
  }
}

const nameOf = (kind: JobKind, key: string): string => `${kind} ${key}`
