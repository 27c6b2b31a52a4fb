import { byteLength, isJsonFields, jsonChunks } from '../../base/json.ts'
import { warn } from '../../base/warn.ts'
import { SLOT } from '../queued.ts'
import { FULL } from './rows.ts'
import { LostRace } from './scope-parts.ts'

/** The answers of a scope beside its outcomes, by name. Each says all that D1 lacks. */
export type FeatureAnswers = Readonly<Record<string, unknown>>
/** Writes answers into rows that many scopes share; a repetition changes nothing. */
export type SortAnswers = (db: D1Database, answers: readonly unknown[], now: number) => Promise<void>
export type Sorters = ReadonlyMap<string, SortAnswers>
/** `before`: minutes that ended before are sorted. Times in ms. */
type Sorting = { sorters: Sorters; before: number; now: number; most_ms?: number }
/** A run begins no further sort after this time: the rest is for the next one. */
const SORT_MS = 5000

/** A pack has the answers that came with its events, up to this length; longer ones wait apart. */
const MOST_TOLD = 100_000
/** Rows of a minute and their names: the first is shared, others have numbers of their own. */
const MINUTE_MS = 60_000
const MINUTE_SLOT = 2 ** 20
const slotOf = (at: number): number => Math.floor(at / MINUTE_MS) * MINUTE_SLOT

/** Rows that are read at once, and that wait and are sorted in one sweep. */
const MOST_READ = 20
const MOST_WAITING = 400
/**
 * Characters of answers that are sorted together: a sort writes the whole row of many scopes,
 * however few of them it changes.
 */
const MOST_SORTED = 4_000_000
/** As many as one run of merging looks at. */
const MOST_PACKS = 4000

/** The answers as a pack has them: JSON after JSON. Null if they are too long, or none. */
export function toldText(told: readonly FeatureAnswers[]): string | null {
  const text = told.map((one) => JSON.stringify(one)).join(',')
  return text === '' || byteLength(text) > MOST_TOLD ? null : text
}

const WAIT = `INSERT INTO statistics_waiting (id, answers)
  SELECT CASE WHEN coalesce((SELECT octet_length(answers) FROM statistics_waiting WHERE id = ?1), 0) + octet_length(?2) > ${MOST_TOLD} THEN ?3 ELSE ?1 END, ?2
  WHERE true ON CONFLICT (id) DO UPDATE SET answers = answers || ',' || excluded.answers`

const ownSlot = (slot: number): number => slot + 1 + Math.floor(Math.random() * (MINUTE_SLOT - 1))

/** The statements that keep answers for the next sort, if no pack has them. */
export function waitStatements(db: D1Database, told: readonly FeatureAnswers[], now: number): D1PreparedStatement[] {
  const slot = slotOf(now)
  const chunks = jsonChunks(told.map((one) => JSON.stringify(one)))
  return chunks.map((chunk) => db.prepare(WAIT).bind(slot, chunk.slice(1, -1), ownSlot(slot)))
}

/**
 * SQL for the name of a pack's answers, and of answers that wait. A pack may take the id of one
 * that has merged: its last event is another of that millisecond. None of it reads the pack's data.
 */
const IN_PACK = `(id || ' ' || (last & ${SLOT - 1n}) || ' ' || raw_bytes || ' ' || octet_length(told))`
const IN_WAITING = `('waiting ' || id || ' ' || octet_length(answers))`
/** The packs whose answers this process has sorted, all of them. */
let sorted: ReadonlySet<string> = new Set()

/**
 * Before packs are deleted: keeps their answers together in a row, or in more that D1 takes, unless
 * this process has sorted them.
 */
export const keepTold = (db: D1Database, packs: readonly string[], now: number): D1PreparedStatement =>
  db.prepare(KEEP).bind(JSON.stringify(packs), JSON.stringify([...sorted]), ownSlot(slotOf(now)))

const MOST_KEPT = 500_000
const KEEP = `INSERT INTO statistics_waiting (id, answers) SELECT ?3 + nth, group_concat(told, ',')
  FROM (SELECT told, sum(octet_length(told)) OVER (ORDER BY id) / ${MOST_KEPT} AS nth FROM packs
    WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?1)) AND told IS NOT NULL AND ${IN_PACK} NOT IN (SELECT value FROM json_each(?2)))
  GROUP BY nth`

/** The name of answers, and where they are: in a pack, or in a row of their own. */
type NamedAnswers = { name: string; id: string; at: 'packs' | 'waiting' }
type Waiting = { id: string; at: NamedAnswers['at']; answers: string }

/**
 * Sorts what waits: the answers that packs have, and rows of minutes that ended before `before`.
 * Answers are absolute and the newest win, so that a repetition changes nothing. Returns the number
 * of packs and rows.
 */
export async function sortTold(db: D1Database, { before, ...sorting }: Sorting): Promise<number> {
  try {
    const there = await packsWithAnswers(db)
    const fresh = there.filter(({ name }) => !sorted.has(name))
    const waiting = await rowsWithAnswers(db, before === Infinity ? Number.MAX_SAFE_INTEGER : slotOf(before))
    const done = await sortAll(db, [...waiting, ...fresh], { ...sorting, drops: true })
    // A pack keeps its answers until it merges: to clear them would be a row written for each.
    sorted = new Set(there.flatMap(({ name }) => (sorted.has(name) || done.has(name) ? [name] : [])))
    return done.size
  } catch (error) {
    if (!(error instanceof LostRace)) throw error
    return 0
  }
}

const PACKS = `SELECT ${IN_PACK} AS name, CAST(id AS TEXT) AS id, 'packs' AS at FROM packs WHERE id < ${FULL} AND told IS NOT NULL ORDER BY id LIMIT ${MOST_PACKS}`
const packsWithAnswers = async (db: D1Database): Promise<NamedAnswers[]> => (await db.prepare(PACKS).all<NamedAnswers>()).results
const WAITING = `SELECT ${IN_WAITING} AS name, CAST(id AS TEXT) AS id, 'waiting' AS at FROM statistics_waiting WHERE id < ?1 ORDER BY id LIMIT ${MOST_WAITING}`
const rowsWithAnswers = async (db: D1Database, before: number): Promise<NamedAnswers[]> =>
  (await db.prepare(WAITING).bind(before).all<NamedAnswers>()).results

const LISTED = '(SELECT CAST(value AS INTEGER) FROM json_each(?1))'
const ANSWERS_AT = {
  packs: `SELECT CAST(id AS TEXT) AS id, told AS answers FROM packs WHERE id IN ${LISTED}`,
  waiting: `SELECT CAST(id AS TEXT) AS id, answers FROM statistics_waiting WHERE id IN ${LISTED}`,
}

type SortingAll = Pick<Sorting, 'sorters' | 'now' | 'most_ms'> & { drops?: boolean }

/**
 * Reads some at a time in the order of the list, and sorts as many together as fit into memory,
 * until the time is over. Returns the names of what is sorted.
 */
async function sortAll(
  db: D1Database,
  named: readonly NamedAnswers[],
  { drops = false, most_ms = SORT_MS, ...sorting }: SortingAll,
): Promise<Set<string>> {
  const done = new Set<string>()
  const end = Date.now() + most_ms
  let held: Waiting[] = []
  for (const { at, some, is_last } of portionsOf(named)) {
    const ids = JSON.stringify(some.map(({ id }) => id))
    const { results } = await db.prepare(ANSWERS_AT[at]).bind(ids).all<Omit<Waiting, 'at'>>()
    held.push(...results.map((row) => ({ ...row, at })))
    for (const { name } of some) done.add(name)
    if (!is_last && sum(held.map(({ answers }) => answers.length)) < MOST_SORTED) continue
    await sort(db, held, sorting)
    // A row to which something was added since stays, and is sorted again.
    const gone = held.flatMap((one) => (one.at === 'waiting' ? [db.prepare(DROP).bind(Number(one.id), byteLength(one.answers))] : []))
    if (drops && gone.length > 0) await db.batch(gone)
    held = []
    if (Date.now() >= end) break
  }
  return done
}

/** Names of one table that are read at once. */
function portionsOf(named: readonly NamedAnswers[]): { at: NamedAnswers['at']; some: NamedAnswers[]; is_last: boolean }[] {
  const portions = Array.from(Map.groupBy(named, ({ at }) => at)).flatMap(([at, of]) =>
    Array.from({ length: Math.ceil(of.length / MOST_READ) }, (_, nth) => ({ at, some: of.slice(nth * MOST_READ, (nth + 1) * MOST_READ) })),
  )
  return portions.map((portion, index) => ({ ...portion, is_last: index === portions.length - 1 }))
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

const DROP = 'DELETE FROM statistics_waiting WHERE id = ?1 AND octet_length(answers) = ?2'

async function sort(db: D1Database, waiting: readonly Waiting[], { sorters, now }: Pick<Sorting, 'sorters' | 'now'>): Promise<void> {
  const told = waiting.flatMap(readTold)
  // An earlier version kept the statistics alone, which have no name. A sorter takes what it knows.
  for (const [name, by] of sorters) {
    const answers = told.map((one) => one[name] ?? one)
    if (answers.length > 0) await by(db, answers, now)
  }
}

function readTold({ id, answers }: Waiting): FeatureAnswers[] {
  try {
    return (JSON.parse(`[${answers}]`) as unknown[]).filter(isJsonFields)
  } catch (error) {
    warn({ message: 'answers of scopes that wait cannot be read, and are left out', id, error })
    return []
  }
}

/** Readers in one process sort no more often: their numbers lag by this much at most. */
const READ_PACE_MS = 2000
/** When answers of a name were last sorted for a reader, and which. */
const readers = new Map<string, { at: number; sorted: ReadonlySet<string> }>()

/**
 * Sorts all answers of a name, for a reader; if that fails, the reader sees what is there. The
 * sweep sorts the answers of all names, and deletes what waits.
 */
export async function sortNow(db: D1Database, name: string, by: SortAnswers, now = Date.now()): Promise<void> {
  const before = readers.get(name) ?? { at: 0, sorted: new Set<string>() }
  if (now - before.at < READ_PACE_MS && now >= before.at) return
  readers.set(name, { ...before, at: now })
  try {
    const packs = await packsWithAnswers(db)
    const named = [...(await rowsWithAnswers(db, Number.MAX_SAFE_INTEGER)), ...packs]
    const fresh = named.filter((one) => !before.sorted.has(one.name) && !sorted.has(one.name))
    const done = await sortAll(db, fresh, { sorters: new Map([[name, by]]), now })
    readers.set(name, {
      at: now,
      sorted: new Set(named.flatMap((one) => (before.sorted.has(one.name) || done.has(one.name) ? [one.name] : []))),
    })
  } catch (error) {
    warn({ message: 'failed to sort answers of scopes for a reader, who sees those of some minutes ago', error })
  }
}
