import { z } from '@hono/zod-openapi'
import type { Place, PageOf } from '../../store/page-by-bytes.ts'

export const pageLimit = (most: number, standard = Math.min(100, most)) =>
  z.coerce.number<string>().int().min(1).max(most).default(standard)
export const paged = <Item extends z.ZodType>(item: Item) => z.object({ items: z.array(item), next_cursor: z.string().nullable() })
export const search = z.string().min(1).max(200).optional().describe('Case-insensitive search in ids and descriptions.')
/** A list that is always one page. */
export const whole = <Item extends z.ZodType>(item: Item) => z.object({ items: z.array(item), next_cursor: z.null() })

/** The position of the last row of the previous page, in a list ordered by age. */
const ageCursor = z
  .string()
  .regex(/^\d{1,15}\..{1,128}$/, 'pass the next_cursor of the previous page')
  .transform((cursor): Place => {
    const dot = cursor.indexOf('.')
    return { at: Number(cursor.slice(0, dot)), id: cursor.slice(dot + 1) }
  })

/** The query of a list ordered by age; `cursor` is parsed to the place where the page starts. */
export const byAge = <Filters extends z.ZodRawShape>(filters: Filters) =>
  z.object({ ...filters, limit: pageLimit(1000), cursor: ageCursor.optional() })

type Listed<Row, Item> = { present: (row: Row) => Item; cursor: (row: Row) => Place | string }

/** A page of a store as a response. `cursor` names the position after a row. */
export function listed<Row, Item>({ items, more }: PageOf<Row>, { present, cursor }: Listed<Row, Item>) {
  const last = more ? items.at(-1) : undefined
  const place = last === undefined ? null : cursor(last)
  const next_cursor = place === null || typeof place === 'string' ? place : `${place.at}.${place.id}`
  return { items: items.map(present), next_cursor }
}

/** `true` or `false`, as texts: the words of a query are no booleans. */
export const partialQuery = z
  .enum(['true', 'false'])
  .transform((text) => text === 'true')
  .optional()
  .describe('Only events that ended well although a tool call or a skill run of their turn failed, or only the others.')
