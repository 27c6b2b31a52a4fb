import type { Action } from '../../contract/action.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import type { Database } from '../database.ts'
import type { LaneWork } from './permit.ts'
import type { Unit } from '../unit.ts'

export type Task = { work: LaneWork; head: EntryHead; log_seq: number; action_type: Action['action_type']; consume: boolean }
export type ActionRow = { id: string; seq: number; reflex_id: string; version: number; idempotence_key: string | null; task: Task }
/** `task` is null where the action was carried out at once, and only its key is kept. */
type NewRow = Omit<ActionRow, 'task'> & { task: Task | null }
/** `plans`: whether one more may begin. */
type UnderWay = { begun: readonly ActionRow[]; plans: boolean }

/** What reflexes decided and is yet to be carried out, in order; and the keys of what was. */
export class ActionRows {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  add(unit: Unit, { id, seq, reflex_id, version, idempotence_key, task }: NewRow): void {
    unit.all(
      'INSERT INTO actions (id, seq, reflex_id, version, idempotence_key, task, at, ended_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)',
      id,
      seq,
      reflex_id,
      version,
      idempotence_key,
      JSON.stringify(task),
      unit.now,
      task === null ? unit.now : null,
    )
  }

  /** The oldest that may begin: of a skill, and under a key, only one at a time. */
  next({ begun, plans }: UnderWay): ActionRow | null {
    const skills = begun.flatMap(({ task: { work } }) => (work.kind === 'skill' ? [work.skill_id] : []))
    const keys = begun.flatMap(({ reflex_id, idempotence_key }) => (idempotence_key === null ? [] : [`${reflex_id} ${idempotence_key}`]))
    const row = this.#database.first<Omit<ActionRow, 'task'> & { task: string }>(
      `SELECT id, seq, reflex_id, version, idempotence_key, task FROM actions WHERE ended_at IS NULL AND id NOT IN (SELECT value FROM json_each(?1))
        AND (idempotence_key IS NULL OR reflex_id || ' ' || idempotence_key NOT IN (SELECT value FROM json_each(?2)))
        AND (task->>'$.work.kind' <> 'skill' OR ?4 AND task->>'$.work.skill_id' NOT IN (SELECT value FROM json_each(?3))) ORDER BY at, id LIMIT 1`,
      JSON.stringify(begun.map(({ id }) => id)),
      JSON.stringify(keys),
      JSON.stringify(skills),
      plans ? 1 : 0,
    )
    return row ? { ...row, task: JSON.parse(row.task) as Task } : null
  }

  /** Under this key, to its end. */
  carriedOut(reflex_id: string, idempotence_key: string): boolean {
    const known = 'SELECT 1 AS known FROM actions WHERE reflex_id = ? AND idempotence_key = ? AND ended_at IS NOT NULL'
    return this.#database.first(known, reflex_id, idempotence_key) !== undefined
  }

  /** What calls of a tool that wait, or are under way, are given. */
  inputsOf(tool: string): unknown[] {
    return this.#database
      .all<{ input: string }>(`SELECT task->'$.work.input' AS input FROM actions WHERE ended_at IS NULL AND task->>'$.work.tool' = ?`, tool)
      .map(({ input }) => JSON.parse(input) as unknown)
  }

  /** One more, which is returned. */
  attempt(unit: Unit, id: string): number {
    const sql = 'UPDATE actions SET attempts = attempts + 1 WHERE id = ? RETURNING attempts'
    return unit.first<{ attempts: number }>(sql, id)?.attempts ?? 0
  }

  /** What failed leaves its key free. */
  end(unit: Unit, id: string, ok: boolean): void {
    unit.all(
      'UPDATE actions SET ended_at = ?2, idempotence_key = CASE WHEN ?3 THEN idempotence_key END WHERE id = ?1',
      id,
      unit.now,
      ok ? 1 : 0,
    )
  }

  /** Drops the keys of long ago. */
  forget(unit: Unit, before: number, limit: number): number {
    const sql = 'DELETE FROM actions WHERE id IN (SELECT id FROM actions WHERE ended_at < ? LIMIT ?) RETURNING id'
    return unit.all(sql, before, limit).length
  }
}
