import { z } from 'zod'

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

/** The names that an expression may start with. No input may have one of them. */
export const ROOTS = ['ctx', 'env', 'work', 'policy', 'inputs', 'args'] as const

/** The input for the gate, among a skill's inputs as an MCP client sees them. */
export const WHY = 'reflex_why'

/** Words of CEL and of Reflex, which no input can be called. */
const RESERVED = new Set<string>([
  ...ROOTS,
  WHY,
  ...'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(' '),
  ...'cel int uint double bool string bytes list map type dyn null_type'.split(' '),
  ...'raw_text constructor __proto__ prototype toString valueOf hasOwnProperty'.split(' '),
])

export const slotName = z
  .string()
  .max(64)
  .regex(/^[A-Za-z_]\w*$/, 'is a letter and then letters, digits and _')
  .refine((name) => !RESERVED.has(name), 'is a word that is used for something else')
/** Tools of a team may have dots in their names, as in `term.exec`. */
export const toolName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z][\w.:/-]*$/, 'is the name of a tool, such as term.exec')
export const label = z.string().trim().min(1).max(64)
export const reference = z.string().min(1).max(256)
export const description = z.string().max(500)
/** A place on the blackboard, at most sixteen parts. */
export const blackboardPath = z
  .string()
  .max(256)
  .regex(/^(?:ctx|env|work|policy)(?:\.[\w-]+){1,15}$/, 'is a path on the blackboard, such as work.image_tag')
export const expressionText = z.string().trim().min(1).max(2000)
