import type { Database } from '../database.ts'
import type { UnitOfWork } from '../unit.ts'

const KEY = 'owned_reflexes'

/**
 * Ids of the reflexes that this scope's agent wrote, cached because every reflex context lists
 * them.
 */
export class OwnedReflexes {
  readonly #database: Database
  readonly #unit: UnitOfWork
  #ids: readonly string[]

  constructor(database: Database, unit: UnitOfWork) {
    this.#database = database
    this.#unit = unit
    this.#ids = database.read<string[]>(KEY, [])
  }

  get ids(): readonly string[] {
    return this.#ids
  }

  add(id: string): void {
    if (!this.#ids.includes(id)) this.#set([...this.#ids, id])
  }

  remove(id: string): void {
    if (this.#ids.includes(id)) this.#set(this.#ids.filter((owned) => owned !== id))
  }

  #set(ids: readonly string[]): void {
    this.#unit(() => this.#database.write(KEY, ids))
    this.#ids = ids
  }
}
