import { textHash } from '../../base/hash.ts'
import { msOf, nameOf, withoutRow } from '../queued.ts'
import { HASH_DIGITS, type PackedEvent } from './format.ts'
import { INDEX_LEVELS, indexPlace, INDEX_SLOT, ENTRY_BYTES, NAME_DIGITS, shareIn } from './index-place.ts'
import { noGaps, type Gaps } from './missing.ts'
import { packDatabases } from '../store.ts'
import { askPacks, eachOnce, FULL, packKey, readPacksAt, type PackAt } from './rows.ts'

/** Packs that one hash may have in a row of the index, and those that it mostly has. */
const PACKS_OF_HASH = { most: 500, few: 4 }

const SMALL = `SELECT DISTINCT CAST(packs.id AS TEXT) AS id FROM packs CROSS JOIN json_each(?1) AS asked
  WHERE packs.id < ${FULL} AND accepted_at >= ?2 AND instr(hashes, unhex(asked.value)) > 0`

/** Entries about the place that a hash has in a row if hashes are spread evenly. */
const NEAR = 400
const entryAt = (nth: string): string => `substr(entries, (${nth}) * ${ENTRY_BYTES} + 1, ${HASH_DIGITS / 2})`
/**
 * Entries have the order of their hashes: if the ones about the expected place begin before the
 * hash and end after it, the others cannot have it. A row is read once for all hashes of its part.
 */
const INDEXED = `WITH asked (place, hash, share) AS MATERIALIZED (SELECT value->>0, unhex(value->>1), value->>2 FROM json_each(?1)),
    near AS (SELECT hash, packs, entries, octet_length(entries) / ${ENTRY_BYTES} AS count,
        max(0, CAST(octet_length(entries) / ${ENTRY_BYTES} * share AS INTEGER) - ${NEAR / 2}) AS least
      FROM (SELECT DISTINCT place FROM asked) AS part CROSS JOIN pack_index
        ON pack_index.place >= part.place AND pack_index.place < part.place + ${INDEX_SLOT} AND accepted_at >= ?2
      CROSS JOIN asked ON asked.place = part.place),
    found AS (SELECT hash, packs, entries,
        CASE WHEN (least = 0 OR ${entryAt('least')} < hash) AND (least + ${NEAR} >= count OR ${entryAt(`least + ${NEAR}`)} > hash)
          THEN least * ${ENTRY_BYTES} + nullif(instr(substr(entries, least * ${ENTRY_BYTES} + 1, ${NEAR * ENTRY_BYTES}), hash), 0)
          ELSE nullif(instr(entries, hash), 0) END AS start
      FROM near)
  SELECT hex(hash) AS hash, packs, hex(substr(entries, start, ?3 * ${ENTRY_BYTES})) AS found FROM found WHERE start IS NOT NULL`

type Indexed = { hash: string; packs: string; found: string }

/** Ids of the packs that may have one of these ids of events or traces. */
async function packsWith(db: D1Database, texts: readonly string[], since: number): Promise<string[]> {
  const hashes = texts.map(textHash)
  const { few, most } = PACKS_OF_HASH
  const [small, indexed] = await db.batch<Indexed & { id: string }>([
    db.prepare(SMALL).bind(JSON.stringify(hashes), since),
    indexStatement(db, hashes, { since, entries: few }),
  ])
  const rows = (indexed?.results ?? []).map((row) => ({ hash: row.hash, packs: packsOf(row) }))
  const full = rows.flatMap(({ hash, packs }) => (packs.length === few ? [hash] : []))
  const more = full.length === 0 ? null : await indexStatement(db, full, { since, entries: most }).all<Indexed>()
  const found = [...rows.map(({ packs }) => packs), ...(more?.results ?? []).map(packsOf)]
  return [...new Set([...(small?.results ?? []).map(({ id }) => id), ...found.flat()])]
}

function indexStatement(db: D1Database, hashes: readonly string[], { since, entries }: { since: number; entries: number }) {
  const places = hashes.flatMap((hash) =>
    Array.from({ length: INDEX_LEVELS }, (_, level) => [indexPlace(level, hash), hash, shareIn(level, hash)]),
  )
  return db.prepare(INDEXED).bind(JSON.stringify(places), since, entries)
}

/** The packs of the hash in a row, whose entries of one hash follow each other. */
function packsOf({ hash, packs, found }: Indexed): string[] {
  const ids = JSON.parse(packs) as string[]
  const nths: number[] = []
  for (let at = 0; found.startsWith(hash, at); at += ENTRY_BYTES * 2)
    nths.push(Number.parseInt(found.slice(at + HASH_DIGITS, at + HASH_DIGITS + NAME_DIGITS), 16))
  return nths.flatMap((nth) => ids[nth] ?? [])
}

/** Packs that are read at once for a look-up, and texts that are asked for in one statement. */
const READ_AT_ONCE = 16
const ASKED_AT_ONCE = 1000

type LookUp = {
  isWanted: (event: PackedEvent) => boolean
  since?: number | undefined
  /** No more packs are read once so many events are found. */
  most?: number
  damaged?: Set<string> | undefined
  /** Takes the names of databases that do not answer; without it the look-up fails. */
  missing?: Set<string> | undefined
}

/** The wanted packed events with one of these ids, or of one of these traces, older packs first. */
async function packedWith(store: D1Database, texts: readonly string[], { since = 0, most = Infinity, ...read }: LookUp) {
  const found: PackedEvent[] = []
  const asked = new Set<string>()
  for (let isWhole = false; !isWhole;) {
    isWhole = true
    const packs = (await allPacksWith(store, texts, { since, missing: read.missing })).filter((pack) => !asked.has(packKey(pack)))
    for (let from = 0; from < packs.length && found.length < most; from += READ_AT_ONCE) {
      const some = packs.slice(from, from + READ_AT_ONCE)
      const events = await readPacksAt(some, read)
      found.push(...Array.from(events.values()).flat())
      for (const pack of some) asked.add(packKey(pack))
      // The events of a pack that is gone may be in the one that it has merged into.
      isWhole &&= some.every((pack) => events.has(packKey(pack)))
    }
  }
  return eachOnce(found)
}

/** The packs of all databases, which are asked at once, in the order of age. */
async function allPacksWith(
  store: D1Database,
  texts: readonly string[],
  { since, missing }: { since: number; missing: Set<string> | undefined },
): Promise<PackAt[]> {
  const found = packDatabases(store).map(async (at) => {
    const ids = new Set<string>()
    for (let from = 0; from < texts.length; from += ASKED_AT_ONCE) {
      const some = texts.slice(from, from + ASKED_AT_ONCE)
      for (const id of (await askPacks(at, missing, (db) => packsWith(db, some, since))) ?? []) ids.add(id)
    }
    return Array.from(ids, (id) => ({ at, id }))
  })
  const order = ({ id }: PackAt) => BigInt(id) % FULL
  return (await Promise.all(found)).flat().toSorted((one, other) => Number(order(one) - order(other)))
}

/** The packed events of this id in all scopes, unless a row has them. */
export const packedById = async (store: D1Database, id: string, gaps: Gaps): Promise<PackedEvent[]> =>
  withoutRow(store, await packedWith(store, [id], { ...gaps, isWanted: (event) => event.id === id }))

/**
 * The packed events of these traces, accepted at `since` or later, that no row has and the caller
 * wants: about the first `most` if they are more.
 */
export async function packedByTrace(
  db: D1Database,
  trace_ids: readonly string[],
  { isWanted, ...bounds }: Required<Pick<LookUp, 'since' | 'most' | 'isWanted'>> & Pick<LookUp, 'missing' | 'damaged'>,
): Promise<PackedEvent[]> {
  const asked = new Set(trace_ids)
  return withoutRow(db, await packedWith(db, trace_ids, { ...bounds, isWanted: (event) => asked.has(event.trace_id) && isWanted(event) }))
}

/**
 * The newest packed one of each of these events, by `scope id`, whether or not rows have them, of
 * those that were accepted at `since` or later, in ms. A damaged pack is left out, so that work on
 * other events does not fail.
 */
export async function packedAmong(
  db: D1Database,
  events: readonly { scope: string; id: string }[],
  { since, missing }: Pick<LookUp, 'since' | 'missing'> = {},
): Promise<Map<string, PackedEvent>> {
  const asked = new Set(events.map(nameOf))
  const found = await packedWith(
    db,
    events.map(({ id }) => id),
    { since, missing, isWanted: (event) => asked.has(nameOf(event)), damaged: new Set() },
  )
  return new Map(found.toSorted((one, other) => one.accepted_at - other.accepted_at).map((event) => [nameOf(event), event]))
}

/**
 * The names of these events that a pack has from another time, or may have: with a second pack,
 * lists would have them twice.
 */
export async function repeatedAmong(db: D1Database, events: readonly PackedEvent[]): Promise<Set<string>> {
  const asked = new Map(events.map((event) => [nameOf(event), event]))
  const gaps = noGaps()
  const isWanted = (event: PackedEvent): boolean => {
    const sent = asked.get(nameOf(event))
    return sent !== undefined && msOf(sent.seq) !== msOf(event.seq)
  }
  const found = await packedWith(
    db,
    events.map(({ id }) => id),
    { ...gaps, isWanted },
  )
  return new Set(gaps.missing.size + gaps.damaged.size > 0 ? asked.keys() : found.map(nameOf))
}
