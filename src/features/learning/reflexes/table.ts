import type { Matrix } from './facts/matrix.ts'
import type { Steps } from '../../../base/steps.ts'
import type { Crowd } from './sources.ts'

/** Points for features; a decision is taken from `threshold` points on. */
export type Table = { bias: number; weights: ReadonlyMap<number, number> }

const ROUNDS = 14
const RATE = 0.4
const DECAY = 1e-4
/** Rarer conditions are weighed while learning, as they explain odd decisions, and then dropped. */
const LEAST_OF_WEIGHT = 3
/** Points are hundredths of a logit. */
const SCALE = 100

type Lesson = {
  matrix: Matrix
  /** Indexes in time order. */ taught: readonly number[]
  classOf: Int32Array
  classes: number
  usable: (feature: number) => boolean
  bytes: number
  crowd: Crowd
  sizeOf: (feature: number) => number
}

/** A logistic regression for each class against the rest (AdaGrad, in time order). */
export function* tablesFor(lesson: Lesson): Steps<Table[]> {
  const { matrix, taught, classOf } = lesson
  const usable = new Uint8Array(matrix.features.length)
  for (let feature = 0; feature < usable.length; feature += 1) usable[feature] = lesson.usable(feature) ? 1 : 0
  const tables: Table[] = []
  for (let own = 0; own < lesson.classes; own += 1) {
    const full = yield* fit(matrix, taught, classOf, own, usable)
    const kept = keep(full, lesson)
    yield
    const some = Uint8Array.from(usable, (_, feature) => (kept.has(feature) ? 1 : 0))
    tables.push(rounded(kept.size < full.weights.length ? yield* fit(matrix, taught, classOf, own, some) : full))
  }
  return tables
}

type Fit = { bias: number; weights: Float64Array }

function* fit({ features, rows }: Matrix, taught: readonly number[], classOf: Int32Array, own: number, usable: Uint8Array): Steps<Fit> {
  const weights = new Float64Array(features.length)
  const slopes = new Float64Array(features.length).fill(1e-8)
  let bias = 0
  let biasSlope = 1e-8
  for (let round = 0; round < ROUNDS; round += 1) {
    yield
    for (const index of taught) {
      const row = rows[index] ?? new Int32Array()
      let score = bias
      for (let at = 0; at < row.length; at += 1) if (usable[row[at]!] === 1) score += weights[row[at]!]!
      const error = 1 / (1 + Math.exp(-score)) - (classOf[index] === own ? 1 : 0)
      if (Math.abs(error) < 1e-3) continue
      biasSlope += error * error
      bias -= (RATE * error) / Math.sqrt(biasSlope)
      for (let at = 0; at < row.length; at += 1) {
        const feature = row[at]!
        if (usable[feature] === 0) continue
        const slope = error + DECAY * weights[feature]!
        const steep = slopes[feature]! + slope * slope
        slopes[feature] = steep
        weights[feature] = weights[feature]! - (RATE * slope) / Math.sqrt(steep)
      }
    }
  }
  return { bias, weights }
}

/** The features that matter most and fit into a reflex. */
function keep({ weights }: Fit, { matrix, bytes, sizeOf, crowd }: Lesson): Set<number> {
  const mayWeigh = (feature: number): boolean => {
    const known = matrix.features[feature]
    return known !== undefined && known.support >= LEAST_OF_WEIGHT && crowd(known.bits)
  }
  const order = Array.from(weights.keys()).filter((feature) => weights[feature] !== 0 && mayWeigh(feature))
  const value = (feature: number) => Math.abs(weights[feature] ?? 0) * Math.sqrt(matrix.features[feature]?.support ?? 0)
  order.sort((one, other) => value(other) - value(one) || one - other)
  const kept = new Set<number>()
  let left = bytes
  for (const feature of order) {
    left -= sizeOf(feature)
    if (left < 0) break
    kept.add(feature)
  }
  return kept
}

function rounded({ bias, weights }: Fit): Table {
  const points = new Map<number, number>()
  weights.forEach((weight, feature) => {
    const rounded = Math.round(weight * SCALE)
    if (rounded !== 0) points.set(feature, rounded)
  })
  return { bias: Math.round(bias * SCALE), weights: points }
}

export function pointsOf({ bias, weights }: Table, row: Int32Array): number {
  let points = bias
  for (const feature of row) points += weights.get(feature) ?? 0
  return points
}
