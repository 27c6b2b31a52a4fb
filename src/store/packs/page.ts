import { patternMatchesSql } from '../../contract/principal.ts'
import type { EventFilter } from '../event-filter.ts'
import type { PackedEvent } from './format.ts'
import { SLOT, withoutRow } from '../queued.ts'
import { eachOnce, FULL, idFrom, inOrder, readPacks } from './rows.ts'

/** Maximum number of events that a page unpacks, however few match: its cursor continues there. */
const MOST_LOOKED_AT = 20_000
/** Packs whose times a page compares. */
const MOST_PACKS = 1000
/** Size of the compressed packs that are read at once. */
const READ_BYTES = 2_000_000

/** Packs that may have something that is asked for, in the order of the list. */
type Asked = Pick<EventFilter, 'patterns' | 'scope' | 'types' | 'status'> & {
  /** The bounds of places, which are outside. */
  after: bigint
  before: bigint
  rising: boolean
  most: number
  isWanted: (event: PackedEvent) => boolean
}
/** `reach`: a cursor before which the page has all; null at the end. */
export type PackedPage = { events: PackedEvent[]; reach: bigint | null }
type Head = { id: string; edge: bigint; events: number; bytes: number }

/** Packed events that no row hides, in order, one more than `most` if there are more. */
export async function packedPage(db: D1Database, asked: Asked): Promise<PackedPage> {
  const { most, rising } = asked
  const heads = await headsOf(db, asked)
  const way = rising ? inOrder : (one: PackedEvent, other: PackedEvent) => inOrder(other, one)
  let held: PackedEvent[] = []
  const shown: PackedEvent[] = []
  for (let looked = 0; ;) {
    const edge = heads[0]?.edge ?? null
    // Events before the edge of the next pack are in no other.
    const isSettled = ({ seq }: PackedEvent) => edge === null || (rising ? seq < edge : seq > edge)
    while (shown.length <= most || held[0]?.seq === shown.at(-1)?.seq) {
      const end = held.findIndex((event, index) => !isSettled(event) || index > most)
      const next = end === -1 ? held : held.slice(0, end)
      if (next.length === 0) break
      held = held.slice(next.length)
      shown.push(...(await withoutRow(db, next)))
    }
    if (shown.length > most) return { events: shown, reach: shown.at(-1)?.seq ?? null }
    if (edge === null) return { events: shown, reach: null }
    if (looked >= MOST_LOOKED_AT || heads[0]?.id === '') return { events: shown, reach: cursorAt(edge, asked) }
    const opened = nextOf(heads)
    looked += opened.reduce((sum, { events }) => sum + events, 0)
    held = eachOnce([...held, ...(await wantedIn(db, opened, asked))]).toSorted(way)
  }
}

/**
 * The cursor between the next pack and what was read. The place of an event that the caller may not
 * see is nothing that a cursor tells, if a round place is as good.
 */
function cursorAt(edge: bigint, { rising, after, before }: Asked): bigint {
  const minute = SLOT * 60_000n
  const round = rising ? (edge / minute) * minute - 1n : (edge / minute + 1n) * minute
  if (round > after && round < before) return round
  return rising ? edge - 1n : edge + 1n
}

/** Removes from the list what is read next: the first pack, and those that are small beside it. */
function nextOf(heads: Head[]): Head[] {
  let bytes = 0
  const end = heads.findIndex((head, index) => head.id === '' || (index > 0 && (bytes += head.bytes) > READ_BYTES / 8))
  return heads.splice(0, end === -1 ? heads.length : Math.max(1, end))
}

async function wantedIn(db: D1Database, heads: readonly Head[], { after, before, isWanted }: Asked): Promise<PackedEvent[]> {
  const packs = await readPacks(
    db,
    heads.map(({ id }) => id),
  )
  const events = Array.from(packs.values()).flat()
  return events.filter((event) => event.seq > after && event.seq < before && isWanted(event))
}

/** The packs that may have what is asked for. One without an id stands for those that follow. */
async function headsOf(db: D1Database, { patterns, scope, types, status, after, before, rising }: Asked): Promise<Head[]> {
  const has = (column: string, condition: string) =>
    `(${column} IS NULL OR EXISTS (SELECT 1 FROM json_each(${column}) AS named WHERE ${condition}))`
  const matches = `EXISTS (SELECT 1 FROM json_each(?4) WHERE ${patternMatchesSql('named.value')})`
  const checks = [
    scope === undefined ? null : has('scopes', 'named.value = ?3'),
    patterns.includes('*') ? null : has('scopes', matches),
    types === undefined ? null : has('types', 'named.value IN (SELECT value FROM json_each(?5))'),
    status === undefined ? null : has('statuses', 'named.value = ?6'),
  ].filter((check) => check !== null)
  const sql = `SELECT CAST(id AS TEXT) AS id, CAST(${rising ? 'first' : 'last'} AS TEXT) AS edge, events, octet_length(data) AS bytes FROM packs
    WHERE ((id >= CAST(?7 AS INTEGER) AND id < ${FULL}) OR id >= CAST(?8 AS INTEGER)) AND last > CAST(?1 AS INTEGER) AND first < CAST(?2 AS INTEGER)
      AND (?3 IS NULL OR true) AND ?4 IS NOT NULL AND ?5 IS NOT NULL AND (?6 IS NULL OR true) ${checks.map((check) => `AND ${check}`).join(' ')}
    ORDER BY ${rising ? 'first' : 'last DESC'} LIMIT ${MOST_PACKS}`
  const least = idFrom(after < 0n ? 0n : after)
  const { results } = await db
    .prepare(sql)
    .bind(
      String(after),
      String(before),
      scope ?? null,
      JSON.stringify(patterns),
      JSON.stringify(types ?? []),
      status ?? null,
      String(least),
      String(FULL + least),
    )
    .all<{ id: string; edge: string; events: number; bytes: number }>()
  const heads = results.map((head) => ({ ...head, edge: BigInt(head.edge) }))
  const last = heads.at(-1)
  if (last && heads.length === MOST_PACKS) last.id = ''
  return heads
}
