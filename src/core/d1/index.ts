import { eventTable } from '../event-statements.ts'
import { SqlEventStore, type SqlEventStoreOptions } from '../event-store.ts'
import type { Event } from '../event.ts'

/** An event store in D1. One `publish` takes at most 2 MB of events, the longest value of D1. */
export class D1Store<E extends Event = Event> extends SqlEventStore<E> {
  private constructor(database: D1Database, options: Omit<SqlEventStoreOptions, 'run'>) {
    super({
      ...options,
      run: async ({ sql, params }) =>
        (
          await database
            .prepare(sql)
            .bind(...params)
            .all()
        ).results,
    })
  }

  /** Creates the table where it is missing. */
  static async open<E extends Event = Event>(database: D1Database, options: Omit<SqlEventStoreOptions, 'run'> = {}): Promise<D1Store<E>> {
    await database.batch(eventTable(options.table).map((sql) => database.prepare(sql)))
    return new D1Store<E>(database, options)
  }
}
