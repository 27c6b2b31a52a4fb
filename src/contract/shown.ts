import type { BaseRole } from './principal.ts'

// People see columns, options and lines of requests. A browser loads what is declared in these
// types, so nothing here has a schema.

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'
/** An object is shown as JSON. */
export type Cell = string | number | boolean | object | null | undefined
/** A page shows a value by its kind. A terminal writes it as it is. */
export type ValueKind = 'time' | 'status' | 'scope' | 'account' | 'scrip' | 'usd' | 'share' | 'count'
export type Column<Item> = {
  title: string
  of: (item: Item) => Cell
  colour?: (item: Item) => Colour | null
  kind?: ValueKind
  /** The place on the dashboard that the value links to. */
  to?: (item: Item) => string
  /** The only place that shows it. */
  only?: 'page' | 'terminal'
  /** On a page, in rem; unset: what is left, or what the kind needs. */
  width?: number
}
/** A request that lists items, as people see it. It has no schema: a browser loads it, too. */
export type ItemList<Item> = {
  at: `get /${string}`
  /** The field that tells one item from another. */
  key: keyof Item & string
  columns: readonly Column<Item>[]
}

/** The options of its command are the filters of its page. */
export type FilteredList<Item> = ItemList<Item> & { flags: readonly Flag[] }
/** A list with a page of its own on the dashboard. The file `page.ts` of a feature exports it. */
export type ListPage<Item> = FilteredList<Item> & {
  title: string
  needs: BaseRole
  /** Said where there is no item. */
  empty: string
}

/** The fields of a request, without the parameters of the path. */
export type OperationFields = Readonly<Record<string, unknown>>

/**
 * An option: commander's flags, its help, and more. Its value is a field of the query or the body:
 * `max_price` for `--max-price`, or else `field`.
 */
export type Flag = readonly [flags: string, help: string, more?: FlagDetails]
export type FlagDetails = {
  field?: string
  is?: 'whole' | 'whole_or_any' | 'instant' | 'time' | 'several'
  choices?: readonly string[]
  standard?: string | number | readonly string[]
  required?: true
}

/** A request with the options of its command, which a form has as fields. It has no schema. */
export type CommandForm = { at: `post /${string}`; usage: string; flags: readonly Flag[]; fills?: string }

/** A line, a line of coloured parts, or values by their names, each on a line with its name. */
export type PrintedValue = string | readonly (string | { colour: Colour; text: string })[] | PrintedBlock
type PrintedBlock =
  | (Readonly<Record<string, Cell>> & { as?: undefined })
  | { as: 'json'; value: unknown; indent?: number }
  | { as: 'text'; value: string }
  | { as: 'table'; rows: readonly unknown[]; columns: readonly Column<never>[] }
