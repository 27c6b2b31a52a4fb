import { limits } from '../../base/limits.ts'
import { patternMatchesSql } from '../../contract/principal.ts'
import type { EventFilter } from '../event-filter.ts'
import type { PackedEvent } from './format.ts'
import { SLOT, withoutRow } from '../queued.ts'
import { packDatabases } from '../store.ts'
import { askPacks, eachOnce, FULL, idFrom, inOrder, packKey, readPacksAt, type PackAt } from './rows.ts'

/** A page unpacks no more, however few match: its cursor continues there. */
const MOST_LOOKED_AT = { events: 20_000, raw_bytes: 32_000_000 }
/** Packs whose times a page compares. */
const MOST_PACKS = 1000
/** Packs beside the first that are read at once are no larger. */
const READ_AT_ONCE = { bytes: 250_000, raw_bytes: 4_000_000 }

/** Packs that may have something that is asked for, in the order of the list. */
type Asked = Pick<EventFilter, 'patterns' | 'scope' | 'types' | 'status'> & {
  /** The bounds of places, which are outside. */
  after: bigint
  before: bigint
  rising: boolean
  most: number
  isWanted: (event: PackedEvent) => boolean
  /** The page has the first of the events for which it is the same. */
  oncePer?: (event: PackedEvent) => string
  sizeOf?: (event: PackedEvent) => number
  /** Takes the names of databases that do not answer: the page lacks their events. */
  missing?: Set<string> | undefined
}
/** `reach`: a cursor before which the page has all; null at the end. */
export type PackedPage = { events: PackedEvent[]; reach: bigint | null }
type Head = PackAt & { edge: bigint; events: number; bytes: number; raw_bytes: number }

/** Packed events that no row hides, in order, and one more than `most` or `page_bytes` allow. */
export async function packedPage(db: D1Database, asked: Asked): Promise<PackedPage> {
  const { most, rising } = asked
  let heads = await headsOf(db, asked)
  const way = rising ? inOrder : (one: PackedEvent, other: PackedEvent) => inOrder(other, one)
  let held: PackedEvent[] = []
  let settled: PackedEvent | undefined
  const { events: shown, show, isFull } = shownOn(asked)
  const opened = new Set<string>()
  for (const looked = { events: 0, raw_bytes: 0 }; ;) {
    const edge = heads[0]?.edge ?? null
    // Events before the edge of the next pack are in no other.
    const isSettled = ({ seq }: PackedEvent) => edge === null || (rising ? seq < edge : seq > edge)
    while (!isFull() || held[0]?.seq === shown.at(-1)?.seq) {
      const end = held.findIndex((event, index) => !isSettled(event) || index > most)
      const next = end === -1 ? held : held.slice(0, end)
      if (next.length === 0) break
      held = held.slice(next.length)
      settled = next.at(-1)
      show(await withoutRow(db, next))
    }
    if (isFull()) return { events: shown, reach: shown.at(-1)?.seq ?? null }
    if (edge === null) return { events: shown, reach: null }
    const isTired = looked.events >= MOST_LOOKED_AT.events || looked.raw_bytes >= MOST_LOOKED_AT.raw_bytes
    if (isTired || heads[0]?.id === '') return { events: shown, reach: cursorAt(edge, asked) }
    const some = nextOf(heads)
    const packs = await readPacksAt(some, {
      missing: asked.missing,
      isWanted: (event) => event.seq > asked.after && event.seq < asked.before && asked.isWanted(event),
    })
    for (const head of some) {
      opened.add(packKey(head))
      looked.events += head.events
      looked.raw_bytes += head.raw_bytes
    }
    const isNew = (event: PackedEvent) => settled === undefined || way(settled, event) < 0
    held = eachOnce([...held, ...Array.from(packs.values()).flat().filter(isNew)]).toSorted(way)
    // The events of a pack that is gone may be in the one that it has merged into.
    if (packs.size < some.length) heads = (await headsOf(db, asked)).filter((head) => !opened.has(packKey(head)))
  }
}

/** The events of the page, which takes the first of those that are listed once. */
function shownOn({ most, oncePer, sizeOf = () => 0 }: Asked) {
  const events: PackedEvent[] = []
  const names = new Set<string>()
  let bytes = 0
  const show = (some: readonly PackedEvent[]): void => {
    for (const event of some) {
      const name = oncePer?.(event)
      if (name !== undefined && names.has(name)) continue
      if (name !== undefined) names.add(name)
      bytes += sizeOf(event)
      events.push(event)
    }
  }
  return { events, show, isFull: () => events.length > most || bytes >= limits.page_bytes }
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
  const size = { bytes: 0, raw_bytes: 0 }
  const end = heads.findIndex((head, index) => {
    if (head.id === '' || index === 0) return head.id === ''
    size.bytes += head.bytes
    size.raw_bytes += head.raw_bytes
    return size.bytes > READ_AT_ONCE.bytes || size.raw_bytes > READ_AT_ONCE.raw_bytes
  })
  return heads.splice(0, end === -1 ? heads.length : end)
}

/** The packs of all databases that may have what is asked for, in the order of the list. */
async function headsOf(store: D1Database, asked: Asked): Promise<Head[]> {
  const found = packDatabases(store).map(async (at) => {
    const heads = await askPacks(at, asked.missing, (db) => headsIn(db, asked))
    return heads?.map((head) => ({ at, ...head })) ?? []
  })
  const isBefore = (one: bigint, other: bigint) => (asked.rising ? one < other : one > other)
  return (await Promise.all(found)).flat().toSorted((one, other) => (one.edge === other.edge ? 0 : isBefore(one.edge, other.edge) ? -1 : 1))
}

/** The packs of one database. One without an id stands for all that follow. */
async function headsIn(db: D1Database, { patterns, scope, types, status, after, before, rising }: Asked): Promise<Omit<Head, 'at'>[]> {
  const has = (column: string, condition: string) =>
    `(${column} IS NULL OR EXISTS (SELECT 1 FROM json_each(${column}) AS named WHERE ${condition}))`
  const matches = `EXISTS (SELECT 1 FROM json_each(?4) WHERE ${patternMatchesSql('named.value')})`
  const checks = [
    scope === undefined ? null : has('scopes', 'named.value = ?3'),
    patterns.includes('*') ? null : has('scopes', matches),
    types === undefined ? null : has('types', 'named.value IN (SELECT value FROM json_each(?5))'),
    status === undefined ? null : has('statuses', 'named.value = ?6'),
  ].filter((check) => check !== null)
  const found = (ids: string, order: string) => `SELECT CAST(id AS TEXT) AS id, CAST(${rising ? 'first' : 'last'} AS TEXT) AS edge, events,
      octet_length(data) AS bytes, raw_bytes FROM packs
    WHERE (${ids}) AND last > CAST(?1 AS INTEGER) AND first < CAST(?2 AS INTEGER)
      AND (?3 IS NULL OR true) AND ?4 IS NOT NULL AND ?5 IS NOT NULL AND (?6 IS NULL OR true) ${checks.map((check) => `AND ${check}`).join(' ')}
    ORDER BY ${order} LIMIT ${MOST_PACKS}`
  const [small, full] = [`id >= CAST(?7 AS INTEGER) AND id < ${FULL}`, 'id >= CAST(?8 AS INTEGER)']
  // Ids are in the order of the last events: the newest are found without reading the others.
  const sql = rising
    ? found(`${small} OR ${full}`, 'first')
    : `SELECT * FROM (${found(small, 'packs.id DESC')}) UNION ALL SELECT * FROM (${found(full, 'packs.id DESC')})`
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
    .all<Omit<Head, 'at' | 'edge'> & { edge: string }>()
  const heads = results.map((head) => ({ ...head, edge: BigInt(head.edge) }))
  if (rising) return [...heads.slice(0, MOST_PACKS - 1), ...heads.slice(MOST_PACKS - 1).map((head) => ({ ...head, id: '' }))]
  const { true: ofFull = [], false: ofSmall = [] } = Object.groupBy(heads, ({ id }) => `${BigInt(id) >= FULL}` as const)
  // The packs of one millisecond are in any order.
  const rests = [ofFull, ofSmall].flatMap((some) =>
    some.slice(MOST_PACKS - 1).map((head) => ({ ...head, id: '', edge: idFrom(head.edge) + SLOT - 1n })),
  )
  return [...rests, ...heads]
}
