import { messageOf } from '../../base/error-text.ts'
import { textHash } from '../../base/hash.ts'
import { warn } from '../../base/warn.ts'
import { msOf, nameOf, PLACE_BIT, SLOT } from '../queued.ts'
import { packDatabases, type PackDatabase } from '../store.ts'
import { encodePack, hashesOf, decodePack, PackDamaged, type PackedEvent } from './format.ts'
import { DatabaseAway } from './missing.ts'

/**
 * Packs with this bit in their id have their hashes in the index, and are merged no more. The other
 * ids are smaller: a look-up reads the few packs before this id, and then the index.
 */
export const FULL = 1n << 62n

/**
 * A pack has so many events, or the characters of so large ones: a list unpacks whole packs, and
 * several that overlap.
 */
const PORTION = { events: 256, characters: 600_000 }

/** Events in order, as packs of one day that D1 takes. */
export function portionsOf(events: readonly PackedEvent[]): PackedEvent[][] {
  const portions: PackedEvent[][] = []
  let size = 0
  let day: number | undefined
  for (const event of events) {
    if (size > PORTION.characters || day !== dayOf(event.seq) || portions.at(-1)?.length === PORTION.events) {
      portions.push([])
      day = dayOf(event.seq)
      size = 0
    }
    size += JSON.stringify(event.payload).length
    portions.at(-1)?.push(event)
  }
  return portions
}

/** A pack lists its scopes and types up to so many, so that a search can leave it out. */
const MOST_NAMED = 100

/**
 * Answers the places of a scope's events: in the upper half of a millisecond, in the scope's order.
 * Each copy has the same.
 */
export function placesOf(scope: string): (event: { filed: number; nth: number }) => bigint {
  const [mask, own] = [PLACE_BIT - 1n, BigInt(`0x${textHash(scope)}`)]
  return ({ filed, nth }) => BigInt(filed) * SLOT + PLACE_BIT + ((own + BigInt(nth)) & mask)
}

export const DAY_MS = 86_400_000
/** A pack has events of one day, since retention deletes whole ones. */
export const dayOf = (seq: bigint): number => Math.floor(msOf(seq) / DAY_MS)
export const startOfDay = (day: number): bigint => BigInt(day * DAY_MS) * SLOT

/** The lowest id of a pack with the newest event `last`; packs of a time follow each other. */
export const idFrom = (last: bigint): bigint => (last / SLOT) * SLOT

/** Small packs are merged once they are so many, or have so many events. */
export const MOST_SMALL = { packs: 64, events: 2048 }

/**
 * True for one of the writers whose packs together become so many: that one merges them. The
 * inserted row is among them.
 */
const ARE_MANY = `(SELECT count(*) % ${MOST_SMALL.packs} = 0 OR sum(events) / ${MOST_SMALL.events} > (sum(events) - ?4) / ${MOST_SMALL.events}
  FROM packs WHERE id < ${FULL})`

/** SQL for the rows, and for the letters of the queue, of the events in the JSON list `packed`. */
export const rowsOfPacked = (packed: string): string =>
  `json_each(${packed}) AS packed CROSS JOIN events ON events.id = packed.value->>'id' AND events.scope = packed.value->>'scope'`
export const lettersOfPacked = (packed: string): string =>
  `dead_letters WHERE (scope, event_id) IN (SELECT value->>'scope', value->>'id' FROM json_each(${packed}))`

/**
 * A pack under the next free id, or under its own if it is full. Fails, and with it its batch, if
 * that is taken or one of the packs that it replaces is not there. `unless`: ?13 is a list of
 * events, and nothing is inserted if they have rows or letters.
 */
const insertOf = ({ unless, told }: { unless: boolean; told: boolean }): string => `INSERT INTO packs
    (id, first, last, events, accepted_at, raw_bytes, scopes, types, statuses, hashes, data${told ? ', told' : ''})
  SELECT CASE WHEN place >= ${FULL} THEN place ELSE coalesce((SELECT max(id) + 1 FROM packs WHERE id >= place AND id < place + ${SLOT}), place) END,
    CAST(?2 AS INTEGER), CAST(?3 AS INTEGER),
    CASE WHEN (SELECT count(*) FROM packs WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?11))) = json_array_length(?11) THEN ?4 END,
    ?5, ?6, ?7, ?8, ?9, CASE WHEN ?10 <> '' THEN unhex(?10) END, unhex(?12)${told ? ', ?14' : ''}
  FROM (SELECT CAST(?1 AS INTEGER) AS place, ?13 AS unless)
  ${unless ? `WHERE NOT EXISTS (SELECT 1 FROM ${rowsOfPacked('?13')}) AND NOT EXISTS (SELECT 1 FROM ${lettersOfPacked('?13')})` : ''}
  RETURNING ${ARE_MANY} AS are_many`

/** The different values as a JSON list, or null if they are many. */
export function namesIn(events: readonly PackedEvent[], name: 'scope' | 'type' | 'status'): string | null {
  const names = [...new Set(events.map((event) => event[name]))]
  return names.length > MOST_NAMED ? null : JSON.stringify(names)
}

/** A row of the answer of the statement of a pack: none if it was not inserted. */
export type Inserted = { are_many: number }
/**
 * `id`: of a full pack. `told`: the answers beside the events. `unless`: a JSON list of events; if
 * D1 has rows or letters of them, the pack is not inserted.
 */
type How = { id?: bigint | undefined; replaces?: readonly string[]; told?: string | null; unless?: string | null }

/** The statement that writes a pack of events in the order of `seq`. */
export function packStatement(
  db: D1Database,
  events: readonly PackedEvent[],
  { id, replaces = [], told = null, unless = null }: How = {},
): D1PreparedStatement {
  const [first, last] = [events[0], events.at(-1)]
  if (!first || !last) throw new TypeError('a pack has an event at least')
  const { data, raw_bytes } = encodePack(events)
  return db
    .prepare(insertOf({ unless: unless !== null, told: told !== null }))
    .bind(
      String(id ?? idFrom(last.seq)),
      String(first.seq),
      String(last.seq),
      events.length,
      Math.max(...events.map(({ accepted_at }) => accepted_at)),
      raw_bytes,
      namesIn(events, 'scope'),
      namesIn(events, 'type'),
      namesIn(events, 'status'),
      id === undefined ? hashesOf(events).join('') : '',
      JSON.stringify(replaces),
      data,
      unless,
      ...(told === null ? [] : [told]),
    )
}

/** By place, and then by name: two scopes may have events of one place. */
export function inOrder(one: PackedEvent, other: PackedEvent): number {
  if (one.seq !== other.seq) return one.seq < other.seq ? -1 : 1
  const [name, another] = [nameOf(one), nameOf(other)]
  return name < another ? -1 : name > another ? 1 : 0
}

/**
 * Each event once, by its millisecond: it is in two packs, as it was, if one of them was written
 * again. That one may lack the traits of the first. In the archive it may be in two states.
 */
export function eachOnce(events: readonly PackedEvent[]): PackedEvent[] {
  const once = new Map<string, PackedEvent>()
  for (const event of events) {
    const key = `${msOf(event.seq)} ${nameOf(event)}`
    const known = once.get(key)
    if (!known || known.revision < event.revision || (known.revision === event.revision && known.kinds <= event.kinds)) once.set(key, event)
  }
  return [...once.values()]
}

/** A pack in one of the databases. */
export type PackAt = { at: PackDatabase; id: string }
export const packKey = ({ at, id }: PackAt): string => `${at.name} ${id}`

/**
 * Asks a database. Returns undefined if it does not answer and `missing` can take its name; without
 * the store itself there is no answer at all.
 */
export async function askPacks<Answer>(
  { name, db }: PackDatabase,
  missing: Set<string> | undefined,
  ask: (db: D1Database) => Promise<Answer>,
): Promise<Answer | undefined> {
  if (missing?.has(name)) return undefined
  try {
    return await ask(db)
  } catch (error) {
    if (name === 'DB' || error instanceof PackDamaged) throw error
    if (!missing) throw new DatabaseAway(`${name} does not answer: ${messageOf(error)}`, { cause: error })
    missing.add(name)
    warn({ message: 'a database of packs does not answer: its events are left out', database: name, error })
    return undefined
  }
}

/** As `readPacks`, of all databases, by `packKey`, which also names those that are damaged. */
export async function readPacksAt(
  packs: readonly PackAt[],
  { isWanted, damaged, missing }: Read & { missing?: Set<string> | undefined } = {},
): Promise<Map<string, PackedEvent[]>> {
  const some = await Promise.all(
    Array.from(
      Map.groupBy(packs, (pack) => pack.at),
      async ([at, of]): Promise<[string, PackedEvent[]][]> => {
        const ids = of.map(({ id }) => id)
        const unread = damaged && new Set<string>()
        const found = await askPacks(at, missing, (db) => readPacks(db, ids, { isWanted, damaged: unread }))
        for (const id of unread ?? []) damaged?.add(packKey({ at, id }))
        // A database that does not answer has no events.
        return found ? Array.from(found, ([id, events]) => [packKey({ at, id }), events]) : of.map((pack) => [packKey(pack), []])
      },
    ),
  )
  return new Map(some.flat())
}

/** `damaged` takes the ids of packs that cannot be read. */
type Read = { isWanted?: ((event: PackedEvent) => boolean) | undefined; damaged?: Set<string> | undefined }

/**
 * The wanted events of these packs, by id. A pack that is gone is left out. One that cannot be read
 * has no events, if there is a set for its id, and throws if not.
 */
export async function readPacks(
  db: D1Database,
  ids: readonly string[],
  { isWanted = () => true, damaged }: Read = {},
): Promise<Map<string, PackedEvent[]>> {
  if (ids.length === 0) return new Map()
  const sql = 'SELECT CAST(id AS TEXT) AS id, hex(data) AS data FROM packs WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?1))'
  const { results } = await db.prepare(sql).bind(JSON.stringify(ids)).all<{ id: string; data: string }>()
  const eventsOf = (id: string, data: string): PackedEvent[] => {
    try {
      return decodePack(id, data).filter(isWanted)
    } catch (error) {
      if (!damaged || !(error instanceof PackDamaged)) throw error
      damaged.add(id)
      warn({ message: 'a damaged pack of events is left out', id, error })
      return []
    }
  }
  return new Map(results.map(({ id, data }) => [id, eventsOf(id, data)]))
}

/**
 * The damaged packs, by `packKey`, that may have events of the wanted scopes: rows of packs say
 * which scopes they have, unless these are many.
 */
export async function damagedAmong(
  store: D1Database,
  damaged: ReadonlySet<string>,
  isWanted: (scope: string) => boolean,
): Promise<Set<string>> {
  const sql = `SELECT CAST(id AS TEXT) AS id, scopes FROM packs WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?1))`
  const found = packDatabases(store).map(async (at) => {
    const start = packKey({ at, id: '' })
    const ids = Array.from(damaged).flatMap((key) => (key.startsWith(start) ? [key.slice(start.length)] : []))
    if (ids.length === 0) return []
    const { results } = await at.db.prepare(sql).bind(JSON.stringify(ids)).all<{ id: string; scopes: string | null }>()
    const mayHave = (scopes: string | null) => scopes === null || (JSON.parse(scopes) as string[]).some(isWanted)
    return results.flatMap(({ id, scopes }) => (mayHave(scopes) ? [packKey({ at, id })] : []))
  })
  return new Set((await Promise.all(found)).flat())
}
