import { mapJson } from '../../base/json.ts'
import { Quoting } from './quoting.ts'

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
