/** A word without the signs around it. Its time does not grow faster than the word. */
export function bareWord(word: string, before: ReadonlySet<string>, after = before): string {
  let from = 0
  let to = word.length
  while (from < to && before.has(word.charAt(from))) from += 1
  while (from < to && after.has(word.charAt(to - 1))) to -= 1
  return word.slice(from, to)
}
