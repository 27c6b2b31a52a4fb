import { and, eq, lt, or, type Column, type SQL } from 'drizzle-orm'

/** One of a list that is ordered by age, newest first, and then by id; `at` is in ms. */
export type Place = { at: number; id: string }

/** What comes after the last one of the page before; all where there was none. */
export function olderThan(before: Place | undefined, at: Column, id: Column): SQL | undefined {
  return before && or(lt(at, before.at), and(eq(at, before.at), lt(id, before.id)))
}
