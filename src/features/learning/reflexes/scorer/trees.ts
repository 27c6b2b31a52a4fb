import type { Steps } from '../../../../base/steps.ts'
import type { Saw } from '../../episode.ts'
import { type ContextPath, pathKey } from '../facts/condition.ts'
import { farSpanOf, type FieldSpan, spanOf } from '../facts/ranges.ts'
import { type Binned, type Drawn, type Growth, growTree, passes, pointsAt, type TreeNode } from './grow.ts'
import { binOf, columnsOf, isCategory, type NumberSource, pairsOf, partOf, partsOf, type TreeColumn } from './numbers.ts'

/** A tree gives points to the class `own`. `columns`: the ones that a tree asks about. */
export type BoostedTree = { own: number; root: TreeNode }
export type Trees = {
  columns: readonly TreeColumn[]
  trees: readonly BoostedTree[]
  /** For each column, its share of what the trees gain. */
  shares: readonly number[]
  /** For each column, if it was ever missing, and if a value was ever another than the listed. */
  taught: readonly { missing: boolean; other: boolean }[]
  spans: readonly FieldSpan[]
}
export const NO_TREES: Trees = { columns: [], trees: [], shares: [], taught: [], spans: [] }

/**
 * Trees whose points are logits, and the logits of each class before anything is seen. The last
 * class stands for the decisions that cannot be learned.
 */
export type FittedTrees = Trees & { bias: readonly number[] }

export type TreeSettings = Omit<Growth, 'rate'> & {
  /** Null: as fast as the number of trees asks for. */
  rate: number | null
  patience: number
  /** Numbers of which the ratios and the differences are asked about. */
  pairs: number
  /** Shares of the episodes and of the columns that a tree is grown from. */
  rowShare: number
  columnShare: number
  /** Trees of all classes, times the tests on the way to a leaf and one. */
  most: number
}
export const TREES: TreeSettings = {
  depth: 4,
  decay: 1,
  leastCurve: 0.3,
  leastGain: 0.1,
  rate: null,
  patience: 12,
  pairs: 8,
  rowShare: 0.7,
  columnShare: 0.8,
  most: 1200,
}

const MOST_CLASSES = 60
const OLDER = 0.85
const LEAST_TAUGHT = 40
const PAIR_THRESHOLDS = 15
/** Rounds that show which numbers to combine. */
const FIRST_ROUNDS = 8
/** Standard errors by which trees have to predict the newest better than no trees. */
const CLEARLY = 2
const ROWS = 500

export type TreeLesson = {
  /** In time order. */ saws: readonly Saw[]
  /** The class of each; −1 if no class stands for its decision. */ classOf: ArrayLike<number>
  classes: number
}

/**
 * Boosted trees for numbers and frequent values. The older part says how many rounds predict the
 * newest part best; all of it is then learned in as many rounds.
 */
export function* fitTrees(lesson: TreeLesson, settings: TreeSettings = TREES): Steps<FittedTrees> {
  const { saws, classes } = lesson
  const none = { ...NO_TREES, bias: biasOf(lesson) }
  if (saws.length < LEAST_TAUGHT || classes > MOST_CLASSES) return none
  const cut = Math.floor(saws.length * OLDER)
  const older = saws.slice(0, cut)
  let columns = yield* columnsOf(older)
  if (columns.length === 0) return none
  let binned = yield* binnedOf(saws, columns)
  if (settings.pairs > 0) {
    const first = yield* boost(lesson, binned, { settings, cut, rounds: FIRST_ROUNDS, watched: false })
    const paths = numbersByGain(columns, first.gains).slice(0, settings.pairs)
    columns = [...columns, ...(yield* pairsOf(older, paths, PAIR_THRESHOLDS))]
    binned = yield* binnedOf(saws, columns)
  }
  const rounds = roundsOf(lesson, settings)
  const tried = yield* boost(lesson, binned, { settings, cut, rounds, watched: true })
  if (tried.best === 0) return none
  const { trees, gains } = yield* boost(lesson, binned, { settings, cut: saws.length, rounds: tried.best, watched: false })
  const kept = pruned(columns, trees, gains)
  return { ...kept, ...(yield* taughtOf(saws, kept.columns)), bias: none.bias }
}

/** Classes, and one for decisions that none of them stands for. */
const sizeOf = ({ classes, classOf }: TreeLesson): number => classes + (Array.prototype.includes.call(classOf, -1) ? 1 : 0)

function biasOf({ classOf, classes }: TreeLesson, until = classOf.length): number[] {
  const counts = Array.from({ length: classes + 1 }, () => 1)
  for (let index = 0; index < until; index += 1) {
    const own = rowClass(classOf[index], classes)
    counts[own] = (counts[own] ?? 0) + 1
  }
  return counts.map((count) => Math.log(count))
}

const rowClass = (own = -1, classes: number): number => (own < 0 ? classes : own)

function numbersByGain(columns: readonly TreeColumn[], gains: Float64Array): ContextPath[] {
  const found = columns.flatMap(({ source }, column) =>
    source.is === 'number' && source.path[0] === 'event' ? [{ path: source.path, gain: gains[column] ?? 0 }] : [],
  )
  return found
    .filter(({ gain }) => gain > 0)
    .sort((one, other) => other.gain - one.gain)
    .map(({ path }) => path)
}

export function* binnedOf(saws: readonly Saw[], columns: readonly TreeColumn[]): Steps<Binned> {
  const from = new Int32Array(columns.length + 1)
  const cells = new Int32Array(saws.length * columns.length)
  for (const [index, column] of columns.entries()) {
    from[index + 1] = from[index]! + column.at.length + 2
    const parts = yield* partsOf(column.source, saws)
    for (const [row, part] of parts.entries()) cells[row * columns.length + index] = from[index]! + binOf(column, part)
  }
  return { cells, from, isEqual: columns.map(isCategory) }
}

type Boosting = { settings: TreeSettings; cut: number; rounds: number; watched: boolean }
type Boosted = { trees: BoostedTree[]; gains: Float64Array; best: number }

/** Learns from the episodes before `cut`. `best`: the rounds that predict the others best. */
function* boost(lesson: TreeLesson, binned: Binned, { settings, cut, rounds, watched }: Boosting): Steps<Boosted> {
  const { saws, classOf } = lesson
  const size = sizeOf(lesson)
  const classAt = Int32Array.from(saws, (_, row) => rowClass(classOf[row], lesson.classes))
  const end = watched ? saws.length : cut
  const logits = new Float64Array(end * size)
  const bias = biasOf(lesson, cut)
  for (let at = 0; at < logits.length; at += 1) logits[at] = bias[at % size]!
  const growth = { ...settings, rate: settings.rate ?? rateFor(roundsOf(lesson, settings)) }
  const gains = new Float64Array(binned.from.length - 1)
  const trees: BoostedTree[] = []
  const slopes = Array.from({ length: size }, () => ({ slope: new Float64Array(cut), curve: new Float64Array(cut) }))
  const start = lossesOf(logits, classAt, { size, from: cut, end })
  let least = start
  let best = 0
  for (let round = 1; round <= rounds; round += 1) {
    yield* slopesOf(logits, classAt, slopes)
    for (let own = 0; own < size; own += 1) {
      const drawn = drawnFor(round * size + own, settings, { rows: cut, columns: gains.length })
      const root = yield* growTree(binned, drawn, slopes[own]!, growth, gains)
      if (!('fails' in root)) continue
      trees.push({ own, root })
      for (let row = 0; row < end; row += 1) {
        if (row % (ROWS * 4) === 0) yield
        logits[row * size + own] = logits[row * size + own]! + pointsAt(binned, row, root)
      }
    }
    if (!watched) continue
    const losses = lossesOf(logits, classAt, { size, from: cut, end })
    if (sum(losses) < sum(least)) [best, least] = [round, losses]
    else if (round - best >= settings.patience) break
  }
  return { trees, gains, best: isClearlyLess(least, start) ? best : 0 }
}

/** Each tree learns from its own draw, the same in each run: their mistakes differ. */
function drawnFor(tree: number, { rowShare, columnShare }: TreeSettings, { rows, columns }: { rows: number; columns: number }): Drawn {
  const isDrawn = (index: number, share: number): boolean => {
    let mixed = Math.imul(index + 1, 0x9e3779b1) ^ Math.imul(tree + 1, 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0x27d4eb2f)
    return (mixed ^ (mixed >>> 16)) >>> 0 < share * 2 ** 32
  }
  const mayAsk = Uint8Array.from({ length: columns }, (_, column) => (isDrawn(rows + column, columnShare) ? 1 : 0))
  return { rows: Int32Array.from({ length: rows }, (_, row) => row).filter((row) => isDrawn(row, rowShare)), mayAsk }
}

const sum = (values: Float64Array): number => values.reduce((all, value) => all + value, 0)

/** Few rounds have to go further. */
const rateFor = (rounds: number): number => Math.max(0.1, Math.min(0.35, 10 / rounds))

const roundsOf = (lesson: TreeLesson, { most, depth }: TreeSettings): number => Math.floor(most / (depth + 1) / sizeOf(lesson))

function isClearlyLess(losses: Float64Array, before: Float64Array): boolean {
  const saved = before.map((loss, at) => loss - losses[at]!)
  const mean = sum(saved) / saved.length
  const spread = Math.sqrt(sum(saved.map((one) => (one - mean) ** 2)) / saved.length)
  return saved.length > 0 && mean > (CLEARLY * spread) / Math.sqrt(saved.length)
}

function* slopesOf(
  logits: Float64Array,
  classAt: Int32Array,
  slopes: readonly { slope: Float64Array; curve: Float64Array }[],
): Steps<void> {
  const size = slopes.length
  const chances = new Float64Array(size)
  const rows = slopes[0]?.slope.length ?? 0
  for (let row = 0; row < rows; row += 1) {
    if (row % ROWS === 0) yield
    chancesAt(logits, row, chances)
    for (let own = 0; own < size; own += 1) {
      const chance = chances[own]!
      slopes[own]!.slope[row] = chance - (classAt[row] === own ? 1 : 0)
      slopes[own]!.curve[row] = Math.max(chance * (1 - chance), 1e-6)
    }
  }
}

function chancesAt(logits: Float64Array, row: number, chances: Float64Array): void {
  const size = chances.length
  let most = -Infinity
  for (let own = 0; own < size; own += 1) most = Math.max(most, logits[row * size + own]!)
  let all = 0
  for (let own = 0; own < size; own += 1) all += chances[own] = Math.exp(logits[row * size + own]! - most)
  for (let own = 0; own < size; own += 1) chances[own] = chances[own]! / all
}

function lossesOf(
  logits: Float64Array,
  classAt: Int32Array,
  { size, from, end }: { size: number; from: number; end: number },
): Float64Array {
  const chances = new Float64Array(size)
  return Float64Array.from({ length: end - from }, (_, at) => {
    chancesAt(logits, from + at, chances)
    return -Math.log(Math.max(chances[classAt[from + at]!]!, 1e-9))
  })
}

/** Keeps the columns and the thresholds that a tree asks about. */
function pruned(columns: readonly TreeColumn[], trees: readonly BoostedTree[], gains: Float64Array) {
  const asked = columns.map(() => new Set<number>())
  const visit = (node: TreeNode): void => {
    if (!('fails' in node)) return
    asked[node.column]?.add(node.bin)
    visit(node.fails)
    visit(node.passes)
  }
  for (const { root } of trees) visit(root)
  const kept = columns.flatMap((column, index) => (asked[index]!.size > 0 ? [{ ...prunedTo(column, asked[index]!), index }] : []))
  const placeOf = new Map(kept.map(({ index }, place) => [index, place]))
  const moved = (node: TreeNode): TreeNode => {
    if (!('fails' in node)) return node
    const column = placeOf.get(node.column) ?? 0
    return { ...node, column, bin: kept[column]!.binOf(node.bin), fails: moved(node.fails), passes: moved(node.passes) }
  }
  const all = kept.reduce((total, { index }) => total + gains[index]!, 0)
  return {
    columns: kept.map(({ column }) => column),
    trees: trees.map(({ own, root }) => ({ own, root: moved(root) })),
    shares: kept.map(({ index }) => gains[index]! / all),
  }
}

/** `binOf`: the new bin of an asked one. The values of a category tell what was taught. */
function prunedTo(column: TreeColumn, asked: ReadonlySet<number>): { column: TreeColumn; binOf: (bin: number) => number } {
  if (isCategory(column)) return { column, binOf: (bin) => bin }
  const places = [...asked].filter((bin) => bin >= FIRST_THRESHOLD).sort((one, other) => one - other)
  return {
    column: { source: column.source, at: places.map((bin) => column.at[bin - FIRST_THRESHOLD] as number) },
    binOf: (bin) => (bin < FIRST_THRESHOLD ? bin : FIRST_THRESHOLD + places.indexOf(bin)),
  }
}
/** The bin of a number that reaches the first threshold: 0 is missing, 1 is less. */
const FIRST_THRESHOLD = 2

/** The limits of what was taught, for the columns and the numbers behind them. */
function* taughtOf(saws: readonly Saw[], columns: readonly TreeColumn[]): Steps<Pick<Trees, 'taught' | 'spans'>> {
  const taught: Trees['taught'][number][] = []
  for (const column of columns) {
    const bins = new Set((yield* partsOf(column.source, saws)).map((part) => binOf(column, part)))
    taught.push({ missing: bins.has(0), other: isCategory(column) && bins.has(column.at.length + 1) })
  }
  const paths = new Map(columns.flatMap(({ source }) => pathsOf(source).map((path) => [pathKey(path), path] as const)))
  const spans: FieldSpan[] = []
  for (const [, path] of paths) {
    if (!BOUNDED.has(path[0])) continue
    const numbers = (yield* partsOf({ is: 'number', path }, saws)).filter((part) => typeof part === 'number')
    yield
    const span = spanOf(numbers.map((number) => [number])) ?? farSpanOf(numbers)
    if (span !== null) spans.push({ path, span })
  }
  return { taught, spans }
}
/** Counts of a window may be greater than they ever were. */
const BOUNDED = new Set<string | undefined>(['event', 'scratch'])

const pathsOf = (source: NumberSource): ContextPath[] =>
  source.is === 'number' ? [source.path] : 'other' in source ? [source.path, source.other] : []

/** The bins of a context; null if it has what was not taught, so that the trees say nothing. */
export function binsIn({ columns, taught, spans }: Trees, saw: Saw): number[] | null {
  const isOutside = spans.some(({ path, span: [low, high] }) => {
    const part = partOf({ is: 'number', path }, saw)
    return typeof part === 'number' && (part < low || part > high)
  })
  if (isOutside) return null
  const bins = columns.map((column) => binOf(column, partOf(column.source, saw)))
  const isTaught = bins.every((bin, index) => {
    const { missing, other } = taught[index]!
    const column = columns[index]!
    return bin === 0 ? missing : other || !isCategory(column) || bin <= column.at.length
  })
  return isTaught ? bins : null
}

/** Adds the points of the trees for these bins. */
export function addTreePoints({ trees }: Pick<Trees, 'trees'>, bins: readonly number[], points: number[]): void {
  for (const { own, root } of trees) {
    let node = root
    while ('fails' in node) node = passes(node, bins[node.column]!) ? node.passes : node.fails
    points[own] = (points[own] ?? 0) + node.points
  }
}

/** Trees with integer points, of which `scale` are a logit. */
export function quantisedTrees<Fitted extends Trees>(fitted: Fitted, scale: number): Fitted {
  const rounded = (node: TreeNode): TreeNode =>
    'fails' in node
      ? { ...node, fails: rounded(node.fails), passes: rounded(node.passes) }
      : { points: Math.max(-127, Math.min(127, Math.round(node.points * scale))) }
  return { ...fitted, trees: fitted.trees.map(({ own, root }) => ({ own, root: rounded(root) })) }
}

/** The largest points of a leaf, in logits. */
export function mostPoints({ trees }: Trees): number {
  const most = (node: TreeNode): number => ('fails' in node ? Math.max(most(node.fails), most(node.passes)) : Math.abs(node.points))
  return trees.reduce((all, { root }) => Math.max(all, most(root)), 0)
}
