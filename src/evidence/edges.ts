import { isJsonFields, type JsonFields } from '../base/json.ts'
import type { Range } from './novelty.ts'

/** Acts without an audit before one at an edge is audited, so that edges cost one act in ten. */
const APART = 10
/** The part of the range of a number by which it is moved. */
const MOVED_BY = 1 / 20
/** Numbers that make a range. */
const SETTLED = 20
const DEEPEST = 3

/** A number of an event, and a value beside it. */
type Move = { path: readonly string[]; from: number; to: number }

/** True if an act may be audited because it is at an edge. */
export const mayBeAtEdge = ({ unaudited }: { unaudited: number }): boolean => unaudited + 1 >= APART

/**
 * The event with one of its numbers a little lower or higher, by the range that the proof has seen;
 * null if it has none. `draw`, from 0 to 1, says which number. A rule acts on one side of an edge,
 * so that the range of its numbers ends there: they are moved beyond it, too.
 */
export function moved(event: JsonFields, ranges: Readonly<Record<string, Range>>, draw: number): { event: JsonFields; move: Move } | null {
  const found = movesIn(event, ranges)
  const move = found[Math.floor(draw * found.length)]
  return move ? { event: withMoved(event, move.path, move.to), move } : null
}

function movesIn(fields: JsonFields, ranges: Readonly<Record<string, Range>>, path: readonly string[] = []): Move[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    const own = [...path, name]
    if (isJsonFields(value) && own.length <= DEEPEST) return movesIn(value, ranges, own)
    const place = own.join('.')
    const range = Object.hasOwn(ranges, place) ? ranges[place] : undefined
    if (typeof value !== 'number' || !range || range.n < SETTLED || value < range.low || value > range.high) return []
    const { low, high } = range
    const isWhole = [value, low, high].every(Number.isInteger)
    const by = isWhole ? Math.ceil((high - low) * MOVED_BY) : (high - low) * MOVED_BY
    return by === 0 ? [] : [value - by, value + by].map((to) => ({ path: own, from: value, to }))
  })
}

function withMoved(fields: JsonFields, [name = '', ...path]: readonly string[], to: number): JsonFields {
  const inner = fields[name]
  return { ...fields, [name]: isJsonFields(inner) ? withMoved(inner, path, to) : to }
}

/** True if an action is another one beside an edge, and does not just name the moved number. */
export function isOther(action: unknown, beside: unknown, { from, to }: Pick<Move, 'from' | 'to'>): boolean {
  const differ = (one: unknown, other: unknown): boolean => {
    if (one === other) return false
    if (typeof one === 'number' && typeof other === 'number') return Math.abs(other - one - (to - from)) > 1e-9 * Math.abs(to)
    if (typeof one === 'string' && typeof other === 'string') return one.replaceAll(String(from), String(to)) !== other
    if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return true
    const [left, right] = [new Map(Object.entries(one)), new Map(Object.entries(other))]
    return left.size !== right.size || Array.from(left).some(([name, inner]) => differ(inner, right.get(name)))
  }
  return differ(action, beside)
}
