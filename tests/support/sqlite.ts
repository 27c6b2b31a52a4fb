import { DatabaseSync } from 'node:sqlite'
import { eventTable, type Statement } from '../../src/core/event-statements.ts'

/**
 * An in-memory events table for SqlEventStore; `rows` reads it directly, in order of acceptance.
 */
export function openEvents(table = 'events') {
  const database = new DatabaseSync(':memory:')
  for (const sql of eventTable(table)) database.exec(sql)
  return {
    run: async ({ sql, params }: Statement): Promise<Record<string, unknown>[]> => database.prepare(sql).all(...params),
    rows: (): Record<string, unknown>[] => database.prepare(`SELECT * FROM ${table} ORDER BY seq`).all(),
  }
}
