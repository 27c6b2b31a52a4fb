import type { Event } from '../../core/event.ts'
import type { Database } from '../database.ts'

/** What was said in a stored event: its type's own fields, as JSON. */
export function saidIn(database: Database, seq: number): string {
  const row = database.first<{ payload: string }>('SELECT payload FROM events WHERE seq = ?', seq)
  const event = JSON.parse(row?.payload ?? '{}') as Partial<Event>
  const { id: _id, scope: _scope, source: _source, timestamp: _timestamp, meta: _meta, ...own } = event
  return JSON.stringify(own)
}
