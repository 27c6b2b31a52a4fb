import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { lookOf, shown, type TableColumn } from './column.tsx'

export type { TableColumn }

type TableProps<Row> = {
  label: string
  rows: readonly Row[]
  columns: readonly TableColumn<Row>[]
  keyOf: (row: Row) => string
  /** The row that the keyboard is on; it is scrolled into view. */
  current?: string | null
  onSelect?: (row: Row) => void
  /** Called when the last rows come into view. */
  onEnd?: (() => void) | undefined
}

/** Rows have one height, so that those in view are found without measuring. */
const ROW_PX = 36
const BEYOND = 12
/** Shorter tables are rendered whole: they print, and the browser's search finds everything. */
const WHOLE = 200

/** A table in its own scrolling frame. Of a long one, only the rows in view are in the document. */
export function Table<Row>({ label, rows, columns, keyOf, current = null, onSelect, onEnd }: TableProps<Row>) {
  const frame = useRef<HTMLDivElement>(null)
  const view = useSignal({ from: 0, to: 60 })
  const look = () => {
    const { scrollTop, clientHeight } = frame.current ?? { scrollTop: 0, clientHeight: 0 }
    const from = Math.max(0, Math.floor(scrollTop / ROW_PX) - BEYOND)
    const to = Math.ceil((scrollTop + clientHeight) / ROW_PX) + BEYOND
    if (from !== view.value.from || to !== view.value.to) view.value = { from, to }
    if (to >= rows.length) onEnd?.()
  }
  useEffect(look, [rows.length])
  const place = current === null ? -1 : rows.findIndex((row) => keyOf(row) === current)
  useEffect(() => scrollTo(frame.current, place), [place])

  const { from, to } = rows.length <= WHOLE ? { from: 0, to: rows.length } : view.value
  const in_view = rows.slice(from, to)
  const below = Math.max(0, rows.length - to)
  return (
    <div class="table" ref={frame} onScroll={look} tabIndex={0} role="region" aria-label={label}>
      <table aria-rowcount={rows.length + 1} style={{ minWidth: leastWidth(columns) }}>
        <Head columns={columns} />
        <tbody>
          <Space rows={from} columns={columns.length} />
          {in_view.map((row, index) => (
            <tr
              key={keyOf(row)}
              aria-rowindex={from + index + 2}
              {...(keyOf(row) === current && { 'aria-current': 'true' as const })}
              {...(onSelect && { onClick: () => onSelect(row) })}
            >
              {columns.map((column) => (
                <td key={column.title} class={lookOf(column).numeric ? 'numeric' : ''}>
                  {shown(column, row)}
                </td>
              ))}
            </tr>
          ))}
          <Space rows={below} columns={columns.length} />
        </tbody>
      </table>
    </div>
  )
}

/** No column vanishes in a narrow window: the frame scrolls instead. */
const leastWidth = <Row,>(columns: readonly TableColumn<Row>[]): string =>
  `max(44rem, ${columns.map((column) => `${lookOf(column).width ?? 10}rem`).join(' + ')})`

function Head<Row>({ columns }: { columns: readonly TableColumn<Row>[] }) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => {
          const { width, numeric } = lookOf(column)
          return (
            <th key={column.title} scope="col" class={numeric ? 'numeric' : ''} style={width === undefined ? {} : { width: `${width}rem` }}>
              {column.title}
            </th>
          )
        })}
      </tr>
    </thead>
  )
}

const Space = ({ rows, columns }: { rows: number; columns: number }) =>
  rows === 0 ? null : (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * ROW_PX}px`, padding: 0 }} />
    </tr>
  )

function scrollTo(frame: HTMLDivElement | null, place: number): void {
  if (!frame || place < 0) return
  const top = place * ROW_PX
  const bottom = (place + 2) * ROW_PX
  if (top < frame.scrollTop) frame.scrollTop = top
  else if (bottom > frame.scrollTop + frame.clientHeight) frame.scrollTop = bottom - frame.clientHeight
}
