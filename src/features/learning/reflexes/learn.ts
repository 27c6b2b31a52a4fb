import type { Episode } from '../episode.ts'
import { agreementFor, DEFAULT_AGREEMENT, type Agreement } from '../../../contract/agreement.ts'
import { errsLittle } from './bounds.ts'
import { bitsOf, emptyBits, indexesOf, or } from './facts/bits.ts'
import { withBranches } from './branching.ts'
import { LEAST_PREDICTED, withAnyOrder, withAnyWords } from './merging.ts'
import { type Classes, classesOf, type DecisionClass, nameOf, saysBeside } from './classes.ts'
import {
  type HeldOut,
  type JudgedScorer,
  LEAST_OF_CLASS,
  judgeRules,
  judgeScorer,
  type JudgedRules,
  learnRules,
  learnScorer,
  NONE,
  type PreparedEpisodes,
} from './judge.ts'
import { matrixOf } from './facts/matrix.ts'
import { byteLength } from '../../../base/json.ts'
import { limits } from '../../../base/limits.ts'
import { atOnce, type Steps } from '../../../base/steps.ts'
import type { Replies } from '../../../contract/words.ts'
import { partsOf } from '../../../reflexes/weights.ts'
import type { Reach } from '../contract/runs.ts'
import { reachOf } from './reach.ts'
import { crowdOf } from './sources.ts'
import { MOST_DECISIONS, readOf } from './scorer/fit.ts'
import { type LearnedReflex, rulesReflex, scorerReflex } from './write.ts'

export type ReflexLearnOptions = {
  /** Senders that a person trusts: one may send more than a third of a rule's support. */
  trusted?: ReadonlySet<string>
  /**
   * True if a reflex that takes a decision is judged on this episode. Once reflexes act, the slow
   * path decides the hard rest, which teaches, but says little about a reflex for all events.
   */
  fair?: (episode: Episode, act: { kind: string; name: string } | null) => boolean
  /** The setting that says if words beside other acts are part of a decision. */
  replies?: Replies
  /** The shares of decisions that a certificate has to prove: what is learned is to be better. */
  agreement?: Agreement
}

/** A decision that no reflex was written for. */
export type LearningRefusal = { decision: string; episodes: number; reason: string }
export type LearnedReflexes = {
  /** The episodes that were learned from. */
  episodes: readonly Episode[]
  reflexes: LearnedReflex[]
  refused: LearningRefusal[]
  /** Ids of events whose decision may be a mistake of the teacher: worth asking again. */
  disputed: string[]
  /** For each decision, how other episodes predict it. */
  judged: { decision: string; held_out: HeldOut }[]
  /** For each act, what can be reached at all. */
  reach: Reach[]
}

/** The newest are taken. */
export const MOST_EPISODES = 10_000
const LEAST_EPISODES = 40
const MOST_BYTES = { rules: 16_384, table: limits.code_bytes } as const
/** Rules that cover so much of all decisions need no table beside them. */
const ENOUGH = 0.97

/** Writes reflexes that decide as was decided. The same episodes give the same code. */
export const learnReflexes = (history: readonly Episode[], options: ReflexLearnOptions = {}): LearnedReflexes =>
  atOnce(learnReflexesInSteps(history, options))

export function* learnReflexesInSteps(history: readonly Episode[], options: ReflexLearnOptions = {}): Steps<LearnedReflexes> {
  const episodes = history.filter(({ outcome }) => outcome === 'ok' || outcome === 'corrected').slice(-MOST_EPISODES)
  const none = { episodes, reflexes: [], disputed: [], judged: [], reach: [] }
  const all = { decision: 'all', episodes: episodes.length }
  if (episodes.length < LEAST_EPISODES) return { ...none, refused: [{ ...all, reason: `at least ${LEAST_EPISODES} decisions are needed` }] }
  const exact = yield* prepare(episodes, options)
  const reason = reasonAgainst(exact)
  const freely = yield* prepareFreely(episodes, options, exact)
  const [first, ...others] = [...(reason === null ? [exact] : []), ...(freely !== null && reasonAgainst(freely) === null ? [freely] : [])]
  if (first) return yield* choose(episodes, [first, ...others], options)
  return { ...none, refused: [...exact.classes.refused, ...(reason === null ? [] : [{ ...all, reason }])] }
}

function reasonAgainst({ classes }: PreparedEpisodes): string | null {
  if (classes.classes.length === 0) return 'no decision was taken often enough in the same way'
  return new Set(classes.of).size < 2 ? 'all decisions were the same, so nothing separates the events that need another one' : null
}

function* prepare(
  episodes: readonly Episode[],
  { trusted = new Set(), fair = () => true, replies }: ReflexLearnOptions,
  before?: PreparedEpisodes,
): Steps<PreparedEpisodes> {
  const classes = yield* classesOf(episodes, replies)
  const matrix = yield* matrixFor(episodes, classes, before)
  const fairBits = classes.classes.map(({ acts: [act = null] }) =>
    bitsOf(episodes.length, (index) => fair(episodes[index] as Episode, act)),
  )
  const fairIndexes = indexesOf(fairBits.reduce(or, emptyBits(episodes.length)))
  const crowd = before?.crowd ?? crowdOf(episodes, trusted)
  const read = before?.read ?? (yield* readOf(episodes.map(({ saw }) => saw)))
  return { matrix, classes, crowd, fair: fairBits, fairIndexes, read, types: episodes.map(({ saw }) => saw.event.type) }
}

/** Decisions of which any words will do; null if no words vary where somebody hears them. */
function* prepareFreely(
  episodes: readonly Episode[],
  options: ReflexLearnOptions,
  exact: PreparedEpisodes,
): Steps<PreparedEpisodes | null> {
  const { replies = 'heard' } = options
  if (replies !== 'heard' || !episodes.some(({ acts, saw }) => saw.event.meta?.heard === true && saysBeside(acts))) return null
  const freely = yield* prepare(episodes, { ...options, replies: 'by_person' }, exact)
  return freely.classes.classes.some(({ terms }) => terms.any_words) ? freely : null
}

function* matrixFor(episodes: readonly Episode[], classes: Classes, before?: PreparedEpisodes): Steps<PreparedEpisodes['matrix']> {
  if (!isRuled(classes)) return { size: episodes.length, features: [], rows: [], numbers: new Map(), names: new Map() }
  return before && isRuled(before.classes) ? before.matrix : yield* matrixOf(episodes)
}

/** The decisions word for word come first, if they can be learned. */
type Read = readonly [PreparedEpisodes, ...PreparedEpisodes[]]

function* choose(episodes: readonly Episode[], read: Read, options: ReflexLearnOptions): Steps<LearnedReflexes> {
  const { agreement = DEFAULT_AGREEMENT } = options
  const { prepared, isGood, rules, table, byRules, together, isTable } = yield* judgedBest(episodes, read, agreement)
  const { classes } = prepared
  const isOfTable = (own: number): boolean => table?.leads[own] != null
  const of = { episodes, prepared, isGood }
  const asTable = table !== null && isTable ? yield* writeTable(of, table) : null
  const isByTable = asTable !== null && asTable.reflexes.length > 0
  const isLeft = (own: number): boolean => !isByTable || !isOfTable(own)
  const asRules = yield* writeRules(of, rules.byClass, isLeft)
  const written = isByTable ? besides(asTable, asRules) : asRules
  const reach = yield* reachOf(episodes, { classes, byClass: isByTable ? together : byRules, errors: table?.errors ?? [], agreement })
  const disputed = new Set([...rules.disputed, ...(table?.disputed ?? []), ...written.exceptions])
  return {
    episodes,
    reflexes: written.reflexes,
    refused: [...classes.refused, ...written.refused],
    disputed: [...disputed].sort((one, other) => one - other).map((index) => episodes[index]?.id ?? ''),
    judged: classes.classes.map(({ key }, own) => ({
      decision: key,
      held_out: (isByTable ? together : rules.byClass)[own] ?? NONE,
    })),
    reach,
  }
}

/** `byRules`: what is good enough. `together`: the table, and rules where it abstains. */
type Judged = {
  prepared: PreparedEpisodes
  isGood: IsGood
  rules: JudgedRules
  table: JudgedScorer | null
  byRules: readonly HeldOut[]
  together: readonly HeldOut[]
  /** Rules are easier to read: a table has to take clearly more. */
  isTable: boolean
}

function* judgedBest(episodes: readonly Episode[], [first, ...others]: Read, agreement: Agreement): Steps<Judged> {
  let best = yield* judgedMerged(episodes, first, agreement)
  for (const prepared of others) best = betterOf(best, yield* judgedMerged(episodes, prepared, agreement), shareOfAll)
  return best
}

/** Tries any words, any order, and branches, where events do not tell decisions apart. */
function* judgedMerged(episodes: readonly Episode[], read: PreparedEpisodes, agreement: Agreement): Steps<Judged> {
  const exact = yield* judgedWith(read, agreement)
  const worded = yield* withAnyWords(episodes, { prepared: read, byClass: bestOf(exact) })
  const first = worded ? yield* judgedWith(worded, agreement) : exact
  const ordered = withAnyOrder({ prepared: first.prepared, byClass: bestOf(first) })
  const plain = betterOf(first, ordered && (yield* judgedWith(ordered, agreement)))
  const { prepared } = plain
  const bound = (decision: DecisionClass): number => agreementFor(agreement, nameOf(decision))
  const { branched, disputed } = yield* withBranches(episodes, { prepared, byClass: bestOf(plain) }, bound)
  const best = betterOf(plain, branched && (yield* judgedWith(branched.prepared, agreement, branched.refined)))
  return { ...best, rules: { ...best.rules, disputed: [...best.rules.disputed, ...disputed] } }
}

/** The one with merged decisions has to take clearly more. */
const betterOf = (plain: Judged, merged: Judged | null, share = (judged: Judged): number => shareOf(bestOf(judged))): Judged =>
  merged && share(merged) > share(plain) + BETTER ? merged : plain

/** The share that is taken of all decisions, also of what cannot be learned. */
function shareOfAll(judged: Judged): number {
  const { of } = judged.prepared.classes
  return (shareOf(bestOf(judged)) * of.filter((own) => own >= 0).length) / Math.max(1, of.length)
}

const bestOf = ({ isTable, together, byRules }: Judged): readonly HeldOut[] => (isTable ? together : byRules)

function* judgedWith(
  prepared: PreparedEpisodes,
  agreement: Agreement,
  refined = (judged: HeldOut, _own: number): HeldOut => judged,
): Steps<Judged> {
  const { classes } = prepared
  const bounds = classes.classes.map((decision) => agreementFor(agreement, nameOf(decision)))
  const isGood: IsGood = (judged, own) => isGoodAt(bounds[own] ?? DEFAULT_AGREEMENT, judged)
  const first = isRuled(classes) ? yield* judgeRules(prepared) : noRules(prepared)
  const rules = { ...first, byClass: first.byClass.map(refined) }
  const byRules = rules.byClass.map((one, own) => (isGood(one, own) ? one : { ...one, covered: 0, agreed: 0, hits: [], misses: [] }))
  const isEnough =
    isRuled(classes) && rules.byClass.every((one, own) => one.n < LEAST_PREDICTED || (isGood(one, own) && one.agreed >= one.n * ENOUGH))
  const scorer = isEnough || classes.classes.length > MOST_DECISIONS ? null : yield* judgeScorer(prepared, bounds)
  const table = scorer && { ...scorer, byClass: scorer.byClass.map(refined) }
  // A table takes what it is sure of, and rules what they predict of the rest.
  const together = byRules.map((one, own) => (table?.leads[own] != null ? (table.byClass[own] ?? NONE) : one))
  return { prepared, isGood, rules, table, byRules, together, isTable: table !== null && shareOf(together) > shareOf(byRules) + BETTER }
}

/**
 * Both, where what rules take is not refused by the table. An act of both has a proof in each, so
 * that what was foreseen of it does not count for the table.
 */
export function besides(table: Written, rules: Written): Written {
  const byRules = new Set(rules.reflexes.map(({ decision }) => decision))
  const acts = new Set(rules.reflexes.flatMap(({ names }) => names))
  const alone = table.reflexes.map((reflex) => ({ ...reflex, names: reflex.names.filter((name) => !acts.has(name)) }))
  return {
    reflexes: [...rules.reflexes, ...alone],
    refused: table.refused.filter(({ decision }) => !byRules.has(decision)),
    exceptions: [...table.exceptions, ...rules.exceptions],
  }
}

/** Rules for more decisions take long to grow, and nobody reads them. */
const MOST_RULED = 24
const isRuled = ({ classes }: Classes): boolean => classes.length <= MOST_RULED
const noRules = ({ classes }: PreparedEpisodes): JudgedRules => ({ byClass: classes.classes.map(() => NONE), disputed: [] })
/** A table has to take so much more of the newer decisions than rules. */
const BETTER = 0.02

function shareOf(byClass: readonly HeldOut[]): number {
  const all = byClass.reduce((sum, { n }) => sum + n, 0)
  return byClass.reduce((sum, { agreed }) => sum + agreed, 0) / Math.max(1, all)
}

type IsGood = (judged: HeldOut, own: number) => boolean

const isGoodAt = (bound: number, judged: HeldOut): boolean => judged.covered >= LEAST_PREDICTED && errsLittle(bound, judged)

type Of = { episodes: readonly Episode[]; prepared: PreparedEpisodes; isGood: IsGood }
type Written = { reflexes: LearnedReflex[]; refused: LearningRefusal[]; exceptions: number[] }

/** Learns again, from all episodes, for each decision that was judged good and is left to rules. */
function* writeRules({ episodes, prepared, isGood }: Of, judged: readonly HeldOut[], isLeft: (own: number) => boolean): Steps<Written> {
  const { matrix, classes } = prepared
  const all = bitsOf(matrix.size, () => true)
  const rules = yield* learnRules(prepared, all, (own) => isLeft(own) && isGood(judged[own] ?? NONE, own))
  const written: Written = { reflexes: [], refused: [], exceptions: [] }
  for (const [own, decision] of classes.classes.entries()) {
    yield
    if (!isLeft(own)) continue
    const held_out = judged[own] ?? NONE
    const reflex = isGood(held_out, own) ? yield* rulesReflex({ episodes, prepared, own, decision, held_out }, rules[own] ?? []) : null
    const reason = reflex === null ? reasonOf(held_out) : sizeReason(reflex)
    if (reflex !== null && reason === null) written.reflexes.push(reflex)
    else written.refused.push(refusalOf(prepared, own, reason ?? ''))
    for (const { covered } of rules[own] ?? []) written.exceptions.push(...indexesOf(covered).filter((index) => classes.of[index] !== own))
  }
  return written
}

/** Writes a table for all decisions that were judged good. */
function* writeTable(
  { episodes, prepared }: Of,
  { leads, byClass }: { leads: readonly (number | null)[]; byClass: readonly HeldOut[] },
): Steps<Written> {
  const { matrix, classes } = prepared
  const scorer = yield* learnScorer(
    prepared,
    Array.from({ length: matrix.size }, (_, index) => index),
  )
  yield
  const reflex = yield* scorerReflex({ episodes, prepared, held_out: byClass }, { scorer, leads })
  const reason = sizeReason(reflex)
  const refused = classes.classes.flatMap((_, own) =>
    leads[own] == null || reason !== null ? [refusalOf(prepared, own, reason ?? reasonOfTable(byClass[own] ?? NONE))] : [],
  )
  return { reflexes: reason === null ? [reflex] : [], refused, exceptions: [] }
}

function refusalOf({ classes }: PreparedEpisodes, own: number, reason: string): LearningRefusal {
  const decision = classes.classes[own]
  const episodes = classes.of.filter((of) => of === own).length
  return { decision: decision?.key ?? '', episodes, reason: reason + (decision ? remedyOf(decision, classes) : '') }
}

function remedyOf(decision: DecisionClass, classes: Classes): string {
  if (vary(decision, classes)) return VARYING
  return decision.unheardAlone && classes.classes.filter(({ unheardAlone }) => unheardAlone).length > 1 ? ALONE : ''
}

const ALONE =
  '; nobody heard it, and words that stand alone are a decision, each wording one of its own: let the agent call deps.reply only where somebody is to read it'

/** True if the same acts come with other words, too. */
const vary = ({ beside }: DecisionClass, { classes }: Classes): boolean =>
  beside !== null && classes.filter((one) => one.beside === beside).length > 1

const VARYING =
  '; its words vary beside the same acts, and somebody hears them: the setting learning.replies says if that makes it another decision'

function sizeReason({ by, code: program }: LearnedReflex): string | null {
  const { code } = partsOf(program)
  const bytes = byteLength(code)
  return bytes > MOST_BYTES[by] ? `its code would have ${bytes} bytes; ${MOST_BYTES[by]} are allowed` : null
}

function reasonOf({ n, covered, agreed }: HeldOut): string {
  if (covered >= LEAST_PREDICTED) return `the older decisions predict ${agreed} of ${covered} newer ones rightly, and its bound needs more`
  return `the older decisions predict it for ${covered} newer events, and it was decided on ${n}; at least ${LEAST_PREDICTED} predictions are needed`
}

/** A table is judged in five parts of the history, each by a table of the others. */
function reasonOfTable({ n, covered, agreed }: HeldOut): string {
  if (covered >= LEAST_OF_CLASS) return `tables of the other four fifths predict ${agreed} of ${covered} decisions in each fifth`
  return `tables of the other four fifths are sure of ${covered} decisions, of ${n} in all; at least ${LEAST_OF_CLASS} are needed`
}
