import { send, until, type ReflexClient } from '../clients.ts'
import { median, type Figure } from '../figure.ts'

const MINUTE = 60_000
const MINUTES = 1440
/** Older minutes expire while the figure is measured. */
const ASKED_MINUTES = 1410
/** Times 1,440 minutes: a million rows. */
const SCOPES = 700
const QUICK_SCOPES = 70
const SCOPES_OF_A_TEAM = 35
/** The sweep sums a hundred buckets. */
const SWEEPS = 20

/** The slowest of the queries counts. */
const queries: Record<string, string>[] = [
  { metric: 'turns' },
  { metric: 'turns', bucket: 'day' },
  { metric: 'turns', bucket: 'all' },
  { metric: 'turns', bucket: 'all', by: 'scope' },
  { metric: 'events.accepted', bucket: 'minute', range: 'day' },
  { metric: 'turns.p95_ms', bucket: 'minute', range: 'day' },
  { metric: 'turns.p95_ms', bucket: 'minute', range: 'day', scope: 'team-1/*' },
  { metric: 'turns.p95_ms', bucket: 'minute', range: 'day', scope: 'team-1/s1' },
  { metric: 'turns', bucket: 'minute', by: 'scope' },
  { metric: 'turns', bucket: 'hour', by: 'scope' },
  { metric: 'turns.p95_ms', bucket: 'hour', by: 'scope', scope: 'team-1/*' },
  { metric: 'skill.success_rate', bucket: 'hour', by: 'skill' },
  { metric: 'skill.delta_p95_ms', bucket: 'hour', by: 'skill' },
]

export const statisticsOfMillion: Figure = {
  name: 'statistics',
  what: 'the slowest query of GET /v1/stats with a million rows in D1 (a tenth with --quick)',
  unit: 'ms',
  target: { at_most: 200 },
  async ours(_reflex, { another, count, progress }) {
    const scopes = count(1) < 1 ? QUICK_SCOPES : SCOPES
    const now = Math.floor(Date.now() / MINUTE) * MINUTE
    progress(`storing ${scopes * MINUTES} rows`)
    const reflex = await another({}, rowsSql(scopes, now))
    // The newest hour and day are not over.
    for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
      progress(`sweep ${sweep + 1} of ${SWEEPS} sums ended buckets`)
      await send(`${reflex.url}/cdn-cgi/handler/scheduled`)
    }
    await until(async () => (await total(reflex, now)) === scopes * ASKED_MINUTES, { what: 'all rows', timeout_ms: 10_000 })
    return {
      async measure() {
        const slowest: [ms: number, query: Record<string, string>][] = []
        for (const query of queries) {
          const times: number[] = []
          for (let repetition = 0; repetition < 3; repetition += 1) {
            const start = performance.now()
            await reflex.statistics(ranged(query, now))
            times.push(performance.now() - start)
          }
          slowest.push([median(times), query])
        }
        const [ms = Number.NaN, query] = slowest.toSorted(([one], [other]) => other - one)[0] ?? []
        progress(`${Math.round(ms)} ms for ${JSON.stringify(query)}`)
        return ms
      },
    }
  },
}

const iso = (at: number): string => new Date(at).toISOString()
function ranged({ range, ...query }: Record<string, string>, now: number): Record<string, string> {
  return range === undefined ? query : { ...query, since: iso(now - ASKED_MINUTES * MINUTE), until: iso(now) }
}

async function total(reflex: ReflexClient, now: number): Promise<number | null> {
  const { series } = await reflex.statistics(ranged({ metric: 'turns', bucket: 'minute', range: 'day' }, now))
  return series[0]?.total ?? null
}

/** Rows as scopes write them, and the notes that their buckets are to be summed. */
function rowsSql(scopes: number, now: number): string {
  const scope = `'team-' || (s.n / ${SCOPES_OF_A_TEAM}) || '/s' || s.n`
  const turns = `'turns', 1, 'turn_cost_usd', 0.01, 'turn_time_ms', 900, 'turn_ms.' || (60 + s.n % 9), 1, 'turn_ms.' || (70 + b.n % 9), 1`
  const ofScope = `json_object('', json_object('accepted', 5, 'completed', 4, 'ignored', 1, 'model_calls', 2, 'input_tokens', 300, ${turns}))`
  const ofSkill = `json_object('deploy', json_object('calls', 3, 'ok', 2, 'failed', 1, ${turns}), 'refund', json_object('calls', 1, 'ok', 1, ${turns}))`
  const numbers = (count: number) =>
    `(WITH RECURSIVE t (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n + 1 < ${count}) SELECT n FROM t)`
  const rows = (family: string, bucket: string, { count, step, values }: { count: number; step: number; values: string }) => {
    const start = `${Math.floor(now / step)} * ${step} - b.n * ${step}`
    return [
      `INSERT INTO statistics (family, bucket, start, scope, "values")
       SELECT '${family}', '${bucket}', ${step === 0 ? 0 : start}, ${scope}, ${values} FROM ${numbers(count)} AS b CROSS JOIN ${numbers(scopes)} AS s;`,
      step === 0 ? '' : `INSERT INTO statistics_changes SELECT '${family}', '${bucket}', ${start} FROM ${numbers(count)} AS b;`,
    ]
  }
  return [
    ...rows('scope', 'minute', { count: MINUTES, step: MINUTE, values: ofScope }),
    ...rows('scope', 'hour', { count: 48, step: 60 * MINUTE, values: ofScope }),
    ...rows('scope', 'day', { count: 30, step: 1440 * MINUTE, values: ofScope }),
    ...rows('scope', 'all', { count: 1, step: 0, values: ofScope }),
    ...rows('skill', 'hour', { count: 48, step: 60 * MINUTE, values: ofSkill }),
  ].join('\n')
}
