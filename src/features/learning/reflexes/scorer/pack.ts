import { fnv1a } from '../../../../base/fnv1a.ts'
import type { PiecePoints, Scorer } from './scorer.ts'

/**
 * The weights of a scorer as a text of the codes 1 to 255, which the sandbox reads in place.
 *
 * - Header: MAGIC, a version, then numbers: length, checksum of all after it, classes, bits of the
 *   directory.
 * - Bias: a number for each class.
 * - Directory: for each beginning of a hash, where its first piece is, from the end of the
 *   directory on; 0 if it has no piece.
 * - Pieces: the rest of the hash (3 digits in base 128), how many points follow, plus MORE if
 *   another piece of the same beginning follows, then class and points of each.
 */
export const MOST_WEIGHTS = 262_144
export const MOST_CLASSES = 254
const MAGIC = 'RXS'
const VERSION = 1
const BASE = 254
/** Digits of a number. */
const DIGITS = 3
const ZERO = Math.floor(BASE ** DIGITS / 2)
const HEADER = { length: 4, checksum: 7, classes: 11, bits: 14, bias: 17 } as const
const LEAST_BITS = 11
const MOST_BITS = 15
export const MOST_POINTS_OF_PIECE = 126
const MORE = 127
/** Codes of a piece without its points. */
const PIECE = 4

/** The most codes of a piece with points for so many classes, and of a scorer without pieces. */
export const sizeOfPiece = (classes: number): number => PIECE + 2 * classes + 2 * DIGITS
export const sizeOfEmpty = (classes: number): number => HEADER.bias + (classes + 2 ** LEAST_BITS) * DIGITS

const digits = (value: number, count = DIGITS): number[] =>
  Array.from({ length: count }, (_, place) => (Math.floor(value / BASE ** (count - 1 - place)) % BASE) + 1)
const numberAt = (text: string, at: number, count = DIGITS): number => {
  let value = 0
  for (let place = 0; place < count; place += 1) value = value * BASE + text.charCodeAt(at + place) - 1
  return value
}

/**
 * Throws a RangeError if the scorer has too many classes, or its weights are too long. `after`:
 * more weights, which other code reads.
 */
export function packScorer({ bias, pieces }: Scorer, after = ''): string {
  if (bias.length > MOST_CLASSES) throw new RangeError(`a scorer has ${bias.length} classes; ${MOST_CLASSES} are allowed`)
  const bits = Math.min(MOST_BITS, Math.max(LEAST_BITS, Math.ceil(Math.log2(pieces.size + 1))))
  const buckets = Map.groupBy(
    [...pieces].sort(([one], [other]) => one - other),
    ([piece]) => piece >>> (32 - bits),
  )
  const directory: number[] = []
  const records: number[] = []
  for (let beginning = 0; beginning < 2 ** bits; beginning += 1) {
    const own = buckets.get(beginning) ?? []
    directory.push(...digits(own.length === 0 ? 0 : records.length + BASE ** 2))
    for (const [index, [piece, points]] of own.entries())
      records.push(...recordOf(piece & (2 ** (32 - bits) - 1), points, index + 1 < own.length))
  }
  const body = [...digits(bias.length), ...digits(bits), ...bias.flatMap((points) => digits(points + ZERO))]
  const rest = textOf(body) + textOf(directory) + textOf(records) + after
  const length = MAGIC.length + 1 + DIGITS + 4 + rest.length
  if (length > MOST_WEIGHTS) throw new RangeError(`the weights take ${length} bytes; ${MOST_WEIGHTS} are allowed`)
  return MAGIC + textOf([VERSION, ...digits(length), ...digits(checksum(rest), 4)]) + rest
}

function recordOf(rest: number, points: readonly PiecePoints[], isMore: boolean): number[] {
  if (points.length > MOST_POINTS_OF_PIECE)
    throw new RangeError(`a piece has points for ${points.length} classes; ${MOST_POINTS_OF_PIECE} are allowed`)
  return [
    (rest & 127) + 1,
    ((rest >>> 7) & 127) + 1,
    (rest >>> 14) + 1,
    points.length + (isMore ? MORE : 0) + 1,
    ...points.flatMap(([own, more]) => [own + 1, more + 128]),
  ]
}

function textOf(codes: readonly number[]): string {
  let text = ''
  for (const code of codes) text += String.fromCharCode(code)
  return text
}

const checksum = (text: string): number => fnv1a(text) >>> 1

/** The scorer in these weights; null if they are damaged, of another version or something else. */
export function unpackScorer(weights: string): Scorer | null {
  const isOurs = weights.startsWith(MAGIC) && weights.charCodeAt(MAGIC.length) === VERSION
  if (!isOurs || weights.length > MOST_WEIGHTS || numberAt(weights, HEADER.length) !== weights.length) return null
  if (numberAt(weights, HEADER.checksum, 4) !== checksum(weights.slice(HEADER.classes))) return null
  const bits = numberAt(weights, HEADER.bits)
  const classes = numberAt(weights, HEADER.classes)
  const bias = Array.from({ length: classes }, (_, own) => numberAt(weights, HEADER.bias + own * DIGITS) - ZERO)
  const directory = HEADER.bias + classes * DIGITS
  const start = directory + 2 ** bits * DIGITS
  const pieces = new Map<number, PiecePoints[]>()
  for (let beginning = 0; beginning < 2 ** bits; beginning += 1) {
    const place = numberAt(weights, directory + beginning * DIGITS)
    if (place === 0) continue
    for (let at = start + place - BASE ** 2, isMore = true; isMore;) {
      const rest = weights.charCodeAt(at) - 1 + (weights.charCodeAt(at + 1) - 1) * 128 + (weights.charCodeAt(at + 2) - 1) * 16_384
      const count = weights.charCodeAt(at + 3) - 1
      const own = count % MORE
      const points = Array.from({ length: own }, (_, index): PiecePoints => {
        const pair = at + PIECE + index * 2
        return [weights.charCodeAt(pair) - 1, weights.charCodeAt(pair + 1) - 128]
      })
      pieces.set(((beginning << (32 - bits)) | rest) >>> 0, points)
      isMore = count >= MORE
      at += PIECE + own * 2
    }
  }
  return { bias, pieces }
}

/**
 * The same points in code that runs with these weights: `pointsOf(context)` by `eachPiece`, from
 * the global `weights`; null if that is not of their form. The host has checked its hash.
 */
export function pointsSource(weights: string): string {
  const classes = numberAt(weights, HEADER.classes)
  const bits = numberAt(weights, HEADER.bits)
  const directory = HEADER.bias + classes * DIGITS
  const start = directory + 2 ** bits * DIGITS - BASE ** 2
  return `function pointsOf(context) {
  const text = weights
  const number = (at) => ((text.charCodeAt(at) - 1) * ${BASE} + text.charCodeAt(at + 1) - 1) * ${BASE} + text.charCodeAt(at + 2) - 1
  if (!text.startsWith('${MAGIC}') || text.charCodeAt(${MAGIC.length}) !== ${VERSION} || number(${HEADER.length}) !== text.length) return null
  if (number(${HEADER.classes}) !== ${classes} || number(${HEADER.bits}) !== ${bits}) return null
  const points = []
  for (let at = ${HEADER.bias}; at < ${directory}; at += ${DIGITS}) points.push(number(at) - ${ZERO})
  const seen = new Set()
  eachPiece(context, (piece) => {
    const place = ${directory} + (piece >>> ${32 - bits}) * ${DIGITS}
    const first = text.charCodeAt(place) - 1
    if (first === 0) return
    let at = ${start} + (first * ${BASE} + text.charCodeAt(place + 1) - 1) * ${BASE} + text.charCodeAt(place + 2) - 1
    const low = (piece & 127) + 1
    for (;;) {
      const count = text.charCodeAt(at + 3) - 1
      const end = at + ${PIECE} + (count % ${MORE}) * 2
      if (text.charCodeAt(at) === low && text.charCodeAt(at + 1) === ((piece >>> 7) & 127) + 1 && text.charCodeAt(at + 2) === ((piece >>> 14) & ${2 ** (18 - bits) - 1}) + 1) {
        if (seen.has(at)) return
        seen.add(at)
        for (at += ${PIECE}; at < end; at += 2) points[text.charCodeAt(at) - 1] += text.charCodeAt(at + 1) - 128
        return
      }
      if (!(count >= ${MORE})) return
      at = end
    }
  })
  return points
}`
}
