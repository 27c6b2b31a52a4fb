import { z } from '@hono/zod-openapi'
import type { Place } from '../store/older-than.ts'

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

/** Of rows that were asked for with one more than `limit`. */
export function pageByAge<Row>(
  rows: readonly Row[],
  limit: number,
  placeOf: (row: Row) => Place,
): { page: Row[]; next_cursor: string | null } {
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : undefined
  if (last === undefined) return { page, next_cursor: null }
  const { at, id } = placeOf(last)
  return { page, next_cursor: `${at}.${id}` }
}
