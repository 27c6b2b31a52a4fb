import type { JsonFields } from '../../base/json.ts'
import type { LastGood } from '../../skills/runner/ports.ts'
import type { RunRecord, RunsPort, SessionEntry, SkillUsage } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { KeyedWork, SkillCall, WorkState } from '../../contract/scope-api.ts'
import { isGlobalKey } from '../../tools/define-tool.ts'
import { keptOutput, type DoneBefore, type DoneRow } from '../effects/effect-journal.ts'
import { KeyNotFree } from '../effects/global-keys.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import type { ScopeFeature } from '../feature.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Lanes } from '../effects/wiring.ts'

/** The runs in which transitions between skills are counted. */
const RECENT_RUNS = 200

/** The asker of a run: a turn, an action, an approval or a call. It gets its run once. */
export type RunAsker = {
  cause: string
  inputs_hash: string
  /** The span below which the run is, also after a crash. */
  head: EntryHead
  /** Stops and compensates the run. The stop is stored, so that a crash does not resume it. */
  signal?: AbortSignal | undefined
}
/** A run's job: the state to resume from, with its steps in the effect journal. */
export type OpenRun = { record: RunRecord; cause: string; head: EntryHead }

type RunParts = Pick<Lanes, 'database' | 'done_keys' | 'global_keys' | 'effects' | 'jobs' | 'unit' | 'guard'> & {
  features: readonly Pick<ScopeFeature, 'runBegan' | 'runEnded'>[]
}

/**
 * The runs of skills. A row and a job are written before the first step; the run's end, its result
 * and its log entries in one unit, with the job's end. A process that dies before the first has run
 * nothing; before the second, the job resumes the run, or undoes it if it was being stopped.
 */
export class SkillRuns {
  readonly #parts: RunParts
  /** Calls and approved runs in progress, by their cause. */
  readonly #stops = new Map<string, AbortController>()

  constructor(parts: RunParts) {
    this.#parts = parts
  }

  /** Does work that `stop` aborts. */
  async stoppable<Result>(cause: string, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const stop = new AbortController()
    this.#stops.set(cause, stop)
    try {
      return await work(stop.signal)
    } finally {
      this.#stops.delete(cause)
    }
  }

  /** A run that was resumed after a crash is not stopped: it has lost its caller. */
  stop(cause: string, by: string): void {
    this.#stops.get(cause)?.abort(new Error(`${by} cancelled the call`))
  }

  /** `asker` may change from one run to the next. */
  port(asker: RunAsker, append: (unit: Unit, entry: SessionEntry) => void): RunsPort {
    return {
      begin: async (record) => {
        const { run_id } = record
        const { cause } = asker
        asker.signal?.addEventListener('abort', () => this.#stop(cause, run_id), { once: true })
        this.#parts.unit((unit) => this.#begin(unit, record, asker), { kind: 'run', id: run_id })
      },
      end: async (run_id, end, entries) => {
        const { unit, guard, jobs, global_keys } = this.#parts
        const work = { kind: 'run', id: run_id } as const
        unit((ending) => {
          this.#end(ending, run_id, end, entries[0])
          for (const entry of entries) append(ending, entry)
          guard.done(work)
        }, work)
        jobs.release('run', run_id)
        global_keys.settle({ kind: 'run', run_id }, stateAfter(end.status, end.result, end.ended_at))
      },
    }
  }

  /** An earlier run for one of these causes. `result` is null until it has ended. */
  earlier(skill_id: string, causes: readonly string[], inputs_hash: string): { run_id: string; result: ProposalResult | null } | null {
    const sql = `SELECT run_id, result FROM skill_runs WHERE cause IN (SELECT value FROM json_each(?)) AND skill_id = ? AND inputs_hash = ?
        ORDER BY started_at LIMIT 1`
    const row = this.#parts.database.first<{ run_id: string; result: string | null }>(sql, JSON.stringify(causes), skill_id, inputs_hash)
    return row ? { run_id: row.run_id, result: row.result === null ? null : (JSON.parse(row.result) as ProposalResult) } : null
  }

  /** The run that a call or an approval led to. */
  ofCause(cause: string): SkillCall | null {
    const sql = 'SELECT run_id, started_at, ended_at, result FROM skill_runs WHERE cause = ? ORDER BY started_at LIMIT 1'
    return this.#parts.database.first<SkillCall>(sql, cause) ?? null
  }

  isStopping(cause: string, run_id: string): boolean {
    const sql = `SELECT 1 AS one FROM skill_runs WHERE cause = ? AND run_id = ? AND status = 'stopping'`
    return this.#parts.database.first(sql, cause, run_id) !== undefined
  }

  /** The state of a run, or of an effect, that holds a deployment-wide key. */
  stateOf(work: KeyedWork): WorkState {
    if (this.#parts.global_keys.holds(work)) return { state: 'running' }
    return work.kind === 'effect' ? this.#parts.effects.journal.stateOf(work) : this.#stateOfRun(work.run_id)
  }

  #stateOfRun(run_id: string): WorkState {
    const sql = 'SELECT status, result, ended_at FROM skill_runs WHERE run_id = ?'
    const row = this.#parts.database.first<{ status: string; result: string | null; ended_at: number | null }>(sql, run_id)
    if (!row) return { state: 'free' }
    if (row.result === null || row.ended_at === null) return { state: 'running' }
    return stateAfter(row.status, JSON.parse(row.result) as ProposalResult, row.ended_at)
  }

  usage(skill_id: string): SkillUsage {
    const sql =
      'SELECT max(started_at) AS last_run_at, count(*) FILTER (WHERE ended_at IS NULL) AS running FROM skill_runs WHERE skill_id = ?'
    const row = this.#parts.database.first<SkillUsage>(sql, skill_id)
    return { last_run_at: row?.last_run_at ?? null, running: row?.running ?? 0 }
  }

  recentSuccess(): ReadonlySet<string> {
    const sql = 'SELECT skill_id, status, max(ended_at) FROM skill_runs WHERE ended_at IS NOT NULL GROUP BY skill_id'
    const rows = this.#parts.database.all<{ skill_id: string; status: string }>(sql)
    return new Set(rows.filter(({ status }) => status === 'ok' || status === 'reused').map(({ skill_id }) => skill_id))
  }

  latest(): string | null {
    const sql = 'SELECT skill_id FROM skill_runs ORDER BY started_at DESC, run_id DESC LIMIT 1'
    return this.#parts.database.first<{ skill_id: string }>(sql)?.skill_id ?? null
  }

  /** Counts how often each skill followed the latest one among recent runs. */
  transitions(): ReadonlyMap<string, number> {
    const recent = `(SELECT skill_id, started_at, run_id FROM skill_runs ORDER BY started_at DESC, run_id DESC LIMIT ${RECENT_RUNS})`
    const rows = this.#parts.database.all<{ skill_id: string; times: number }>(
      `SELECT skill_id, count(*) AS times
         FROM (SELECT skill_id, lag(skill_id) OVER (ORDER BY started_at, run_id) AS earlier FROM ${recent})
         WHERE earlier = (SELECT skill_id FROM skill_runs ORDER BY started_at DESC, run_id DESC LIMIT 1) GROUP BY skill_id`,
    )
    return new Map(rows.map(({ skill_id, times }) => [skill_id, times]))
  }

  /** True if the scope has the outputs of a run with this key, unless the key is global. */
  hasOutputs(skill_id: string, idempotence_key: string): boolean {
    if (isGlobalPlan(skill_id, idempotence_key)) return false
    const row = this.#parts.database.first('SELECT 1 AS one FROM skill_outputs WHERE idempotence_key = ?', idempotence_key)
    return row !== undefined || this.#parts.done_keys.find({ kind: 'plan' }, idempotence_key) !== undefined
  }

  /** Claims a deployment-wide key for the run. Other keys are the scope's own. */
  async lastGood(
    { run_id, skill_id }: { run_id: string; skill_id: string },
    idempotence_key: string,
  ): Promise<LastGood | { not_free: string } | null> {
    const { database, done_keys, global_keys } = this.#parts
    if (isGlobalPlan(skill_id, idempotence_key)) {
      try {
        return goodOf(await global_keys.claim({ kind: 'plan' }, idempotence_key, { kind: 'run', run_id }))
      } catch (error) {
        if (error instanceof KeyNotFree) return { not_free: error.message }
        throw error
      }
    }
    const row = database.first<{ outputs: string }>('SELECT outputs FROM skill_outputs WHERE idempotence_key = ?', idempotence_key)
    if (row) return { outputs: JSON.parse(row.outputs) as JsonFields, detail: null }
    return goodOf(done_keys.find({ kind: 'plan' }, idempotence_key) ?? null)
  }

  remember(skill_id: string, idempotence_key: string, outputs: JsonFields): void {
    // The object of a deployment-wide key keeps its outputs.
    if (isGlobalPlan(skill_id, idempotence_key)) return
    const sql =
      'INSERT INTO skill_outputs (idempotence_key, outputs, at) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET outputs = ?2, at = ?3'
    this.#parts.unit((unit) => unit.all(sql, idempotence_key, JSON.stringify(outputs), unit.now))
  }

  /** Deletes runs that ended before `before`. */
  forget(unit: Unit, before: number, limit: number): number {
    const old_runs = 'SELECT cause, run_id FROM skill_runs WHERE ended_at < ? LIMIT ?'
    const runs = unit.all(`DELETE FROM skill_runs WHERE (cause, run_id) IN (${old_runs}) RETURNING run_id`, before, limit)
    const old_outputs = 'SELECT idempotence_key FROM skill_outputs WHERE at < ? LIMIT ?'
    const sql = `DELETE FROM skill_outputs WHERE idempotence_key IN (${old_outputs}) RETURNING idempotence_key, outputs AS output, at`
    const outputs = unit.all<DoneRow>(sql, before, limit)
    this.#parts.done_keys.keep({ kind: 'plan' }, outputs)
    return Math.max(runs.length, outputs.length)
  }

  #begin(unit: Unit, record: RunRecord, { cause, inputs_hash, head }: RunAsker): void {
    const { run_id, skill_id, started_at } = record
    for (const feature of this.#parts.features) feature.runBegan?.(unit, record)
    const sql = `INSERT INTO skill_runs (cause, run_id, skill_id, inputs_hash, status, started_at) VALUES (?, ?, ?, ?, 'running', ?)`
    unit.all(sql, cause, run_id, skill_id, inputs_hash, started_at)
    this.#parts.jobs.addRunning(unit, { kind: 'run', key: run_id, payload: { record, cause, head } satisfies OpenRun })
  }

  #end(unit: Unit, run_id: string, { status, ended_at, result }: Parameters<RunsPort['end']>[1], entry: SessionEntry | undefined): void {
    // A stopped and compensated run no longer belongs to its turn, which may ask for it again. A
    // call may not: its caller asks how it ended.
    const undone = `status = 'stopping' AND cause NOT LIKE 'call:%' AND ?2 IN ('failed', 'partial_failure')`
    const job = this.#parts.jobs.done(unit, 'run', run_id) as OpenRun | undefined
    const cause = job?.cause ?? ''
    unit.all(`UPDATE skill_runs SET cause = '' WHERE cause = ?3 AND run_id = ?1 AND ${undone}`, run_id, status, cause)
    const sql = `UPDATE skill_runs SET status = ?2, ended_at = ?3, result = ?4 WHERE cause IN (?5, '') AND run_id = ?1`
    unit.all(sql, run_id, status, ended_at, JSON.stringify(result), cause)
    if (job) for (const feature of this.#parts.features) feature.runEnded?.(unit, job.record, { result, entry, at: ended_at })
  }

  #stop(cause: string, run_id: string): void {
    const sql = `UPDATE skill_runs SET status = 'stopping' WHERE cause = ? AND run_id = ? AND ended_at IS NULL`
    this.#parts.unit((unit) => unit.all(sql, cause, run_id))
  }
}

/** A plan's key begins with its skill's id, then the text that the manifest declares. */
const isGlobalPlan = (skill_id: string, key: string): boolean => isGlobalKey(key.slice(skill_id.length + 1))

const goodOf = (before: DoneBefore | null): LastGood | null =>
  before && { outputs: before.output === null ? null : (JSON.parse(before.output) as JsonFields), detail: before.detail }

const stateAfter = (status: string, { outputs }: ProposalResult, at: number): WorkState =>
  status === 'ok' ? { state: 'done', ...keptOutput(JSON.stringify(outputs), at) } : { state: 'free' }
