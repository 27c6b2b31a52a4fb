import { and, type Bits, bitsOf, countBoth, hasBit, indexesOf } from './facts/bits.ts'
import type { Steps } from '../../../base/steps.ts'
import type { Classes } from './classes.ts'
import type { Matrix } from './facts/matrix.ts'
import type { Crowd } from './sources.ts'
import { coveredBy, type Rule, rulesFor } from './rules.ts'
import { pointsOf, type Table, tablesFor } from './table.ts'
import { learnThenTest, thresholdGrid, type Threshold } from '../../proof/evidence/learn-then-test.ts'

/** A history made ready to learn from. */
export type PreparedEpisodes = {
  matrix: Matrix
  classes: Classes
  crowd: Crowd
  /** For each class, the episodes that it is judged on. */ fair: readonly Bits[]
  /** Their indexes, in order. */ fairIndexes: readonly number[]
  /** Conditions that a table may weigh. */ usable: (taught: Bits) => (feature: number) => boolean
  sizeOf: (feature: number) => number
}

/**
 * The newer decisions: `n` in all, `covered` by what was learned, `agreed` among the covered.
 * `hits` and `misses`: the indexes of those that agree and that differ.
 */
export type HeldOut = { n: number; covered: number; agreed: number; hits: readonly number[]; misses: readonly number[] }

export const NONE: HeldOut = { n: 0, covered: 0, agreed: 0, hits: [], misses: [] }

const heldOut = (n: number, taken: readonly number[], isRight: (index: number) => boolean): HeldOut => {
  const hits = taken.filter(isRight)
  return { n, covered: taken.length, agreed: hits.length, hits, misses: taken.filter((index) => !isRight(index)) }
}

const OLDER = 0.7
const TABLE_BYTES = 13_000

export function* learnRules(
  { matrix, classes, crowd }: PreparedEpisodes,
  taught: Bits,
  isWanted: (own: number) => boolean = () => true,
): Steps<Rule[][]> {
  const rules: Rule[][] = []
  for (const own of classes.classes.keys()) {
    const positive = bitsOf(matrix.size, (index) => classes.of[index] === own)
    rules.push(isWanted(own) ? yield* rulesFor({ matrix, taught, crowd, positive }) : [])
  }
  return rules
}

export function learnTables(prepared: PreparedEpisodes, taught: Bits): Steps<Table[]> {
  const { matrix, classes, sizeOf } = prepared
  const indexes = Array.from({ length: matrix.size }, (_, index) => index).filter(
    (index) => ((taught[index >>> 5] ?? 0) >>> (index & 31)) & 1,
  )
  return tablesFor({
    matrix,
    taught: indexes,
    classOf: classes.of,
    classes: classes.classes.length,
    usable: prepared.usable(taught),
    crowd: prepared.crowd,
    bytes: TABLE_BYTES,
    sizeOf,
  })
}

/** The index before which this share of the fair episodes lies. */
const cut = ({ matrix, fairIndexes: fair }: PreparedEpisodes, share: number): number =>
  share === 1 ? matrix.size : (fair[Math.floor(fair.length * share)] ?? matrix.size)

export type JudgedRules = { byClass: HeldOut[]; disputed: number[] }

/** Learned on the older part, judged on the newer. */
export function* judgeRules(prepared: PreparedEpisodes): Steps<JudgedRules> {
  const { matrix, classes, fair } = prepared
  const from = cut(prepared, OLDER)
  const older = bitsOf(matrix.size, (index) => index < from)
  const later = bitsOf(matrix.size, (index) => index >= from)
  const disputed: number[] = []
  const byClass = (yield* learnRules(prepared, older)).map((rules, own) => {
    const newer = and(later, fair[own] ?? later)
    const covered = and(coveredBy(rules, matrix.size), newer)
    const decided = bitsOf(matrix.size, (index) => classes.of[index] === own)
    for (let index = 0; index < matrix.size; index += 1)
      if (((covered[index >>> 5] ?? 0) >>> (index & 31)) & 1 && classes.of[index] !== own) disputed.push(index)
    return heldOut(countBoth(newer, decided), indexesOf(covered), (index) => classes.of[index] === own)
  })
  return { byClass, disputed }
}

/** A class without a threshold decides nothing. */
export type JudgedTables = { thresholds: (number | null)[]; byClass: HeldOut[]; disputed: number[] }
type Bound = Threshold & { alpha: number }
const FORWARD = [0.25, 0.4, 0.55, 0.7, 0.85, 1] as const
/** From so many points on a disagreement may be the teacher's mistake. */
const CONFIDENT = 100
/** Share of decisions that is worth a looser bound. */
const ENOUGH = 0.95
/** Share that is worth the loosest one. */
const SOME = 0.85
/** Fewer decisions of a class are judged together with the others'. */
const LEAST_ALONE = 500
const STEPS = 100
const LEAST_COVERED = 0.7

type RuleVerdict = { index: number; best: number; score: number; agreed: boolean }

/** Each decision is scored by tables that were learned from earlier ones only. */
export function* judgeTables(
  prepared: PreparedEpisodes,
  { alphas, delta }: { alphas: readonly number[]; delta: number },
): Steps<JudgedTables> {
  const { classes, fair } = prepared
  const isFair = (index: number, own: number): boolean => hasBit(fair[own] ?? new Uint32Array(), index)
  const scored: RuleVerdict[] = []
  for (const [block, to] of FORWARD.slice(1).entries()) {
    const from = cut(prepared, FORWARD[block] ?? 1)
    scored.push(...(yield* scoredBy(prepared, (index) => index < from, { from, to: cut(prepared, to) })))
  }
  const start = cut(prepared, FORWARD[0])
  const earlier = yield* scoredBy(prepared, (index) => index >= start, { from: 0, to: start })
  const disputed = [...earlier, ...scored].filter(({ agreed, score }) => !agreed && score > CONFIDENT).map(({ index }) => index)
  const judged = scored.filter(({ index, best }) => isFair(index, best))
  const pooled = strictest(judged, alphas, delta)
  const found = classes.classes.map((_, own) => {
    const taken = judged.filter(({ best }) => best === own)
    return taken.length < LEAST_ALONE ? pooled : strictest(taken, alphas, delta)
  })
  const byClass = classes.classes.map((_, own) => {
    const fired = judged.filter(({ best, score }) => best === own && score >= (found[own]?.threshold ?? Infinity))
    const n = scored.filter(({ index }) => classes.of[index] === own && isFair(index, own)).length
    const taken = fired.map(({ index }) => index)
    return heldOut(n, taken, (index) => classes.of[index] === own)
  })
  return { thresholds: found.map((one) => one?.threshold ?? null), byClass, disputed }
}

/** The strictest bound on the share of wrong decisions that leaves enough decisions. */
function strictest(judged: readonly RuleVerdict[], alphas: readonly number[], delta: number): Bound | null {
  // A strict end with few decisions would end the sequence at its first mistake.
  const grid = thresholdGrid(
    judged.map(({ score }) => score),
    STEPS,
  ).slice(STEPS * LEAST_COVERED)
  let most: Bound | null = null
  for (const alpha of alphas) {
    const found = learnThenTest(judged, { alpha, delta, grid })
    if (found !== null && found.n > (most?.n ?? 0)) most = { ...found, alpha }
    if (most !== null && most.n >= judged.length * (alpha === alphas.at(-2) ? SOME : ENOUGH)) break
  }
  return most
}

function* scoredBy(
  prepared: PreparedEpisodes,
  isTaught: (index: number) => boolean,
  { from, to }: { from: number; to: number },
): Steps<RuleVerdict[]> {
  const { matrix, classes } = prepared
  const tables = yield* learnTables(prepared, bitsOf(matrix.size, isTaught))
  return Array.from({ length: to - from }, (_, step) => {
    const index = from + step
    const points = tables.map((table) => pointsOf(table, matrix.rows[index] ?? new Int32Array()))
    const score = Math.max(...points)
    const best = points.indexOf(score)
    return { index, best, score, agreed: classes.of[index] === best }
  })
}
