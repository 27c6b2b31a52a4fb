/** A set of episodes by index. */
export type Bits = Uint32Array

export const emptyBits = (size: number): Bits => new Uint32Array((size + 31) >>> 5)

export const setBit = (bits: Bits, index: number): void => {
  bits[index >>> 5] = (bits[index >>> 5] ?? 0) | (1 << (index & 31))
}
export const hasBit = (bits: Bits, index: number): boolean => (((bits[index >>> 5] ?? 0) >>> (index & 31)) & 1) === 1

export function bitsOf(size: number, isIn: (index: number) => boolean): Bits {
  const bits = emptyBits(size)
  for (let index = 0; index < size; index += 1) if (isIn(index)) setBit(bits, index)
  return bits
}

export function bitsIn(size: number, indexes: Iterable<number>): Bits {
  const bits = emptyBits(size)
  for (const index of indexes) setBit(bits, index)
  return bits
}

export const and = (one: Bits, other: Bits): Bits => one.map((word, index) => word & (other[index] ?? 0))
export const without = (one: Bits, other: Bits): Bits => one.map((word, index) => word & ~(other[index] ?? 0))
export const or = (one: Bits, other: Bits): Bits => one.map((word, index) => word | (other[index] ?? 0))

export function count(bits: Bits): number {
  let sum = 0
  for (let index = 0; index < bits.length; index += 1) sum += ones(bits[index]!)
  return sum
}

export function countBoth(one: Bits, other: Bits): number {
  let sum = 0
  for (let index = 0; index < one.length; index += 1) sum += ones(one[index]! & other[index]!)
  return sum
}

export function indexesOf(bits: Bits): number[] {
  const indexes: number[] = []
  for (let word = 0; word < bits.length; word += 1) {
    for (let rest = bits[word]!; rest !== 0; rest &= rest - 1) indexes.push(word * 32 + 31 - Math.clz32(rest & -rest))
  }
  return indexes
}

function ones(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return (((fours + (fours >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24
}
