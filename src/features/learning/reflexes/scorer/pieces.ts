import type { Saw } from '../../episode.ts'
import type { Condition, ContextPath } from '../facts/condition.ts'
import { NAMING } from '../../../../evidence/novelty.ts'
import { isAskedItem, type Leaf, leavesOf, LONGEST_VALUE, MOST_DEPTH } from '../facts/facts.ts'
import { MOST_ITEMS } from '../facts/readings.ts'
import { wordsOf } from '../../../../base/words-of.ts'
import { WORDS_SOURCE } from '../facts/text.ts'

/** A piece in words. `spells`: some letters in a row of a word, whose ends are spaces. */
export type PieceName = Exclude<Condition, { is: 'at_least' | 'begins' | 'one_of' }> | { is: 'spells'; path: ContextPath; letters: string }
type Visit = (hash: number, name: () => PieceName) => void

/** Letters of a text whose n-grams are read, and of all texts of a context. */
const MOST_LETTERS = 320
const ALL_LETTERS = 960
const LONGEST_GRAM = 5
/** A text without spaces is no sentence: an id, an address, the name of a type. */
const CODE_WORD = /^[!-~]*$/

/** The product of a hash and these is exact as a number: the sandbox has no fast integers. */
const STEP = 1_000_003
const LAST_STEP = 865_749
const [PRESENT, EQUAL, CONTAINS, SAYS, PAIR, SPELLS, FOLLOWS] = [1, 2, 3, 4, 5, 6, 7]

const step = (hash: number, code: number): number => (hash * STEP + code) | 0

function hashText(start: number, text: string): number {
  let hash = start
  for (let at = 0; at < text.length; at += 1) hash = step(hash, text.charCodeAt(at))
  return hash
}

/** The last bit of a hash is 1 for pieces of the recent events: see `isRecent`. */
function finish(hash: number): number {
  const mixed = ((hash ^ (hash >>> 15)) * LAST_STEP) | 0
  return ((mixed ^ (mixed >>> 13)) & -2) >>> 0
}

/** True for a piece that only the recent events give: without one the code need not read them. */
export const isRecent = (piece: number): boolean => (piece & 1) === 1

const hashPath = (path: ContextPath): number => path.reduce((hash, name) => hashText(step(hash, name.length), name), 0)
const hashValue = (start: number, value: Leaf['value']): number => hashText(start, `${typeof value === 'string' ? '=' : ''}${value}`)

/** The hashes of all that a decision may depend on, numbers aside; each once, in order. */
export function piecesOf(saw: Saw): Uint32Array {
  const found = new Set<number>()
  eachPiece(saw, (hash) => void found.add(hash))
  return Uint32Array.from(found).sort()
}

/** The same pieces with what they say. */
export function namedPieces(saw: Saw): Map<number, PieceName> {
  const found = new Map<number, PieceName>()
  eachPiece(saw, (hash, name) => void found.set(hash, name()))
  return found
}

function eachPiece(saw: Saw, visit: Visit): void {
  const { leaves, lists } = leavesOf(saw)
  const own = leaves.filter(({ path }) => path[0] !== 'window')
  const spelled = own.filter(({ value }) => isSpelled(value)).length
  const letters = Math.min(MOST_LETTERS, Math.floor(ALL_LETTERS / Math.max(1, spelled)))
  for (const leaf of own) eachOfLeaf(leaf, letters, visit)
  for (const { path, of, items } of lists) {
    const start = step(hashPath(of === undefined ? path : [...path, of]), CONTAINS)
    for (const value of items) {
      if (isAskedItem(value, of))
        visit(finish(hashValue(start, value)), () => ({ is: 'contains', path, ...(of !== undefined && { of }), value }))
    }
  }
  const types = ['^', ...saw.recent_events.map(({ type }) => type)]
  for (const length of [2, 3]) {
    if (types.length <= length) continue
    const last = types.slice(-length).join(' ')
    visit(finish(hashText(FOLLOWS, last)) + 1, () => ({ is: 'follows', types: last }))
  }
}

const isSpelled = (value: unknown): value is string => typeof value === 'string' && !CODE_WORD.test(value)

function eachOfLeaf({ path, value }: Leaf, letters: number, visit: Visit): void {
  const hash = hashPath(path)
  visit(finish(step(hash, PRESENT)), () => ({ is: 'present', path }))
  if (typeof value === 'number') return
  if (typeof value !== 'string' || value.length <= LONGEST_VALUE)
    visit(finish(hashValue(step(hash, EQUAL), value)), () => ({ is: 'equal', path, value }))
  if (typeof value === 'string') eachOfText(hash, { path, value, letters: isSpelled(value) ? letters : 0 }, visit)
}

function eachOfText(hash: number, { path, value, letters }: { path: ContextPath; value: string; letters: number }, visit: Visit): void {
  const words = wordsOf(value)
  const seen = new Set<string>()
  let before = hashText(0, words[0] ?? '')
  let left = letters
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at] ?? ''
    const own = hashText(0, word)
    const pair = `${words[at - 1]} ${word}`
    if (!seen.has(pair)) visit(finish(step(step(step(hash, PAIR), before), own)), () => ({ is: 'says', path, words: pair }))
    seen.add(pair)
    before = own
    if (seen.has(word)) continue
    seen.add(word)
    visit(finish(step(step(hash, SAYS), own)), () => ({ is: 'says', path, words: word }))
    if (left > 0) eachGram(step(hash, SPELLS), { path, word: ` ${word} `.slice(0, left) }, visit)
    left -= word.length + 2
  }
}

function eachGram(start: number, { path, word }: { path: ContextPath; word: string }, visit: Visit): void {
  for (let at = 0; at + 1 < word.length; at += 1) {
    let hash = step(start, word.charCodeAt(at))
    for (let end = at + 1; end < word.length && end < at + LONGEST_GRAM; end += 1) {
      hash = step(hash, word.charCodeAt(end))
      visit(finish(hash), () => ({ is: 'spells', path, letters: word.slice(at, end + 1) }))
    }
  }
}

const FOLLOWS_SOURCE = `
  const types = ['^']
  for (const { type } of context.recent_events) types.push(type)
  for (let length = 2; length < 4; length += 1) {
    if (types.length > length) add(finish(hashText(${FOLLOWS}, types.slice(-length).join(' '))) | 1)
  }`

const HASHES_SOURCE = `
function hashText(hash, text) {
  for (let at = 0; at < text.length; at += 1) hash = (hash * ${STEP} + text.charCodeAt(at)) | 0
  return hash
}

function finish(hash) {
  const mixed = ((hash ^ (hash >>> 15)) * ${LAST_STEP}) | 0
  return (mixed ^ (mixed >>> 13)) & -2
}`

const ITEMS_SOURCE = `
function eachItem(hash, list, add) {
  const contains = (start, item) => {
    if (typeof item !== 'string') add(finish(hashText(start * ${STEP} + ${CONTAINS} | 0, String(item))))
    else if (item.length <= ${LONGEST_VALUE}) add(finish(hashText(start * ${STEP} + ${CONTAINS} | 0, \`=\${item}\`)))
  }
  for (const item of list.slice(0, ${MOST_ITEMS})) {
    if (typeof item === 'number' || typeof item === 'string') contains(hash, item)
    else if (typeof item === 'object' && item !== null && !Array.isArray(item))
      for (const name of Object.keys(item)) if (item[name] === null || ['string', 'boolean'].includes(typeof item[name])) contains(into(hash, name), item[name])
  }
}`

/**
 * The same pieces in learned code: `eachPiece(context, add)`. It gives a piece as a signed number,
 * and may give it more than once.
 */
export const piecesSource = ({ recent }: { recent: boolean }): string => `function eachPiece(context, add) {
  const texts = []
  let spelled = 0
  const leaf = (hash, value) => {
    add(finish(hash * ${STEP} + ${PRESENT} | 0))
    if (typeof value === 'number') return
    const isText = typeof value === 'string'
    if (!isText || value.length <= ${LONGEST_VALUE}) add(finish(hashText(hash * ${STEP} + ${EQUAL} | 0, isText ? \`=\${value}\` : String(value))))
    if (!isText) return
    const isCode = /${CODE_WORD.source}/.test(value)
    if (!isCode) spelled += 1
    texts.push(hash, value, isCode)
  }
  const walk = (hash, value, depth) => {
    if (typeof value !== 'object' || value === null) leaf(hash, value)
    else if (Array.isArray(value)) {
      leaf(into(hash, 'length'), 0)
      eachItem(hash, value, add)
    } else if (depth <= ${MOST_DEPTH}) {
      for (const name of Object.keys(value)) walk(into(hash, name), value[name], depth + 1)
    }
  }
  for (const name of Object.keys(context.event)) if (!${JSON.stringify([...NAMING])}.includes(name)) walk(into(${hashPath(['event'])}, name), context.event[name], 2)
  if (context.event.meta?.heard === true) leaf(${hashPath(['event', 'meta', 'heard'])}, true)
  walk(${hashPath(['scratch'])}, context.scratch, 1)
  const letters = Math.min(${MOST_LETTERS}, Math.floor(${ALL_LETTERS} / Math.max(1, spelled)))
  for (let at = 0; at < texts.length; at += 3) eachOfText(texts[at], texts[at + 1], texts[at + 2] ? 0 : letters, add)${recent ? FOLLOWS_SOURCE : ''}
}

const into = (hash, name) => hashText((hash * ${STEP} + name.length) | 0, name)

function eachOfText(hash, text, left, add) {
  const words = wordsOf(text)
  const seen = new Set()
  const says = hash * ${STEP} + ${SAYS} | 0
  const pairs = hash * ${STEP} + ${PAIR} | 0
  const spells = hash * ${STEP} + ${SPELLS} | 0
  let before = ${hashText(0, '^')}
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at]
    const own = hashText(0, word)
    add(finish(((pairs * ${STEP} + before | 0) * ${STEP} + own) | 0))
    before = own
    if (seen.has(word)) continue
    seen.add(word)
    add(finish(says * ${STEP} + own | 0))
    if (left > 0) eachGram(spells, \` \${word} \`.slice(0, left), add)
    left -= word.length + 2
  }
}

function eachGram(start, word, add) {
  const codes = []
  for (let at = 0; at < word.length; at += 1) codes.push(word.charCodeAt(at))
  for (let at = 0; at + 1 < codes.length; at += 1) {
    let hash = (start * ${STEP} + codes[at]) | 0
    const last = Math.min(codes.length, at + ${LONGEST_GRAM})
    for (let end = at + 1; end < last; end += 1) {
      hash = (hash * ${STEP} + codes[end]) | 0
      add(finish(hash))
    }
  }
}
${HASHES_SOURCE}
${ITEMS_SOURCE}

${WORDS_SOURCE}`
