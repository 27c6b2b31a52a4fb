import { Option, type Command } from 'commander'
import type { z } from 'zod'
import { buckets, families, type Bucket, type statistics } from '../../src/contract/reports/statistics.ts'
import { metrics } from '../../src/http/operations/statistics-metrics.ts'
import { CliError, UsageError } from '../lib/cli-error.ts'
import { dollars, duration, money } from '../lib/text.ts'
import { route } from './pages.ts'
import { handler, type Session } from './session.ts'
import { fileStatistics } from './standalone-stats.ts'
import { table, written } from './table.ts'
import { timeOption } from './values.ts'

export type Statistics = z.infer<typeof statistics>
type Query = { by?: string; bucket: Bucket; file?: string; scope?: string; since?: string; until?: string }

const HELP = `
Metrics:
${Object.entries(metrics)
  .map(([name, { description }]) => `  ${name.padEnd(26)}${description}`)
  .join('\n')}

Example:
  reflex stats turns --bucket day --since 7d --by scope`

export function addStats(program: Command): void {
  program
    .command('stats <metric>')
    .description('Show a metric over time')
    .addOption(new Option('--by <group>', 'a row for each').choices(families))
    .addOption(new Option('--bucket <bucket>', 'the length of a bucket').choices(buckets).default('hour'))
    .option('--scope <pattern>', 'of one scope, or of those that match a pattern')
    .addOption(timeOption('since', 'at or after a time'))
    .addOption(timeOption('until', 'before a time'))
    .option('--file <path>', 'of the skills in the file of a standalone process')
    .addHelpText('after', HELP)
    .action(handler(stats))
}

async function stats({ api, print, signal }: Session, metric: string, { file, ...query }: Query): Promise<void> {
  if (!Object.hasOwn(metrics, metric)) throw new CliError(`There is no metric ${metric}.`, 'reflex stats --help lists the metrics.')
  if (file !== undefined && query.scope !== undefined) throw new UsageError('A file has no scopes: leave out --scope.')
  const answer =
    file !== undefined
      ? await fileStatistics(file, metric, query)
      : await api().json<Statistics>(route(['stats'], { metric, ...query }), { signal })
  const columns = [
    { title: 'OF', of: ({ label }: Statistics['series'][number]) => label ?? 'total' },
    { title: metric.toUpperCase(), of: (series: Statistics['series'][number]) => costOrAmount(series, answer.unit) },
    { title: 'TREND', of: ({ points }: Statistics['series'][number]) => trend(points.map(({ value }) => value)) },
  ]
  print.result(answer, (paint) => [
    paint(
      'dim',
      answer.bucket === 'all' ? 'since the beginning' : `${written(answer.since)} to ${written(answer.until)}, by ${answer.bucket}`,
    ),
    ...table(answer.series, columns, { paint }),
    ...(answer.series.length === 0 ? [paint('dim', `Nothing was counted ${answer.bucket === 'all' ? 'yet' : 'in this time'}.`)] : []),
    ...(answer.more ? [paint('dim', 'There are more rows.')] : []),
  ])
}

/** The cost of models says how many calls it leaves out, since their price is unknown. */
function costOrAmount({ total, unpriced_calls: unpriced }: Statistics['series'][number], unit: Statistics['unit']): string | null {
  if (unpriced === null) return `${dollars(total ?? 0)}, without calls of unknown price`
  return unpriced === undefined ? amount(total, unit) : money(total ?? 0, unpriced)
}

export function amount(value: number | null, unit: Statistics['unit']): string | null {
  if (value === null) return null
  if (unit === 'share') return `${(value * 100).toFixed(1)} %`
  if (unit === 'usd') return dollars(value)
  if (unit === 'ms') return duration(value)
  if (unit === 'time') return new Date(value).toISOString()
  return value.toLocaleString('en-US')
}

const BARS = '▁▂▃▄▅▆▇█'
const MOST_BARS = 60

/** A bar for each of the newest buckets with data, between zero and the largest. */
export function trend(values: readonly (number | null)[]): string {
  const shown = values.slice(-MOST_BARS)
  const largest = Math.max(...shown.map((value) => value ?? 0), 0)
  const bar = (value: number) => BARS[Math.max(0, Math.round((value / (largest || 1)) * (BARS.length - 1)))] ?? ' '
  return shown.map((value) => (value === null ? ' ' : bar(value))).join('')
}
