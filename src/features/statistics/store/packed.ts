import { textHash } from '../../../base/hash.ts'
import { isJsonFields } from '../../../base/json.ts'
import { foldScopes, isShownIn, mayHave, type Newest } from '../../../store/packs/scope-parts.ts'
import { buckets, families, type BucketRow, type StatisticsValues } from '../contract/statistics.ts'
import { sortNow } from '../../../store/packs/told.ts'
import { changeStatements, PACKS } from './write.ts'

/** The absolute numbers of a scope's changed buckets, for the caller that packs its outcomes. */
export type PackedStatistics = { scope: string; seq: number; rows: BucketRow[] }

/** The statistics of an answer, as the queue or a scope has it; null if it cannot be read. */
function statisticsIn(value: unknown): PackedStatistics | null {
  if (!isJsonFields(value) || typeof value['scope'] !== 'string' || !Number.isSafeInteger(value['seq'])) return null
  const isRow = (row: unknown): boolean =>
    isJsonFields(row) &&
    families.some((family) => family === row['family']) &&
    buckets.some((bucket) => bucket === row['bucket']) &&
    Number.isSafeInteger(row['start']) &&
    isJsonFields(row['values'])
  return Array.isArray(value['rows']) && value['rows'].every(isRow) ? (value as PackedStatistics) : null
}

type BucketOf = Omit<BucketRow, 'values'>
type Changed = { bucket: BucketOf; scopes: Map<string, Newest<StatisticsValues>> }

/**
 * Writes what scopes have answered into the rows of its buckets: few rows, however many scopes
 * there are. Numbers are absolute and the newest win, so that a repetition changes nothing.
 */
export async function sortStatistics(db: D1Database, answers: readonly unknown[], now: number): Promise<void> {
  for (const { bucket, scopes } of newestOf(answers.flatMap((one) => statisticsIn(one) ?? []))) {
    const key = [bucket.family, bucket.bucket, bucket.start]
    await foldScopes(db, PACKS, { key, scopes }, { beside: () => changeStatements(db, [bucket]), now })
  }
}

/** The name of what scopes answer of their statistics. */
export const STATISTICS = 'statistics'

/** Sorts what waits, for a reader. */
export const sortStatisticsNow = (db: D1Database): Promise<void> => sortNow(db, STATISTICS, sortStatistics)

const keyOf = ({ family, bucket, start }: BucketOf): string => `${family} ${bucket} ${start}`

function newestOf(answers: readonly PackedStatistics[]): Changed[] {
  const all = new Map<string, Changed>()
  for (const { scope, seq, rows } of answers) {
    for (const { values, family, bucket, start } of rows) {
      const of = { family, bucket, start }
      const changed = all.get(keyOf(of)) ?? { bucket: of, scopes: new Map() }
      all.set(keyOf(of), changed)
      if ((changed.scopes.get(scope)?.seq ?? -1) <= seq) changed.scopes.set(scope, { seq, value: values })
    }
  }
  return [...all.values()]
}

type Totals = Record<string, number>

/** The totals of these scopes, by scope. */
export async function scopeTotals(db: D1Database, scopes: readonly string[]): Promise<Map<string, Totals>> {
  if (scopes.length === 0) return new Map()
  const asked = JSON.stringify(scopes.map((scope) => [scope, textHash(scope)]))
  const { results } = await db.prepare(TOTALS).bind(asked).all<{ scope: string; total: string | null }>()
  return new Map(results.flatMap(({ scope, total }) => (total === null ? [] : [[scope, JSON.parse(total) as Totals]])))
}

/** SQL that is true for values of a scope in a part that no row of its own hides. */
export const isShown = (bucket: string, scope: string): string => isShownIn(PACKS, bucket, scope)

const IN_ALL = (row: string) => `${row}.family = 'scope' AND ${row}.bucket = 'all' AND ${row}.start = 0`
const TOTALS = `SELECT s.scope AS scope, s."values" -> '$.""' AS total
    FROM json_each(?1) AS asked CROSS JOIN statistics AS s ON ${IN_ALL('s')} AND s.scope = asked.value->>0
  UNION ALL SELECT asked.value->>0, w.scopes -> ('$."' || (asked.value->>0) || '".""')
    FROM statistics_packs AS w CROSS JOIN json_each(?1) AS asked ON ${mayHave('w.part', 'asked.value->>1')} AND ${isShown('w', 'asked.value->>0')}
    WHERE ${IN_ALL('w')}`
