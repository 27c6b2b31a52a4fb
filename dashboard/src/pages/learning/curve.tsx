import { useSignal } from '@preact/signals'
import { query, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'
import { count } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { visible } from '../../ui/text.tsx'
import { Chart } from '../reflexes/chart.tsx'
import { ranges, type Bucket, type Statistics } from '../reflexes/rates.tsx'
import './curve.css'

type Point = { at: string; calls: number; events: number; value: number }

/** Model calls for each 100 events of a scope: what learning is for. */
export function Curve({ scope }: { scope: string }) {
  const bucket = useSignal<Bucket>('minute')
  const path = (metric: string) => `/v1/stats${query({ metric, scope, bucket: bucket.value })}`
  const calls = useGet<Statistics>(path('model.calls'))
  const events = useGet<Statistics>(path('events.accepted'))
  return (
    <Section
      title={`Cost curve of ${visible(scope)}`}
      actions={<Select label="Range" value={bucket.value} options={ranges} onChange={(one) => (bucket.value = one as Bucket)} />}
    >
      <Loaded data={calls}>{(made) => <Loaded data={events}>{(accepted) => <Drawn points={pointsOf(made, accepted)} />}</Loaded>}</Loaded>
    </Section>
  )
}

function pointsOf(calls: Statistics, events: Statistics): Point[] {
  const made = new Map(calls.series[0]?.points.map(({ at, value }) => [at, value ?? 0]))
  return (events.series[0]?.points ?? []).flatMap(({ at, value }) => {
    const accepted = value ?? 0
    const used = made.get(at) ?? 0
    return accepted === 0 ? [] : [{ at, calls: used, events: accepted, value: (used / accepted) * 100 }]
  })
}

function Drawn({ points }: { points: Point[] }) {
  const [first] = points
  const last = points.at(-1)
  if (!first || !last) return <p class="quiet">It has no events in this range.</p>
  return (
    <div class="card">
      <Chart
        label={`From ${count(first.value)} to ${count(last.value)} model calls for each 100 events`}
        at={points.map(({ at }) => Date.parse(at))}
        lines={[{ name: 'for each 100 events', colour: '--wait', values: points.map(({ value }) => value) }]}
        show={count}
        note={(index) => `${count(points[index]?.calls)} model calls on ${count(points[index]?.events)} events`}
      />
    </div>
  )
}
