import type { Steps } from '../../../../base/steps.ts'
import { type Bits, bitsIn } from '../facts/bits.ts'
import { MOST_WEIGHTS, sizeOfEmpty, sizeOfPiece, MOST_POINTS_OF_PIECE } from './pack.ts'
import type { PiecePoints, Scorer } from './scorer.ts'

type Lesson = {
  /** Pieces of each episode, in time order. */
  rows: readonly Uint32Array[]
  /** -1: a decision that cannot be learned. It teaches to abstain. */
  classOf: ArrayLike<number>
  classes: number
  /** Logits that other parts of the scorer give to each class of an episode. */
  base?: (episode: number) => ArrayLike<number>
  /** True if a piece may weigh that holds in these episodes. */
  crowd?: (support: Bits) => boolean
  /** Bytes of weights. */
  bytes?: number
}

/** Weights in logits. The last class stands for the decisions that cannot be learned. */
export type PieceWeights = { bias: Float64Array; pieces: ReadonlyMap<number, readonly (readonly [own: number, weight: number])[]> }

const LEAST_SUPPORT = 2
/** Rarer pieces are weighed while learning, as they explain odd decisions, and then dropped. */
const LEAST_OF_WEIGHT = 3
const MOST_FEATURES = 40_000
const MOST_PRODUCTS = 4_000_000
const ROUNDS = 6
/** Rounds with the weights that are kept. */
const LAST_ROUNDS = 3
/** Logits by which the pieces of an episode move at first, together. */
const RATE = 2
/** Logits by which a weight moves at first, at most. */
const MOST_RATE = 0.4
const DECAY = 1e-4
const LEAST_ERROR = 1e-3
/** Weights of frequent pieces matter a little less: each run adds most of them. */
const FREQUENT = -0.2
/** Products and sums of one step. */
const STEP = 400_000
const PIECES_OF_STEP = 4000

/** A multinomial logistic regression (AdaGrad, in time order). */
export function* fitPieces(lesson: Lesson): Steps<PieceWeights> {
  const table = yield* tableOf(lesson)
  const state = emptyFit(table, lesson.classes + 1)
  for (let round = 0; round < ROUNDS; round += 1) yield* pass(table, lesson, state)
  const kept = yield* keep(table, lesson, state)
  for (let round = 0; round < LAST_ROUNDS; round += 1) yield* pass(table, lesson, state, kept)
  return yield* weightsOf(table, state, kept)
}

/** Points from logits: a unit is 1 / `scale` of a logit. */
export function quantised({ bias, pieces }: PieceWeights, scale: number): Pick<Scorer, 'bias' | 'pieces'> {
  const rounded = new Map<number, PiecePoints[]>()
  for (const [piece, weights] of pieces) {
    const points = weights
      .map(([own, weight]): PiecePoints => [own, Math.max(-127, Math.min(127, Math.round(weight * scale)))])
      .filter(([, more]) => more !== 0)
    if (points.length > 0) rounded.set(piece, most(points))
  }
  return { bias: Array.from(bias, (logit) => Math.round(logit * scale)), pieces: rounded }
}

/** The points that count most, by class: a piece has room for so many. */
const most = (points: PiecePoints[]): PiecePoints[] =>
  points.length <= MOST_POINTS_OF_PIECE
    ? points
    : points
        .sort(([, one], [, other]) => Math.abs(other) - Math.abs(one))
        .slice(0, MOST_POINTS_OF_PIECE)
        .sort(([one], [other]) => one - other)

/** Features are pieces that recur; `rows` has the features of each episode. */
type Table = { hashes: Uint32Array; support: Int32Array; rows: readonly Int32Array[]; rate: number }

function* tableOf({ rows, classes }: Lesson): Steps<Table> {
  const counts = new Map<number, number>()
  let work = 0
  for (const row of rows) {
    for (const piece of row) counts.set(piece, (counts.get(piece) ?? 0) + 1)
    if ((work += row.length) > STEP / 50) {
      work = 0
      yield
    }
  }
  const most = Math.min(MOST_FEATURES, Math.floor(MOST_PRODUCTS / (classes + 1)))
  const chosen = yield* mostFrequent(counts, most)
  const places = new Map<number, number>()
  for (const [feature, [piece]] of chosen.entries()) {
    places.set(piece, feature)
    if (feature % PIECES_OF_STEP === 0) yield
  }
  const found: Int32Array[] = []
  for (const row of rows) {
    const features: number[] = []
    for (const piece of row) {
      const feature = places.get(piece)
      if (feature !== undefined) features.push(feature)
    }
    found.push(Int32Array.from(features))
    if ((work += row.length) > STEP / 50) {
      work = 0
      yield
    }
  }
  const support = Int32Array.from(chosen, ([, episodes]) => episodes)
  const held = support.reduce((sum, episodes) => sum + episodes, 0)
  const rate = Math.min(MOST_RATE, (RATE * rows.length) / Math.max(1, held))
  return { hashes: Uint32Array.from(chosen, ([piece]) => piece), support, rows: found, rate }
}

/** Pieces that recur, the most frequent first; of two that are level, the one seen first. */
function* mostFrequent(counts: ReadonlyMap<number, number>, most: number): Steps<(readonly [piece: number, support: number])[]> {
  const bySupport = new Map<number, number[]>()
  let read = 0
  for (const [piece, support] of counts) {
    if ((read += 1) % PIECES_OF_STEP === 0) yield
    if (support < LEAST_SUPPORT) continue
    const level = bySupport.get(support)
    if (level) level.push(piece)
    else bySupport.set(support, [piece])
  }
  const chosen: (readonly [number, number])[] = []
  for (const support of [...bySupport.keys()].sort((one, other) => other - one)) {
    for (const piece of bySupport.get(support) ?? []) if (chosen.length < most) chosen.push([piece, support])
    yield
  }
  return chosen
}

/** `weights`, `slopes`: of a feature and a class, at feature × classes + class. */
type Fit = { classes: number; bias: Float64Array; biasSlopes: Float64Array; weights: Float32Array; slopes: Float32Array }

const emptyFit = ({ hashes }: Table, classes: number): Fit => ({
  classes,
  bias: new Float64Array(classes),
  biasSlopes: new Float64Array(classes).fill(1e-8),
  weights: new Float32Array(hashes.length * classes),
  slopes: new Float32Array(hashes.length * classes).fill(1e-8),
})

/** `kept`: 1 for each weight that may change; the others are 0. */
function* pass({ rows, rate }: Table, { classOf, base }: Lesson, fit: Fit, kept?: Uint8Array): Steps<void> {
  const { classes } = fit
  const scores = new Float64Array(classes)
  let work = 0
  for (const [episode, row] of rows.entries()) {
    if ((work += row.length * classes) > STEP) {
      work = 0
      yield
    }
    scores.set(fit.bias)
    const given = base?.(episode)
    if (given) for (let own = 0; own < given.length; own += 1) scores[own] = scores[own]! + given[own]!
    addWeights(row, fit, scores)
    errorsOf(scores, classOf[episode]! < 0 ? classes - 1 : classOf[episode]!)
    learn(row, fit, { errors: scores, rate, kept })
  }
}

function addWeights(row: Int32Array, { classes, weights }: Fit, scores: Float64Array): void {
  for (let at = 0; at < row.length; at += 1) {
    const start = row[at]! * classes
    for (let own = 0; own < classes; own += 1) scores[own] = scores[own]! + weights[start + own]!
  }
}

/** Replaces scores by what the probability of each class is too high. */
function errorsOf(scores: Float64Array, right: number): void {
  let most = -Infinity
  for (let own = 0; own < scores.length; own += 1) if (scores[own]! > most) most = scores[own]!
  let sum = 0
  for (let own = 0; own < scores.length; own += 1) sum += scores[own] = Math.exp(scores[own]! - most)
  for (let own = 0; own < scores.length; own += 1) scores[own] = scores[own]! / sum - (own === right ? 1 : 0)
}

type Lessening = { errors: Float64Array; rate: number; kept: Uint8Array | undefined }

function learn(row: Int32Array, { classes, bias, biasSlopes, weights, slopes }: Fit, { errors, rate, kept }: Lessening): void {
  for (let own = 0; own < classes; own += 1) {
    const error = errors[own]!
    if (error < LEAST_ERROR && error > -LEAST_ERROR) continue
    biasSlopes[own] = biasSlopes[own]! + error * error
    bias[own] = bias[own]! - (rate * error) / Math.sqrt(biasSlopes[own]!)
    for (let at = 0; at < row.length; at += 1) {
      const place = row[at]! * classes + own
      if (kept && kept[place] === 0) continue
      const slope = error + DECAY * weights[place]!
      const steep = slopes[place]! + slope * slope
      slopes[place] = steep
      weights[place] = weights[place]! - (rate * slope) / Math.sqrt(steep)
    }
  }
}

/** The weights that matter most and fit; the others become 0. */
function* keep({ support, rows }: Table, lesson: Lesson, { classes, weights }: Fit): Steps<Uint8Array> {
  const may = yield* mayWeigh(rows, support, lesson.crowd)
  const value = new Float32Array(weights.length)
  for (let feature = 0; feature < support.length; feature += 1) {
    if (feature % 100 === 0) yield
    if (may[feature] === 0) continue
    const own = weights.subarray(feature * classes, (feature + 1) * classes)
    centre(own)
    const worth = support[feature]! ** FREQUENT
    for (let at = 0; at < classes; at += 1) value[feature * classes + at] = Math.abs(own[at]!) * worth
  }
  const bytes = (lesson.bytes ?? MOST_WEIGHTS) - sizeOfEmpty(classes)
  const least = yield* thresholdFor(value, classes, bytes)
  const kept = new Uint8Array(weights.length)
  for (let place = 0; place < weights.length; place += 1) {
    if (value[place]! >= least && value[place]! > 0) kept[place] = 1
    else weights[place] = 0
    if (place % STEP === 0) yield
  }
  return kept
}

/** Classes differ by the same when all have the same less; most of a piece's weights are alike. */
function centre(weights: Float32Array): void {
  const median = weights.slice().sort()[weights.length >>> 1]!
  for (let at = 0; at < weights.length; at += 1) weights[at] = weights[at]! - median
}

function* mayWeigh(rows: readonly Int32Array[], support: Int32Array, crowd?: (support: Bits) => boolean): Steps<Uint8Array> {
  const may = Uint8Array.from(support, (episodes) => (episodes >= LEAST_OF_WEIGHT ? 1 : 0))
  if (!crowd) return may
  const episodesOf = Array.from(support, (): number[] => [])
  for (const [episode, row] of rows.entries()) {
    for (const feature of row) episodesOf[feature]?.push(episode)
    if (episode % 50 === 0) yield
  }
  for (const [feature, episodes] of episodesOf.entries()) {
    if (may[feature] === 1 && !crowd(bitsIn(rows.length, episodes))) may[feature] = 0
    if (feature % 50 === 0) yield
  }
  return may
}

/** The least value of a weight so that all from there on fit, by halving. */
function* thresholdFor(value: Float32Array, classes: number, bytes: number): Steps<number> {
  let low = 0
  let high = 0
  for (let place = 0; place < value.length; place += 1) if (value[place]! > high) high = value[place]!
  for (let turn = 0; turn < 20; turn += 1) {
    const middle = turn === 0 ? 0 : (low + high) / 2
    let size = 0
    for (let start = 0; start < value.length; start += classes) {
      let own = 0
      for (let place = start; place < start + classes; place += 1) if (value[place]! > middle) own += 1
      if (own > 0) size += sizeOfPiece(own)
      if (start % STEP < classes) yield
    }
    if (size > bytes) low = middle
    else if (turn === 0) return 0
    else high = middle
  }
  return high
}

function* weightsOf({ hashes }: Table, { classes, bias, weights }: Fit, kept: Uint8Array): Steps<PieceWeights> {
  const pieces = new Map<number, (readonly [number, number])[]>()
  for (let feature = 0; feature < hashes.length; feature += 1) {
    const own: (readonly [number, number])[] = []
    for (let place = 0; place < classes; place += 1)
      if (kept[feature * classes + place] === 1) own.push([place, weights[feature * classes + place]!])
    if (own.length > 0) pieces.set(hashes[feature]!, own)
    if (feature % 1000 === 0) yield
  }
  return { bias, pieces }
}
