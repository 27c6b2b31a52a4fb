import { TooLate, withDeadline } from '../base/deadline.ts'
import { missingDatabase } from '../base/missing-binding.ts'

/** The longest that one call of D1 takes. D1 has been seen to stall for 25 s. */
const DEADLINE_MS = 10_000
/** The longest wait of a caller that can do without the answer. */
export const QUICK_MS = 500

const statements = new WeakMap<D1PreparedStatement, D1PreparedStatement>()

type Bound = { DB: D1Database | undefined; ARCHIVE?: R2Bucket | undefined } & { [Name in MoreName]?: D1Database | undefined }
/** Databases of packs beside `DB`, which has everything else, too. */
type MoreName = `EVENTS_DB_${number}`
const MOST_MORE = 16
export const MORE_NAMES = Array.from({ length: MOST_MORE }, (_, index): MoreName => `EVENTS_DB_${index + 1}`)

/** Without its binding `DB` a deployment takes events, and cannot list, look up or keep any. */
const UNBOUND = missingDatabase('DB')

/** The only access to the deployment's D1: each call fails as unanswered after a deadline. */
export function storeOf(env: Bound, deadline_ms = DEADLINE_MS): D1Database {
  const store = inTimeOnly(env.DB ?? UNBOUND, deadline_ms)
  bound.set(store, { env, deadline_ms })
  return store
}

const bound = new WeakMap<D1Database, { env: Bound; deadline_ms: number }>()

/** The archive of packs that left D1, if one is bound. */
export const archiveOf = (store: D1Database): R2Bucket | undefined => bound.get(store)?.env.ARCHIVE

/** A database that has packs, by the name of its binding. */
export type PackDatabase = { name: string; db: D1Database }

/** All databases that have packs; the store itself is the first. */
export function packDatabases(store: D1Database): [PackDatabase, ...PackDatabase[]] {
  const { env, deadline_ms } = bound.get(store) ?? {}
  const more = MORE_NAMES.flatMap((name) => {
    const db = env?.[name]
    return db ? [{ name, db: inTimeOnly(db, deadline_ms ?? DEADLINE_MS) }] : []
  })
  return [{ name: 'DB', db: store }, ...more]
}

const bindings = new WeakMap<D1Database, D1Database>()

/** The database itself, which is one object of the process, whoever asks for it. */
export const bindingOf = (db: D1Database): D1Database => bindings.get(db) ?? db

function inTimeOnly(db: D1Database, deadline_ms: number): D1Database {
  const limitedDb: Pick<D1Database, 'prepare' | 'batch' | 'exec'> = {
    prepare: (sql) => limited(db.prepare(sql), deadline_ms),
    batch: (list) => inTime(() => db.batch(list.map((statement) => statements.get(statement) ?? statement)), deadline_ms),
    exec: (sql) => inTime(() => db.exec(sql), deadline_ms),
  }
  const limitedOne = limitedDb as D1Database
  bindings.set(limitedOne, db)
  return limitedOne
}

function limited(statement: D1PreparedStatement, deadline_ms: number): D1PreparedStatement {
  const made = {
    bind: (...values: unknown[]) => limited(statement.bind(...values), deadline_ms),
    first: (column: string) => inTime(() => statement.first(column), deadline_ms),
    run: () => inTime(() => statement.run(), deadline_ms),
    all: () => inTime(() => statement.all(), deadline_ms),
    raw: (options: { columnNames: true }) => inTime(() => statement.raw(options), deadline_ms),
  } as D1PreparedStatement
  statements.set(made, statement)
  return made
}

/** Worded like D1's own errors, so that whoever classifies those knows this one too. */
async function inTime<Result>(work: () => Promise<Result>, timeout_ms: number): Promise<Result> {
  try {
    return await withDeadline(work, { timeout_ms, what: 'D1' })
  } catch (error) {
    throw error instanceof TooLate ? new Error(`D1_ERROR: timed out: no answer within ${timeout_ms} ms`, { cause: error }) : error
  }
}
