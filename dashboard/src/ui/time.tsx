import { signal } from '@preact/signals'

const TICK_MS = 5000
/** The single clock for all times on the page. */
const now = signal(Date.now())
setInterval(() => document.hidden || (now.value = Date.now()), TICK_MS)

const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const precise = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 })

const steps: [unit: string, ms: number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
]

/** A length of time in its largest fitting unit: `4 min`. */
export function duration(ms: number): string {
  const [unit, length] = steps.find(([, length]) => Math.abs(ms) >= length) ?? ['ms', 1]
  const value = ms / length
  return `${unit === 'ms' || Math.abs(value) >= 10 ? Math.round(value) : Number(value.toFixed(1))} ${unit}`
}

/** A sentence in which times are written as the page writes them; an invalid one stays. */
export const withTimes = (text: string): string =>
  text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => (Date.parse(at) ? absolute.format(Date.parse(at)) : at))

type At = string | number | null | undefined

/** A time relative to now; the exact time on hover and for machines. */
export function Time({ at }: { at: At }) {
  if (at === null || at === undefined) return <span class="quiet">never</span>
  const date = new Date(at)
  const ms = now.value - date.getTime()
  const whole = steps.find(([, length]) => Math.abs(ms) >= length)
  const length = whole ? `${Math.floor(Math.abs(ms) / whole[1])} ${whole[0]}` : null
  return (
    <time dateTime={date.toISOString()} title={absolute.format(date)}>
      {length === null || Math.abs(ms) < TICK_MS ? 'now' : ms > 0 ? `${length} ago` : `in ${length}`}
    </time>
  )
}

/** A time of day to the millisecond, for lists in which order matters. */
export function Clock({ at }: { at: string | number }) {
  const date = new Date(at)
  return (
    <time dateTime={date.toISOString()} title={absolute.format(date)}>
      {precise.format(date)}
    </time>
  )
}
