import { and, eq, lt, or, type Column, type SQL } from 'drizzle-orm'

/** A position in a list ordered by age, newest first, then by id; `at` is in ms. */
export type Place = { at: number; id: string }

/** The rows after the last one of the previous page, or all. */
export function olderThan(before: Place | undefined, at: Column, id: Column): SQL | undefined {
  return before && or(lt(at, before.at), and(eq(at, before.at), lt(id, before.id)))
}
