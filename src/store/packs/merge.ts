import { messageOf } from '../../base/error-text.ts'
import { ENTRY_BYTES, FAN_OUT, INDEX_LEVELS, INDEX_SLOT, NAME_DIGITS, indexPlace, levelOf, partOf } from './index-place.ts'
import { hashesOf, HASH_DIGITS, type PackedEvent } from './format.ts'
import { dayOf, eachOnce, FULL, idFrom, inOrder, MOST_SMALL, packStatement, portionsOf, readPacks } from './rows.ts'
import { BITS, seqAt, SLOT } from '../queued.ts'
import { packDatabases } from '../store.ts'
import { keepTold } from './told.ts'

/** Packs that have one of these together are full: they are indexed, and merged no more. */
const FULL_PACKS = { events: 1024, bytes: 400_000, raw_bytes: 4_000_000 }
/** Packs that merge have so much together, at most. */
const MOST = { events: MOST_SMALL.events, bytes: 800_000, raw_bytes: 8_000_000 }
const MEASURES = ['events', 'bytes', 'raw_bytes'] as const
/** Small packs that one run looks at, oldest first. */
const MOST_LOOKED_AT = 4000
/** A run ends after so many merges, or so much time. */
const MOST_MERGES = 50
export const MERGE_MS = 5000
/** SQL for the size of a pack. */
const BYTES = 'octet_length(data) + coalesce(octet_length(hashes), 0)'

type Small = Record<(typeof MEASURES)[number], number> & { id: string }

const isFull = (pack: Omit<Small, 'id'>): boolean => MEASURES.some((name) => pack[name] >= FULL_PACKS[name])
const sizeOf = (packs: readonly Small[]) => {
  const size = { events: 0, bytes: 0, raw_bytes: 0 }
  for (const pack of packs) for (const name of MEASURES) size[name] += pack[name]
  return size
}
const levelOfPack = ({ events }: Small): number => Math.floor(Math.log(events) / Math.log(FAN_OUT))

/**
 * Merges small packs that have become many, so that a list reads few of them. A merge is one batch
 * of D1: the new pack is there when the others are gone. Packs of two days stay apart, since
 * retention deletes whole ones. Returns the number of merges.
 */
export async function mergePacks(db: D1Database, now: number, most_ms = MERGE_MS): Promise<number> {
  const damaged = new Set<string>()
  const end = Date.now() + most_ms
  let merges = 0
  let indexed = false
  const isOver = () => merges >= MOST_MERGES || Date.now() >= end
  try {
    for (let before = -1; before < merges && !isOver();) {
      before = merges
      let small = (await smallPacks(db)).filter(({ id }) => !damaged.has(id))
      for (let packs = nextMerge(small, now); packs !== null && !isOver(); packs = nextMerge(small, now)) {
        const is_full = await merge(db, packs, { damaged, now })
        indexed ||= is_full
        merges += 1
        const gone = new Set(packs)
        small = small.filter((pack) => !gone.has(pack))
      }
    }
    if (indexed) while (await mergeIndex(db));
  } catch (error) {
    if (!(error instanceof LostRace)) throw error
  }
  return merges
}

/** Another run has taken one of the packs or rows, and does the work. */
class LostRace extends Error {}

/** Writes nothing if what is replaced is gone, or the new place has been taken. */
async function write(db: D1Database, statements: D1PreparedStatement[]): Promise<void> {
  try {
    await db.batch(statements)
  } catch (error) {
    throw /(?:NOT NULL|UNIQUE) constraint failed: pack/.test(messageOf(error)) ? new LostRace() : error
  }
}

async function smallPacks(db: D1Database): Promise<Small[]> {
  const sql = `SELECT CAST(id AS TEXT) AS id, events, octet_length(data) AS bytes, raw_bytes FROM packs WHERE id < ${FULL} ORDER BY id LIMIT ${MOST_LOOKED_AT}`
  const { results } = await db.prepare(sql).all<Small>()
  return results
}

/** Packs of one day and of about one size, or of a day that is over; null if none are to merge. */
function nextMerge(small: readonly Small[], now: number): Small[] | null {
  const today = dayOf(BigInt(seqAt(now)))
  const groups = Map.groupBy(small, (pack) => {
    const day = dayOf(BigInt(pack.id))
    return day < today ? `${day}` : `${day} ${levelOfPack(pack)}`
  })
  for (const [name, group] of groups) {
    const least = name.includes(' ') ? FAN_OUT : 2
    const own = group.find(isFull)
    if (own) return [own]
    if (group.length < least && !isFull(sizeOf(group))) continue
    let count = 1
    const fits = (packs: readonly Small[]) => MEASURES.every((measure) => sizeOf(packs)[measure] <= MOST[measure])
    while (count < Math.min(group.length, MOST_SMALL.packs) && fits(group.slice(0, count + 1))) count += 1
    return group.slice(0, count)
  }
  return null
}

type Merging = { damaged: Set<string>; now: number }

const dropStatement = (db: D1Database, packs: readonly string[]): D1PreparedStatement =>
  db.prepare('DELETE FROM packs WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?1))').bind(JSON.stringify(packs))

/** Returns true if the new packs are full. */
async function merge(db: D1Database, packs: readonly Small[], { damaged, now }: Merging): Promise<boolean> {
  const replaces = packs.map(({ id }) => id)
  const events = await readable(db, replaces, damaged)
  if (events === null) return false
  const is_full = isFull({ ...sizeOf(packs), events: events.length })
  const portions = is_full ? portionsOf(events) : [events]
  const ids = is_full ? await freeIds(db, portions) : []
  const entries = ids.length === 0 ? [] : portions.flatMap((portion, nth) => entriesOf(portion, nth)).toSorted()
  await write(db, [
    ...portions.map((portion, nth) => packStatement(db, portion, { replaces, id: ids[nth] })),
    ...(ids.length === 0 ? [] : [indexStatement(db, 0, entries, { packs: ids.map(String), accepted_at: newest(events) })]),
    keepTold(db, replaces, now),
    dropStatement(db, replaces),
  ])
  return is_full
}

const newest = (events: readonly PackedEvent[]): number => Math.max(...events.map(({ accepted_at }) => accepted_at))

/** All events of the packs in order, each once; null if one is damaged, which is left alone. */
async function readable(db: D1Database, ids: readonly string[], damaged: Set<string>): Promise<PackedEvent[] | null> {
  const packs = await readPacks(db, ids, { damaged })
  if (packs.size < ids.length) throw new LostRace()
  return ids.some((id) => damaged.has(id)) ? null : eachOnce(Array.from(packs.values()).flat()).toSorted(inOrder)
}

/** Free ids of full packs, in the order of their last events. */
async function freeIds(db: D1Database, portions: readonly PackedEvent[][]): Promise<bigint[]> {
  const places = portions.map((portion) => FULL + idFrom(portion.at(-1)?.seq ?? 0n))
  const place = 'CAST(value AS INTEGER)'
  const sql = `SELECT CAST((SELECT max(id) + 1 FROM packs WHERE id >= ${place} AND id < ${place} + ${SLOT}) AS TEXT) AS id FROM json_each(?1) ORDER BY key`
  const { results } = await db
    .prepare(sql)
    .bind(JSON.stringify(places.map(String)))
    .all<{ id: string | null }>()
  const ids: bigint[] = []
  for (const [nth, least] of places.entries()) {
    const before = ids.at(-1)
    const free = BigInt(results[nth]?.id ?? least)
    ids.push(before !== undefined && before >= free ? before + 1n : free)
  }
  return ids
}

/** The hash in hexadecimal digits, and the place of its pack in the list. */
const entryOf = (hash: string, nth: number): string => hash + nth.toString(16).padStart(NAME_DIGITS, '0')

const entriesOf = (events: readonly PackedEvent[], nth: number): string[] => hashesOf(events).map((hash) => entryOf(hash, nth))

/** Fails, and with it its batch, if a row that it replaces is not there. */
const INSERT_INDEX = `INSERT INTO pack_index (place, accepted_at, packs, entries)
  SELECT coalesce((SELECT max(place) + 1 FROM pack_index WHERE place >= ?1 AND place < ?1 + ${INDEX_SLOT}), ?1), ?2,
    CASE WHEN (SELECT count(*) FROM pack_index WHERE place IN (SELECT value FROM json_each(?5))) = json_array_length(?5) THEN ?3 END, unhex(?4)`

type Indexed = { packs: readonly string[]; accepted_at: number; replaces?: readonly number[] }

const indexStatement = (db: D1Database, place: number, entries: readonly string[], { packs, accepted_at, replaces = [] }: Indexed) =>
  db.prepare(INSERT_INDEX).bind(place, accepted_at, JSON.stringify(packs), entries.join(''), JSON.stringify(replaces))

type IndexRow = { place: number; accepted_at: number; packs: string; entries: string }

/** Merges eight rows of a part of the index into a row of each part below. False if none are. */
async function mergeIndex(db: D1Database): Promise<boolean> {
  const parts = `SELECT min(place) AS place FROM pack_index GROUP BY place / ${INDEX_SLOT} HAVING count(*) >= ${FAN_OUT} LIMIT 1`
  const found = await db.prepare(parts).first<{ place: number }>()
  const level = found ? levelOf(found.place) : INDEX_LEVELS
  if (!found || level + 1 >= INDEX_LEVELS) return false
  const sql = `SELECT place, accepted_at, packs, hex(entries) AS entries FROM pack_index WHERE place >= ?1 AND place < ?1 + ${INDEX_SLOT} ORDER BY place LIMIT ${FAN_OUT}`
  const { results } = await db.prepare(sql).bind(partOf(found.place)).all<IndexRow>()
  const named = [...new Set(results.flatMap(({ packs }) => JSON.parse(packs) as string[]))]
  const there = await db
    .prepare('SELECT CAST(id AS TEXT) AS id FROM packs WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?1))')
    .bind(JSON.stringify(named))
    .all<{ id: string }>()
  const known = new Set(there.results.map(({ id }) => id))
  const entries = results.flatMap(entriesIn).filter(({ id }) => known.has(id))
  const parted = Map.groupBy(entries, ({ hash }) => indexPlace(level + 1, hash))
  const replaces = results.map(({ place }) => place)
  const accepted_at = Math.max(...results.map((row) => row.accepted_at))
  await write(db, [
    ...Array.from(parted, ([place, some]) => {
      const nths = new Map([...new Set(some.map(({ id }) => id))].map((id, nth) => [id, nth]))
      const texts = some.map(({ hash, id }) => entryOf(hash, nths.get(id) ?? 0)).toSorted()
      return indexStatement(db, place, texts, { packs: [...nths.keys()], accepted_at, replaces })
    }),
    db.prepare('DELETE FROM pack_index WHERE place IN (SELECT value FROM json_each(?1))').bind(JSON.stringify(replaces)),
  ])
  return true
}

function entriesIn({ packs, entries }: IndexRow): { hash: string; id: string }[] {
  const ids = JSON.parse(packs) as string[]
  const digits = ENTRY_BYTES * 2
  return Array.from({ length: entries.length / digits }, (_, index) => {
    const entry = entries.slice(index * digits, (index + 1) * digits).toLowerCase()
    return { hash: entry.slice(0, HASH_DIGITS), id: ids[Number.parseInt(entry.slice(HASH_DIGITS), 16)] ?? '' }
  })
}

/** Work that precedes the deletion of packs, which it may move elsewhere. */
export type Leaving = (packs: readonly string[]) => Promise<unknown>

/** Deletes packs whose events were all accepted before `before`; returns the number of events. */
export async function forgetPacks(db: D1Database, before: number, limit: number, leaving?: Leaving): Promise<number> {
  const sql = `SELECT CAST(id AS TEXT) AS id, events FROM packs
    WHERE (id < CAST(?1 AS INTEGER) OR (id >= ${FULL} AND id < CAST(?2 AS INTEGER))) AND accepted_at < ?3 LIMIT ?4`
  const end = BigInt(seqAt(before))
  const { results } = await db
    .prepare(sql)
    .bind(String(end), String(FULL + end), before, limit)
    .all<Old>()
  return dropPacks(db, results, { before, leaving })
}

type Old = { id: string; events: number }

/** Rows of the index go by their age: an entry whose pack is gone finds nothing. */
async function dropPacks(
  db: D1Database,
  packs: readonly Old[],
  { before, leaving }: { before: number; leaving: Leaving | undefined },
): Promise<number> {
  if (packs.length === 0) return 0
  const ids = packs.map(({ id }) => id)
  await leaving?.(ids)
  await db.batch([
    keepTold(db, ids, Date.now()),
    dropStatement(db, ids),
    db.prepare('DELETE FROM pack_index WHERE accepted_at < ?1').bind(before),
  ])
  return packs.reduce((sum, { events }) => sum + events, 0)
}

/** Deletes the packs beyond so many bytes, the oldest first; returns the number of events. */
export async function forgetPacksBeyond(db: D1Database, most_bytes: number, limit: number, leaving?: Leaving): Promise<number> {
  if ((await overduePacks(db, 0)).bytes <= most_bytes) return 0
  const sizes = `SELECT id, events, sum(${BYTES}) OVER (ORDER BY last DESC, id DESC) AS bytes FROM packs`
  const sql = `SELECT CAST(id AS TEXT) AS id, events FROM (${sizes}) WHERE bytes > ?1 ORDER BY bytes DESC LIMIT ?2`
  const { results } = await db.prepare(sql).bind(most_bytes, limit).all<Old>()
  return dropPacks(db, results, { before: 0, leaving })
}

/**
 * The first place of the oldest packed event's time in all databases, as text: no row before it
 * hides an event.
 */
export async function oldestPacked(store: D1Database): Promise<string | null> {
  const sql = 'SELECT CAST(min(first) AS TEXT) AS first FROM packs'
  const rows = await Promise.all(packDatabases(store).map(({ db }) => db.prepare(sql).first<{ first: string | null }>()))
  const firsts = rows.flatMap((row) => (row?.first ? [idFrom(BigInt(row.first))] : []))
  return firsts.length === 0 ? null : String(firsts.reduce((least, first) => (first < least ? first : least)))
}

type Kept = { events: number; oldest: number | null; bytes: number }

/** The packed events that are overdue, in whole packs; when the oldest was accepted; all bytes. */
export async function overduePacks(db: D1Database, before: number): Promise<Kept> {
  const sql = `SELECT coalesce(sum(CASE WHEN accepted_at < ?1 THEN events END), 0) AS events, min(first) >> ${BITS} AS oldest,
    coalesce(sum(${BYTES}), 0) AS bytes FROM packs`
  return (await db.prepare(sql).bind(before).first<Kept>()) ?? { events: 0, oldest: null, bytes: 0 }
}
