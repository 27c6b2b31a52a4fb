/**
 * Rows written by the platform's own counters: index entries and each `setAlarm` count as rows.
 * `kept` is the number of rows that a later deletion writes once more.
 */
export type Writes = { rows: number; alarms: number; bytes: number; kept: number }

type Cursor = SqlStorageCursor<Record<string, SqlStorageValue>>
type Counter = { cursors: Cursor[]; rows: number; alarms: number }
type D1Meta = { rows_written?: number; size_after?: number }
type D1Answer = { meta?: D1Meta }
type D1Session = Record<'_send' | '_queryOrThrow', (...given: unknown[]) => Promise<D1Answer | D1Answer[]>>

const counters = new Map<object, Counter>()
const counting = new WeakSet<object>()
const d1 = { written: [] as { rows: number; names: string }[], bytes: 0 }
const TABLES = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`

/** Counts what this object's storage writes from now on. */
export function countStorage(storage: DurableObjectStorage): void {
  const counter: Counter = { cursors: [], rows: 0, alarms: 0 }
  counters.set(storage, counter).set(storage.sql, counter)
  replace(
    storage.sql,
    'exec',
    (exec) =>
      function (this: object, ...given) {
        const cursor = exec.apply(this, given) as Cursor
        const own = counters.get(this)
        if (own) {
          fold(own)
          own.cursors.push(cursor)
        }
        return cursor
      },
  )
  replace(
    storage,
    'setAlarm',
    (setAlarm) =>
      function (this: object, ...given) {
        const own = counters.get(this)
        if (own) own.alarms += 1
        return setAlarm.apply(this, given)
      },
  )
}

/** The writes of this object since the last call. Call it within the object. */
export function takeStorageWrites(storage: DurableObjectStorage): Writes {
  const counter = counters.get(storage)
  if (!counter) throw new Error('this storage is not counted')
  fold(counter)
  const { rows, alarms } = counter
  const tables = storage.sql.exec<{ name: string }>(TABLES).toArray()
  const kept = tables.map(({ name }) => storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM "${name}"`).one().n)
  Object.assign(counter, { cursors: [], rows: 0, alarms: 0 })
  return { rows, alarms, bytes: storage.sql.databaseSize, kept: sum(kept) }
}

/** Deletions, and what the sweep sorts and sums: they serve many events, whenever they come. */
const SWEPT = /^\s*(?:DELETE FROM (?!dead_letters)|INSERT INTO (?:statistics_(?:sums|packs)|reflex_metrics_packs))/
const NOTED = /^\s*INSERT INTO queued\b/

/**
 * The rows that a statement writes for its events. The sweep deletes a note soon after: that is
 * counted with the note, since whether it has come yet is chance.
 */
function rowsOf(statement: string, written: number): number {
  if (SWEPT.test(statement)) return 0
  return NOTED.test(statement) ? 2 * written : written
}

/** Counts what this isolate writes to D1 from now on. */
export function countDatabase(db: D1Database): void {
  const { alwaysPrimarySession } = db as unknown as { alwaysPrimarySession: D1Session }
  for (const method of ['_send', '_queryOrThrow'] as const) {
    replace(
      alwaysPrimarySession,
      method,
      (send) =>
        async function (this: object, ...given) {
          const answer = (await send.apply(this, given)) as D1Answer | D1Answer[]
          const statements = [given[1]].flat().map(String)
          for (const [index, { meta }] of [answer].flat().entries()) {
            const rows = rowsOf(statements[index] ?? '', meta?.rows_written ?? 0)
            if (rows > 0) d1.written.push({ rows, names: JSON.stringify(given[2]) })
            d1.bytes = meta?.size_after ?? d1.bytes
          }
          return answer
        },
    )
  }
}

/** The tables of D1 with a scope's rows that retention deletes. */
const KEPT = ['events', 'calls', 'statistics'].map(
  (table) => `(SELECT count(*) FROM ${table} WHERE scope IN (SELECT value FROM json_each(?1)))`,
)

/**
 * The writes to D1 since the last call, by statements that name one of these scopes: others send
 * what they have counted at the same time.
 */
export async function takeDatabaseWrites(db: D1Database, scopes: readonly string[]): Promise<Writes> {
  const named = new RegExp(`"(?:${scopes.join('|')})\\\\*"`)
  const rows = sum(d1.written.splice(0).flatMap((one) => (named.test(one.names) ? one.rows : [])))
  const statement = db.prepare(`SELECT ${KEPT.join(' + ')} AS kept`).bind(JSON.stringify(scopes))
  return { rows, alarms: 0, bytes: d1.bytes, kept: (await statement.first<number>('kept')) ?? 0 }
}

/** A cursor counts its writes once its rows were read, before the next statement. */
function fold(counter: Counter): void {
  for (const { rowsWritten } of counter.cursors) counter.rows += rowsWritten
  counter.cursors = []
}

type Method = (this: object, ...given: unknown[]) => unknown

/** Once for all objects of this kind. */
function replace(instance: object, name: string, by: (method: Method) => Method): void {
  const prototype = Object.getPrototypeOf(instance) as Record<string, Method>
  const method = prototype[name]
  if (!method) throw new Error(`the platform has no method ${name} to count`)
  if (counting.has(method)) return
  prototype[name] = by(method)
  counting.add(prototype[name])
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
