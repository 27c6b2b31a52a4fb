import { jsonChunks } from '../../base/json.ts'
import type { PackedEvent } from './format.ts'
import { dayOf, inOrder, packStatement } from './rows.ts'

/** Characters of payloads in a pack: their compressed bytes fit into a parameter of SQL. */
const MOST_CHARACTERS = 600_000

/** The statements of a batch that packs events. */
export function packEvents(db: D1Database, events: readonly PackedEvent[]): D1PreparedStatement[] {
  const known = jsonChunks(
    events.map(({ id, scope, revision, log_from, kinds, skills }) => JSON.stringify({ id, scope, revision, log_from, kinds, skills })),
  )
  return [
    ...portionsOf(events).map((portion) => packStatement(db, portion)),
    ...known.flatMap((chunk) => [DROP_OLDER, ADD_TRAITS, DROP_LETTERS].map((sql) => db.prepare(sql).bind(chunk))),
  ]
}

function portionsOf(events: readonly PackedEvent[]): PackedEvent[][] {
  const portions: PackedEvent[][] = []
  let size = 0
  let day: number | undefined
  for (const event of events.toSorted(inOrder)) {
    if (size > MOST_CHARACTERS || day !== dayOf(event.seq)) {
      portions.push([])
      day = dayOf(event.seq)
      size = 0
    }
    size += JSON.stringify(event.payload).length
    portions.at(-1)?.push(event)
  }
  return portions
}

const ROWS = `json_each(?1) AS packed CROSS JOIN events ON events.id = packed.value->>'id' AND events.scope = packed.value->>'scope'`

/** A row of an event that a pack has in a newer state: a note of the queue that buried it. */
const DROP_OLDER = `DELETE FROM events WHERE seq IN (SELECT seq FROM ${ROWS} AND events.revision < packed.value->>'revision')`

/** An event that changed before it was packed: its row has the traits of both. */
const ADD_TRAITS = `UPDATE events SET (log_from, kinds, skills) = (
    SELECT min(coalesce(events.log_from, value->>'log_from'), value->>'log_from'), events.kinds | (value->>'kinds'),
      CASE WHEN instr(events.skills, value->>'skills') > 0 THEN events.skills ELSE substr((value->>'skills') || events.skills, 1, 4000) END
    FROM json_each(?1) WHERE value->>'id' = events.id AND value->>'scope' = events.scope)
  WHERE seq IN (SELECT seq FROM ${ROWS})`

/** The letters of the queue about events that have an outcome. */
const DROP_LETTERS = `DELETE FROM dead_letters WHERE (scope, event_id) IN (SELECT value->>'scope', value->>'id' FROM json_each(?1))`
