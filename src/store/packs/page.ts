import { limits } from '../../base/limits.ts'
import { patternMatchesSql } from '../../contract/principal.ts'
import { covers, type EventFilter } from '../event-filter.ts'
import { ARCHIVE, dayName, filesOf, nextDay, readArchived, type ArchivedPack } from './archived.ts'
import type { PackedEvent } from './format.ts'
import { BITS, roundPlace, SLOT, withoutRow } from '../queued.ts'
import { packDatabases, type PackDatabase } from '../store.ts'
import { askPacks, DAY_MS, dayOf, eachOnce, FULL, idFrom, inOrder, packKey, readPacksAt, startOfDay, type PackAt } from './rows.ts'

/** A page unpacks no more, however few match: its cursor continues there. */
const MOST_LOOKED_AT = { events: 20_000, raw_bytes: 32_000_000 }
/**
 * Packs of a database whose times a page compares at once, more and more if it asks for a few of
 * them; and packs of a day.
 */
const PACKS_AHEAD = { first: 256, most: 4096 }
const MOST_PACKS = 1000
/** A page looks at further packs so often. */
const MOST_OPENED = 16
/** Packs beside the first that are read at once are no larger. */
const READ_AT_ONCE = { events: 1024, bytes: 250_000, raw_bytes: 4_000_000 }

/** Packs that may have something that is asked for, in the order of the list. */
type Asked = Pick<EventFilter, 'patterns' | 'scope' | 'types' | 'status'> & {
  /** The bounds of places, which are outside. */
  after: bigint
  before: bigint
  rising: boolean
  most: number
  isWanted: (event: PackedEvent) => boolean
  /** True if the newest state of a wanted event is listed. */
  isShown?: (event: PackedEvent) => boolean
  /** The page has the first of the events for which it is the same. */
  oncePer?: (event: PackedEvent) => string
  sizeOf?: (event: PackedEvent) => number
  /** Takes the names of databases that do not answer: the page lacks their events. */
  missing?: Set<string> | undefined
  /** Takes the names of packs that cannot be read, which have no events then. */
  damaged?: Set<string> | undefined
  /** The archive, if the list continues there. Its set takes the days that were read. */
  archive?: { bucket: R2Bucket; days: Set<string> } | undefined
}
/** `reach`: a cursor before which the page has all; null at the end. */
export type PackedPage = { events: PackedEvent[]; reach: bigint | null }
/** Without an id it stands for packs that follow, which `open` reads, or the next page. */
type Head = PackAt & { edge: bigint; events: number; bytes: number; raw_bytes: number; open?: () => Promise<Head[]>; file?: ArchivedPack }

/** Packed events that no row hides, in order, and one more than `most` or `page_bytes` allow. */
export async function packedPage(db: D1Database, asked: Asked): Promise<PackedPage> {
  const { most, rising } = asked
  let heads = await headsOf(db, asked)
  const way = rising ? inOrder : (one: PackedEvent, other: PackedEvent) => inOrder(other, one)
  let held: PackedEvent[] = []
  let settled: PackedEvent | undefined
  const { events: shown, show, isFull } = shownOn(asked)
  const known = new Set<string>()
  for (const looked = { events: 0, raw_bytes: 0, opened: 0 }; ;) {
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
    const [next] = heads
    const isTired = looked.events >= MOST_LOOKED_AT.events || looked.raw_bytes >= MOST_LOOKED_AT.raw_bytes || looked.opened >= MOST_OPENED
    if (isTired || (next?.id === '' && !next.open)) return { events: shown, reach: cursorAt(edge, asked) }
    if (next?.open) {
      heads = await opened(heads, rising)
      looked.opened += 1
      continue
    }
    const some = nextOf(heads)
    const packs = await readHeads(some, asked)
    for (const head of some) {
      known.add(packKey(head))
      looked.events += head.events
      looked.raw_bytes += head.raw_bytes
    }
    const isNew = (event: PackedEvent) => settled === undefined || way(settled, event) < 0
    held = eachOnce([...held, ...Array.from(packs.values()).flat().filter(isNew)]).toSorted(way)
    // The events of a pack that is gone may be in the one that it has merged into.
    if (packs.size < some.length)
      heads = (await headsOf(db, from(asked, settled))).filter((head) => head.id === '' || !known.has(packKey(head)))
  }
}

async function readHeads(some: readonly Head[], asked: Asked): Promise<Map<string, PackedEvent[]>> {
  const bounds = inWhole(asked)
  const isWanted = (event: PackedEvent) => event.seq > bounds.after && event.seq < bounds.before && asked.isWanted(event)
  const files = some.flatMap(({ file }) => file ?? [])
  const packs = await readPacksAt(
    some.filter(({ file }) => !file),
    { ...asked, isWanted },
  )
  if (!asked.archive || files.length === 0) return packs
  for (const { first } of files) asked.archive.days.add(dayName(dayOf(first)))
  return new Map([...packs, ...(await readArchived(asked.archive.bucket, files, { ...asked, isWanted }))])
}

/** The bounds with all of their milliseconds, one of which has all states of an event. */
const inWhole = ({ after, before }: Asked) => ({ after: after < 0n ? after : idFrom(after) - 1n, before: idFrom(before) + SLOT })

/** The rest of what is asked for, behind the events that the page has passed. */
function from(asked: Asked, settled: PackedEvent | undefined): Asked {
  if (!settled) return asked
  return { ...asked, ...(asked.rising ? { after: settled.seq - 1n } : { before: settled.seq + 1n }) }
}

/** The events of the page, which takes the first of those that are listed once. */
function shownOn({ most, oncePer, after, before, sizeOf = () => 0, isShown = () => true }: Asked) {
  const events: PackedEvent[] = []
  const names = new Set<string>()
  let bytes = 0
  const show = (some: readonly PackedEvent[]): void => {
    for (const event of some) {
      if (event.seq <= after || event.seq >= before || !isShown(event)) continue
      const name = oncePer?.(event)
      if (name !== undefined && names.has(name)) continue
      if (name !== undefined) names.add(name)
      bytes += sizeOf(event)
      events.push(event)
    }
  }
  return { events, show, isFull: () => events.length > most || bytes >= limits.page_bytes }
}

/** The cursor between the next pack and what was read: a round place, if one is as good. */
const cursorAt = (edge: bigint, asked: Asked): bigint => roundPlace(edge, asked) ?? (asked.rising ? edge - 1n : edge + 1n)

/** Removes from the list what is read next: the first pack, and those that are small beside it. */
function nextOf(heads: Head[]): Head[] {
  const size = { events: 0, bytes: 0, raw_bytes: 0 }
  const end = heads.findIndex((head, index) => {
    if (head.id === '' || index === 0) return head.id === ''
    return (['events', 'bytes', 'raw_bytes'] as const).some((name) => (size[name] += head[name]) > READ_AT_ONCE[name])
  })
  return heads.splice(0, end === -1 ? heads.length : end)
}

/** The packs of all databases that may have what is asked for, in the order of the list. */
async function headsOf(store: D1Database, asked: Asked): Promise<Head[]> {
  const { after, before, rising } = asked
  if (before <= after + 1n) return []
  const least = idFrom(after < 0n ? 0n : after)
  // The last event of a pack may be later than one before the bound, on the same day.
  const end = before < FULL ? startOfDay(dayOf(before - 1n) + 1) : FULL
  const ranges = [0n, FULL].map((base) => ({
    base,
    least: base + least,
    end: end < FULL ? base + end : base + FULL - 1n,
    ahead: PACKS_AHEAD.first,
  }))
  const found = packDatabases(store).flatMap((at) => ranges.map((range) => headsIn(at, range, asked)))
  return inOrderOf((await Promise.all([...found, archiveHeads(store, asked)])).flat(), rising)
}

/** A head for the next day of the archive, which is listed once a page arrives there. */
async function archiveHeads(store: D1Database, asked: Asked): Promise<Head[]> {
  const { after, before, rising, archive, missing } = asked
  if (!archive || before <= after + 1n) return []
  const bounds = { least: dayOf(after + 1n), most: before < FULL ? dayOf(before - 1n) : dayOf(FULL), rising }
  const day = await nextDay(store, bounds)
  if (day === null) return []
  const at = { name: ARCHIVE, db: store }
  const [start, end] = [startOfDay(day), startOfDay(day + 1)]
  const later = rising ? { ...asked, after: end - 1n } : { ...asked, before: start }
  const files = async () => (await askPacks(at, missing, () => filesOf(archive.bucket, day))) ?? []
  const open = async () => {
    const heads = (await files()).filter((file) => mayHave(file, asked)).map((file) => headOf(at, file, rising))
    return [...heads, ...(await archiveHeads(store, later))]
  }
  return [{ at, id: '', events: 0, bytes: 0, raw_bytes: 0, edge: rising ? start : end - 1n, open }]
}

/** The states of an event are in one millisecond, which is read as a whole. */
const headOf = (at: PackDatabase, file: ArchivedPack, rising: boolean): Head => ({
  at,
  id: file.key,
  ...file,
  file,
  edge: rising ? idFrom(file.first) : idFrom(file.last) + SLOT - 1n,
})

/** A file may have the newest state of an event whatever states it has of others. */
const mayHave = (file: ArchivedPack, asked: Asked): boolean => {
  const { scope, patterns, types } = asked
  const { after, before } = inWhole(asked)
  return (
    file.last > after &&
    file.first < before &&
    (file.scopes === null || file.scopes.some((name) => (scope === undefined || name === scope) && covers(patterns, name))) &&
    (types === undefined || file.types === null || file.types.some((type) => types.includes(type)))
  )
}

function inOrderOf(heads: readonly Head[], rising: boolean): Head[] {
  const isBefore = (one: bigint, other: bigint) => (rising ? one < other : one > other)
  return heads.toSorted((one, other) => (one.edge === other.edge ? 0 : isBefore(one.edge, other.edge) ? -1 : 1))
}

/** Reads what the first heads stand for, in each database. */
async function opened(heads: readonly Head[], rising: boolean): Promise<Head[]> {
  const isFirst = ({ edge, open }: Head) => open !== undefined && edge === heads[0]?.edge
  const found = await Promise.all(heads.filter(isFirst).map(async ({ open }) => (await open?.()) ?? []))
  return inOrderOf([...found.flat(), ...heads.filter((head) => !isFirst(head))], rising)
}

/** Ids of small packs, or of full ones, which begin at `base`. `end` is outside. */
type Range = { base: bigint; least: bigint; end: bigint; ahead: number }

/** The next packs of one database, and a head for those that follow. */
async function headsIn(at: PackDatabase, range: Range, asked: Asked): Promise<Head[]> {
  const { rising, after, before } = asked
  const found = await askPacks(at, asked.missing, (db) => packsIn(db, range, asked))
  if (!found?.[0]?.bound) return []
  const bound = BigInt(found[0].bound)
  const heads: Head[] = found.flatMap(({ id, edge, events, bytes, raw_bytes }) =>
    id === null ? [] : [{ at, id, edge: BigInt(edge), events, bytes, raw_bytes }],
  )
  const last = heads[MOST_PACKS - 1]
  const rest = { at, id: '', events: 0, bytes: 0, raw_bytes: 0 }
  if (last) return [...heads.slice(0, -1), { ...rest, edge: last.edge }]
  const isNarrow = [asked.scope, asked.types, asked.status].some((one) => one !== undefined) || !asked.patterns.includes('*')
  const ahead = isNarrow ? Math.min(PACKS_AHEAD.most, 4 * range.ahead) : range.ahead
  const more = rising ? { ...range, ahead, least: bound } : { ...range, ahead, end: bound }
  // The packs of one millisecond are in any order. Those that were found may all be after the page.
  const place = rising ? bound - range.base : idFrom(bound - range.base) + SLOT - 1n
  const edge = place < before ? place : before - 1n
  const has_more = more.least < more.end && (rising ? place < before : place > after)
  return has_more ? [...heads, { ...rest, edge, open: () => headsIn(at, more, asked) }] : heads
}

type PackRow = { bound: string | null; id: string | null; edge: string; events: number; bytes: number; raw_bytes: number }

/**
 * The matching ones of the next packs: ids have the order of the last events. The first events have
 * it from day to day, since a pack has events of one day. `bound`: where the others are.
 */
async function packsIn(
  db: D1Database,
  { base, least, end, ahead }: Range,
  { patterns, scope, types, status, after, before, rising }: Asked,
): Promise<PackRow[]> {
  const has = (column: string, condition: string) =>
    `(${column} IS NULL OR EXISTS (SELECT 1 FROM json_each(${column}) AS named WHERE ${condition}))`
  const matches = `EXISTS (SELECT 1 FROM json_each(?4) WHERE ${patternMatchesSql('named.value')})`
  const checks = [
    scope === undefined ? null : '(scopes IS NULL OR instr(scopes, ?3) > 0)',
    patterns.includes('*') ? null : has('scopes', matches),
    types === undefined ? null : has('types', 'named.value IN (SELECT value FROM json_each(?5))'),
    status === undefined ? null : has('statuses', 'named.value = ?6'),
  ].filter((check) => check !== null)
  const [least_id, end_id] = ['CAST(?7 AS INTEGER)', 'CAST(?8 AS INTEGER)']
  const next = `SELECT id FROM packs WHERE id >= ${least_id} AND id < ${end_id} ORDER BY id ${rising ? 'ASC' : 'DESC'} LIMIT ${ahead}`
  const day_end = `((((max(id) - ${base}) >> ${BITS}) / ${DAY_MS} + 1) * ${DAY_MS} << ${BITS}) + ${base}`
  const sql = `WITH range AS (SELECT ${rising ? day_end : 'min(id)'} AS bound FROM (${next}))
    SELECT CAST(bound AS TEXT) AS bound, CAST(id AS TEXT) AS id, CAST(${rising ? 'first' : 'last'} AS TEXT) AS edge, events,
      octet_length(data) AS bytes, raw_bytes
    FROM range LEFT JOIN packs ON ${rising ? `id >= ${least_id} AND id < bound` : `id >= bound AND id < ${end_id}`}
      AND last > CAST(?1 AS INTEGER) AND first < CAST(?2 AS INTEGER) ${checks.map((check) => `AND ${check}`).join(' ')}
    WHERE (?3 IS NULL OR true) AND ?4 IS NOT NULL AND ?5 IS NOT NULL AND (?6 IS NULL OR true)
    ORDER BY ${rising ? 'first' : 'packs.id DESC'} LIMIT ${MOST_PACKS}`
  const params = [
    String(after),
    String(before),
    scope === undefined ? null : JSON.stringify(scope),
    JSON.stringify(patterns),
    JSON.stringify(types ?? []),
    status ?? null,
  ]
  const { results } = await db
    .prepare(sql)
    .bind(...params, String(least), String(end))
    .all<PackRow>()
  return results
}
