import type { PagePosition, PageOf } from '../../store/page-by-bytes.ts'

type PagedList<Row, Item> = { present: (row: Row) => Item; cursor: (row: Row) => PagePosition | string }

/** A page of a store as a response. `cursor` names the position after a row. */
export function listed<Row, Item>({ items, more }: PageOf<Row>, { present, cursor }: PagedList<Row, Item>) {
  const last = more ? items.at(-1) : undefined
  const place = last === undefined ? null : cursor(last)
  const next_cursor = place === null || typeof place === 'string' ? place : `${place.at}.${place.id}`
  return { items: items.map(present), next_cursor }
}
