import type { Episode } from '../episode.ts'
import { bitsOf, countBoth, emptyBits, indexesOf, or } from './facts/bits.ts'
import { type ActTemplate, type Classes, classesOf, type DecisionClass } from './classes.ts'
import { type HeldOut, judgeRules, judgeTables, learnRules, learnTables, NONE, type PreparedEpisodes } from './judge.ts'
import { matrixOf } from './facts/matrix.ts'
import { atOnce, type Steps } from '../../../base/steps.ts'
import type { Replies } from '../contract/setting.ts'
import { crowdOf } from './sources.ts'
import { quote } from './facts/text.ts'
import { type LearnedReflex, rulesReflex, tableReflex } from './write.ts'

export type ReflexLearnOptions = {
  /** Senders that a person trusts: one may send more than a third of a rule's support. */
  trusted?: ReadonlySet<string>
  /**
   * True if a reflex that takes a decision is judged on this episode. Once reflexes act, the slow
   * path decides the hard rest, which teaches, but says little about a reflex for all events.
   */
  fair?: (episode: Episode, decision: ActTemplate | null) => boolean
  /** The setting that says if words beside other acts are part of a decision. */
  replies?: Replies
  /** Shares of its decisions that a table may get wrong, the strictest first. */
  alphas?: readonly number[]
  /** The risk that it gets more wrong. */
  delta?: number
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
  /** For each decision, how the older episodes predict the newer ones. */
  judged: { decision: string; held_out: HeldOut }[]
}

/** The newest are taken. */
export const MOST_EPISODES = 10_000
const LEAST_EPISODES = 40
const MOST_BYTES = 16_384
const LEAST_HELD_OUT = 20
/** Largest shares of newer decisions that may differ. A table's threshold has its own bound. */
const MOST_WRONG = { rules: 0.01, table: 0.04 } as const
/** Rules that cover so much of all decisions need no table beside them. */
const ENOUGH = 0.97

/** Writes reflexes that decide as was decided. The same episodes give the same code. */
export const learnReflexes = (history: readonly Episode[], options: ReflexLearnOptions = {}): LearnedReflexes =>
  atOnce(learnReflexesInSteps(history, options))

export function* learnReflexesInSteps(history: readonly Episode[], options: ReflexLearnOptions = {}): Steps<LearnedReflexes> {
  const episodes = history.filter(({ outcome }) => outcome === 'ok' || outcome === 'corrected').slice(-MOST_EPISODES)
  const prepared = episodes.length < LEAST_EPISODES ? null : yield* prepare(episodes, options)
  const reason = prepared === null ? `at least ${LEAST_EPISODES} decisions are needed` : reasonAgainst(prepared)
  const refused = [
    ...(prepared?.classes.refused ?? []),
    ...(reason === null ? [] : [{ decision: 'all', episodes: episodes.length, reason }]),
  ]
  if (prepared === null || reason !== null) return { episodes, reflexes: [], refused, disputed: [], judged: [] }
  return yield* choose(episodes, prepared, options)
}

function reasonAgainst({ classes }: PreparedEpisodes): string | null {
  if (classes.classes.length === 0) return 'no decision was taken often enough in the same way'
  return new Set(classes.of).size < 2 ? 'all decisions were the same, so nothing separates the events that need another one' : null
}

const KEY_BYTES = 7
const BEGINNING_BYTES = 14
const CONDITION_BYTES = 40

function* prepare(
  episodes: readonly Episode[],
  { trusted = new Set(), fair = () => true, replies }: ReflexLearnOptions,
): Steps<PreparedEpisodes> {
  const matrix = yield* matrixOf(episodes)
  const sizes = matrix.features.map(({ condition }) => {
    if (condition.is === 'says') return quote(condition.words).length + KEY_BYTES
    return condition.is === 'begins' ? BEGINNING_BYTES : JSON.stringify(condition).length + CONDITION_BYTES
  })
  const usable: PreparedEpisodes['usable'] = (taught) => {
    const isSeen = matrix.features.map(({ bits, condition }) => condition.is !== 'at_least' && countBoth(bits, taught) > 0)
    return (feature) => isSeen[feature] === true
  }
  const classes = classesOf(episodes, replies)
  yield
  const fairBits = classes.classes.map(({ acts: [act = null] }) =>
    bitsOf(episodes.length, (index) => fair(episodes[index] as Episode, act)),
  )
  const fairIndexes = indexesOf(fairBits.reduce(or, emptyBits(episodes.length)))
  const crowd = crowdOf(episodes, trusted)
  return { matrix, classes, crowd, fair: fairBits, fairIndexes, usable, sizeOf: (feature) => sizes[feature] ?? 0 }
}

function* choose(
  episodes: readonly Episode[],
  prepared: PreparedEpisodes,
  { alphas = [0.0075, 0.01, 0.0125, 0.015], delta = 0.1 }: ReflexLearnOptions,
): Steps<LearnedReflexes> {
  const { classes } = prepared
  const rules = yield* judgeRules(prepared)
  const isEnough = rules.byClass.every((one) => one.n < LEAST_HELD_OUT || (good(one, MOST_WRONG.rules) && one.agreed >= one.n * ENOUGH))
  const tables = isEnough ? null : yield* judgeTables(prepared, { alphas, delta })
  const chosen = classes.classes.map((_, own) => chosenOf(rules.byClass[own] ?? NONE, tables?.byClass[own] ?? NONE))
  const written = yield* write(episodes, prepared, { chosen, thresholds: tables?.thresholds ?? [] })
  const disputed = new Set([...rules.disputed, ...(tables?.disputed ?? []), ...written.exceptions])
  return {
    episodes,
    reflexes: written.reflexes,
    refused: [...classes.refused, ...written.refused],
    disputed: [...disputed].sort((one, other) => one - other).map((index) => episodes[index]?.id ?? ''),
    judged: classes.classes.map(({ key }, own) => ({ decision: key, held_out: chosen[own]?.held_out ?? NONE })),
  }
}

type Chosen = { by: 'rules' | 'table' | null; held_out: HeldOut }

/** A table has to be better by so much: rules are easier to read. */
const BETTER = 0.02

function chosenOf(rules: HeldOut, table: HeldOut): Chosen {
  const isRules = good(rules, MOST_WRONG.rules)
  const isBetter = !isRules || table.agreed / table.n > rules.agreed / rules.n + BETTER
  if (isBetter && good(table, MOST_WRONG.table)) return { by: 'table', held_out: table }
  if (isRules) return { by: 'rules', held_out: rules }
  return { by: null, held_out: table.covered > rules.covered ? table : rules }
}

const good = ({ covered, agreed }: HeldOut, wrong: number): boolean => covered >= LEAST_HELD_OUT && covered - agreed <= covered * wrong

type Written = { reflexes: LearnedReflex[]; refused: LearningRefusal[]; exceptions: number[] }

/** Learns again, from all episodes, for each decision that was judged good. */
function* write(
  episodes: readonly Episode[],
  prepared: PreparedEpisodes,
  { chosen, thresholds }: { chosen: readonly Chosen[]; thresholds: readonly (number | null)[] },
): Steps<Written> {
  const { matrix, classes } = prepared
  const all = bitsOf(matrix.size, () => true)
  const rules = yield* learnRules(prepared, all, (own) => chosen[own]?.by === 'rules')
  const tables = chosen.some(({ by }) => by === 'table') ? yield* learnTables(prepared, all) : []
  const written: Written = { reflexes: [], refused: [], exceptions: [] }
  for (const [own, decision] of classes.classes.entries()) {
    yield
    const { by, held_out } = chosen[own] ?? { by: null, held_out: NONE }
    const base = { episodes, prepared, own, decision, held_out }
    const table = by === 'table' ? tables[own] : undefined
    const threshold = thresholds[own] ?? Infinity
    const reflex = table ? tableReflex(base, { ...table, threshold }) : by === 'rules' ? rulesReflex(base, rules[own] ?? []) : null
    const reason = reflex === null ? reasonOf(held_out) + (vary(decision, classes) ? VARYING : '') : sizeReason(reflex)
    if (reflex !== null && reason === null) written.reflexes.push(reflex)
    else written.refused.push({ decision: decision.key, episodes: classes.of.filter((of) => of === own).length, reason: reason ?? '' })
    for (const { covered } of rules[own] ?? []) written.exceptions.push(...indexesOf(covered).filter((index) => classes.of[index] !== own))
  }
  return written
}

/** True if the same acts come with other words, too. */
const vary = ({ beside }: DecisionClass, { classes }: Classes): boolean =>
  beside !== null && classes.filter((one) => one.beside === beside).length > 1

const VARYING =
  '; its words vary beside the same acts, and somebody hears them: the setting learning.replies says if that makes it another decision'

const sizeReason = ({ code }: LearnedReflex): string | null =>
  code.length > MOST_BYTES ? `its code would have ${code.length} bytes; ${MOST_BYTES} are allowed` : null

function reasonOf({ n, covered, agreed }: HeldOut): string {
  if (covered >= LEAST_HELD_OUT) return `the older decisions predict ${agreed} of ${covered} newer ones`
  return `the older decisions predict ${covered} newer ones, of ${n} in all; at least ${LEAST_HELD_OUT} are needed`
}
