/** The names that resemble this one most come first. */
export const nearestFirst = (name: string, known: readonly string[]): string[] =>
  known.toSorted((one, other) => distance(name, one) - distance(name, other))

/** The names that one may have meant: no more than a quarter of the letters differ. */
export const nearTo = (name: string, known: readonly string[]): string[] =>
  nearestFirst(name, known).filter((one) => distance(name, one) <= Math.ceil(name.length / 4))

/** The number of letters to add, remove or exchange (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (const [index, letter] of Array.from(one).entries()) {
    const next = [index + 1]
    for (const [at, its] of Array.from(other).entries())
      next.push(Math.min((row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1, (row[at] ?? 0) + (letter === its ? 0 : 1)))
    row = next
  }
  return row.at(-1) ?? 0
}
