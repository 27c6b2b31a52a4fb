/** The time windows that a `when` expression may count over, in seconds. */
export const whenWindows = { last_10s: 10, last_1m: 60, last_10m: 600 } as const

/** The names that a `when` expression may read, of the whole context and of each window, with their types in CEL. */
export const whenCounts = { total: 'int', by_type: 'map<string, int>', by_source: 'map<string, int>' } as const

/** Those that go through a map: each takes a variable and an expression, and none stands within another. */
export const whenIterations = ['all', 'exists', 'exists_one', 'filter'] as const

/** The functions that a `when` expression may call. */
export const whenFunctions = [...whenIterations, 'size', 'startsWith', 'endsWith', 'contains', 'int', 'double', 'string'] as const
