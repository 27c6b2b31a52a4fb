import type { Steps } from '../../../../base/steps.ts'

/** Passes if the bin of the column is at least `bin`, or is `bin` if `equal`. */
export type TreeTest = { column: number; bin: number; equal: boolean }
export type TreeNode = { points: number } | (TreeTest & { fails: TreeNode; passes: TreeNode })

/**
 * The bins of episodes. `cells`: for each episode and each column, the place of its bin among the
 * bins of all columns. `from`: the first place of each column, and behind the last.
 */
export type Binned = { cells: Int32Array; from: Int32Array; isEqual: readonly boolean[] }
export type Growth = { depth: number; decay: number; leastCurve: number; leastGain: number; rate: number }
/** `rows`: the episodes to learn from. `mayAsk`: 1 for each column that a test may be about. */
export type Drawn = { rows: Int32Array; mayAsk: Uint8Array }

/** Additions of one step. */
const STEP = 150_000
/** A bin has the sums of its slopes and of its curves. */
const SUMS = 2

type Node = { rows: Int32Array; sums: Float64Array; slope: number; curve: number }
type Slopes = { slope: Float64Array; curve: Float64Array }

/** A tree of second order, as XGBoost has, for one class. `gains`: by column, is added to. */
export function* growTree(binned: Binned, { rows, mayAsk }: Drawn, slopes: Slopes, growth: Growth, gains: Float64Array): Steps<TreeNode> {
  const grow = function* (node: Node, depth: number): Steps<TreeNode> {
    const best = depth < growth.depth ? bestSplit(binned, node, growth, mayAsk) : null
    yield
    if (best === null) return { points: (-growth.rate * node.slope) / (node.curve + growth.decay) }
    gains[best.column] = (gains[best.column] ?? 0) + best.gain
    const { fails, passes } = divided(binned, node.rows, best)
    const isSmaller = fails.length < passes.length
    const less = yield* nodeOf(binned, isSmaller ? fails : passes, slopes)
    const more = restOf(node, isSmaller ? passes : fails, less)
    const { column, bin, equal } = best
    return {
      column,
      bin,
      equal,
      fails: yield* grow(isSmaller ? less : more, depth + 1),
      passes: yield* grow(isSmaller ? more : less, depth + 1),
    }
  }
  return yield* grow(yield* nodeOf(binned, rows, slopes), 0)
}

function* nodeOf({ cells, from }: Binned, rows: Int32Array, { slope, curve }: Slopes): Steps<Node> {
  const columns = from.length - 1
  const sums = new Float64Array(from[columns]! * SUMS)
  let slopeSum = 0
  let curveSum = 0
  const chunk = Math.ceil(STEP / columns)
  for (let at = 0; at < rows.length; at += 1) {
    if (at > 0 && at % chunk === 0) yield
    const row = rows[at]!
    const own = slope[row]!
    const bend = curve[row]!
    slopeSum += own
    curveSum += bend
    for (let cell = row * columns; cell < (row + 1) * columns; cell += 1) {
      const place = cells[cell]! * SUMS
      sums[place] = sums[place]! + own
      sums[place + 1] = sums[place + 1]! + bend
    }
  }
  return { rows, sums, slope: slopeSum, curve: curveSum }
}

const restOf = (node: Node, rows: Int32Array, { sums, slope, curve }: Node): Node => ({
  rows,
  sums: node.sums.map((sum, at) => sum - sums[at]!),
  slope: node.slope - slope,
  curve: node.curve - curve,
})

function bestSplit(
  { from, isEqual }: Binned,
  { sums, slope, curve }: Node,
  growth: Growth,
  mayAsk: Uint8Array,
): (TreeTest & { gain: number }) | null {
  const { decay, leastCurve } = growth
  const whole = (slope * slope) / (curve + decay)
  let best: (TreeTest & { gain: number }) | null = null
  let most = growth.leastGain
  for (let column = 0; column + 1 < from.length; column += 1) {
    if (mayAsk[column] === 0) continue
    const start = from[column]!
    const equal = isEqual[column] === true
    let slopeIn = 0
    let curveIn = 0
    for (let place = start; place < from[column + 1]!; place += 1) {
      if (equal) slopeIn = curveIn = 0
      slopeIn += sums[place * SUMS]!
      curveIn += sums[place * SUMS + 1]!
      const curveOut = curve - curveIn
      if (curveIn < leastCurve || curveOut < leastCurve) continue
      const slopeOut = slope - slopeIn
      const gain = (slopeIn * slopeIn) / (curveIn + decay) + (slopeOut * slopeOut) / (curveOut + decay) - whole
      if (gain <= most) continue
      most = gain
      best = { column, bin: place - start + (equal ? 0 : 1), equal, gain }
    }
  }
  return best
}

/** True if the bin of the test's column passes. */
export const passes = ({ bin, equal }: TreeTest, own: number): boolean => (equal ? own === bin : own >= bin)

/** True if the episode's bin passes. */
const passesAt = ({ cells, from }: Binned, row: number, test: TreeTest): boolean =>
  passes(test, cells[row * (from.length - 1) + test.column]! - from[test.column]!)

function divided(binned: Binned, rows: Int32Array, test: TreeTest): { fails: Int32Array; passes: Int32Array } {
  const passing = rows.filter((row) => passesAt(binned, row, test))
  return { passes: passing, fails: rows.filter((row) => !passesAt(binned, row, test)) }
}

/** The points of a tree for an episode. */
export function pointsAt(binned: Binned, row: number, root: TreeNode): number {
  let node = root
  while ('fails' in node) node = passesAt(binned, row, node) ? node.passes : node.fails
  return node.points
}
