import { z } from 'zod'
/** The time windows that a `when` expression may count over, in seconds. */
export const whenWindows = { last_10s: 10, last_1m: 60, last_10m: 600 } as const

/** The variables of a `when` expression, of the whole context and of each window, as CEL types. */
export const whenCounts = { total: 'int', by_type: 'map<string, int>', by_source: 'map<string, int>' } as const

/** Macros over a map: each takes a variable and an expression, and none may be nested. */
export const whenIterations = ['all', 'exists', 'exists_one', 'filter'] as const

/** The functions that a `when` expression may call. */
export const whenFunctions = [
  ...whenIterations,
  'size',
  'startsWith',
  'endsWith',
  'contains',
  'matches',
  'int',
  'double',
  'string',
] as const

export const overlap = z.union([
  z.enum(['queue', 'interrupt', 'drop']),
  z.strictObject({
    debounce: z.strictObject({
      quiet_ms: z.int().min(1).max(3_600_000).meta({ description: 'A turn starts this long after the latest event.' }),
      max_ms: z.int().min(1).max(86_400_000).meta({ description: 'Maximum delay after the first event.' }),
    }),
  }),
])
