import type { RunRecord, RunsPort, SessionEntry, SkillUsage } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { JsonFields } from '../../base/json.ts'
import type { Alarm } from '../alarm.ts'
import type { Database } from '../database.ts'
import type { DoneKeys, DoneRow } from '../effects/done-keys.ts'
import type { LastGood } from '../../skills/runner/ports.ts'
import type { Guard } from '../guard.ts'
import { begunRun, endedRun, type RunReports } from './run-reports.ts'
import type { UnitOfWork } from '../unit.ts'

/** For whom a run is: the turn, the reflex's action, the approval or the call that asked, so that a repetition is given the same run. */
export type Asked = {
  cause: string
  inputs_hash: string
  /** Stops the run, which is then compensated: that this was begun is kept, so that a death does not have the run go on. */
  signal?: AbortSignal | undefined
}
/** How soon the object wakes to go on with a run that nobody is at any more. */
const AGAIN_MS = 20_000

type Parts = {
  database: Database
  done_keys: DoneKeys
  run_reports: RunReports
  unit: UnitOfWork
  guard: Guard
  alarm: Alarm
  now: () => number
}
export type OpenRun = { record: RunRecord; asked: Asked; stopping: boolean }

/**
 * The runs of skills. Kept state: a row before the first step; then, in one transaction, the run's status, the result as it is told and what is logged of it.
 * If the process dies before the first, nothing ran; before the second, the run is resumed on waking, from its journal, or undone where it was being
 * stopped; after it, whoever asks again is given the result.
 */
export class SkillRuns {
  readonly #database: Database
  readonly #done: DoneKeys
  readonly #reports: RunReports
  readonly #unit: UnitOfWork
  readonly #guard: Guard
  readonly #wake: () => void
  /** At work in this process: what is open and not among them was cut off. */
  readonly #at_work = new Map<string, PromiseWithResolvers<void>>()

  constructor({ database, done_keys, run_reports, unit, guard, alarm, now }: Parts) {
    this.#guard = guard
    this.#database = database
    this.#done = done_keys
    this.#reports = run_reports
    this.#unit = unit
    // Whatever asked for it: what a death cuts off wakes the object by itself.
    this.#wake = () => alarm.by(now() + AGAIN_MS)
    alarm.source((at) => (this.anyOpen() ? at + AGAIN_MS : null))
  }

  /** Once it is no longer at work: it has ended, or could not be gone on with. */
  async rested(run_id: string): Promise<void> {
    await this.#at_work.get(run_id)?.promise
  }

  takeUp(run_id: string): void {
    this.#at_work.set(run_id, Promise.withResolvers())
  }

  letGo(run_id: string): void {
    this.#at_work.get(run_id)?.resolve()
    this.#at_work.delete(run_id)
  }

  /** `asked` may change from one run to the next. */
  port(asked: Asked, append: (told: SessionEntry) => void): RunsPort {
    return {
      begin: async (record) => {
        const { run_id } = record
        this.takeUp(run_id)
        this.#wake()
        asked.signal?.addEventListener('abort', () => this.#stopping(run_id), { once: true })
        this.#unit(
          () => {
            this.#database.all(
              `INSERT INTO skill_runs (run_id, skill_id, version, cause, inputs_hash, request, status, started_at) VALUES (?, ?, ?, ?, ?, ?, 'running', ?)`,
              run_id,
              record.skill_id,
              record.version,
              asked.cause,
              asked.inputs_hash,
              JSON.stringify(record),
              record.started_at,
            )
            if (record.approval_id !== null) this.#reports.note(record.approval_id, begunRun(run_id))
          },
          { kind: 'run', id: run_id },
        )
      },
      end: async (run_id, { status, ended_at, result }, told) => {
        // What was stopped and undone is nobody's run any more: an interrupted turn may ask for it anew.
        const undone = `status = 'stopping' AND ?2 IN ('failed', 'partial_failure')`
        const end = `UPDATE skill_runs SET status = ?2, ended_at = ?3, result = ?4, cause = CASE WHEN ${undone} THEN '' ELSE cause END
          WHERE run_id = ?1 RETURNING request->>'approval_id' AS approval_id`
        this.#unit(
          () => {
            const [row] = this.#database.all<{ approval_id: string | null }>(end, run_id, status, ended_at, JSON.stringify(result))
            if (row && row.approval_id !== null) this.#reports.note(row.approval_id, endedRun(result, told[0], ended_at))
            for (const entry of told) append(entry)
          },
          { kind: 'run', id: run_id },
        )
        this.#guard.done({ kind: 'run', id: run_id })
        this.letGo(run_id)
      },
    }
  }

  #stopping(run_id: string): void {
    this.#unit(() => this.#database.all(`UPDATE skill_runs SET status = 'stopping' WHERE run_id = ? AND ended_at IS NULL`, run_id))
  }

  /** What one of these causes had run before, with the same inputs; without a result until it has ended. */
  earlier(skill_id: string, causes: readonly string[], inputs_hash: string): { run_id: string; result: ProposalResult | null } | null {
    const row = this.#database.first<{ run_id: string; result: string | null }>(
      `SELECT run_id, result FROM skill_runs WHERE cause IN (SELECT value FROM json_each(?)) AND skill_id = ? AND inputs_hash = ?
        ORDER BY started_at LIMIT 1`,
      JSON.stringify(causes),
      skill_id,
      inputs_hash,
    )
    return row ? { run_id: row.run_id, result: row.result === null ? null : (JSON.parse(row.result) as ProposalResult) } : null
  }

  /** Runs that a death cut off, or that could not be gone on with since. */
  lost(): OpenRun[] {
    return this.#database
      .all<{ cause: string; inputs_hash: string; request: string; status: string }>(
        `SELECT request, cause, inputs_hash, status FROM skill_runs WHERE ended_at IS NULL ORDER BY started_at`,
      )
      .map(({ request, cause, inputs_hash, status }) => {
        return { record: JSON.parse(request) as RunRecord, asked: { cause, inputs_hash }, stopping: status === 'stopping' }
      })
      .filter(({ record }) => !this.#at_work.has(record.run_id))
  }

  anyOpen(): boolean {
    return this.#database.first('SELECT 1 AS one FROM skill_runs WHERE ended_at IS NULL LIMIT 1') !== undefined
  }

  usage(skill_id: string): SkillUsage {
    const row = this.#database.first<SkillUsage>(
      'SELECT max(started_at) AS last_run_at, count(*) FILTER (WHERE ended_at IS NULL) AS running FROM skill_runs WHERE skill_id = ?',
      skill_id,
    )
    return { last_run_at: row?.last_run_at ?? null, running: row?.running ?? 0 }
  }

  recentSuccess(): ReadonlySet<string> {
    const rows = this.#database.all<{ skill_id: string; status: string }>(
      'SELECT skill_id, status, max(ended_at) FROM skill_runs WHERE ended_at IS NOT NULL GROUP BY skill_id',
    )
    return new Set(rows.filter(({ status }) => status === 'ok' || status === 'reused').map(({ skill_id }) => skill_id))
  }

  lastGood(idempotence_key: string): LastGood | null {
    const row = this.#database.first<{ outputs: string }>('SELECT outputs FROM skill_outputs WHERE idempotence_key = ?', idempotence_key)
    if (row) return { outputs: JSON.parse(row.outputs) as JsonFields, detail: null }
    const before = this.#done.find({ kind: 'plan' }, idempotence_key)
    return before ? { outputs: before.output === null ? null : (JSON.parse(before.output) as JsonFields), detail: before.detail } : null
  }

  remember(idempotence_key: string, outputs: JsonFields, at: number): void {
    this.#unit(() =>
      this.#database.all(
        'INSERT INTO skill_outputs (idempotence_key, outputs, at) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET outputs = ?2, at = ?3',
        idempotence_key,
        JSON.stringify(outputs),
        at,
      ),
    )
  }

  /** Within a unit of work: what ended before `before`. */
  forget(before: number, limit: number): number {
    const gone = this.#database.all<{ run_id: string }>(
      'DELETE FROM skill_runs WHERE run_id IN (SELECT run_id FROM skill_runs WHERE ended_at < ? LIMIT ?) RETURNING run_id',
      before,
      limit,
    )
    this.#database.all(
      'DELETE FROM skill_steps WHERE run_id IN (SELECT value FROM json_each(?))',
      JSON.stringify(gone.map(({ run_id }) => run_id)),
    )
    const outputs = this.#database.all<DoneRow>(
      `DELETE FROM skill_outputs WHERE idempotence_key IN (SELECT idempotence_key FROM skill_outputs WHERE at < ? LIMIT ?)
        RETURNING idempotence_key, outputs AS output, at`,
      before,
      limit,
    )
    this.#done.keep({ kind: 'plan' }, outputs)
    return Math.max(gone.length, outputs.length)
  }
}
