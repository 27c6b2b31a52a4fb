import { and, type Bits, bitsOf, bitsIn, count, countBoth, hasBit, indexesOf } from './facts/bits.ts'
import type { Steps } from '../../../base/steps.ts'
import type { Classes } from './classes.ts'
import type { Matrix } from './facts/matrix.ts'
import type { Crowd } from './sources.ts'
import { coveredBy, LEAST_OF_RULE, MOST_EXCEPTIONS, type Rule, rulesFor } from './rules.ts'
import type { Literal } from './facts/condition.ts'
import { DEFAULT_AGREEMENT } from '../../../contract/agreement.ts'
import { errorsOfTable } from './bounds.ts'
import { fitScorer, POINTS_OF_LOGIT, pointsIn, type ReadEpisode, type TableScorer } from './scorer/fit.ts'
import { leadOf } from './scorer/scorer.ts'

/** A history made ready to learn from. */
export type PreparedEpisodes = {
  matrix: Matrix
  classes: Classes
  crowd: Crowd
  /** For each class, the episodes that it is judged on. */ fair: readonly Bits[]
  /** Their indexes, in order. */ fairIndexes: readonly number[]
  /** The parts of each episode that a table sees. */ read: readonly ReadEpisode[]
  /** The type of the event of each episode. */ types: readonly string[]
}

/**
 * The newer decisions: `n` in all, `covered` by what was learned, `agreed` among the covered.
 * `hits` and `misses`: the indexes of those that agree and that differ.
 */
export type HeldOut = { n: number; covered: number; agreed: number; hits: readonly number[]; misses: readonly number[] }

export const NONE: HeldOut = { n: 0, covered: 0, agreed: 0, hits: [], misses: [] }

export const heldOut = (n: number, taken: readonly number[], isRight: (index: number) => boolean): HeldOut => {
  const hits = taken.filter(isRight)
  return { n, covered: taken.length, agreed: hits.length, hits, misses: taken.filter((index) => !isRight(index)) }
}

export const OLDER = 0.7

export function* learnRules(
  { matrix, classes, crowd, types }: PreparedEpisodes,
  taught: Bits,
  isWanted: (own: number) => boolean = () => true,
): Steps<Rule[][]> {
  const rules: Rule[][] = []
  for (const [own, { branches }] of classes.classes.entries()) {
    const problem = { matrix, taught, crowd, names: matrix.names, positive: bitsOf(matrix.size, (index) => classes.of[index] === own) }
    // Nothing separates decisions that all begin alike: their branches do.
    const usual = branches && isWanted(own) ? rulesByType(problem, types) : []
    rules.push(isWanted(own) && usual.length === 0 ? yield* rulesFor(problem) : usual)
  }
  return rules
}

type Problem = Parameters<typeof rulesFor>[0]

/** Rules for the types of all events, if almost all decisions on each are this one. */
function rulesByType({ matrix, taught, positive, crowd }: Problem, types: readonly string[]): Rule[] {
  const rules: Rule[] = []
  for (const type of new Set(types)) {
    const covered = bitsOf(matrix.size, (index) => types[index] === type)
    const known = and(covered, taught)
    const support = countBoth(known, positive)
    const exceptions = count(known) - support
    if (exceptions > count(known) * MOST_EXCEPTIONS) return []
    const literals: Literal[] = [{ condition: { is: 'equal', path: ['event', 'type'], value: type }, holds: true }]
    if (support >= LEAST_OF_RULE && crowd(and(known, positive))) rules.push({ literals, covered, support, exceptions })
  }
  return rules
}

/** A table for all decisions, from the episodes with these indexes, which are in time order. */
export function learnScorer({ read, classes, crowd, matrix }: PreparedEpisodes, taught: readonly number[]): Steps<TableScorer> {
  const among = (support: Bits): boolean =>
    crowd(
      bitsIn(
        matrix.size,
        indexesOf(support).map((place) => taught[place] ?? 0),
      ),
    )
  return fitScorer({
    read: taught.flatMap((index) => read[index] ?? []),
    classOf: Int32Array.from(taught, (index) => classes.of[index] ?? -1),
    classes: classes.classes.length,
    crowd: among,
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

/** `leads`: the points that each class must be ahead by; a class without decides nothing. */
export type JudgedScorer = {
  leads: (number | null)[]
  byClass: HeldOut[]
  disputed: number[]
  /** The share of wrong decisions of each class if all are taken. */
  errors: (number | null)[]
}
type Threshold = { threshold: number; n: number }
/** Parts of the history, in time order: each is judged by a table that the others teach. */
const FOLDS = 3
/** Logits from which on a disagreement may be the teacher's mistake. */
const CONFIDENT = 2
/** A table that errs more often cannot tell a mistake of the teacher from its own. */
const MOST_WRONG = 0.15
/** Share of decisions that is worth a looser bound. */
const ENOUGH = 0.95
/** Share that is worth the loosest one. */
const SOME = 0.85
/** Wrong decisions that are expected beyond those seen: the score is chosen by the same ones. */
const MORE_WRONG = 2
/** A class of a table needs so many decisions by itself. */
export const LEAST_OF_CLASS = 20
const MOST_WRONG_OF_CLASS = 0.04

type ScorerVerdict = { index: number; best: number; score: number; agreed: boolean }

/**
 * Each decision is scored by a table that was learned without its part of the history, and so is
 * about as sure as one that is learned from all of it.
 */
export function* judgeScorer(prepared: PreparedEpisodes, bounds: readonly number[]): Steps<JudgedScorer> {
  const { classes, fair, matrix } = prepared
  const isFair = (index: number, own: number): boolean => hasBit(fair[own] ?? new Uint32Array(), index)
  const scored: ScorerVerdict[] = []
  for (let fold = 0; fold < FOLDS; fold += 1) {
    const from = Math.floor((matrix.size * fold) / FOLDS)
    scored.push(...(yield* scoredBy(prepared, [from, Math.floor((matrix.size * (fold + 1)) / FOLDS)])))
  }
  const judged = scored.filter(({ index, best }) => isFair(index, best))
  const reaches = classes.classes.map(({ acts }) => acts.some(({ kind }) => kind === 'tool' || kind === 'skill'))
  // A certificate proves effects outside apart from the rest, and acts with a bound of their own.
  const groupOf = (own: number): string => `${reaches[own]} ${bounds[own]}`
  const groups = new Map(
    Array.from(Map.groupBy(classes.classes.keys(), groupOf), ([group, own]) => {
      const among = judged.filter(({ best }) => groupOf(best) === group)
      return [group, strictest(among, errorsOfTable(bounds[own[0] ?? 0] ?? DEFAULT_AGREEMENT))]
    }),
  )
  const thresholds = [...groups.values()].flatMap((bound) => bound?.threshold ?? [])
  const confident = Math.max(CONFIDENT * POINTS_OF_LOGIT, ...thresholds)
  const canTell = scored.filter(({ agreed }) => !agreed).length <= scored.length * MOST_WRONG
  const disputed = !canTell ? [] : scored.filter(({ agreed, score }) => !agreed && score >= confident).map(({ index }) => index)
  const leads = classes.classes.map((_, own) => {
    const taken = judged.filter(({ best }) => best === own)
    const bound = groups.get(groupOf(own)) ?? null
    const isTaughtByMany = prepared.crowd(bitsOf(classes.of.length, (index) => classes.of[index] === own))
    return bound !== null && isTaughtByMany && isGoodAlone(taken.filter(({ score }) => score >= bound.threshold)) ? bound.threshold : null
  })
  const byClass = classes.classes.map((_, own) => {
    const fired = judged.filter(({ best, score }) => best === own && score >= (leads[own] ?? Infinity))
    const n = scored.filter(({ index }) => classes.of[index] === own && isFair(index, own)).length
    const taken = fired.map(({ index }) => index)
    return heldOut(n, taken, (index) => classes.of[index] === own)
  })
  const errors = classes.classes.map((_, own) => {
    const taken = judged.filter(({ best }) => best === own)
    return taken.length < LEAST_OF_CLASS ? null : taken.filter(({ agreed }) => !agreed).length / taken.length
  })
  return { leads, byClass, disputed, errors }
}

/** The bound holds for all decisions of the table together: none may hide behind the others. */
function isGoodAlone(fired: readonly ScorerVerdict[]): boolean {
  const wrong = fired.filter(({ agreed }) => !agreed).length
  return fired.length >= LEAST_OF_CLASS && wrong <= fired.length * MOST_WRONG_OF_CLASS
}

/** The strictest share of wrong decisions that leaves enough decisions. */
function strictest(judged: readonly ScorerVerdict[], shares: readonly number[]): Threshold | null {
  let most: Threshold | null = null
  for (const share of shares) {
    const found = lowest(judged, share)
    if (found !== null && found.n > (most?.n ?? 0)) most = found
    if (most !== null && most.n >= judged.length * (share === shares.at(-2) ? SOME : ENOUGH)) break
  }
  return most
}

/** The lowest score from which on at most this share is wrong, with some more than were seen. */
function lowest(judged: readonly ScorerVerdict[], share: number): Threshold | null {
  const sorted = judged.toSorted((one, other) => other.score - one.score)
  let wrong = 0
  let found: Threshold | null = null
  for (const [index, { score, agreed }] of sorted.entries()) {
    if (!agreed) wrong += 1
    const n = index + 1
    if (wrong + MORE_WRONG <= n * share && sorted[n]?.score !== score) found = { threshold: score, n }
  }
  return found
}

/** Verdicts on a part of the history of a table that the rest taught, where it decides at all. */
function* scoredBy(prepared: PreparedEpisodes, [from, to]: readonly [from: number, to: number]): Steps<ScorerVerdict[]> {
  const { read, classes, matrix } = prepared
  const all = Array.from({ length: matrix.size }, (_, index) => index)
  const scorer = yield* learnScorer(prepared, [...all.slice(0, from), ...all.slice(to)])
  const verdicts: ScorerVerdict[] = []
  for (const index of all.slice(from, to)) {
    if (index % EPISODES_OF_STEP === 0) yield
    const seen = read[index]
    const points = seen ? pointsIn(scorer, seen) : null
    if (points === null) continue
    const { own: best, margin: score } = leadOf(points)
    if (best < classes.classes.length) verdicts.push({ index, best, score, agreed: classes.of[index] === best })
  }
  return verdicts
}

const EPISODES_OF_STEP = 50
