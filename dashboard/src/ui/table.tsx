import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { query as search } from '../api/request.ts'
import type { Cell } from '../../../src/contract/shown.ts'
import { isNothing, lookOf, shown, type TableColumn } from './column.tsx'

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
  /** The order without one in the address: the title of a column, with a minus if it falls. */
  sort?: string
}

/** Rows have one height, so that those in view are found without measuring. */
const ROW_PX = 36
const BEYOND = 12
/** Shorter tables are rendered whole: they print, and the browser's search finds everything. */
const WHOLE = 200

/** A table in its own scrolling frame. Of a long one, only the rows in view are in the document. */
export function Table<Row>({ label, rows: given, columns, keyOf, current = null, onSelect, onEnd, sort = '' }: TableProps<Row>) {
  const order = useLocation().query['sort'] ?? sort
  const rows = sorted(given, columns, order)
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
        <Head columns={columns} order={order} />
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

const words = new Intl.Collator('en', { numeric: true })
const textOf = (value: Cell): string => (typeof value === 'object' ? JSON.stringify(value) : String(value))

/** The rows by the column that the order names, if the table has it; missing values come last. */
function sorted<Row>(rows: readonly Row[], columns: readonly TableColumn<Row>[], order: string): readonly Row[] {
  const falls = order.startsWith('-')
  const column = columns.find(({ title }) => title === order.slice(falls ? 1 : 0))
  if (!column || !('of' in column)) return rows
  const sign = falls ? -1 : 1
  return rows.toSorted((one, other) => {
    const [mine, its] = [column.of(one), column.of(other)]
    if (isNothing(mine) || isNothing(its)) return Number(isNothing(mine)) - Number(isNothing(its))
    return sign * (typeof mine === 'number' && typeof its === 'number' ? mine - its : words.compare(textOf(mine), textOf(its)))
  })
}

function Head<Row>({ columns, order }: { columns: readonly TableColumn<Row>[]; order: string }) {
  const { path, query, route } = useLocation()
  const sortBy = (by: string) => route(path + search({ ...query, sort: by }), true)
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => {
          const { title } = column
          const { width, numeric } = lookOf(column)
          const direction = order === title ? 'ascending' : order === `-${title}` ? 'descending' : undefined
          const first = numeric ? `-${title}` : title
          const next = order === first ? (numeric ? title : `-${title}`) : first
          return (
            <th
              key={title}
              scope="col"
              class={numeric ? 'numeric' : ''}
              style={width === undefined ? {} : { width: `${width}rem` }}
              {...(direction && { 'aria-sort': direction })}
            >
              {'of' in column ? (
                <button type="button" class="plain" onClick={() => sortBy(next)}>
                  {title}
                  {direction && <span aria-hidden="true">{direction === 'ascending' ? ' ↑' : ' ↓'}</span>}
                </button>
              ) : (
                title
              )}
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
