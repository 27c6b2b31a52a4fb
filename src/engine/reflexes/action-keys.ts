import type { KeyOf } from '../../contract/reflex.ts'
import type { Database, Unit } from '../storage/unit.ts'
import type { LaneWork } from '../../contract/action.ts'

/** The idempotency keys of actions that reflexes have carried out. */
export class ActionKeys {
  readonly #database: Database
  readonly #keyOf: KeyOf

  constructor({ database, keyOf }: { database: Database; keyOf: KeyOf }) {
    this.#database = database
    this.#keyOf = keyOf
  }

  has(reflex_id: string, key: string): boolean {
    return (
      this.#database.first('SELECT 1 AS one FROM action_keys WHERE reflex_id = ? AND idempotence_key = ?', reflex_id, key) !== undefined
    )
  }

  /** `work` is null if the action called no tool. */
  keep(unit: Unit, reflex_id: string, key: string, work: LaneWork | null): void {
    const named = work?.kind === 'tool' ? this.#keyOf(work.tool, work.input)?.idempotence_key : null
    const effect = work?.kind === 'tool' && named != null ? effectName(work.tool, named) : null
    const sql =
      'INSERT INTO action_keys (reflex_id, idempotence_key, effect, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET effect = ?3, at = ?4'
    unit.all(sql, reflex_id, key, effect, unit.now)
  }

  /** Releases the key of an undone effect, so that reflexes may request it again. */
  release(unit: Unit, tool: string, key: string): void {
    unit.all('DELETE FROM action_keys WHERE effect = ?', effectName(tool, key))
  }

  forget(unit: Unit, before: number, limit: number): number {
    const sql = `DELETE FROM action_keys WHERE (reflex_id, idempotence_key) IN
      (SELECT reflex_id, idempotence_key FROM action_keys WHERE at < ? LIMIT ?) RETURNING at`
    return unit.all(sql, before, limit).length
  }
}

const effectName = (tool: string, key: string): string => `${tool} ${key}`
