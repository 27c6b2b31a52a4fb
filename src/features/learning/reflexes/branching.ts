import { canonicalJson, sameJson } from '../../../base/json.ts'
import type { Steps } from '../../../base/steps.ts'
import { MOST_ACTS, MOST_BRANCHES } from '../../../contract/action.ts'
import { BY_OUTPUT } from '../contract/decision-words.ts'
import type { Episode } from '../episode.ts'
import { and, type Bits, bitsIn, bitsOf, count, indexesOf } from './facts/bits.ts'
import { type Matrix, matrixOf } from './facts/matrix.ts'
import { isExpressible } from './branch-tests.ts'
import { type ActTemplate, allReturned, type BranchRule, type DecisionClass, isGiven, keyOfActs, type LearnedBranch } from './classes.ts'
import { errsLittle } from './bounds.ts'
import { type HeldOut, heldOut, NONE, OLDER, type PreparedEpisodes } from './judge.ts'
import { type JudgedEpisodes, LEAST_PREDICTED, type Merged, termsOf, unpredicted, withMerged } from './merging.ts'
import { coveredBy, type Rule, rulesFor } from './rules.ts'
import type { Crowd } from './sources.ts'

/** The bound that a decision has to prove. */
type BoundOf = (decision: DecisionClass) => number

/**
 * `refined` counts what was judged without the branches. `branched`: null if there are none.
 * `disputed`: indexes of decisions that the rules of branches contradict.
 */
type Branched = {
  branched: { prepared: PreparedEpisodes; refined: (judged: HeldOut, own: number) => HeldOut } | null
  disputed: readonly number[]
}

/**
 * Makes one decision of all that begin with the same calls, where events do not separate how they
 * continue: what these calls returned chooses its branch.
 */
export function* withBranches(episodes: readonly Episode[], judged: JudgedEpisodes, boundOf: BoundOf): Steps<Branched> {
  const { prepared } = judged
  const found: LearnedBranching[] = []
  const disputed: number[] = []
  for (const group of groupsIn(judged)) {
    const tried = yield* branchingOf(episodes, { prepared, group, boundOf })
    disputed.push(...tried.disputed)
    if (tried.branches.length > 0) found.push(tried)
  }
  if (found.length === 0) return { branched: null, disputed }
  const merged = withMerged(prepared, found.map(mergedOf(prepared)))
  const first = merged.classes.classes.length - found.length
  const refined = (held: HeldOut, own: number): HeldOut => refinedBy(held, found[own - first]?.predicted)
  return { branched: { prepared: merged, refined }, disputed }
}

type Group = { acts: readonly ActTemplate[]; classes: readonly number[] }

/** The classes that are not predicted, by the calls with which they begin. */
function groupsIn(judged: JudgedEpisodes): Group[] {
  const { classes } = judged.prepared.classes
  const open = unpredicted(judged, ([act]) => act?.kind === 'tool')
  const groups = Map.groupBy(open, (own) => canonicalJson(classes[own]?.acts[0]))
  return [...groups.values()].flatMap((own) =>
    own.length < 2 ? [] : [{ acts: sharedActs(own.map((one) => classes[one]?.acts ?? [])), classes: own }],
  )
}

/** The calls that all of these begin with. */
function sharedActs(all: readonly (readonly ActTemplate[])[]): readonly ActTemplate[] {
  const [first = []] = all
  const isShared = (act: ActTemplate, place: number): boolean => act.kind === 'tool' && all.every((acts) => sameJson(acts[place], act))
  const end = first.findIndex((act, place) => !isShared(act, place))
  return end < 0 ? first : first.slice(0, end)
}

type LearnedBranching = {
  group: readonly number[]
  acts: readonly ActTemplate[]
  branches: readonly LearnedBranch[]
  /** All episodes that begin so. */
  members: readonly number[]
  /** True for members whose branch is predicted rightly; missing where none is predicted. */
  predicted: ReadonlyMap<number, boolean>
  disputed: readonly number[]
}
type Seen = { index: number; episode: Episode }
type BranchingOf = { prepared: PreparedEpisodes; group: Group; boundOf: BoundOf }

function* branchingOf(episodes: readonly Episode[], { prepared, group, boundOf }: BranchingOf): Steps<LearnedBranching> {
  const { classes } = prepared
  const among = new Set(group.classes)
  const begins = (index: number): boolean => {
    const own = classes.of[index] ?? -1
    return among.has(own) || (own === -1 && isBegun(episodes[index] as Episode, group.acts))
  }
  const members = [...episodes.keys()].filter(begins)
  const returned = allReturned(
    members.map((index) => episodes[index] as Episode),
    group.acts.length,
  )
  const seen = returned.flatMap((episode, place): Seen[] => (episode ? [{ index: members[place] ?? -1, episode }] : []))
  const matrix = yield* matrixOf(
    seen.map(({ episode }) => episode),
    isExpressible,
  )
  const of: Learning = { seen, matrix, prepared }
  const judged = judgeBranches(yield* learnBranches(group.classes, OLDER, of), of)
  const isGood = (own: number): boolean => {
    const held = judged.byClass.get(own) ?? NONE
    return held.covered >= LEAST_PREDICTED && errsLittle(boundOf(classes.classes[own] as DecisionClass), held)
  }
  const all = yield* learnBranches(group.classes, 1, of)
  const learned = all.filter(({ own }) => isGood(own))
  const predicted = new Map(
    [...judged.predicted].flatMap(([index, own]) => (isGood(own) ? [[index, own === classes.of[index]] as const] : [])),
  )
  const branches = learned.map((one) => branchOf(one, of, group.acts.length))
  const wrong = all.flatMap((one) => indexesIn(coveredBy(one.rules, seen.length), of, (own) => own !== one.own))
  const misses = [...judged.byClass.values()].flatMap((one) => one.misses)
  return { group: group.classes, acts: group.acts, branches, members, predicted, disputed: [...misses, ...wrong] }
}

/** A class as a branch, after so many acts. */
function branchOf({ own, rules }: Learned, of: Learning, first: number): LearnedBranch {
  const decision = of.prepared.classes.classes[own] as DecisionClass
  const isOwn = (one: number): boolean => one === own
  const shown = rules.map(({ literals, support, exceptions, covered }): BranchRule => ({
    literals,
    support,
    exceptions,
    examples: indexesIn(covered, of, isOwn),
  }))
  const mine = of.seen.filter(({ index }) => isOwn(of.prepared.classes.of[index] ?? -1))
  return {
    decision: { ...decision, acts: decision.acts.slice(first) },
    rules: shown,
    own: mine.map(({ index }) => index),
    seen: mine.map(({ episode }) => episode),
  }
}

/** The indexes of episodes of some classes. */
const indexesIn = (covered: Bits, { seen, prepared: { classes } }: Learning, isIn: (own: number) => boolean): number[] =>
  indexesOf(covered).flatMap((place) => {
    const index = seen[place]?.index ?? -1
    return isIn(classes.of[index] ?? -1) ? [index] : []
  })

/** True if a decision begins with these calls. */
const isBegun = ({ acts, saw }: Episode, first: readonly ActTemplate[]): boolean =>
  first.every(({ kind, name }, place) => acts[place]?.kind === kind && acts[place].name === name) &&
  isGiven({ acts, saw, words: 'exact' }, first)

/** `covered` of rules: places in `seen`. */
type Learned = { own: number; rules: Rule[] }
type Learning = { seen: readonly Seen[]; matrix: Matrix; prepared: PreparedEpisodes }

/** Rules for each class from the older episodes, the surest classes first. */
function* learnBranches(group: readonly number[], share: number, { seen, matrix, prepared }: Learning): Steps<Learned[]> {
  const { classes, matrix: all } = prepared
  const taught = bitsOf(seen.length, (place) => place < seen.length * share)
  const crowd: Crowd = (support) =>
    prepared.crowd(
      bitsIn(
        all.size,
        indexesOf(support).map((place) => seen[place]?.index ?? 0),
      ),
    )
  const learned: Learned[] = []
  for (const own of group) {
    const positive = bitsOf(seen.length, (place) => classes.of[seen[place]?.index ?? -1] === own)
    const isShort = (classes.classes[own]?.acts.length ?? 0) <= MOST_ACTS
    const rules = isShort && count(and(positive, taught)) > 0 ? yield* rulesFor({ matrix, taught, crowd, positive }) : []
    learned.push({ own, rules: rules.filter(({ literals }) => literals.every(({ condition }) => isExpressible(condition))) })
  }
  const kept = new Set(
    learned
      .flatMap(({ rules }) => rules)
      .sort((one, other) => other.support - one.support)
      .slice(0, MOST_BRANCHES),
  )
  return learned
    .map(({ own, rules }) => ({ own, rules: rules.filter((rule) => kept.has(rule)) }))
    .filter(({ rules }) => rules.length > 0)
    .sort((one, other) => errorsOf(one) - errorsOf(other) || one.own - other.own)
}

function errorsOf({ rules }: Learned): number {
  const [exceptions, support] = [rules.reduce((sum, one) => sum + one.exceptions, 0), rules.reduce((sum, one) => sum + one.support, 0)]
  return exceptions / support
}

/** The first branch that holds decides, as in an action. Judged are the newer episodes. */
function judgeBranches(learned: readonly Learned[], { seen, prepared: { classes } }: Learning) {
  const predicted = new Map<number, number>()
  for (const { own, rules } of learned)
    for (const place of indexesOf(coveredBy(rules, seen.length))) {
      const index = seen[place]?.index ?? -1
      if (!predicted.has(index)) predicted.set(index, own)
    }
  const newer = seen.slice(Math.ceil(seen.length * OLDER)).map(({ index }) => index)
  const byClass = new Map(
    learned.map(({ own }) => {
      const taken = newer.filter((index) => predicted.get(index) === own)
      const n = newer.filter((index) => classes.of[index] === own).length
      return [own, heldOut(n, taken, (index) => classes.of[index] === own)]
    }),
  )
  return { predicted, byClass }
}

/** Makes a decision that replaces those which are its branches. */
const mergedOf =
  ({ classes: { classes } }: PreparedEpisodes) =>
  ({ group, acts, branches, members }: LearnedBranching): Merged => {
    const own = group.flatMap((one) => classes[one] ?? [])
    const decision: DecisionClass = {
      // The key of its first acts stays when it gets another branch.
      key: keyOfActs(acts, BY_OUTPUT),
      acts,
      branches,
      beside: null,
      unheard: own.some(({ unheard }) => unheard),
      unheardAlone: false,
      leaves: own.every(({ leaves }) => leaves),
      terms: termsOf(own),
    }
    return { group, decision, members }
  }

/** Without those whose branch is not predicted, or wrongly. */
function refinedBy(judged: HeldOut, predicted: LearnedBranching['predicted'] | undefined): HeldOut {
  if (!predicted) return judged
  const hits = judged.hits.filter((index) => predicted.get(index) === true)
  const misses = [...judged.misses, ...judged.hits.filter((index) => predicted.get(index) === false)]
  return { n: judged.n, covered: hits.length + misses.length, agreed: hits.length, hits, misses }
}
