import { escapeHtml } from '../../src/base/html.ts'
import { count } from '../lib/text.ts'
import type { Paint } from '../lib/paint.ts'

/** Model calls for a number of events in a row. */
type CurveBucket = { from: number; events: number; calls: number }
/** A change in the scope, and the number of events before it. */
export type Mark = { after: number; text: string }
export type Curve = { title: string; buckets: readonly CurveBucket[]; marks: readonly Mark[] }

const STEPS = ' ▁▂▃▄▅▆▇█'
const ROWS = 8
const AXIS = 6

export const per100 = ({ events, calls }: CurveBucket): number => (events === 0 ? 0 : (calls / events) * 100)

/** Counts calls in buckets of `size` events. `calls[i]` is the number of calls for event i. */
export function bucketsOf(calls: readonly number[], size: number): CurveBucket[] {
  return Array.from({ length: Math.ceil(calls.length / size) }, (_, index) => {
    const part = calls.slice(index * size, (index + 1) * size)
    return { from: index * size, events: part.length, calls: part.reduce((sum, one) => sum + one, 0) }
  })
}

/** The curve as lines for a terminal of this width, with its marks numbered below. */
export function curveText({ title, buckets, marks }: Curve, { columns, paint }: { columns: number; paint: Paint }): string[] {
  const top = niceTop(Math.max(1, ...buckets.map(per100)))
  const wide = Math.max(1, Math.min(4, Math.floor((columns - AXIS - 1) / Math.max(1, buckets.length))))
  const heights = buckets.map((bucket) => Math.ceil((per100(bucket) / top) * ROWS * 8))
  const bars = Array.from({ length: ROWS }, (_, row) => {
    const floor = (ROWS - 1 - row) * 8
    const label = row === 0 ? count(top) : row === ROWS / 2 ? count(top / 2) : ''
    const cells = heights.map((height) => (STEPS[Math.max(0, Math.min(8, height - floor))] ?? ' ').repeat(wide))
    return `${paint('dim', `${label.padStart(AXIS - 1)} `)}${paint('cyan', cells.join('').trimEnd())}`
  })
  const last = buckets.at(-1)
  const end = last ? last.from + last.events : 0
  const width = wide * buckets.length
  const axis = `${'0'.padEnd(Math.max(1, width - count(end).length))}${count(end)} events`
  return [
    paint('bold', title),
    ...bars,
    paint('dim', `${' '.repeat(AXIS)}${axis}`),
    ...(marks.length > 0 ? [`${' '.repeat(AXIS)}${paint('yellow', numbersLine(marks, { end, width }))}`] : []),
    ...marks.map(({ after, text }, index) => `  ${paint('yellow', String(index + 1))} after ${count(after)}: ${text}`),
  ]
}

/** The numbers of marks at their places; later ones move right where two would overlap. */
function numbersLine(marks: readonly Mark[], { end, width }: { end: number; width: number }): string {
  let line = ''
  for (const [index, { after }] of marks.entries()) {
    const place = Math.round((after / Math.max(1, end)) * (width - 1))
    line = `${line.padEnd(place)}${index + 1}`
  }
  return line
}

/** The next of 1, 2, 5, 10, 20, 50, … */
function niceTop(most: number): number {
  const base = 10 ** Math.floor(Math.log10(most))
  return ([1, 2, 5, 10].find((step) => step * base >= most) ?? 10) * base
}

const WIDTH = 820
const HEIGHT = 380
const LEFT = 56
const BOTTOM = 44
const TOP = 52
const RIGHT = 20

/** The curve as an SVG document, in light or dark colours as the reader prefers. */
export function curveSvg({ title, buckets, marks }: Curve): string {
  const top = niceTop(Math.max(1, ...buckets.map(per100)))
  const last = buckets.at(-1)
  const end = Math.max(1, last ? last.from + last.events : 0)
  const x = (events: number): string => (LEFT + (events / end) * (WIDTH - LEFT - RIGHT)).toFixed(1)
  const y = (calls: number): string => (HEIGHT - BOTTOM - (calls / top) * (HEIGHT - BOTTOM - TOP)).toFixed(1)
  const steps = buckets.map((bucket) => `L${x(bucket.from)},${y(per100(bucket))}H${x(bucket.from + bucket.events)}`).join('')
  const area = `M${x(0)},${y(0)}${steps}V${y(0)}Z`
  const lines = [0, top / 2, top].map(
    (value) =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}"/><text x="${LEFT - 8}" y="${y(value)}" dy="4" text-anchor="end">${count(value)}</text>`,
  )
  const ends = [0, end / 2, end].map(
    (value) => `<text x="${x(value)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${count(value)}</text>`,
  )
  const notes = marks.map(
    ({ after, text }, index) =>
      `<g class="mark"><line x1="${x(after)}" x2="${x(after)}" y1="${TOP}" y2="${y(0)}"/><text x="${x(after)}" y="${TOP - 4}" text-anchor="middle">${index + 1}</text><title>after ${count(after)}: ${escapeHtml(text)}</title></g>`,
  )
  const legend = marks.map(({ after, text }, index) => `${index + 1}: after ${count(after)}, ${text}`).join(' · ')
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">`,
    `<style>${STYLE}</style><rect class="page" width="${WIDTH}" height="${HEIGHT}"/>`,
    `<text class="title" x="${LEFT}" y="22">${escapeHtml(title)}</text>`,
    `<g class="grid">${lines.join('')}${ends.join('')}</g>`,
    `<path class="area" d="${area}"/>`,
    ...notes,
    `<text class="legend" x="${LEFT}" y="${HEIGHT - 8}">${escapeHtml(legend)}</text>`,
    '</svg>\n',
  ].join('\n')
}

const STYLE = [
  'text{font:12px system-ui,sans-serif;fill:#444}.title{font-size:15px;font-weight:600;fill:#111}.page{fill:#fff}',
  '.grid line{stroke:#ddd}.area{fill:#2563eb33;stroke:#2563eb;stroke-width:1.5}',
  '.mark line{stroke:#b45309;stroke-dasharray:3 3}.mark text{fill:#b45309;font-weight:600}.legend{font-size:11px}',
  '@media(prefers-color-scheme:dark){text{fill:#bbb}.title{fill:#eee}.page{fill:#111}.grid line{stroke:#333}}',
].join('')
