import { DatabaseSync } from 'node:sqlite'
import { eventTable, type Statement } from '../../src/core/event-statements.ts'

/** An events table in memory, as SqlEventStore runs on it; `rows` looks at it from outside, in order of acceptance. */
export function openEvents(table = 'events') {
  const database = new DatabaseSync(':memory:')
  for (const sql of eventTable(table)) database.exec(sql)
  return {
    run: async ({ sql, params }: Statement): Promise<Record<string, unknown>[]> => database.prepare(sql).all(...params),
    rows: (): Record<string, unknown>[] => database.prepare(`SELECT * FROM ${table} ORDER BY seq`).all(),
  }
}
