import { z } from 'zod'

/** The kinds of buckets and their length in ms. `all` is one bucket since the scope exists. */
export const bucketSteps = { minute: 60_000, hour: 3_600_000, day: 86_400_000, all: Number.POSITIVE_INFINITY } as const
export const buckets = ['minute', 'hour', 'day', 'all'] as const
export type Bucket = (typeof buckets)[number]
/** A bucket of `scope` has one label, the empty one; the others are labelled by their ids. */
export const families = ['scope', 'reflex', 'skill', 'tool', 'model'] as const
export type Family = (typeof families)[number]

/** The buckets of a family. Models are rarely asked about by minute: fewer rows go to D1. */
export const bucketsOf = (family: Family): readonly Bucket[] => (family === 'model' ? ['hour', 'day'] : buckets)

/** Numbers by label and name. They add up over buckets; of `max_…` the largest counts. */
export type StatisticsValues = Record<string, Record<string, number>>
export type BucketRow = { family: Family; bucket: Bucket; start: number; values: StatisticsValues }

/** Numbers that are histograms have a name for each of their buckets, such as `turn_ms.56`. */
export const histograms: readonly string[] = ['turn_ms', 'run_ms', 'reflex_us', 'gate_us']

/** Sums by name. A histogram has a name for each of its buckets. */
export type MetricSums = Readonly<Record<string, number>>

export function histogramOf(sums: MetricSums, name: string): { buckets: Record<string, number>; count: number } {
  const found = Object.entries(sums).filter(([key]) => key.startsWith(`${name}.`))
  const buckets = Object.fromEntries(found.map(([key, samples]) => [key.slice(name.length + 1), samples]))
  return { buckets, count: found.reduce((sum, [, samples]) => sum + samples, 0) }
}

/** The label of all ids beyond the number of labels that a bucket has. */
export const OTHER_LABEL = '(other)'

export const bucketStart = (bucket: Bucket, at: number): number =>
  bucket === 'all' ? 0 : Math.floor(at / bucketSteps[bucket]) * bucketSteps[bucket]

const time = z.iso.datetime()
const value = z.number().nullable().describe('Null without data, such as a share of nothing.')
const points = z.array(z.object({ at: time.describe('The start of the bucket.'), value })).describe('Buckets with data, oldest first.')
const total = value.describe('Over all buckets of the answer.')
const unit = z.enum(['count', 'share', 'usd', 'ms', 'time'])
const range = { bucket: z.enum(buckets), since: time, until: time }

export const statisticsSummary = z
  .object({ ...range, metrics: z.array(z.object({ metric: z.string(), unit, total, points })) })
  .meta({ id: 'StatisticsSummary' })

export const statistics = z
  .object({
    metric: z.string(),
    unit,
    ...range,
    series: z.array(
      z.object({
        label: z.string().nullable().describe('The id or scope that `by` asks for; null for the total.'),
        total,
        unpriced_calls: z
          .int()
          .nullable()
          .optional()
          .describe('Of the cost of models: the calls that it leaves out, since their price is unknown. Null if this is not known.'),
        points,
      }),
    ),
    more: z.boolean().describe('There are more series than the 100 first ones.'),
  })
  .meta({ id: 'Statistics' })

/** The one fire rate: events decided by a reflex, of those and the model calls. */
export const fireShare = (decided: number, model_calls: number): number | null =>
  decided + model_calls === 0 ? null : decided / (decided + model_calls)
