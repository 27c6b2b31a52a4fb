import { textHash } from '../../base/hash.ts'
import { jsonChunks } from '../../base/json.ts'
import { warn } from '../../base/warn.ts'
import { nameOf } from '../queued.ts'
import { scopeStatements, type ScopeReport } from '../scope-rows.ts'
import { packDatabases } from '../store.ts'
import type { PackedEvent } from './format.ts'
import { type Inserted, inOrder, lettersOfPacked, packStatement, portionsOf, rowsOfPacked } from './rows.ts'
import { toldText, waitStatements, type FeatureAnswers } from './told.ts'

/**
 * Packs events, in one of the databases, after the statements of the store, which has the rows of
 * events. A pack that another database has refused is written to the store. If the process dies in
 * between, or an answer is lost, whoever has the events packs them again: each has its place in
 * both packs. Returns a database whose small packs have become many.
 */
export async function packEvents(
  store: D1Database,
  events: readonly PackedEvent[],
  statements: readonly D1PreparedStatement[] = [],
): Promise<D1Database | null> {
  return packTold(store, { events, told: [] }, statements)
}

/** `rows`: of their scopes, of which each is the newest. */
type Answered = { events: readonly PackedEvent[]; told: readonly FeatureAnswers[]; rows?: readonly ScopeReport[] }

/** Packs events with what their scopes have answered beside them: a row for both. */
export async function packTold(
  store: D1Database,
  { events, told, rows = [] }: Answered,
  statements: readonly D1PreparedStatement[] = [],
): Promise<D1Database | null> {
  const portions = portionsOf(events.toSorted(inOrder))
  const packsIn = (db: D1Database, told_text: string | null = null, unless: string | null = null) =>
    portions.map((portion, nth) => packStatement(db, portion, { told: nth === 0 ? told_text : null, unless }))
  const elsewhere = await packElsewhere(store, events, packsIn)
  const known = jsonChunks(
    events.map(({ id, scope, revision, log_from, kinds, skills }) => JSON.stringify({ id, scope, revision, log_from, kinds, skills })),
  )
  const text = elsewhere || portions.length === 0 ? null : toldText(told)
  const own = scopeStatements(store, rows)
  const [names, ...more_names] = known
  const isPackAlone = !elsewhere && portions.length === 1 && statements.length === 0 && (text !== null || told.length === 0)
  if (isPackAlone && names !== undefined && more_names.length === 0) {
    // Most deliveries: no event has a row or a letter.
    const inserted = await store.batch<Inserted>([...packsIn(store, text, names), ...own])
    if (isInserted(inserted)) return areMany(inserted) ? store : null
  }
  const answers = await store.batch<Inserted>([
    ...statements,
    ...own,
    ...(text === null ? waitStatements(store, told, Date.now()) : []),
    ...known.flatMap((chunk) => [DROP_OLDER, ADD_TRAITS, DROP_LETTERS].map((sql) => store.prepare(sql).bind(chunk))),
    ...(elsewhere ? [] : packsIn(store, text)),
  ])
  return areMany(elsewhere?.answers ?? answers) ? (elsewhere?.db ?? store) : null
}

const isInserted = (answers: readonly D1Result<Inserted>[]): boolean => answers.some(({ results }) => results.length > 0)
const areMany = (answers: readonly D1Result<Inserted>[]): boolean => answers.some(({ results }) => results[0]?.are_many === 1)

type Elsewhere = { db: D1Database; answers: D1Result<Inserted>[] }

/** Returns null if the store is to have the packs. */
async function packElsewhere(
  store: D1Database,
  events: readonly PackedEvent[],
  packsIn: (db: D1Database) => D1PreparedStatement[],
): Promise<Elsewhere | null> {
  const databases = packDatabases(store)
  const [first] = events
  if (databases.length === 1 || !first) return null
  const chosen = databases[Number(BigInt(`0x${textHash(nameOf(first))}`) % BigInt(databases.length))]
  if (!chosen || chosen.db === store) return null
  try {
    return { db: chosen.db, answers: await chosen.db.batch<Inserted>(packsIn(chosen.db)) }
  } catch (error) {
    warn({ message: 'a database of packs does not answer: DB has the pack instead', database: chosen.name, error })
    return null
  }
}

const ROWS = rowsOfPacked('?1')

/** A row of an event that a pack has in a newer state: a note of the queue that buried it. */
const DROP_OLDER = `DELETE FROM events WHERE seq IN (SELECT seq FROM ${ROWS} AND events.revision < packed.value->>'revision')`

/** An event that changed before it was packed: its row has the traits of both. */
const ADD_TRAITS = `UPDATE events SET (log_from, kinds, skills) = (
    SELECT min(coalesce(events.log_from, value->>'log_from'), value->>'log_from'), events.kinds | (value->>'kinds'),
      CASE WHEN instr(events.skills, value->>'skills') > 0 THEN events.skills ELSE substr((value->>'skills') || events.skills, 1, 4000) END
    FROM json_each(?1) WHERE value->>'id' = events.id AND value->>'scope' = events.scope)
  WHERE seq IN (SELECT seq FROM ${ROWS})`

/** The letters of the queue about events that have an outcome. */
const DROP_LETTERS = `DELETE FROM ${lettersOfPacked('?1')}`
