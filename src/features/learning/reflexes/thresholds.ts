import { and, type Bits, bitsOf, hasBit, indexesOf, or } from './facts/bits.ts'
import { type AtLeast, type Literal, numberKey } from './facts/condition.ts'
import type { Matrix } from './facts/matrix.ts'
import { between } from './scorer/numbers.ts'

type Numbers = { condition: AtLeast; holds: boolean; values: Float64Array }
type Counted = { right: number; wrong: number }

/** The numbers of a literal about one that has too many values for the matrix to ask about each. */
function numbersOf({ condition, holds }: Literal, { numbers }: Matrix): Numbers | null {
  const values = condition.is === 'at_least' ? numbers.get(numberKey(condition)) : undefined
  return condition.is === 'at_least' && values ? { condition, holds, values } : null
}

const holdingBits = ({ condition, holds, values }: Numbers): Bits =>
  bitsOf(values.length, (index) => !Number.isNaN(values[index]) && (values[index] ?? 0) >= condition.value === holds)

/** The literal with the threshold of the most gain, of all that its episodes have; null: none. */
export function sharpened(
  literal: Literal,
  { matrix, open, others, gainOf }: { matrix: Matrix; open: Bits; others: Bits; gainOf: (counted: Counted) => number },
): { literal: Literal; bits: Bits } | null {
  const found = numbersOf(literal, matrix)
  if (found === null) return null
  const { values, holds, condition } = found
  const at = (index: number): number => values[index] ?? 0
  const known = indexesOf(or(open, others)).filter((index) => !Number.isNaN(at(index)))
  const order = known.sort((one, other) => at(one) - at(other))
  if (holds) order.reverse()
  let best: { gain: number; value: number } | null = null
  const counted = { right: 0, wrong: 0 }
  for (const [place, index] of order.entries()) {
    if (hasBit(open, index)) counted.right += 1
    else counted.wrong += 1
    const next = order[place + 1]
    if (next === undefined || at(next) === at(index)) continue
    const gain = gainOf(counted)
    if (gain > (best?.gain ?? 0)) best = { gain, value: holds ? at(index) : at(next) }
  }
  if (best === null) return null
  const sharp = { ...found, condition: { ...condition, value: best.value } }
  return { literal: { condition: sharp.condition, holds }, bits: holdingBits(sharp) }
}

const MOST_DECIMALS = 6
const decimalsOf = (value: number): number => (/e/.test(String(value)) ? MOST_DECIMALS + 1 : (String(value).split('.')[1]?.length ?? 0))

/** The lowest number above these, to as many digits as they have; at most `most`. */
function above(values: readonly number[], most: number): number {
  const high = values.reduce((known, value) => Math.max(known, value), -Infinity)
  const decimals = values.reduce((known, value) => Math.max(known, decimalsOf(value)), 0)
  const next = decimals > MOST_DECIMALS ? high : Number((high + 10 ** -decimals).toFixed(decimals))
  // With many digits, the sum may be the same number again.
  return next > high ? Math.min(most, next) : between(high, most)
}

/**
 * The rule without the numbers that none of its own decisions had: between the last of these and
 * the first one of another decision, nobody has decided.
 */
export function tightened({ literals, covered }: { literals: readonly Literal[]; covered: Bits }, own: Bits, matrix: Matrix) {
  const indexes = indexesOf(and(covered, own))
  const all = new Map<string, Literal>()
  let bits = covered
  for (const literal of literals) {
    const found = numbersOf(literal, matrix)
    if (found === null) {
      all.set(JSON.stringify(literal), literal)
      continue
    }
    const taught = indexes.map((index) => found.values[index] ?? 0).filter((value) => !Number.isNaN(value))
    const { condition, holds } = found
    const value = holds ? taught.reduce((low, one) => Math.min(low, one), Infinity) : above(taught, condition.value)
    const tight = { ...found, condition: { ...condition, value } }
    bits = and(bits, holdingBits(tight))
    all.set(JSON.stringify([numberKey(condition), holds]), { condition: tight.condition, holds })
  }
  return { literals: [...all.values()], covered: bits }
}
