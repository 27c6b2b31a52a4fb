import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { eventTable } from '../event-statements.ts'
import { SqlEventStore, type SqlEventStoreOptions } from '../event-store.ts'
import type { Event } from '../event.ts'

/**
 * An event store in one SQLite file of Node. It survives a killed process. Several processes may
 * open the same file. A write waits up to five seconds for another one.
 */
export class SqliteStore<E extends Event = Event> extends SqlEventStore<E> {
  readonly #database: DatabaseSync

  private constructor(database: DatabaseSync, options: Omit<SqlEventStoreOptions, 'run'>) {
    const statements = new Map<string, StatementSync>()
    super({
      ...options,
      async run({ sql, params }) {
        const statement = statements.get(sql) ?? database.prepare(sql)
        statements.set(sql, statement)
        return statement.all(...params)
      },
    })
    this.#database = database
  }

  /** Creates the file and its table where they are missing. The default is in memory. */
  static open<E extends Event = Event>(path = ':memory:', options: Omit<SqlEventStoreOptions, 'run'> = {}): SqliteStore<E> {
    const database = new DatabaseSync(path)
    database.exec('PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
    for (const sql of eventTable(options.table)) database.exec(sql)
    return new SqliteStore<E>(database, options)
  }

  close(): void {
    this.#database.close()
  }
}
