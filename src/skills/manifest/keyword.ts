/** Longest text that is scanned, so that the gate ends within a millisecond. */
const LONGEST_TEXT = 20_000

/** Words, and the single characters of the scripts that put no space between words. */
const TOKEN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]|[[\p{L}\p{M}\p{N}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]]+/gv

/** By way of the upper case, too: ß and ss are the same. */
export const fold = (text: string): string => text.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase()

export const tokensOf = (text: string): string[] => fold(text.slice(0, LONGEST_TEXT)).match(TOKEN) ?? []

export type TokenText = { tokens: readonly string[]; places: ReadonlyMap<string, readonly number[]> }

export function tokenText(text: string): TokenText {
  const tokens = tokensOf(text)
  const places = new Map<string, number[]>()
  for (const [index, token] of tokens.entries()) {
    const known = places.get(token)
    if (known) known.push(index)
    else places.set(token, [index])
  }
  return { tokens, places }
}

/** True if the words of a keyword are adjacent in the text. Case-insensitive, whole words only. */
export function holdsKeyword({ tokens, places }: TokenText, keyword: readonly string[]): boolean {
  const [first] = keyword
  if (first === undefined) return false
  const starts = places.get(first) ?? []
  return starts.some((start) => keyword.every((token, offset) => tokens[start + offset] === token))
}
