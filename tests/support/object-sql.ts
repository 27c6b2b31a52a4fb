import { DatabaseSync } from 'node:sqlite'

export class Crash extends Error {}

/** The SQLite of a Durable Object in memory, as far as the Ledger uses it. */
export class ObjectSql {
  readonly #database = new DatabaseSync(':memory:')
  /** Crashes at this statement of the next transaction, if it has that many. */
  crash_at: number | null = null
  #statements = 0

  readonly exec = (sql: string, ...params: (string | number | null)[]) => {
    this.#statements += 1
    if (this.crash_at !== null && this.#statements > this.crash_at) throw new Crash()
    if (params.length === 0 && !/^\s*(?:SELECT|WITH)/i.test(sql)) {
      this.#database.exec(sql)
      return this.#answer([], 0)
    }
    const statement = this.#database.prepare(sql)
    if (statement.columns().length > 0) return this.#answer(statement.all(...params), 0)
    return this.#answer([], Number(statement.run(...params).changes))
  }

  get storage(): SqlStorage {
    return this as unknown as SqlStorage
  }

  transaction<Made>(work: () => Made): Made {
    this.#statements = 0
    this.#database.exec('BEGIN')
    try {
      const made = work()
      if (this.crash_at !== null) throw new Crash()
      this.#database.exec('COMMIT')
      return made
    } catch (error) {
      this.#database.exec('ROLLBACK')
      throw error
    }
  }

  /** A transaction within another one. */
  savepoint<Made>(work: () => Made): Made {
    this.#database.exec('SAVEPOINT inner')
    try {
      const made = work()
      this.#database.exec('RELEASE inner')
      return made
    } catch (error) {
      this.#database.exec('ROLLBACK TO inner; RELEASE inner')
      throw error
    }
  }

  #answer(rows: Record<string, unknown>[], rowsWritten: number) {
    return { rowsWritten, toArray: () => rows, one: () => rows[0], [Symbol.iterator]: () => rows[Symbol.iterator]() }
  }
}
