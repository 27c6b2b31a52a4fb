import type { EventStatus } from '../contract/event-record.ts'
import { matchesScope, patternMatchesSql } from '../contract/principal.ts'

/** `patterns`: the scopes that the caller may see. */
export type EventFilter = {
  patterns: readonly string[]
  scope?: string | undefined
  types?: readonly string[] | undefined
  status?: EventStatus | undefined
  partial?: boolean | undefined
  since?: string | undefined
  until?: string | undefined
}

/** SQL that is true if one of the patterns in the JSON array `patterns` matches the scope. */
export const coveredBy = (patterns: string, scope = 'scope'): string =>
  `EXISTS (SELECT 1 FROM json_each(${patterns}) WHERE ${patternMatchesSql(scope)})`

export const covers = (patterns: readonly string[], scope: string): boolean => patterns.some((pattern) => matchesScope(pattern, scope))
