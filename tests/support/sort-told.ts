import { features } from '../../src/features/index.ts'
import { sortersOf } from '../../src/events/sweep.ts'
import { sortTold } from '../../src/store/packs/told.ts'

/** Sorts all that scopes told beside their outcomes, as the sweep does. */
export const sortAll = (db: D1Database): Promise<number> =>
  sortTold(db, { sorters: sortersOf(features), before: Infinity, now: Date.now() })
