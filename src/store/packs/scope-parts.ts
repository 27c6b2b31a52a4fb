import { textHash } from '../../base/hash.ts'
import { messageOf } from '../../base/error-text.ts'

/**
 * A table with the values of many scopes in a row, under a key. A row has the scopes whose hash
 * begins with `part`: `scopes` has the value of each as JSONB, `seqs` the last entry of its log. A
 * row of the table `own` hides the value of its scope, so it is written only if no part has a newer
 * one, and leaves with the batch that writes a newer one. `stamp`: the column with the time of the
 * last change.
 */
export type PartsTable = { packs: string; own: string; key: readonly string[]; stamp?: string }
type PartsKey = readonly (string | number)[]
/** A value as of an entry of its scope's log: of two, the newer counts. */
export type Newest<Value> = { seq: number; value: Value }
type ChangedKey<Value> = { key: PartsKey; scopes: ReadonlyMap<string, Newest<Value>> }
type Folding<Value> = {
  /** Statements of the batch that changes a row. */
  beside?: (key: PartsKey) => D1PreparedStatement[]
  /** True for a value that is dropped once its row changes. */
  drops?: (value: Value) => boolean
  now: number
}

/** A part is split beyond this length: D1 takes 2 MB in a row. */
const MOST_PART = 400_000
const MOST_DIGITS = 6

/** Another run folds the same rows. */
export class LostRace extends Error {}

type Row = { part: string; revision: number; scopes: string; seqs: string }
type ScopesPart<Value> = { part: string; revision: number; scopes: Map<string, Newest<Value>> }

/** The columns of the key, as parameters after so many others. */
const isKey = ({ key }: PartsTable, after: number, of = ''): string =>
  key.map((name, nth) => `${of}${name} = ?${after + nth + 1}`).join(' AND ')

/** Parts that are read and written at once, to fit them into memory. */
const MOST_PARTS = 8

/** Writes newer values of scopes into the parts of a key, some in a batch. */
export async function foldScopes<Value>(
  db: D1Database,
  table: PartsTable,
  { key, scopes }: ChangedKey<Value>,
  folding: Folding<Value>,
): Promise<void> {
  const parts = `SELECT part FROM ${table.packs} WHERE ${isKey(table, 0)}`
  const { results: there } = await db
    .prepare(parts)
    .bind(...key)
    .all<{ part: string }>()
  const names = there.map(({ part }) => part)
  const placed = [...Map.groupBy(scopes, ([scope]) => placeIn(names, textHash(scope)))]
  for (let from = 0; from < placed.length; from += MOST_PARTS)
    await foldParts(db, table, { key, placed: placed.slice(from, from + MOST_PARTS) }, folding)
}

/** The changed scopes of some parts. */
type Placed<Value> = { key: PartsKey; placed: readonly (readonly [part: string, (readonly [scope: string, Newest<Value>])[]])[] }

async function foldParts<Value>(
  db: D1Database,
  table: PartsTable,
  { key, placed }: Placed<Value>,
  { beside, drops, now }: Folding<Value>,
): Promise<void> {
  const { packs, own } = table
  const where = isKey(table, 1)
  const listed = `(SELECT value FROM json_each(?1))`
  const asked = (sql: string, names: readonly string[]) => db.prepare(sql).bind(JSON.stringify(names), ...key)
  const scopes = placed.flatMap(([, some]) => some.map(([scope]) => scope))
  const [owned, rows] = await db.batch<Row & { scope: string; seq: number }>([
    asked(`SELECT scope, seq FROM ${own} WHERE ${where} AND scope IN ${listed}`, scopes),
    asked(
      `SELECT part, revision, json(scopes) AS scopes, seqs FROM ${packs} WHERE ${where} AND part IN ${listed}`,
      placed.map(([part]) => part),
    ),
  ])
  const own_seqs = new Map((owned?.results ?? []).map(({ scope, seq }) => [scope, seq]))
  const parts = new Map((rows?.results ?? []).map((row) => [row.part, partOf<Value>(row)]))
  const changed = placed
    .map(([name, some]) => {
      const part = parts.get(name) ?? { part: name, revision: 0, scopes: new Map<string, Newest<Value>>() }
      const newer = some.filter(([scope, { seq }]) => seq > Math.max(part.scopes.get(scope)?.seq ?? -1, own_seqs.get(scope) ?? -1))
      for (const [scope, { value }] of part.scopes) if (drops?.(value)) part.scopes.delete(scope)
      for (const [scope, newest] of newer) part.scopes.set(scope, newest)
      return { part, newer: newer.map(([scope, { seq }]) => [scope, seq]) }
    })
    .filter(({ newer }) => newer.length > 0)
  if (changed.length === 0) return
  const newer = JSON.stringify(changed.flatMap((one) => one.newer))
  await write(db, packs, [
    ...changed.flatMap(({ part }) => written(db, table, { key, part, now })),
    db.prepare(dropOwn(table)).bind(newer, ...key),
    ...(beside?.(key) ?? []),
  ])
}

/** Drops rows that are older than the part, also those that were written since they were read. */
function dropOwn(table: PartsTable): string {
  const { own } = table
  return `DELETE FROM ${own} WHERE ${isKey(table, 1)} AND scope IN (SELECT newer.value->>0
    FROM json_each(?1) AS newer CROSS JOIN ${own} AS old ON ${isKey(table, 1, 'old.')} AND old.scope = newer.value->>0 AND old.seq <= newer.value->>1)`
}

function partOf<Value>({ part, revision, scopes, seqs }: Row): ScopesPart<Value> {
  const numbers = JSON.parse(seqs) as Record<string, number>
  const values = Object.entries(JSON.parse(scopes) as Record<string, Value>)
  return { part, revision, scopes: new Map(values.map(([scope, value]) => [scope, { seq: numbers[scope] ?? 0, value }])) }
}

/** The part with scopes of this hash: the shortest that holds no part of another one. */
function placeIn(parts: readonly string[], hash: string): string {
  for (let digits = 0; ; digits += 1) {
    const part = hash.slice(0, digits)
    if (parts.includes(part) || !parts.some((other) => other.startsWith(part))) return part
  }
}

/**
 * Fails, and with it its batch, if the row `?4` has changed since it was read. The binary form of
 * the values is read in place, where text would be parsed as a whole for each scope that is asked.
 */
function putOf(table: PartsTable): string {
  const { packs, key, stamp } = table
  const columns = [...key, 'part', 'revision', 'scopes', 'seqs', ...(stamp === undefined ? [] : [stamp])]
  const revision = `CASE WHEN coalesce((SELECT revision FROM ${packs} WHERE ${isKey(table, 6)} AND part = ?4), 0) = ?5 THEN ?5 + 1 END`
  const values = [...key.map((_, nth) => `?${7 + nth}`), '?1', revision, 'jsonb(?2)', '?3', ...(stamp === undefined ? [] : ['?6'])]
  const set = columns.slice(key.length + 1).map((name) => `${name} = excluded.${name}`)
  return `INSERT INTO ${packs} (${columns.join(', ')}) SELECT ${values.join(', ')} WHERE ?6 = ?6
    ON CONFLICT (${[...key, 'part'].join(', ')}) DO UPDATE SET ${set.join(', ')}`
}

type WrittenPart<Value> = { key: PartsKey; part: ScopesPart<Value>; now: number }

/** Writes a part, or the smaller ones that replace it. */
function written<Value>(
  db: D1Database,
  table: PartsTable,
  { key, part: { part, revision, scopes }, now }: WrittenPart<Value>,
): D1PreparedStatement[] {
  const sql = putOf(table)
  const put = (name: string, some: Iterable<readonly [string, Newest<Value>]>) => {
    const entries = [...some]
    const values = JSON.stringify(Object.fromEntries(entries.map(([scope, { value }]) => [scope, value])))
    const seqs = JSON.stringify(Object.fromEntries(entries.map(([scope, { seq }]) => [scope, seq])))
    return { size: values.length, statement: db.prepare(sql).bind(name, values, seqs, part, revision, now, ...key) }
  }
  const whole = put(part, scopes)
  if (whole.size <= MOST_PART || scopes.size === 1 || part.length >= MOST_DIGITS) return [whole.statement]
  const smaller = Map.groupBy(scopes, ([scope]) => textHash(scope).slice(0, part.length + 1))
  return [
    ...Array.from(smaller, ([name, some]) => put(name, some).statement),
    db.prepare(`DELETE FROM ${table.packs} WHERE ${isKey(table, 1)} AND part = ?1`).bind(part, ...key),
  ]
}

async function write(db: D1Database, packs: string, statements: D1PreparedStatement[]): Promise<void> {
  try {
    await db.batch(statements)
  } catch (error) {
    throw messageOf(error).includes(`constraint failed: ${packs}`) ? new LostRace() : error
  }
}

/** SQL that is true for a part that may have the scope with this hash; all may, if it is null. */
export const mayHave = (part: string, hash: string): string => `(${hash} IS NULL OR substr(${hash}, 1, length(${part})) = ${part})`

/** SQL that is true for the value of a scope in a part that no row of its own hides. */
export const isShownIn = ({ own, key }: PartsTable, row: string, scope: string): string =>
  `NOT EXISTS (SELECT 1 FROM ${own} AS own WHERE ${key.map((name) => `own.${name} = ${row}.${name}`).join(' AND ')} AND own.scope = ${scope})`

/** SQL expressions of the scope, its hash and the entry of its log. */
type Reporter = { scope: string; hash: string; seq: string }

/**
 * SQL that is true for a row of a scope's own, a JSON object `value`, unless a part has its value
 * or a newer one.
 */
export const isNewestIn = ({ packs, key }: PartsTable, { scope, hash, seq }: Reporter): string =>
  `NOT EXISTS (SELECT 1 FROM ${packs} AS w WHERE ${key.map((name) => `w.${name} = value->>'${name}'`).join(' AND ')}
    AND ${mayHave('w.part', hash)} AND w.seqs ->> ('$."' || ${scope} || '"') >= ${seq})`
