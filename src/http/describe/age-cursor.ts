import { z } from '@hono/zod-openapi'
import type { Place } from '../../store/older-than.ts'
import type { PageOf } from '../../store/page-by-bytes.ts'

/** Where a list that is ordered by age goes on: the last one of the page before. */
export const ageCursor = z
  .string()
  .regex(/^\d{1,15}\..{1,128}$/, 'take the next_cursor of the page before')
  .optional()

export function beforeOf(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined
  const dot = cursor.indexOf('.')
  return { at: Number(cursor.slice(0, dot)), id: cursor.slice(dot + 1) }
}

/** Where a page ends that is not the last one: behind its last row. */
export function nextByAge<Row>({ items, more }: PageOf<Row>, placeOf: (row: Row) => Place): string | null {
  const last = items.at(-1)
  if (!more || last === undefined) return null
  const { at, id } = placeOf(last)
  return `${at}.${id}`
}
