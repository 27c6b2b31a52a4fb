import type { ComponentChildren } from 'preact'
import type { ItemList as Declared } from '../../../src/contract/shown.ts'
import { address } from '../api/request.ts'
import { usePages, type Pages } from '../api/use-pages.ts'
import { columnsOf, type TableColumn } from './column.tsx'
import { Empty, LoadedList } from './feedback.tsx'
import { Table } from './table.tsx'

type Fields = Parameters<typeof address>[1]

/** The items of a list, by pages. `fields` null loads nothing. */
export const useList = <Item,>({ at }: Declared<Item>, fields: Fields | null, every_ms?: number): Pages<Item> =>
  usePages<Item>(fields === null ? null : address(at, fields), every_ms === undefined ? {} : { every_ms })

type RowsProps<Item> = {
  of: Declared<Item>
  label: string
  pages: Pages<Item>
  /** Columns of the page alone. */
  own?: readonly TableColumn<Item>[]
  current?: string | null
  onSelect?: (item: Item) => void
  /** The title of the note in place of no items, with what to do next. */
  empty: string
  children?: ComponentChildren
}

/** The items of a list that a page has loaded. */
export function Rows<Item>({ of: list, label, pages, own, empty, children, ...selection }: RowsProps<Item>) {
  const keyOf = (item: Item) => String(item[list.key])
  return (
    <LoadedList pages={pages} empty={<Empty title={empty}>{children}</Empty>}>
      {(items) => (
        <Table
          label={label}
          rows={items}
          columns={columnsOf(list, own)}
          keyOf={keyOf}
          onEnd={pages.more && !pages.loading ? pages.loadMore : undefined}
          {...selection}
        />
      )}
    </LoadedList>
  )
}

type ListProps<Item> = Omit<RowsProps<Item>, 'pages'> & { fields?: Fields; every_ms?: number }

/** A list as its request declares it. */
export function List<Item>({ fields, every_ms, ...rest }: ListProps<Item>) {
  const pages = useList(rest.of, fields ?? {}, every_ms)
  return <Rows pages={pages} {...rest} />
}
