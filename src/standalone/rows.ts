import type { JsonFields } from '../base/json.ts'

type RowKind = 'skill' | 'run' | 'usage' | 'journal' | 'output' | 'approval' | 'control'

export type StandaloneRow = { seq: number; at: string; kind: string; trace_id: string } & JsonFields

export type LogStore = {
  append(entry: { at: string; kind: string; trace_id: string } & JsonFields): void
  /** Entries after `after`, oldest first; only the entries of one trace if `trace_id` is given. */
  entries(query?: { trace_id?: string; after?: number; limit?: number }): readonly StandaloneRow[]
  /** The `seq` of the newest entry; 0 for none. */
  last(): number
}

/** JSON values by kind and key, in insertion order. `owner` groups values. */
export type Rows = {
  get<Value>(kind: RowKind, key: string): Value | undefined
  put(kind: RowKind, key: string, value: unknown, owner?: string): void
  /** Returns false if the value does not exist. */
  delete(kind: RowKind, key: string): boolean
  all<Value>(kind: RowKind, owner?: string): Value[]
  deleteOf(kind: RowKind, owner: string): void
  /** Makes all writes of `work`, or none of them. */
  atomic<Result>(work: () => Result): Result
}

/** Any synchronous SQLite: `node:sqlite`, or the storage of a Durable Object. */
export type StandaloneSql = {
  all(sql: string, ...values: (string | number | null)[]): Record<string, unknown>[]
  atomic<Result>(work: () => Result): Result
}

export const SCHEMA = `
  CREATE TABLE IF NOT EXISTS reflex_rows (
    place INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, owner TEXT, value TEXT NOT NULL, UNIQUE (kind, name)
  );
  CREATE INDEX IF NOT EXISTS reflex_rows_of_owner ON reflex_rows (kind, owner, place);
  CREATE TABLE IF NOT EXISTS reflex_log (seq INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT NOT NULL, entry TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS reflex_log_of_trace ON reflex_log (trace_id, seq);
`

export function sqlRows(sql: StandaloneSql): Rows {
  const all: StandaloneSql['all'] = (text, ...values) => sql.all(text, ...values)
  const values = <Value>(found: Record<string, unknown>[]) => found.map(({ value }) => JSON.parse(String(value)) as Value)
  return {
    get: <Value>(kind: RowKind, key: string) =>
      values<Value>(all('SELECT value FROM reflex_rows WHERE kind = ? AND name = ?', kind, key))[0],
    put: (kind, key, value, owner = '') =>
      void all(
        `INSERT INTO reflex_rows (kind, name, owner, value) VALUES (?1, ?2, ?3, ?4)
           ON CONFLICT (kind, name) DO UPDATE SET owner = ?3, value = ?4`,
        kind,
        key,
        owner,
        JSON.stringify(value),
      ),
    delete: (kind, key) => all('DELETE FROM reflex_rows WHERE kind = ? AND name = ? RETURNING place', kind, key).length > 0,
    all: <Value>(kind: RowKind, owner?: string) =>
      values<Value>(
        all('SELECT value FROM reflex_rows WHERE kind = ?1 AND (?2 IS NULL OR owner = ?2) ORDER BY place', kind, owner ?? null),
      ),
    deleteOf: (kind, owner) => void all('DELETE FROM reflex_rows WHERE kind = ? AND owner = ?', kind, owner),
    atomic: (work) => sql.atomic(work),
  }
}

export const sqlLog = (sql: Pick<StandaloneSql, 'all'>): LogStore => ({
  append: (entry) => void sql.all('INSERT INTO reflex_log (trace_id, entry) VALUES (?, ?)', entry.trace_id, JSON.stringify(entry)),
  entries: ({ trace_id = null, after = 0, limit = MOST_ENTRIES }: { trace_id?: string | null; after?: number; limit?: number } = {}) =>
    sql
      .all(
        'SELECT seq, entry FROM reflex_log WHERE seq > ?1 AND (?2 IS NULL OR trace_id = ?2) ORDER BY seq LIMIT ?3',
        after,
        trace_id,
        limit,
      )
      .map(({ seq, entry }) => ({ ...(JSON.parse(String(entry)) as StandaloneRow), seq: Number(seq) })),
  last: () => Number(sql.all('SELECT max(seq) AS seq FROM reflex_log')[0]?.['seq'] ?? 0),
})

/** Rows without SQLite. Values are kept as JSON, as in SQLite. */
export function memoryRows(): Rows {
  const rows = new Map<string, { kind: RowKind; owner: string; value: string }>()
  const nameOf = (kind: RowKind, key: string) => `${kind} ${key}`
  const valueOf = <Value>({ value }: { value: string }) => JSON.parse(value) as Value
  return {
    get: <Value>(kind: RowKind, key: string) => {
      const row = rows.get(nameOf(kind, key))
      return row && valueOf<Value>(row)
    },
    put: (kind, key, value, owner = '') => void rows.set(nameOf(kind, key), { kind, owner, value: JSON.stringify(value) }),
    delete: (kind, key) => rows.delete(nameOf(kind, key)),
    all: <Value>(kind: RowKind, owner?: string) =>
      [...rows.values()]
        .filter((row) => row.kind === kind && (owner === undefined || row.owner === owner))
        .map((row) => valueOf<Value>(row)),
    deleteOf: (kind, owner) => {
      for (const [name, row] of rows) if (row.kind === kind && row.owner === owner) rows.delete(name)
    },
    // Nothing between two writes can fail.
    atomic: (work) => work(),
  }
}

const MOST_ENTRIES = 10_000

export function memoryLog(): LogStore {
  let seq = 0
  let entries: StandaloneRow[] = []
  return {
    append(entry) {
      seq += 1
      entries.push({ ...entry, seq })
      if (entries.length > 2 * MOST_ENTRIES) entries = entries.slice(-MOST_ENTRIES)
    },
    entries: ({ trace_id, after = 0, limit = MOST_ENTRIES } = {}) =>
      entries.filter((entry) => entry.seq > after && (trace_id === undefined || entry.trace_id === trace_id)).slice(0, limit),
    last: () => seq,
  }
}
