import { z } from 'zod'

export const pageLimit = (most: number, standard = Math.min(100, most)) =>
  z.coerce.number<string>().int().min(1).max(most).default(standard)
export const paged = <Item extends z.ZodType>(item: Item) => z.object({ items: z.array(item), next_cursor: z.string().nullable() })
/** A page of events or traces, which several databases may have. */
export const pagedOfPacks = <Item extends z.ZodType>(item: Item) =>
  paged(item).extend({
    missing: z
      .array(z.string())
      .optional()
      .describe('Databases of packed events that did not answer: the page lacks what only they have. Absent if all answered.'),
    damaged: z
      .array(z.string())
      .optional()
      .describe(
        'Packs of events that cannot be read, by their database and id: the page lacks their events. A key that covers only some scopes gets the database. Absent without any.',
      ),
  })
/** A list that is always one page. */
export const whole = <Item extends z.ZodType>(item: Item) => z.object({ items: z.array(item), next_cursor: z.null() })

/** The position of the last row of the previous page, in a list ordered by age. */
const ageCursor = z
  .string()
  .regex(/^\d{1,15}\..{1,128}$/, 'pass the next_cursor of the previous page')
  .transform((cursor) => {
    const dot = cursor.indexOf('.')
    return { at: Number(cursor.slice(0, dot)), id: cursor.slice(dot + 1) }
  })

/** The query of a list ordered by age; `cursor` is parsed to the place where the page starts. */
export const byAge = <Filters extends z.ZodRawShape>(filters: Filters) =>
  z.object({ ...filters, limit: pageLimit(1000), cursor: ageCursor.optional() })
export const search = z.string().min(1).max(200).optional().describe('Case-insensitive search in ids and descriptions.')
