import { textHash } from '../base/hash.ts'
import { prefixOf } from '../contract/principal.ts'

/** Sorts after every character of a scope. */
const LAST = '\u007F'

/**
 * `is_exact`: the patterns match all of it. `prefix`: has sums if they exist. `hash`: of the only
 * scope.
 */
type ScopeRange = { first: string; end: string; prefix: string | null; hash: string | null; is_exact: boolean }

/** Ranges of scopes that do not overlap and hold all that the patterns match. */
export function rangesOf(patterns: readonly string[]): ScopeRange[] {
  const prefixes = [...new Set(patterns.filter((pattern) => pattern.includes('*')).map(prefixOf))]
  const open = prefixes.filter((prefix) => !prefixes.some((other) => other !== prefix && prefix.startsWith(other)))
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*') && !open.some((prefix) => pattern.startsWith(prefix))))
  return [
    ...open.map((prefix): ScopeRange => {
      const is_exact = patterns.includes(`${prefix}*`)
      return { first: prefix, end: `${prefix}${LAST}`, prefix: is_exact ? prefix : null, hash: null, is_exact }
    }),
    // A space sorts before every character of a scope.
    ...Array.from(exact, (scope): ScopeRange => ({ first: scope, end: `${scope} `, prefix: null, hash: textHash(scope), is_exact: true })),
  ]
}
