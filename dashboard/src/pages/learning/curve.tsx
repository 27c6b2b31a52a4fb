import { useSignal } from '@preact/signals'
import { query, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'
import { count } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { visible } from '../../ui/text.tsx'
import { ranges, type Bucket, type Statistics } from '../reflexes/rates.tsx'
import './curve.css'

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [800, 200, 45, 22]
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
  const most = Math.max(1, ...points.map(({ value }) => value))
  const [from, to] = [Date.parse(first.at), Date.parse(last.at)]
  const x = (at: string) => LEFT + (to === from ? 0.5 : (Date.parse(at) - from) / (to - from)) * (WIDTH - LEFT - 10)
  const y = (value: number) => (HEIGHT - BOTTOM) * (1 - value / most) + 4
  const summary = `From ${count(first.value)} to ${count(last.value)} model calls for each 100 events`
  return (
    <figure class="card curve">
      <figcaption>{summary}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 6}`} role="img" aria-label={summary}>
        {[0, most / 2, most].map((value) => (
          <g key={value}>
            <line x1={LEFT} x2={WIDTH} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 6} y={y(value) + 4} text-anchor="end">
              {count(value)}
            </text>
          </g>
        ))}
        <text x={LEFT} y={HEIGHT + 2}>
          {clock(first.at)}
        </text>
        <text x={WIDTH} y={HEIGHT + 2} text-anchor="end">
          {clock(last.at)}
        </text>
        <path d={points.map(({ at, value }, index) => `${index === 0 ? 'M' : 'L'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('')} />
        {points.map(({ at, value, calls, events }) => (
          <circle key={at} cx={x(at)} cy={y(value)} r="3">
            <title>
              {clock(at)}: {count(calls)} model calls on {count(events)} events
            </title>
          </circle>
        ))}
      </svg>
    </figure>
  )
}

const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'short' })
const clock = (at: string): string => format.format(new Date(at))
