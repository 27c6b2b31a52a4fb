import type { Steps } from '../../../../base/steps.ts'
import type { Saw } from '../../episode.ts'
import { type Bits, bitsIn } from '../facts/bits.ts'
import { type ContextPath, pathKey } from '../facts/condition.ts'
import { leavesOf } from '../facts/facts.ts'
import { passes, type TreeNode } from './grow.ts'
import { MOST_CLASSES, MOST_WEIGHTS, packScorer, pointsSource } from './pack.ts'
import { isRecent, piecesOf, piecesSource } from './pieces.ts'
import { pointsOf, type Scorer } from './scorer.ts'
import { fitPieces, quantised } from './softmax.ts'
import { packTrees, treesSource } from './tree-pack.ts'
import { linesOf } from './tree-words.ts'
import { addTreePoints, binsIn, fitTrees, NO_TREES, quantisedTrees, type Trees } from './trees.ts'

/** Points of a logit: the unit of all parts of a table. */
export const POINTS_OF_LOGIT = 80

/** An episode as a table reads it. */
export type ReadEpisode = { saw: Saw; pieces: Uint32Array }
/** Its last class is for decisions that cannot be learned. */
export type TableScorer = Scorer & { trees: Trees }

const EPISODES_OF_STEP = 20

export function* readOf(saws: readonly Saw[]): Steps<ReadEpisode[]> {
  const read: ReadEpisode[] = []
  for (const saw of saws) {
    if (read.length % EPISODES_OF_STEP === 0) yield
    read.push({ saw, pieces: piecesOf(saw) })
  }
  return read
}

/** Decisions of a table; another class is for what cannot be learned. */
export const MOST_DECISIONS = MOST_CLASSES - 1

export type ScorerLesson = {
  /** In time order. */ read: readonly ReadEpisode[]
  /** −1: a decision that cannot be learned, which teaches to abstain. */ classOf: Int32Array
  classes: number
  /** True if what holds in these episodes may weigh. */ crowd: (support: Bits) => boolean
}

/** Trees say what numbers tell, and pieces of texts and values the rest. */
export function* fitScorer({ read, classOf, classes, crowd }: ScorerLesson): Steps<TableScorer> {
  const fitted = yield* fitTrees({ saws: read.map(({ saw }) => saw), classOf, classes })
  const has = fitted.trees.length > 0
  const bins = has ? yield* binsOf(read, fitted) : []
  const trees = quantisedTrees(yield* withoutCarried(fitted, bins, crowd), POINTS_OF_LOGIT)
  const bias = has ? fitted.bias : []
  const bases = yield* basesOf(bins, trees, bias)
  const base = (episode: number): ArrayLike<number> => bases[episode] ?? []
  const rows = read.map(({ pieces }) => pieces)
  const bytes = MOST_WEIGHTS - (has ? packTrees(trees).length : 0)
  const weights = yield* fitPieces({ rows, classOf, classes, crowd, bytes, ...(has && { base }) })
  const scorer = quantised({ ...weights, bias: weights.bias.map((logit, own) => logit + (bias[own] ?? 0)) }, POINTS_OF_LOGIT)
  return { ...scorer, trees: has ? trees : NO_TREES }
}

/** The bins of each episode; null for one unlike what the trees were taught. */
type EpisodeBins = readonly (number[] | null)[]

function* binsOf(read: readonly ReadEpisode[], trees: Trees): Steps<EpisodeBins> {
  const bins: (number[] | null)[] = []
  for (const { saw } of read) {
    if (bins.length % EPISODES_OF_STEP === 0) yield
    bins.push(binsIn(trees, saw))
  }
  return bins
}

/** The logits of each episode by the trees. */
function* basesOf(bins: EpisodeBins, trees: Trees, bias: readonly number[]): Steps<Float32Array[]> {
  const bases: Float32Array[] = []
  for (const own of bins) {
    if (bases.length % EPISODES_OF_STEP === 0) yield
    const points = bias.map(() => 0)
    if (own !== null) addTreePoints(trees, own, points)
    bases.push(Float32Array.from(bias, (logit, own) => logit + (points[own] ?? 0) / POINTS_OF_LOGIT))
  }
  return bases
}

/** Leaves that one sender could carry alone give no points. */
function* withoutCarried(fitted: Trees, bins: EpisodeBins, crowd: ScorerLesson['crowd']): Steps<Trees> {
  const kept = (node: TreeNode, rows: readonly number[]): TreeNode => {
    if (!('fails' in node)) return crowd(bitsIn(bins.length, rows)) ? node : { points: 0 }
    const isPassing = (row: number): boolean => passes(node, bins[row]?.[node.column] ?? 0)
    return {
      ...node,
      fails: kept(
        node.fails,
        rows.filter((row) => !isPassing(row)),
      ),
      passes: kept(node.passes, rows.filter(isPassing)),
    }
  }
  const all = bins.flatMap((own, row) => (own ? [row] : []))
  const trees: Trees['trees'][number][] = []
  for (const { own, root } of fitted.trees) {
    trees.push({ own, root: kept(root, all) })
    yield
  }
  return { ...fitted, trees }
}

/** The points of each class; null for a context unlike the taught ones. */
export function pointsIn(scorer: TableScorer, { saw, pieces }: ReadEpisode): Int32Array | null {
  const points = Array.from(pointsOf(scorer, { pieces }))
  const bins = scorer.trees.trees.length === 0 ? [] : binsIn(scorer.trees, saw)
  if (bins === null) return null
  addTreePoints(scorer.trees, bins, points)
  return Int32Array.from(points)
}

/** The weights, and the code of `tablePoints(context)`, which reads them. */
export function packed(scorer: TableScorer): { weights: string; source: string } {
  const has = scorer.trees.trees.length > 0
  const after = has ? packTrees(scorer.trees) : ''
  const weights = packScorer(scorer, after)
  const recent = [...scorer.pieces.keys()].some(isRecent)
  const source = [
    'function tablePoints(context) {',
    '  const points = pointsOf(context)',
    has ? '  return points !== null && addTrees(context, points) ? points : null' : '  return points',
    '}',
    '',
    ...(has ? [treesSource(scorer.trees, weights.length - after.length), ''] : []),
    pointsSource(weights),
    '',
    piecesSource({ recent }),
  ].join('\n')
  return { weights, source }
}

const MOST_TEXTS = 4
const LEAST_TEXTS = 20

/**
 * The parts of events that a table looks at, for the guards and the head of its code. `names`: of
 * its decisions.
 */
export function looksAt(
  { trees, pieces }: TableScorer,
  { saws, names }: { saws: readonly Saw[]; names: readonly string[] },
): {
  texts: ContextPath[]
  isNumber: (path: ContextPath) => boolean
  described: string[]
} {
  const counts = new Map<string, { path: ContextPath; count: number }>()
  for (const saw of saws)
    for (const { path, value } of leavesOf(saw).leaves) {
      if (path[0] !== 'event' || path[1] === 'type' || typeof value !== 'string' || !/[\d ]/.test(value)) continue
      const known = counts.get(pathKey(path)) ?? { path, count: 0 }
      known.count += 1
      counts.set(pathKey(path), known)
    }
  const frequent = [...counts.values()].filter(({ count }) => count >= LEAST_TEXTS).sort((one, other) => other.count - one.count)
  const asked = new Set(trees.columns.flatMap(({ source }) => [source.path, ...('other' in source ? [source.other] : [])]).map(pathKey))
  return {
    texts: frequent.slice(0, MOST_TEXTS).map(({ path }) => path),
    isNumber: (path) => asked.has(pathKey(path)),
    described: [
      `It looks at ${pieces.size} words, pairs, letters and values${trees.trees.length > 0 ? `, and at numbers by ${trees.trees.length} trees:` : '.'}`,
      ...linesOf(trees, names),
    ],
  }
}
