import { mapJson } from '../../base/json.ts'

const FENCE = /^ {0,3}(`{3,}|~{3,})/
const QUOTED_LINE = /^ {0,3}>/

/**
 * Decides, for ascending positions, if they are in a code fence, in inline code or in a line that
 * begins with `>`. Each character is read once.
 */
class Quoting {
  readonly #text: string
  #fence: string | null = null
  /** The start and end of the current line, and the position up to which it was scanned. */
  #line = 0
  #end: number
  #scanned = 0
  #ticks = 0
  #next_tick = -1
  /** The line began within a block, so that its beginning says nothing. */
  #midline = false

  constructor(text: string) {
    this.#text = text
    this.#end = this.#lineEnd(0)
  }

  isQuoted(at: number): boolean {
    while (this.#end < at) this.#nextLine()
    for (; this.#scanned < at; this.#scanned++) if (this.#text[this.#scanned] === '`') this.#ticks += 1
    if (this.#fence !== null) return true
    return this.#isQuotedLine() || (this.#ticks % 2 === 1 && this.#tickFrom(at) < this.#end)
  }

  /** Skips a block, whose own fences and quotes do not count outside of it. */
  skipTo(at: number): void {
    if (this.#fence !== null) return
    if (this.#end < at) {
      this.#ticks = 0
      this.#midline = true
      this.#line = at
      this.#end = this.#lineEnd(at)
    }
    this.#scanned = at
  }

  #nextLine(): void {
    if (!this.#midline) this.#fence = fenceAfter(this.#text.slice(this.#line, this.#end), this.#fence)
    this.#midline = false
    this.#line = this.#end + 1
    this.#end = this.#lineEnd(this.#line)
    this.#scanned = this.#line
    this.#ticks = 0
  }

  #isQuotedLine(): boolean {
    return !this.#midline && QUOTED_LINE.test(this.#text.slice(this.#line, this.#line + 4))
  }

  #tickFrom(at: number): number {
    if (this.#next_tick < at) {
      const found = this.#text.indexOf('`', at)
      this.#next_tick = found < 0 ? this.#text.length : found
    }
    return this.#next_tick
  }

  #lineEnd(from: number): number {
    const found = this.#text.indexOf('\n', from)
    return found < 0 ? this.#text.length : found
  }
}

function fenceAfter(line: string, fence: string | null): string | null {
  const found = FENCE.exec(line)?.[1]
  if (found === undefined) return fence
  if (fence === null) return found
  return found.startsWith(fence) && line.trim() === found ? null : fence
}

export const TAGS = ['SKILL_PROPOSE', 'CLARIFY', 'SKILL_RESULT'] as const
export type Tag = (typeof TAGS)[number]

export type FoundBlock = {
  tag: Tag
  at: number
  body: string
  quoted: boolean
  end: 'closed' | 'unclosed' | 'unopened' | 'nested' | 'too_many'
}

type Mark = { tag: Tag; opens: boolean; at: number; end: number }

const MARK = /<(\/?)(SKILL_PROPOSE|CLARIFY|SKILL_RESULT)>/g

const ANY_MARK = new RegExp(`<\\s*(/?)\\s*(${[...TAGS, 'SKILL_BULLETIN'].join('|')})\\s*>`, 'gi')

/** Replaces the marks of the protocol in all texts of a value. */
export function withoutMarks<Value>(value: Value): Value {
  const plain = (text: string): string => text.replaceAll(ANY_MARK, '‹$1$2›')
  return mapJson(value, (inner) => (typeof inner === 'string' ? plain(inner) : inner), { name: plain, deepest: Infinity }) as Value
}

/** Finds all blocks in one pass: each mark and each line is read once. */
export function findBlocks(text: string, most: number): FoundBlock[] {
  const marks = marksIn(text)
  const quoting = new Quoting(text)
  const blocks: FoundBlock[] = []
  let index = 0
  while (index < marks.length) {
    const mark = marks[index]
    if (!mark) break
    if (blocks.length === most) return [...blocks, { ...placeOf(mark), body: '', quoted: false, end: 'too_many' }]
    const quoted = quoting.isQuoted(mark.at)
    const next = marks[index + 1]
    if (!mark.opens) {
      if (!quoted) blocks.push({ ...placeOf(mark), body: '', quoted, end: 'unopened' })
      index += 1
    } else if (next && !next.opens && next.tag === mark.tag) {
      blocks.push({ ...placeOf(mark), body: text.slice(mark.end, next.at), quoted, end: 'closed' })
      quoting.skipTo(next.end)
      index += 2
    } else {
      blocks.push({ ...placeOf(mark), body: '', quoted, end: next ? 'nested' : 'unclosed' })
      // The content of an unclosed block belongs to it: an inner proposal must not run.
      index = quoted ? index + 1 : afterNest(marks, index)
    }
  }
  return blocks
}

function marksIn(text: string): Mark[] {
  return Array.from(text.matchAll(MARK), (match) => ({
    tag: match[2] as Tag,
    opens: match[1] === '',
    at: match.index,
    end: match.index + match[0].length,
  }))
}

const placeOf = ({ tag, at }: Mark): { tag: Tag; at: number } => ({ tag, at })

/** The index after the mark that closes the block at `start`, with all nested blocks. */
function afterNest(marks: readonly Mark[], start: number): number {
  let depth = 0
  for (let index = start; index < marks.length; index++) {
    depth += marks[index]?.opens ? 1 : -1
    if (depth === 0) return index + 1
  }
  return marks.length
}
