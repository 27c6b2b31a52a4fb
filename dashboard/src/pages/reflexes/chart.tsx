import { useSignal } from '@preact/signals'
import './chart.css'

export type ChartLine = { name: string; colour: string; values: readonly number[] }
type ChartProps = {
  label: string
  /** The times of the values in ms, oldest first. */
  at: readonly number[]
  lines: readonly ChartLine[]
  show: (value: number) => string
  /** A note on the numbers at a time, beside the labels of the lines. */
  note?: (index: number) => string
}

const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'short' })
const clock = (ms = 0): string => format.format(ms)
const WIDTH = 1000
const HEIGHT = 100

/**
 * Lines over time. The pointer or the arrow keys choose the time whose numbers are shown, and a
 * table has all of them.
 */
export function Chart({ label, at, lines, show, note }: ChartProps) {
  const chosen = useSignal<number | null>(null)
  const last = at.length - 1
  const index = Math.min(chosen.value ?? last, last)
  const [from = 0, to = 0] = [at[0], at[last]]
  const share = (ms: number): number => (to === from ? 0.5 : (ms - from) / (to - from))
  const most = ceiling(Math.max(2, ...lines.flatMap(({ values }) => values)))
  const x = (place: number) => (WIDTH * share(at[place] ?? 0)).toFixed(1)
  const point = ({ currentTarget, clientX }: PointerEvent & { currentTarget: HTMLElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect()
    const away = (place: number) => Math.abs(share(at[place] ?? 0) - (clientX - left) / width)
    chosen.value = at.reduce((best, _, place) => (away(place) < away(best) ? place : best), 0)
  }
  const numbers = (place: number) => lines.map(({ name, values }) => `${show(values[place] ?? 0)} ${name}`).join(', ')
  return (
    <figure class="chart">
      <figcaption>{label}</figcaption>
      <div class="scale" aria-hidden="true">
        {[most, most / 2, 0].map((value) => (
          <span key={value}>{show(value)}</span>
        ))}
      </div>
      <div class="area" onPointerMove={point} onPointerLeave={() => (chosen.value = null)}>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path d={`M0 0H${WIDTH}M0 50H${WIDTH}M0 100H${WIDTH}M${x(index)} 0V100`} />
          {lines.map(({ name, colour, values }) => (
            <polyline
              key={name}
              style={{ stroke: `var(${colour})` }}
              points={values.map((value, place) => `${x(place)},${(HEIGHT * (1 - value / most)).toFixed(1)}`).join(' ')}
            />
          ))}
        </svg>
        <input
          type="range"
          max={last}
          value={index}
          aria-label={`Time: ${label}`}
          aria-valuetext={`${clock(at[index])}: ${numbers(index)}`}
          onInput={({ currentTarget }) => (chosen.value = Number(currentTarget.value))}
        />
      </div>
      <div class="times" aria-hidden="true">
        <span>{clock(from)}</span>
        <span>{clock(to)}</span>
      </div>
      <Readout at={at} lines={lines} index={index} show={show} note={note} />
      <details>
        <summary>All numbers</summary>
        <ul>
          {at.map((ms, place) => (
            <li key={ms}>
              {clock(ms)}: {numbers(place)}
            </li>
          ))}
        </ul>
      </details>
    </figure>
  )
}

type ReadoutProps = Omit<ChartProps, 'label' | 'note'> & { index: number; note: ChartProps['note'] | undefined }

/** The numbers at the chosen time. It is the legend, too. */
function Readout({ at, lines, index, show, note }: ReadoutProps) {
  return (
    <p class="readout">
      {clock(at[index])}
      {lines.map(({ name, colour, values }) => (
        <span key={name}>
          <span class="dot" style={{ background: `var(${colour})` }} aria-hidden="true" /> {show(values[index] ?? 0)} {name}
        </span>
      ))}
      {note && <span class="quiet">{note(index)}</span>}
    </p>
  )
}

/** The next of 1, 2 and 4 times a power of ten, so that the middle of the axis is whole, too. */
function ceiling(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most))
  return power * ([1, 2, 4].find((step) => step * power >= most) ?? 10)
}
