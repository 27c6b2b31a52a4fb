import { and, count, eq, isNotNull, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { bucketsOf, bucketStart, bucketSteps, histograms, type Bucket, type Family } from '../contract/statistics.ts'
import { patternMatchesSql } from '../../../contract/principal.ts'
import { hasFailed } from '../../../store/artifacts/skill-tests.ts'
import { mayHave } from '../../../store/packs/scope-parts.ts'
import { isShown, sortStatisticsNow } from './packed.ts'
import { sumOpenNow } from './sums.ts'
import { rangesOf } from '../../../store/scope-ranges.ts'
import { readableBy } from '../../../store/artifacts/patterns.ts'
import { artifacts, artifactVersions } from '../../../store/artifacts/tables.ts'

/** `keys`: names of numbers, a histogram's without the bucket. `since`, `until`: starts, in ms. */
export type StatisticsQuery = {
  family: Family
  bucket: Bucket
  since: number
  until: number
  patterns: readonly string[]
  keys: readonly string[]
  by: 'label' | 'scope' | null
  /** Only so many series, those with the largest sums of the first key. For `sumByScope`. */
  most_series?: number
}
/** A sum over scopes and, unless `by` asks for them, labels. */
export type Sum = { start: number; series: string; key: string; value: number }

/** More sums than this are an error: a Worker holds them in memory. */
export const MOST_SUMS = 50_000

/** Sums buckets: one search of a primary key for each start and range of scopes. */
export async function sumStatistics(db: D1Database, query: StatisticsQuery): Promise<Sum[]> {
  await sortStatisticsNow(db)
  if (query.by !== 'scope') await sumOpenNow(db)
  const { results } = await statisticsStatement(db, query).all<{ series: string; sums: string }>()
  return results.flatMap(({ series, sums }) =>
    (JSON.parse(sums) as [number, string, number][]).map(([start, key, value]) => ({ start, series, key, value })),
  )
}

/**
 * A row has the sums of a series in a hundred buckets: D1 is slow with many rows, and limits their
 * size.
 */
export function statisticsStatement(db: D1Database, query: StatisticsQuery): D1PreparedStatement {
  const { by } = query
  const label = by === 'label' ? 'label.key' : `''`
  const number = hasHistogram(query) ? EACH_NUMBER : NUMBER
  const has_paths = by !== 'label' && hasPaths(query)
  const from_rows = eachSource(({ from, scope, values }) => {
    const columns = has_paths ? `asked.value AS name, ${values} ->> ('$."".' || asked.value) AS value` : number.columns('label.value')
    const labels = has_paths ? '' : `CROSS JOIN json_each(${values}) AS label`
    return `SELECT p.start AS start, ${by === 'scope' ? scope : label} AS series, ${columns}
      FROM pieces AS p CROSS JOIN ${from} ${labels} ${number.join('label.value')}
      WHERE NOT p.is_summed AND ${seen(query, scope)} AND ${number.is_asked}`
  })
  const of = by === 'label' ? 'label.value' : 't.total'
  const from_sums = `SELECT p.start, ${label}, ${number.columns(of)}
    FROM pieces AS p CROSS JOIN statistics_sums AS t ON t.family = ?1 AND t.bucket = p.bucket AND t.start = p.at AND t.prefix = p.prefix
      ${by === 'label' ? 'CROSS JOIN json_each(t.labels) AS label' : ''} ${number.join(of)}
    WHERE p.is_summed AND ${number.is_asked}`
  const summed = `SELECT start, series, name, ${SUM} AS value
    FROM (${from_rows} UNION ALL ${from_sums}) WHERE value IS NOT NULL GROUP BY 2, 1, 3`
  // Each row of the family `scope` is a sum.
  const sums = by === 'scope' && query.family === 'scope' ? `SELECT * FROM (${from_rows}) WHERE value IS NOT NULL` : summed
  const rows = `, sums AS MATERIALIZED (${sums} LIMIT ${MOST_SUMS + 1})
    SELECT series, json_group_array(json_array(start, name, value)) AS sums FROM sums GROUP BY 1, CAST((start - ?3) / (100 * ?7) AS INTEGER)`
  return bound(
    db,
    `${pieces(by)} ${rows}`,
    query,
    JSON.stringify([...new Set(query.keys)]),
    ...(by === null ? [JSON.stringify(partsOf(query))] : []),
  )
}

const hasHistogram = ({ keys }: StatisticsQuery): boolean => keys.some((key) => histograms.includes(key))
/** A row of the family `scope` has one label, so that its numbers have a path. */
const hasPaths = (query: StatisticsQuery): boolean => query.family === 'scope' && !hasHistogram(query)

/**
 * Sums by scope. If the query covers too many rows, reads the rows of those scopes alone that ever
 * had one of the numbers. Null if these have too many rows, too.
 */
export async function sumByScope(db: D1Database, query: StatisticsQuery): Promise<Sum[] | null> {
  await sortStatisticsNow(db)
  const few = await sumFew(db, query)
  if (few) return few
  const ever = await sumStatistics(db, { ...query, bucket: 'all', since: 0, until: 1 })
  const patterns = [...new Set(ever.flatMap(({ series, value }) => (value === 0 ? [] : [series])))]
  return patterns.length > MOST_SUMS ? null : sumFew(db, { ...query, patterns })
}

/** Null if the query covers too many rows. */
async function sumFew(db: D1Database, query: StatisticsQuery): Promise<Sum[] | null> {
  if (!hasPaths(query)) return (await hasTooManyRows(db, query)) ? null : sumStatistics(db, query)
  const names = [...new Set(query.keys)]
  const columns = names.map((_, index) => `value${index}`)
  const rows = eachSource(({ from, scope, values }) => {
    const numbers = columns.map((column, index) => `${values} ->> ?${8 + index} AS ${column}`)
    return `SELECT p.start AS start, ${scope} AS series, ${numbers.join()} FROM pieces AS p CROSS JOIN ${from} WHERE ${seen(query, scope)}`
  })
  const total = names[0]?.startsWith('max_') === true ? 'max' : 'sum'
  const largest = query.most_series === undefined ? '' : `ORDER BY ${total}(value0) DESC, series LIMIT ${query.most_series}`
  const statement = `${pieces('scope')} SELECT series, sum(count(*)) OVER () AS rows, json_group_array(json_array(start, ${columns.join()})) AS sums
    FROM (${rows} LIMIT ${MOST_SUMS + 1}) GROUP BY series ${largest}`
  const paths = names.map((name) => `$."".${JSON.stringify(name)}`)
  const { results } = await bound(db, statement, query, ...paths).all<{ series: string; rows: number; sums: string }>()
  if ((results[0]?.rows ?? 0) > MOST_SUMS) return null
  return results.flatMap(({ series, sums }) =>
    (JSON.parse(sums) as [number, ...(number | null)[]][]).flatMap(([start, ...numbers]) =>
      numbers.flatMap((value, index) => (value === null ? [] : [{ start, series, key: names[index] ?? '', value }])),
    ),
  )
}

/** Counting rows is much faster than summing them. */
async function hasTooManyRows(db: D1Database, query: StatisticsQuery): Promise<boolean> {
  const rows = eachSource(({ from, scope }) => `SELECT 1 FROM pieces AS p CROSS JOIN ${from} WHERE ${seen(query, scope)}`)
  const counted = bound(db, `${pieces('scope')} SELECT count(*) AS n FROM (${rows} LIMIT ${MOST_SUMS + 1})`, query)
  return ((await counted.first<number>('n')) ?? 0) > MOST_SUMS
}

const SUM = `CASE WHEN name GLOB 'max_*' THEN max(value) ELSE sum(value) END`
/** The open bucket has the rows of all scopes; its parts have sums once they have ended. */
const PARTS = `parts (start, bucket, at) AS MATERIALIZED (SELECT value->>0, value->>1, value->>2 FROM json_each(?9)
    WHERE EXISTS (SELECT 1 FROM json_each(?9) AS one CROSS JOIN statistics_sums AS t ON t.family = ?1 AND t.bucket = one.value->>1
      AND t.start = one.value->>2)),
  sources (start, bucket, at) AS (SELECT start, ?2, start FROM starts WHERE start NOT IN (SELECT start FROM parts)
    UNION ALL SELECT start, bucket, at FROM parts),`
/**
 * Each start with each range of scopes. `prefix`: of the sums over that range. `bucket` and `at`:
 * what is read.
 */
const pieces = (by: StatisticsQuery['by']): string => `WITH RECURSIVE
  starts (start) AS (SELECT ?3 UNION ALL SELECT start + ?7 FROM starts WHERE start + ?7 < ?4),
  ${by === null ? PARTS : 'sources (start, bucket, at) AS (SELECT start, ?2, start FROM starts),'}
  pieces (start, bucket, at, first, last, prefix, hash, is_summed) AS MATERIALIZED (
    SELECT source.start, source.bucket, source.at, range.value->>'first', range.value->>'end', range.value->>'prefix', range.value->>'hash',
      ${by === 'scope' ? 'false' : IS_SUMMED(by)}
    FROM sources AS source CROSS JOIN json_each(?5) AS range)`
const IS_SUMMED = (by: 'label' | null) => `EXISTS (SELECT 1 FROM statistics_sums AS t WHERE t.family = ?1 AND t.bucket = source.bucket
      AND t.start = source.at AND t.prefix = range.value->>'prefix'${by === 'label' ? ' AND t.labels IS NOT NULL' : ''})`

type BucketPart = [start: number, bucket: Bucket, at: number]
/** The parts of the open hour or day, if the query has it: hours, and minutes of the open hour. */
function partsOf({ family, bucket, since, until }: StatisticsQuery, now = Date.now()): BucketPart[] {
  const open = bucketStart(bucket, now)
  const has_open = (bucket === 'hour' || bucket === 'day') && since <= open && open < until && (open - since) % bucketSteps[bucket] === 0
  return has_open ? dividedAt(now, family, [open, bucket, open]) : []
}

function dividedAt(now: number, family: Family, [start, bucket, at]: BucketPart): BucketPart[] {
  const smaller = bucket === 'day' ? 'hour' : 'minute'
  if (bucket === 'minute' || bucketStart(bucket, now) !== at || !bucketsOf(family).includes(smaller)) return [[start, bucket, at]]
  const [step, whole] = [bucketSteps[smaller], bucketSteps[bucket]]
  return Array.from({ length: whole / step }, (_, nth) => dividedAt(now, family, [start, smaller, at + nth * step])).flat()
}

type Source = { from: string; scope: string; values: string }
/** Rows of one scope, and the values of scopes in rows of many. */
const SOURCES: readonly Source[] = [
  {
    from: 'statistics AS s ON s.family = ?1 AND s.bucket = p.bucket AND s.start = p.at AND s.scope >= p.first AND s.scope < p.last',
    scope: 's.scope',
    values: 's."values"',
  },
  {
    from: `statistics_packs AS w ON w.family = ?1 AND w.bucket = p.bucket AND w.start = p.at AND ${mayHave('w.part', 'p.hash')}
      CROSS JOIN json_each(w.scopes) AS e ON e.key >= p.first AND e.key < p.last AND ${isShown('w', 'e.key')}`,
    scope: 'e.key',
    values: 'e.value',
  },
]
const eachSource = (select: (source: Source) => string): string => SOURCES.map(select).join(' UNION ALL ')
/** Reads the asked numbers alone, which is three times faster than searching all of them. */
const NUMBER = {
  columns: (of: string) => `asked.value AS name, ${of} ->> asked.value AS value`,
  join: () => `CROSS JOIN json_each(?8) AS asked`,
  is_asked: 'true',
}
const EACH_NUMBER = {
  columns: () => 'number.key AS name, number.value AS value',
  join: (of: string) => `CROSS JOIN json_each(${of}) AS number`,
  is_asked: `substr(number.key, 1, instr(number.key || '.', '.') - 1) IN (SELECT value FROM json_each(?8))`,
}
const seen = ({ patterns }: StatisticsQuery, scope: string): string =>
  rangesOf(patterns).every(({ is_exact }) => is_exact) ? 'true' : `EXISTS (SELECT 1 FROM json_each(?6) WHERE ${patternMatchesSql(scope)})`

function bound(db: D1Database, statement: string, { family, bucket, since, until, patterns }: StatisticsQuery, ...more: string[]) {
  const step = bucket === 'all' ? 1 : bucketSteps[bucket]
  const ranges = JSON.stringify(rangesOf(patterns))
  return db.prepare(statement).bind(family, bucket, since, until, ranges, JSON.stringify(patterns), step, ...more)
}

/** The reason of a version that the sweep deprecated begins with this. */
export const EVICTED = 'evicted: '

/**
 * Numbers of versions that a key may read. `learned`: written by an agent. `failed`: skills whose
 * latest test failed.
 */
export async function countVersions(db: D1Database, scopes: readonly string[]) {
  const { kind, state, state_reason, provenance } = artifactVersions
  const learned = isNotNull(sql`${provenance}->>'scope'`)
  return drizzle(db)
    .select({
      kind,
      state,
      versions: count(),
      learned: sql<number>`coalesce(sum(${learned}), 0)`,
      evicted: sql<number>`coalesce(sum(${state} = 'retired' AND ${state_reason} GLOB ${`${EVICTED}*`}), 0)`,
      failed: sql<number>`coalesce(sum(${hasFailed}), 0)`,
    })
    .from(artifactVersions)
    .innerJoin(artifacts, and(eq(artifacts.kind, kind), eq(artifacts.id, artifactVersions.id)))
    .where(await readableBy(db, scopes))
    .groupBy(kind, state)
}
