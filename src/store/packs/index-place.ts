import { HASH_DIGITS } from './format.ts'

/**
 * The places of rows of the index. A row of a level has the hashes that begin with the same bits,
 * three more on each level, so that all rows have about the same size. Eight rows of a part merge
 * into one row in each of its eight parts on the next level.
 */
export const FAN_OUT = 8
const FAN_BITS = 3n
export const INDEX_LEVELS = 7
/** Rows of a part, by their numbers. */
export const INDEX_SLOT = 2 ** 20
const LEVEL_SLOT = 2 ** 44

/** Hexadecimal digits of the place of a pack's id in the list of the row. */
export const NAME_DIGITS = 4
export const ENTRY_BYTES = (HASH_DIGITS + NAME_DIGITS) / 2

const partPlace = (level: number, part: number): number => level * LEVEL_SLOT + part * INDEX_SLOT

/** The first place of the part of a level that has the hash. */
export const indexPlace = (level: number, hash: string): number =>
  partPlace(level, Number(BigInt(`0x${hash}`) >> (BigInt(HASH_DIGITS * 4) - BigInt(level) * FAN_BITS)))

/** The place of the hash among all that its part may have, from 0 to 1. */
export function shareIn(level: number, hash: string): number {
  const bits = BigInt(HASH_DIGITS * 4)
  return Number(BigInt.asUintN(Number(bits), BigInt(`0x${hash}`) << (BigInt(level) * FAN_BITS))) / 2 ** Number(bits)
}

export const levelOf = (place: number): number => Math.floor(place / LEVEL_SLOT)
/** The place of the part, without the number of the row. */
export const partOf = (place: number): number => Math.floor(place / INDEX_SLOT) * INDEX_SLOT
