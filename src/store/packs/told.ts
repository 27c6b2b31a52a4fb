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
type Sorting = { sorters: Sorters; before: number; now: number }

/** A pack has the answers that came with its events, up to this length; longer ones wait apart. */
const MOST_TOLD = 100_000
/** Rows of a minute and their names: the first is shared, others have numbers of their own. */
const MINUTE_MS = 60_000
const MINUTE_SLOT = 2 ** 20
const slotOf = (at: number): number => Math.floor(at / MINUTE_MS) * MINUTE_SLOT

/** Rows that one run sorts, and runs of one sweep. */
const MOST_SORTED = 20
const MOST_RUNS = 20
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

type NamedAnswers = { name: string; id: string }
type Waiting = { id: string; answers: string }

/**
 * Sorts what waits: the answers that packs have, and rows of minutes that ended before `before`.
 * Answers are absolute and the newest win, so that a repetition changes nothing. Returns the number
 * of packs and rows.
 */
export async function sortTold(db: D1Database, sorting: Sorting): Promise<number> {
  try {
    const there = await packsWithAnswers(db)
    const fresh = there.filter(({ name }) => !sorted.has(name))
    await sortNamed(db, fresh, { ...sorting, read: OF_PACKS })
    // A pack keeps its answers until it merges: to clear them would be a row written for each.
    sorted = new Set(there.map(({ name }) => name))
    return fresh.length + (await sortWaiting(db, sorting))
  } catch (error) {
    if (!(error instanceof LostRace)) throw error
    return 0
  }
}

const PACKS = `SELECT ${IN_PACK} AS name, CAST(id AS TEXT) AS id FROM packs WHERE id < ${FULL} AND told IS NOT NULL ORDER BY id LIMIT ${MOST_PACKS}`
const packsWithAnswers = async (db: D1Database): Promise<NamedAnswers[]> => (await db.prepare(PACKS).all<NamedAnswers>()).results

const LISTED = '(SELECT CAST(value AS INTEGER) FROM json_each(?1))'
const OF_PACKS = `SELECT CAST(id AS TEXT) AS id, told AS answers FROM packs WHERE id IN ${LISTED}`
const OF_WAITING = `SELECT CAST(id AS TEXT) AS id, answers FROM statistics_waiting WHERE id IN ${LISTED}`

/** Some at a time, to fit them into memory. */
async function sortNamed(
  db: D1Database,
  named: readonly NamedAnswers[],
  { sorters, now, read }: Pick<Sorting, 'sorters' | 'now'> & { read: string },
) {
  for (let from = 0; from < named.length; from += MOST_SORTED) {
    const ids = named.slice(from, from + MOST_SORTED).map(({ id }) => id)
    const { results } = await db.prepare(read).bind(JSON.stringify(ids)).all<Waiting>()
    await sort(db, results, { sorters, now })
  }
}

async function sortWaiting(db: D1Database, { before, ...sorting }: Sorting): Promise<number> {
  let done = 0
  for (let run = 0; run < MOST_RUNS; run += 1) {
    const waiting = 'SELECT CAST(id AS TEXT) AS id, answers FROM statistics_waiting WHERE id < ?1 ORDER BY id LIMIT ?2'
    const { results } = await db
      .prepare(waiting)
      .bind(before === Infinity ? Number.MAX_SAFE_INTEGER : slotOf(before), MOST_SORTED)
      .all<Waiting>()
    await sort(db, results, sorting)
    // A row to which something was added since stays, and is sorted again.
    const gone = results.map(({ id, answers }) => db.prepare(DROP).bind(Number(id), byteLength(answers)))
    if (gone.length > 0) await db.batch(gone)
    done += results.length
    if (results.length < MOST_SORTED) break
  }
  return done
}

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

const WAITING = `SELECT ${IN_WAITING} AS name, CAST(id AS TEXT) AS id FROM statistics_waiting ORDER BY id LIMIT ${MOST_PACKS}`

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
    const waiting = (await db.prepare(WAITING).all<NamedAnswers>()).results
    const isFresh = (one: NamedAnswers) => !before.sorted.has(one.name) && !sorted.has(one.name)
    const sorters: Sorters = new Map([[name, by]])
    await sortNamed(db, packs.filter(isFresh), { sorters, now, read: OF_PACKS })
    await sortNamed(db, waiting.filter(isFresh), { sorters, now, read: OF_WAITING })
    readers.set(name, { at: now, sorted: new Set([...packs, ...waiting].map((one) => one.name)) })
  } catch (error) {
    warn({ message: 'failed to sort answers of scopes for a reader, who sees those of some minutes ago', error })
  }
}
