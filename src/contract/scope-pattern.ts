import { z } from 'zod'

export const scopePattern = z
  .string()
  .regex(/^[A-Za-z0-9._:@/*-]{1,128}$/, 'a scope pattern is 1 to 128 characters of A-Z a-z 0-9 . _ : @ - / and *')
  .refine(isSimple, 'a scope pattern of more than 50 characters may have * only at its end')

/** D1's GLOB is limited to 50 bytes; a longer pattern has `*` only at its end and needs no GLOB. */
function isSimple(pattern: string): boolean {
  return pattern.length <= 50 || !pattern.slice(0, -1).includes('*')
}

/** SQL that is true if the pattern in `value` matches `subject`, within D1's limit on GLOB. */
export const patternMatchesSql = (subject: string): string => `CASE
    WHEN length(value) <= 50 THEN ${subject} GLOB value
    WHEN substr(value, -1) = '*' THEN substr(${subject}, 1, length(value) - 1) = substr(value, 1, length(value) - 1)
    ELSE ${subject} = value END`

/**
 * True if the pattern matches the scope; `*` matches any characters. Another pattern matches as
 * text only if it is no wider.
 */
export function matchesScope(pattern: string, scope: string): boolean {
  const [first = '', ...pieces] = pattern.split('*')
  const last = pieces.pop()
  if (last === undefined) return pattern === scope
  const end = scope.length - last.length
  if (end < first.length || !scope.startsWith(first) || !scope.endsWith(last)) return false
  let from = first.length
  for (const piece of pieces) {
    const at = scope.indexOf(piece, from)
    if (at === -1 || at + piece.length > end) return false
    from = at + piece.length
  }
  return true
}

/** The common prefix of all scopes that a pattern matches. */
export const prefixOf = (pattern: string): string => pattern.split('*', 1)[0] ?? ''

/** True if some scope matches both patterns. */
export function overlaps(left: string, right: string): boolean {
  if (!left.includes('*')) return matchesScope(right, left)
  if (!right.includes('*')) return matchesScope(left, right)
  const a = prefixOf(left)
  const b = prefixOf(right)
  if (!a.startsWith(b) && !b.startsWith(a)) return false
  const bothOpen = a.length + 1 === left.length && b.length + 1 === right.length
  return bothOpen || shareText(left, right)
}

/** Dynamic programming: cell j of row i is true if the prefixes match a common text. */
function shareText(left: string, right: string): boolean {
  let above: boolean[] = []
  for (let i = 0; i <= left.length; i++) {
    const row: boolean[] = []
    for (let j = 0; j <= right.length; j++) {
      const a = left[i - 1]
      const b = right[j - 1]
      // A star matches nothing, or one more character of the other pattern.
      const byStar = (a === '*' || b === '*') && (above[j] === true || row[j - 1] === true)
      const byLetter = a !== undefined && a === b && above[j - 1] === true
      row.push((i === 0 && j === 0) || byStar || byLetter)
    }
    above = row
  }
  return above[right.length] ?? false
}
