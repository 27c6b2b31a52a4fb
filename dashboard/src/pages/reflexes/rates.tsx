import { useMemo } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { z } from 'zod'
import type { statistics } from '../../../../src/features/statistics/contract/statistics.ts'
import { query, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'
import { count, counted, percent } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Chart, type ChartLine } from './chart.tsx'

export type RateStatistics = z.infer<typeof statistics>
export type RateBucket = 'minute' | 'hour' | 'day'
const steps: Record<RateBucket, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }
export const ranges: Record<RateBucket, string> = { minute: 'The last hour', hour: 'The last day', day: 'The last 30 days' }

/** The decisions of one reflex or of all, against the model calls that were made. */
export function Rates({ reflex }: { reflex?: string }) {
  const bucket = useSignal<RateBucket>('hour')
  const of = reflex === undefined ? {} : { by: 'reflex' }
  const decided = useGet<RateStatistics>(
    `/v1/stats${query({ metric: reflex === undefined ? 'reflexes.decided' : 'reflex.decided', bucket: bucket.value, ...of })}`,
  )
  const calls = useGet<RateStatistics>(`/v1/stats${query({ metric: 'model.calls', bucket: bucket.value })}`)
  return (
    <Section
      title="Reflexes against model calls"
      actions={<Select label="Range" value={bucket.value} options={ranges} onChange={(one) => (bucket.value = one as RateBucket)} />}
    >
      <Loaded data={decided}>
        {(one) => (
          <Loaded data={calls}>{(other) => <Drawn decided={one} calls={other} step={steps[bucket.value]} label={reflex ?? null} />}</Loaded>
        )}
      </Loaded>
    </Section>
  )
}

type DrawnProps = { decided: RateStatistics; calls: RateStatistics; step: number; label: string | null }

function Drawn({ decided, calls, step, label }: DrawnProps) {
  const own = decided.series.find((series) => series.label === label)
  const [all] = calls.series
  const { at, lines } = useMemo(() => {
    const from = Date.parse(decided.since)
    const until = Date.parse(decided.until)
    const times = Array.from({ length: Math.ceil((until - from) / step) }, (_, index) => from + index * step)
    const valuesOf = (series: RateStatistics['series'][number] | undefined) => {
      const values = new Map(series?.points.map((point) => [Date.parse(point.at), point.value]))
      return times.map((time) => values.get(time) ?? 0)
    }
    const drawn: ChartLine[] = [
      { name: 'decided', colour: '--ok', values: valuesOf(own) },
      { name: 'model calls', colour: '--wait', values: valuesOf(all) },
    ]
    return { at: times, lines: drawn }
  }, [decided, calls, step, label])
  const reflexes = own?.total ?? 0
  const models = all?.total ?? 0
  const share = reflexes + models === 0 ? null : reflexes / (reflexes + models)
  const summary = `${counted(reflexes, 'event')} decided ${label === null ? 'by reflexes' : 'by it'}, ${counted(models, 'model call')}`
  return (
    <div class="card">
      <Chart label={share === null ? summary : `${summary}: ${percent(share)} without a model`} at={at} lines={lines} show={count} />
    </div>
  )
}
