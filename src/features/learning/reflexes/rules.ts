import { and, type Bits, bitsOf, count, countBoth, emptyBits, or, without } from './facts/bits.ts'
import { type Condition, type Literal, pathKey } from './facts/condition.ts'
import { RETURNED } from './facts/facts.ts'
import type { Matrix, MatrixFeature } from './facts/matrix.ts'
import type { FieldNames } from './facts/names.ts'
import type { Steps } from '../../../base/steps.ts'
import type { Crowd } from './sources.ts'
import { LEAST_EACH, MOST_VALUES } from './guards.ts'
import { sharpened, tightened } from './thresholds.ts'

/** `covered`: the episodes that a rule decides; `exceptions`: those that were decided otherwise. */
export type Rule = { literals: Literal[]; covered: Bits; support: number; exceptions: number }

type Problem = {
  matrix: Matrix
  /** Episodes to learn from. */
  taught: Bits
  /** The episodes of the decision that the rules are for. */
  positive: Bits
  crowd: Crowd
  /** The names that a guard keeps the rules to: none if unset. */
  names?: FieldNames
}

const MOST_RULES = 24
const MOST_LITERALS = 6
const MOST_CANDIDATES = 4000
/** Exceptions of a rule: the teacher makes mistakes, which shadow mode tells from the rule's. */
export const MOST_EXCEPTIONS = 0.05
const BITS_FOR_AN_EXCEPTION = 10
/** Conditions that all episodes of a rule share are added, so that it fits nothing unlike them. */
const MOST_SHARED = 3
const MOST_ABSENT = 16

type Candidate = { literal: Literal; bits: Bits; support: number }
type Candidates = { plain: readonly Candidate[]; differences: readonly Candidate[]; seen: Seen; listed: FieldValues }
/**
 * `texts`: some events have texts that are no value of few, and no names. `listed`: the fields of
 * items that have few values, which guards know.
 */
type Seen = { texts: boolean; listed: ReadonlySet<string> }

/**
 * Rules for one decision, each of which holds by itself (CN2's unordered rules). A rule has to save
 * more bits than it takes to write down, so that chance finds none.
 */
export function* rulesFor({ matrix, taught, positive, crowd, names }: Problem): Steps<Rule[]> {
  const listed = listedIn(matrix.features, taught)
  const all = candidatesFor(matrix, taught, listed)
  const isDifference = ({ literal: { condition } }: Candidate): boolean => 'minus' in condition
  const candidates = {
    plain: all.filter((one) => !isDifference(one)),
    differences: all.filter(isDifference),
    seen: seenIn(all, taught, names),
    listed,
  }
  const own = and(positive, taught)
  const others = without(taught, positive)
  const ownCount = count(own)
  const bitsEach = Math.log2(count(taught) / ownCount)
  const price = Math.log2(all.length + 2)
  const rules: Rule[] = []
  let open = own
  while (rules.length < MOST_RULES && count(open) > 0) {
    const grown = yield* growBest(candidates, open, others, { bitsEach, price, matrix })
    if (grown === null) break
    yield
    const kept = keptToSeen(tightened(grown, own, matrix), own, candidates.listed)
    const shared = share(kept, candidates.plain, and(open, grown.covered))
    const rule = finish(shared, own, others)
    open = without(open, grown.covered)
    // The values that its own decisions had may leave it few of them.
    if (rule.support >= LEAST_OF_RULE && crowd(and(rule.covered, own))) rules.push(rule)
  }
  return rules
}

function seenIn(all: readonly Candidate[], taught: Bits, names?: FieldNames): Seen {
  const said = new Map<string, Bits>()
  const valued = new Map<string, Candidate[]>()
  const items = new Map<string, number>()
  for (const candidate of all) {
    const { condition, holds } = candidate.literal
    if (!holds || !('path' in condition)) continue
    const key = pathKey(condition.path)
    // A call of a tool returned it, and no stranger wrote the event so.
    if (condition.is === 'says' && condition.path[0] !== RETURNED && !names?.has(key))
      said.set(key, or(said.get(key) ?? emptyBits(taught.length * 32), candidate.bits))
    if (condition.is === 'equal') valued.set(key, [...(valued.get(key) ?? []), candidate])
    if (condition.is === 'contains' && condition.of !== undefined) items.set(itemKey(condition), (items.get(itemKey(condition)) ?? 0) + 1)
  }
  const isText = ([key, bits]: [string, Bits]): boolean => {
    const values = valued.get(key) ?? []
    return (
      values.length > MOST_VALUES ||
      values.reduce((open, { bits: own }) => without(open, own), and(bits, taught)).some((word) => word !== 0)
    )
  }
  return { texts: [...said].some(isText), listed: new Set([...items].flatMap(([key, values]) => (values <= MOST_VALUES ? [key] : []))) }
}

const itemKey = ({ path, of }: Extract<Condition, { is: 'contains' }>): string => `${pathKey(path)} ${of}`

/** The fields of events that have few values, by `pathKey`: where each of their values is. */
type FieldValues = ReadonlyMap<string, ReadonlyMap<string, Bits>>
type OneOf = Extract<Condition, { is: 'one_of' }>

function listedIn(features: readonly Pick<MatrixFeature, 'condition' | 'bits'>[], taught: Bits): FieldValues {
  const found = new Map<string, Map<string, Bits>>()
  for (const { condition, bits } of features) {
    if (condition.is !== 'equal' || typeof condition.value !== 'string' || condition.path[0] !== 'event') continue
    if (countBoth(bits, taught) < LEAST_OF_RULE) continue
    const key = pathKey(condition.path)
    found.set(key, (found.get(key) ?? new Map<string, Bits>()).set(condition.value, bits))
  }
  return new Map([...found].filter(([, { size }]) => size <= MOST_VALUES))
}

/** The other values of its field, which a rule can take in place of one; null: they are not few. */
function othersOf(condition: Condition, listed: FieldValues): OneOf | null {
  if (condition.is !== 'equal' || typeof condition.value !== 'string') return null
  const values = listed.get(pathKey(condition.path))
  if (!values?.has(condition.value)) return null
  return { is: 'one_of', path: condition.path, values: [...values.keys()].filter((value) => value !== condition.value).sort() }
}

/** None for a single value, which is a condition of its own. */
function candidateOf(condition: OneOf, listed: FieldValues, taught: Bits): Candidate[] {
  const bits = bitsAmong(condition, listed, taught)
  return condition.values.length < 2 ? [] : [{ literal: { condition, holds: true }, bits, support: countBoth(bits, taught) }]
}

const bitsAmong = ({ path, values }: OneOf, listed: FieldValues, { length }: Bits): Bits =>
  values.reduce<Bits>((bits, value) => or(bits, listed.get(pathKey(path))?.get(value) ?? bits), emptyBits(length * 32))

/** The rule without the values that its own decisions did not have. */
function keptToSeen({ literals, covered }: Grown, own: Bits, listed: FieldValues): Grown {
  const seen = and(covered, own)
  const lists = Map.groupBy(
    literals.flatMap(({ condition }) => (condition.is === 'one_of' ? [condition] : [])),
    ({ path }) => pathKey(path),
  )
  const kept = Array.from(lists, ([key, conditions]): OneOf => {
    const isKept = (value: string): boolean =>
      conditions.every(({ values }) => values.includes(value)) && countBoth(listed.get(key)?.get(value) ?? seen, seen) >= LEAST_EACH
    return { is: 'one_of', path: JSON.parse(key) as string[], values: (conditions[0]?.values ?? []).filter(isKept) }
  })
  return {
    literals: [
      ...literals.filter(({ condition }) => condition.is !== 'one_of'),
      ...kept.map((condition): Literal => ({ condition, holds: true })),
    ],
    covered: kept.reduce((bits, condition) => and(bits, bitsAmong(condition, listed, bits)), covered),
  }
}

/** Each feature as it is, and counts and fields also negated. */
function candidatesFor(matrix: Matrix, taught: Bits, listed: FieldValues): Candidate[] {
  const all = bitsOf(matrix.size, () => true)
  const counted = matrix.features.map((feature) => ({ ...feature, support: countBoth(feature.bits, taught) }))
  const frequent = counted
    .filter(({ condition, support }) => support >= LEAST_OF_RULE && condition.is !== 'begins')
    .sort((one, other) => other.support - one.support)
    .slice(0, MOST_CANDIDATES)
  return frequent.flatMap(({ condition, bits, support, known = all }): Candidate[] => {
    const others = othersOf(condition, listed)
    if (others !== null) return [{ literal: { condition, holds: true }, bits, support }, ...candidateOf(others, listed, taught)]
    // Two numbers that are missing are in no order: the other order is a condition of its own.
    if ('minus' in condition) return [{ literal: { condition, holds: true }, bits, support }]
    const open = without(known, bits)
    const negated: Candidate = { literal: { condition, holds: false }, bits: open, support: countBoth(open, taught) }
    return [{ literal: { condition, holds: true }, bits, support }, negated]
  })
}

export const LEAST_OF_RULE = 5

type Grown = { literals: Literal[]; covered: Bits }
type SavingRule = Grown & { saved: number }
type Price = { bitsEach: number; price: number; matrix: Matrix; first?: Candidate }

/**
 * The rule that saves more: one that begins with any condition, or one that begins with a value
 * that its decisions share. What such events differ in is hidden by all other events.
 */
function* growBest(candidates: Candidates, open: Bits, others: Bits, of: Price): Steps<Grown | null> {
  const free = yield* grow(candidates, open, others, of)
  const first = sharedValue(candidates, open, others)
  if (first === null || free?.literals.includes(first.literal)) return free
  const own = yield* grow(candidates, open, others, { ...of, first })
  return own && own.saved > (free?.saved ?? 0) ? own : free
}

/** The value of a field that almost all open episodes have, and the fewest others. */
function sharedValue({ plain }: Candidates, open: Bits, others: Bits): Candidate | null {
  const least = count(open) * (1 - MOST_EXCEPTIONS)
  let best: Candidate | null = null
  let fewest = count(others)
  for (const candidate of plain) {
    const { literal, bits } = candidate
    if (!literal.holds || literal.condition.is !== 'equal' || countBoth(bits, open) < least) continue
    const wrong = countBoth(bits, others)
    if (wrong < fewest) [best, fewest] = [candidate, wrong]
  }
  return best
}

/** The best rule on the way to one without exceptions. */
function* grow(candidates: Candidates, open: Bits, others: Bits, { bitsEach, price, matrix, first }: Price): Steps<SavingRule | null> {
  let covered = first?.bits ?? bitsOf(matrix.size, () => true)
  let right = countBoth(covered, open)
  let wrong = countBoth(covered, others)
  let best: SavingRule | null = null
  const literals: Literal[] = first ? [first.literal] : []
  while (literals.length < MOST_LITERALS && wrong > 0) {
    yield
    const state: RuleState = { open: and(open, covered), others: and(others, covered), right, wrong, seen: candidates.seen, matrix }
    const step = nextStep(candidates, literals, state)
    if (step === null) break
    literals.push(step.literal)
    covered = and(covered, step.bits)
    right = countBoth(covered, open)
    wrong = countBoth(covered, others)
    const saved = right * bitsEach - wrong * BITS_FOR_AN_EXCEPTION - literals.length * price
    const isPure = wrong <= (right + wrong) * MOST_EXCEPTIONS
    if (isPure && right >= LEAST_OF_RULE && saved > 0 && saved > (best?.saved ?? 0)) best = { literals: [...literals], covered, saved }
  }
  return best
}

type RuleState = { open: Bits; others: Bits; right: number; wrong: number; seen: Seen; matrix: Matrix }

/** FOIL's gain; none where too few episodes are left, or no other decision is left out. */
const gainFrom = ({ right, wrong }: Pick<RuleState, 'right' | 'wrong'>) => {
  const before = Math.log2(right / (right + wrong))
  return (left: { right: number; wrong: number }): number =>
    left.right < LEAST_OF_RULE || left.wrong === wrong ? 0 : left.right * (Math.log2(left.right / (left.right + left.wrong)) - before)
}

/** A difference says by chance what one of its numbers says: it has to gain clearly more. */
const DIFFERENCE = 0.9

type Step = Pick<Candidate, 'literal' | 'bits'>

/** The best condition at its best threshold. */
function nextStep(candidates: Candidates, literals: readonly Literal[], state: RuleState): Step | null {
  const gainOf = gainFrom(state)
  const sharp = (of: readonly Candidate[], weight: number): { step: Step; gain: number } | null => {
    const coarse = bestStep(of, literals, state)
    if (coarse === null) return null
    const step = sharpened(coarse.literal, { ...state, gainOf }) ?? coarse
    return { step, gain: gainOf({ right: countBoth(step.bits, state.open), wrong: countBoth(step.bits, state.others) }) * weight }
  }
  const [plain, difference] = [sharp(candidates.plain, 1), sharp(candidates.differences, DIFFERENCE)]
  return (difference && difference.gain > (plain?.gain ?? 0) ? difference : plain)?.step ?? null
}

function bestStep(candidates: readonly Candidate[], literals: readonly Literal[], state: RuleState): Candidate | null {
  const { open, others, right, wrong, seen } = state
  const most = -Math.log2(right / (right + wrong))
  const gainOf = gainFrom(state)
  let best: Candidate | null = null
  let best_gain = 0
  for (const candidate of candidates) {
    const kept = countBoth(candidate.bits, open)
    if (kept < LEAST_OF_RULE || kept * most <= best_gain || !isClosed(candidate.literal, literals, seen)) continue
    const gain = gainOf({ right: kept, wrong: countBoth(candidate.bits, others) }) * (candidate.literal.holds ? 1 : 0.9)
    if (gain > best_gain) [best, best_gain] = [candidate, gain]
  }
  return best
}

/**
 * A rule must not fit what nobody has seen: a word may only be missing from a text that another
 * word was found in, and where events have texts neither a low count nor the order of two numbers
 * says anything without a word. A flag that does not hold is false or missing, and
 * a field may be missing.
 */
function isClosed({ condition, holds }: Literal, literals: readonly Literal[], { texts, listed }: Seen): boolean {
  if ((holds && !('minus' in condition)) || isFlag(condition) || condition.is === 'present') return true
  if (condition.is === 'at_least') return !texts || haveWord(literals)
  if (condition.is === 'follows') return literals.some((literal) => literal.holds)
  // A guard knows the values of such fields.
  if (condition.is === 'contains' && listed.has(itemKey(condition))) return true
  const key = pathKey(condition.path)
  return literals.some(
    (literal) => literal.holds && isNamed(literal.condition) && 'path' in literal.condition && pathKey(literal.condition.path) === key,
  )
}

const isFlag = (condition: Condition): boolean => condition.is === 'equal' && typeof condition.value === 'boolean'

/** True for a rule that needs the guards of names: it asks after numbers without a word. */
export const needsNames = (literals: readonly Literal[]): boolean =>
  literals.some(({ condition, holds }) => condition.is === 'at_least' && (!holds || condition.minus !== undefined)) && !haveWord(literals)

const haveWord = (literals: readonly Literal[]): boolean => literals.some(({ condition, holds }) => holds && isNamed(condition))

/** Beginnings of words are for tables: in a rule they say little. */
const isNamed = ({ is }: Condition): boolean => is === 'says' || is === 'equal' || is === 'one_of' || is === 'contains'

/** Adds what all its episodes share, rarest first, and counts that none of them has. */
function share({ literals, covered }: Grown, candidates: readonly Candidate[], own: Bits): Grown {
  const size = count(own)
  const known = new Set(literals.map((literal) => JSON.stringify(literal)))
  const holding = candidates.filter(
    ({ literal, bits, support }) => support >= size && !known.has(JSON.stringify(literal)) && countBoth(bits, own) === size,
  )
  const added: Candidate[] = []
  for (const candidate of holding
    .filter(({ literal: { condition, holds } }) => holds && isNamed(condition) && condition.is !== 'one_of')
    .sort((one, other) => one.support - other.support)) {
    const chosen = [...literals, ...added.map(({ literal }) => literal)]
    const isKnown = chosen.some((literal) => says(literal, candidate.literal) || says(candidate.literal, literal))
    if (added.length < MOST_SHARED && !isKnown) added.push(candidate)
  }
  added.push(...holding.filter(({ literal }) => isAbsence(literal)).slice(0, MOST_ABSENT))
  return {
    literals: [...literals, ...added.map(({ literal }) => literal)],
    covered: added.reduce((bits, candidate) => and(bits, candidate.bits), covered),
  }
}

/** True if no event of a type was in the window. */
const isAbsence = ({ condition, holds }: Literal): boolean =>
  !holds && condition.is === 'at_least' && condition.value === 1 && condition.path.includes('by_type')

/** True if the other literal has all words of this one. */
function says({ condition }: Literal, { condition: other }: Literal): boolean {
  if (condition.is !== 'says' || other.is !== 'says') return false
  return ` ${condition.words} `.includes(` ${other.words} `)
}

const finish = ({ literals, covered }: Grown, own: Bits, others: Bits): Rule => ({
  literals,
  covered,
  support: countBoth(covered, own),
  exceptions: countBoth(covered, others),
})

export const coveredBy = (rules: readonly Rule[], size: number): Bits =>
  rules.reduce(
    (bits, { covered }) => or(bits, covered),
    bitsOf(size, () => false),
  )
