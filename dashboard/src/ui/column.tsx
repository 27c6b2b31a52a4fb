import type { ComponentChildren } from 'preact'
import type { Cell, Colour, Column as Declared, ItemList, ValueKind } from '../../../src/contract/shown.ts'
import { AccountLink, ScopeLink } from './links.tsx'
import { count, percent, scrip, usd } from './numbers.ts'
import { Status } from './status.tsx'
import { Text, visible } from './text.tsx'
import { Time } from './time.tsx'

/** A column of the page alone. */
type Own<Row> = { title: string; cell: (row: Row) => ComponentChildren; width?: number; numeric?: boolean }
export type TableColumn<Row> = Declared<Row> | Own<Row>

type Look = { width: number; numeric?: true; show: (value: never) => ComponentChildren }
const looks: Record<ValueKind, Look> = {
  time: { width: 8, show: (at: string) => <Time at={at} /> },
  status: { width: 8, show: (status: string) => <Status status={status} /> },
  scope: { width: 14, show: (scope: string) => <ScopeLink scope={scope} /> },
  account: { width: 12, show: (id: string) => <AccountLink id={id} /> },
  scrip: { width: 8, numeric: true, show: scrip },
  usd: { width: 8, numeric: true, show: usd },
  share: { width: 7, numeric: true, show: percent },
  count: { width: 6, numeric: true, show: count },
}
const classes: Record<Colour, string> = { bold: '', dim: 'quiet', red: 'bad', green: 'ok', yellow: 'wait', cyan: 'run' }

export const lookOf = <Row,>(column: TableColumn<Row>): { width: number | undefined; numeric: boolean } => {
  const look = 'kind' in column && column.kind ? looks[column.kind] : null
  return { width: column.width ?? look?.width, numeric: ('numeric' in column && column.numeric) || look?.numeric === true }
}

/** A cell of a table, or the value of a fact. */
export function shown<Row>(column: TableColumn<Row>, row: Row): ComponentChildren {
  if ('cell' in column) return column.cell(row)
  const { of, kind, to, colour } = column
  const value = of(row)
  if (isNothing(value)) return <span class="quiet">–</span>
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (to) return <a href={to(row)}>{kind ? looks[kind].show(value as never) : visible(text)}</a>
  const content = kind ? looks[kind].show(value as never) : <Text text={text} />
  const name = colour?.(row) ?? null
  return name === null || kind === 'status' ? content : <span class={classes[name]}>{content}</span>
}

export const isNothing = (value: Cell): value is null | undefined | '' => value === null || value === undefined || value === ''

/**
 * The columns of a list on a page: links come first. A column of `own` is added, or replaces
 * the column with its title.
 */
export function columnsOf<Item>({ columns }: Pick<ItemList<Item>, 'columns'>, own: readonly TableColumn<Item>[] = []): TableColumn<Item>[] {
  const of_page: TableColumn<Item>[] = columns
    .filter(({ only }) => only !== 'terminal')
    .map((column) => own.find(({ title }) => title === column.title) ?? column)
  const all = [...of_page, ...own.filter((column) => !of_page.includes(column))]
  return [...all.filter((column) => 'to' in column), ...all.filter((column) => !('to' in column))]
}
