import type { ActionCall, LaneWork } from '../../contract/action.ts'
import type { Toolbox } from '../../agent/toolbox.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import { namedBy } from '../../tools/define-tool.ts'

type Tools = Pick<Toolbox, 'all' | 'keyOf'>

/**
 * The idempotency keys of actions that reflexes have carried out. Each call of a sequence has a row
 * of its own beside the one of the sequence: its reflex is named with its place, and no reflex has
 * such an id.
 */
export class ActionKeys {
  readonly #database: Database
  readonly #tools: Tools

  constructor({ database, toolbox }: { database: Database; toolbox: Tools }) {
    this.#database = database
    this.#tools = toolbox
  }

  has(reflex_id: string, key: string): boolean {
    return (
      this.#database.first('SELECT 1 AS one FROM action_keys WHERE reflex_id = ? AND idempotence_key = ?', reflex_id, key) !== undefined
    )
  }

  /** `work` is null if the action called no tool. */
  keep(unit: Unit, reflex_id: string, key: string, work: LaneWork | null): void {
    this.#keep(unit, reflex_id, key, work?.kind === 'tool' ? this.#effectOf({ tool: work.tool, args: work.input }) : null)
  }

  /** Keeps a call of a sequence under a key, in the unit that ends the call. */
  keepCall(unit: Unit, { reflex_id, key, place }: { reflex_id: string; key: string; place: number }, call: ActionCall): void {
    const effect = this.#effectOf(call)
    if (effect !== null) this.#keep(unit, `${reflex_id} ${place}`, key, effect)
  }

  /**
   * Releases the key of an undone effect, so that reflexes may request it again: `named` by its own
   * key, or by the fields that the undoing tool matches. Returns the keys that reflexes gave its
   * calls.
   */
  release(unit: Unit, tool: string, named: string): string[] {
    const sql = 'DELETE FROM action_keys WHERE effect = ? RETURNING reflex_id, idempotence_key'
    const gone = unit.all<{ reflex_id: string; idempotence_key: string }>(sql, `${tool} ${named}`)
    return gone.map(({ reflex_id: by, idempotence_key }) => {
      const [reflex_id = '', place] = by.split(' ')
      // The sequence as a whole is done no longer.
      if (place !== undefined) unit.all('DELETE FROM action_keys WHERE reflex_id = ? AND idempotence_key = ?', reflex_id, idempotence_key)
      return [reflex_id, callKeyOf(idempotence_key, place)].join(' ')
    })
  }

  forget(unit: Unit, before: number, limit: number): number {
    const sql = `DELETE FROM action_keys WHERE (reflex_id, idempotence_key) IN
      (SELECT reflex_id, idempotence_key FROM action_keys WHERE at < ? LIMIT ?) RETURNING at`
    return unit.all(sql, before, limit).length
  }

  #keep(unit: Unit, by: string, key: string, effect: string | null): void {
    const sql =
      'INSERT INTO action_keys (reflex_id, idempotence_key, effect, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET effect = ?3, at = ?4'
    unit.all(sql, by, key, effect, unit.now)
  }

  /** The name of a call by which its undoing finds it; null if nothing undoes it. */
  #effectOf({ tool, args }: ActionCall): string | null {
    const own = this.#tools.keyOf(tool, args)?.idempotence_key ?? null
    if (own !== null) return `${tool} ${own}`
    const undoing = Object.values(this.#tools.all).find(({ undoes }) => undoes?.tool === tool)
    return undoing?.undoes ? `${tool} ${namedBy(undoing.undoes.match, args)}` : null
  }
}

/** The key of a call of a sequence. */
export const callKeyOf = (key: string, place: number | string | undefined): string => (place === undefined ? key : `${key} ${place}`)
