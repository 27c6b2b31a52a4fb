import { messageOf } from '../../../base/error-text.ts'
import { byteLength, isJsonFields, jsonChunks } from '../../../base/json.ts'
import { warn } from '../../../base/warn.ts'
import { packHash } from '../../../store/packs/format.ts'
import { bucketSteps, buckets, families, type BucketRow, type StatisticsValues } from '../contract/statistics.ts'
import { changeStatements } from './changes.ts'

/** The absolute numbers of a scope's changed buckets, for the caller that packs its outcomes. */
export type PackedStatistics = { scope: string; seq: number; rows: BucketRow[] }

/** Answers wait in a row of their minute up to this length. */
const MOST_WAITING = 100_000
/** Rows of a minute and their names: the first is shared, others have numbers of their own. */
const MINUTE_SLOT = 2 ** 20
const slotOf = (at: number): number => Math.floor(at / bucketSteps.minute) * MINUTE_SLOT

/** Rows that one run folds, and runs of one sweep. */
const MOST_FOLDED = 20
const MOST_RUNS = 20
/** A part of a bucket is split beyond this length: D1 takes 2 MB in a row. */
const MOST_PART = 400_000
const MOST_DIGITS = 6

const WAIT = `INSERT INTO statistics_waiting (id, answers)
  SELECT CASE WHEN coalesce((SELECT octet_length(answers) FROM statistics_waiting WHERE id = ?1), 0) + octet_length(?2) > ${MOST_WAITING} THEN ?3 ELSE ?1 END, ?2
  WHERE true ON CONFLICT (id) DO UPDATE SET answers = answers || ',' || excluded.answers`

/** Keeps what scopes have answered, for the next fold. */
export async function waitToFold(db: D1Database, answers: readonly PackedStatistics[], now: number): Promise<void> {
  const slot = slotOf(now)
  const own = () => slot + 1 + Math.floor(Math.random() * (MINUTE_SLOT - 1))
  const rows = jsonChunks(answers.map((answer) => JSON.stringify(answer))).map((chunk) =>
    db.prepare(WAIT).bind(slot, chunk.slice(1, -1), own()),
  )
  if (rows.length > 0) await db.batch(rows)
}

/** The statistics of an answer, as the queue or a scope has it; null if it cannot be read. */
export function statisticsIn(value: unknown): PackedStatistics | null {
  if (!isJsonFields(value) || typeof value['scope'] !== 'string' || !Number.isSafeInteger(value['seq'])) return null
  const isRow = (row: unknown): boolean =>
    isJsonFields(row) &&
    families.some((family) => family === row['family']) &&
    buckets.some((bucket) => bucket === row['bucket']) &&
    Number.isSafeInteger(row['start']) &&
    isJsonFields(row['values'])
  return Array.isArray(value['rows']) && value['rows'].every(isRow) ? (value as PackedStatistics) : null
}

type Newest = { seq: number; values: StatisticsValues }
type BucketOf = Omit<BucketRow, 'values'>
type Changed = { bucket: BucketOf; scopes: Map<string, Newest> }
type Waiting = { id: number; answers: string }

/**
 * Writes what waits into the rows of its buckets, of minutes that ended before `before`: few rows,
 * however many scopes there are. Numbers are absolute and the newest win, so that a repetition
 * changes nothing. Returns the number of rows that waited.
 */
export async function foldStatistics(db: D1Database, before: number): Promise<number> {
  let folded = 0
  for (let run = 0; run < MOST_RUNS; run += 1) {
    const waiting = 'SELECT id, answers FROM statistics_waiting WHERE id < ?1 ORDER BY id LIMIT ?2'
    const { results } = await db
      .prepare(waiting)
      .bind(before === Infinity ? Number.MAX_SAFE_INTEGER : slotOf(before), MOST_FOLDED)
      .all<Waiting>()
    try {
      for (const changed of newestOf(results)) await fold(db, changed)
    } catch (error) {
      if (!(error instanceof LostRace)) throw error
      return folded
    }
    // A row to which something was added since stays, and is folded again.
    const gone = results.map(({ id, answers }) => db.prepare(DROP).bind(id, byteLength(answers)))
    if (gone.length > 0) await db.batch(gone)
    folded += results.length
    if (results.length < MOST_FOLDED) break
  }
  return folded
}

/** Readers in one process sort no more often: their numbers lag by this much at most. */
const READ_PACE_MS = 2000
let read_at = 0

/** Writes all that waits, for a reader; if that fails, the reader sees what is there. */
export async function foldNow(db: D1Database, now = Date.now()): Promise<void> {
  if (now - read_at < READ_PACE_MS && now >= read_at) return
  read_at = now
  try {
    await foldStatistics(db, Infinity)
  } catch (error) {
    warn({ message: 'failed to sort statistics for a reader, who sees those of some minutes ago', error })
  }
}

const DROP = 'DELETE FROM statistics_waiting WHERE id = ?1 AND octet_length(answers) = ?2'

/** Another run folds the same rows. */
class LostRace extends Error {}

const keyOf = ({ family, bucket, start }: BucketOf): string => `${family} ${bucket} ${start}`

function newestOf(waiting: readonly Waiting[]): Changed[] {
  const all = new Map<string, Changed>()
  for (const { id, answers } of waiting) {
    for (const { scope, seq, rows } of readAnswers(id, answers)) {
      for (const { values, family, bucket, start } of rows) {
        const of = { family, bucket, start }
        const changed = all.get(keyOf(of)) ?? { bucket: of, scopes: new Map<string, Newest>() }
        all.set(keyOf(of), changed)
        if ((changed.scopes.get(scope)?.seq ?? -1) <= seq) changed.scopes.set(scope, { seq, values })
      }
    }
  }
  return [...all.values()]
}

function readAnswers(id: number, answers: string): PackedStatistics[] {
  try {
    return (JSON.parse(`[${answers}]`) as unknown[]).flatMap((answer) => statisticsIn(answer) ?? [])
  } catch (error) {
    warn({ message: 'statistics that wait cannot be read, and are left out', id, error })
    return []
  }
}

type Row = { part: string; revision: number; scopes: string; seqs: string }
type ScopesPart = { part: string; revision: number; scopes: Map<string, Newest> }
type BucketKey = readonly [family: string, bucket: string, start: number]

const OF_BUCKET = 'family = ?1 AND bucket = ?2 AND start = ?3'
const LISTED = '(SELECT value FROM json_each(?4))'

/** Writes the numbers of scopes into the parts of a bucket, in one batch. */
async function fold(db: D1Database, { bucket, scopes }: Changed): Promise<void> {
  const of: BucketKey = [bucket.family, bucket.bucket, bucket.start]
  const asked = (sql: string, names: Iterable<string>) => db.prepare(sql).bind(...of, JSON.stringify([...names]))
  const { results: there } = await asked(`SELECT part FROM statistics_packs WHERE ${OF_BUCKET} AND ?4 = ?4`, []).all<{ part: string }>()
  const placed = Map.groupBy(scopes, ([scope]) =>
    placeIn(
      there.map(({ part }) => part),
      packHash(scope),
    ),
  )
  const [own, rows] = await db.batch<Row & { scope: string; seq: number }>([
    asked(`SELECT scope, seq FROM statistics WHERE ${OF_BUCKET} AND scope IN ${LISTED}`, scopes.keys()),
    asked(
      `SELECT part, revision, json(scopes) AS scopes, seqs FROM statistics_packs WHERE ${OF_BUCKET} AND part IN ${LISTED}`,
      placed.keys(),
    ),
  ])
  const own_seqs = new Map((own?.results ?? []).map(({ scope, seq }) => [scope, seq]))
  const parts = new Map((rows?.results ?? []).map((row) => [row.part, partOf(row)]))
  const changed = Array.from(placed, ([name, some]) => {
    const part = parts.get(name) ?? { part: name, revision: 0, scopes: new Map<string, Newest>() }
    const newer = some.filter(([scope, { seq }]) => seq > Math.max(part.scopes.get(scope)?.seq ?? -1, own_seqs.get(scope) ?? -1))
    for (const [scope, newest] of newer) part.scopes.set(scope, newest)
    return { part, newer: newer.map(([scope]) => scope) }
  }).filter(({ newer }) => newer.length > 0)
  if (changed.length === 0) return
  const taken = changed.flatMap(({ newer }) => newer).filter((scope) => own_seqs.has(scope))
  await write(db, [
    ...changed.flatMap(({ part }) => written(db, of, part)),
    ...(taken.length === 0 ? [] : [asked(`DELETE FROM statistics WHERE ${OF_BUCKET} AND scope IN ${LISTED}`, taken)]),
    ...changeStatements(db, [bucket]),
  ])
}

function partOf({ part, revision, scopes, seqs }: Row): ScopesPart {
  const numbers = JSON.parse(seqs) as Record<string, number>
  const values = Object.entries(JSON.parse(scopes) as Record<string, StatisticsValues>)
  return { part, revision, scopes: new Map(values.map(([scope, one]) => [scope, { seq: numbers[scope] ?? 0, values: one }])) }
}

/** The part with scopes of this hash: the shortest that holds no part of another one. */
function placeIn(parts: readonly string[], hash: string): string {
  for (let digits = 0; ; digits += 1) {
    const part = hash.slice(0, digits)
    if (parts.includes(part) || !parts.some((other) => other.startsWith(part))) return part
  }
}

/**
 * Fails, and with it its batch, if the row `?7` has changed since it was read. The binary form of
 * the values is read in place, where text would be parsed as a whole for each scope that is asked.
 */
const PUT = `INSERT INTO statistics_packs (family, bucket, start, part, revision, scopes, seqs)
  SELECT ?1, ?2, ?3, ?4, CASE WHEN coalesce((SELECT revision FROM statistics_packs WHERE ${OF_BUCKET} AND part = ?7), 0) = ?8 THEN ?8 + 1 END, jsonb(?5), ?6
  WHERE true
  ON CONFLICT (family, bucket, start, part) DO UPDATE SET revision = excluded.revision, scopes = excluded.scopes, seqs = excluded.seqs`

/** Writes a part, or the smaller ones that replace it. */
function written(db: D1Database, of: BucketKey, { part, revision, scopes }: ScopesPart): D1PreparedStatement[] {
  const put = (name: string, some: Iterable<readonly [string, Newest]>) => {
    const entries = [...some]
    const values = JSON.stringify(Object.fromEntries(entries.map(([scope, newest]) => [scope, newest.values])))
    const seqs = JSON.stringify(Object.fromEntries(entries.map(([scope, { seq }]) => [scope, seq])))
    return { size: values.length, statement: db.prepare(PUT).bind(...of, name, values, seqs, part, revision) }
  }
  const whole = put(part, scopes)
  if (whole.size <= MOST_PART || scopes.size === 1 || part.length >= MOST_DIGITS) return [whole.statement]
  const smaller = Map.groupBy(scopes, ([scope]) => packHash(scope).slice(0, part.length + 1))
  return [
    ...Array.from(smaller, ([name, some]) => put(name, some).statement),
    db.prepare(`DELETE FROM statistics_packs WHERE ${OF_BUCKET} AND part = ?4`).bind(...of, part),
  ]
}

async function write(db: D1Database, statements: D1PreparedStatement[]): Promise<void> {
  try {
    await db.batch(statements)
  } catch (error) {
    throw messageOf(error).includes('constraint failed: statistics_packs') ? new LostRace() : error
  }
}

type Totals = Record<string, number>

/** The totals of these scopes, by scope. */
export async function scopeTotals(db: D1Database, scopes: readonly string[]): Promise<Map<string, Totals>> {
  if (scopes.length === 0) return new Map()
  const asked = JSON.stringify(scopes.map((scope) => [scope, packHash(scope)]))
  const { results } = await db.prepare(TOTALS).bind(asked).all<{ scope: string; total: string | null }>()
  return new Map(results.flatMap(({ scope, total }) => (total === null ? [] : [[scope, JSON.parse(total) as Totals]])))
}

/** SQL that is true for a part that may have the scope with this hash; all may, if it is null. */
export const mayHave = (part: string, hash: string): string => `(${hash} IS NULL OR substr(${hash}, 1, length(${part})) = ${part})`
/** SQL that is true for values of a scope in a part that no row of its own hides. */
export const isShown = (bucket: string, scope: string): string =>
  `NOT EXISTS (SELECT 1 FROM statistics AS own WHERE own.family = ${bucket}.family AND own.bucket = ${bucket}.bucket AND own.start = ${bucket}.start AND own.scope = ${scope})`

const IN_ALL = (row: string) => `${row}.family = 'scope' AND ${row}.bucket = 'all' AND ${row}.start = 0`
const TOTALS = `SELECT s.scope AS scope, s."values" -> '$.""' AS total
    FROM json_each(?1) AS asked CROSS JOIN statistics AS s ON ${IN_ALL('s')} AND s.scope = asked.value->>0
  UNION ALL SELECT asked.value->>0, w.scopes -> ('$."' || (asked.value->>0) || '".""')
    FROM statistics_packs AS w CROSS JOIN json_each(?1) AS asked ON ${mayHave('w.part', 'asked.value->>1')} AND ${isShown('w', 'asked.value->>0')}
    WHERE ${IN_ALL('w')}`
