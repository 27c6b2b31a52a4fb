import type { Event } from '../../core/event.ts'
import type { Database } from '../storage/database.ts'

type First = { id: string; source: string; trace_id: string }

/**
 * Finds CloudEvents that an older version stored under the sender's id alone, by the id that they
 * have now: such an event that is delivered again is a duplicate.
 */
export function storedAsSent(database: Database, events: readonly Event[]): ReadonlyMap<string, First> {
  const sent = events.flatMap(({ id, source, meta }) => (meta.sent_id === undefined ? [] : [{ id, source, sent_id: meta.sent_id }]))
  if (sent.length === 0) return NONE
  const rows = database.allOf<First>(
    sent.map(({ sent_id }) => sent_id),
    'SELECT id, source, trace_id FROM events WHERE id IN (SELECT value FROM json_each(?1))',
  )
  const stored = new Map(rows.map((row) => [row.id, row]))
  return new Map(
    sent.flatMap(({ id, source, sent_id }) => {
      const first = stored.get(sent_id)
      return first?.source === source ? [[id, first] as const] : []
    }),
  )
}

const NONE: ReadonlyMap<string, First> = new Map()
