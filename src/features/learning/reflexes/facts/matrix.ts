import type { Episode, Saw } from '../../episode.ts'
import { type Bits, bitsOf, emptyBits, setBit } from './bits.ts'
import { type Condition, type ContextPath, numberKey, pathKey, sumOf, valueAt } from './condition.ts'
import type { Steps } from '../../../../base/steps.ts'
import { changesOf, daysOf, eachFact, type Leaf, type Leaves, leavesOf, readingsOf, RETURNED } from './facts.ts'
import { type FieldNames, Names } from './names.ts'
import { EARLIER } from './readings.ts'
import { repeatsOf } from './repeats.ts'

/** A condition and the episodes in which it holds. `known`: where it is asked; all if unset. */
export type MatrixFeature = { condition: Condition; bits: Bits; support: number; known?: Bits }

/** Which conditions hold in which episodes. */
export type Matrix = {
  size: number
  features: readonly MatrixFeature[]
  /** Features of each episode. */
  rows: readonly Int32Array[]
  /** The numbers that have more values than features: of each episode, by `numberKey`. */
  numbers: ReadonlyMap<string, Float64Array>
  /** The fields of events that have names in these episodes, by `pathKey`. */
  names: FieldNames
}

const MOST_FEATURES = 20_000
/** Names of fields may be without end, and each number takes a place in each episode. */
const MOST_NUMBERS = 300
/** Pairs of numbers of one event, of which the difference is asked about. */
const MOST_PAIRS = 40
/** Pairs with numbers of earlier events. */
const MOST_CHANGES = 12
const MOST_COUNTED_PAIRS = 5000
/** Numbers of one event that are paired: the first ones. */
const MOST_PAIRED = 10
/** Numbers of outputs that are paired with numbers of the event. */
const MOST_RETURNED = 5
const MOST_THRESHOLDS = 16
const MOST_PAIR_THRESHOLDS = 4
const MOST_CONDITIONS = 80_000
/** Episodes, or features, of one step. */
const STEP = 100

type IsAsked = (condition: Condition) => boolean

/** Reads the episodes twice, so that only asked conditions that recur are held. */
export function* matrixOf(episodes: readonly Episode[], isAsked: IsAsked = () => true): Steps<Matrix> {
  const size = episodes.length
  const { counts, numbers, pairs, names } = yield* countFacts(episodes, isAsked)
  const differences = differencesOf(pairs, size)
  // The key of the field itself, which may be a number as well.
  const amounts = new Map([...numbers.values()].flatMap((one) => (one.path[0] === 'amount' ? [[pathKey(one.path.slice(1)), one]] : [])))
  const kept = new Map<string, MatrixFeature>()
  const recurring = [...counts].filter(([, { support }]) => support < size)
  for (const [key, { condition, support }] of mostOf(recurring, MOST_FEATURES)) kept.set(key, { condition, bits: emptyBits(size), support })
  for (const [index, { saw }] of episodes.entries()) {
    const leaves = leavesOf(saw)
    const own = numbersIn(saw, leaves)
    for (const { key, value } of own) {
      const values = (numbers.get(key) ?? amounts.get(key))?.values
      if (values) values[index] = value
    }
    readDifferences(differences, index, [...own, ...keyed(daysOf(saw, leaves)), ...earlierIn(differences, saw)])
    eachFact(saw, leaves, (condition) => {
      const feature = kept.get(keyOf(condition))
      if (feature) setBit(feature.bits, index)
    })
    if (index % STEP === 0) yield
  }
  const asked: Numbers = new Map([
    ...numbers,
    ...differences.map(({ path, minus, values }) => [numberKey({ path, minus }), { path, minus, values }] as const),
  ])
  const bounds = (yield* thresholds(asked, size)).filter(({ condition }) => isAsked(condition))
  const features = yield* withoutTwins([...kept.values(), ...bounds])
  const many = [...asked].flatMap(([key, { values }]): [string, Float64Array][] =>
    new Set(values).size > MOST_THRESHOLDS + 1 ? [[key, values]] : [],
  )
  return { size, features, rows: rowsOf(features, size), numbers: new Map(many), names }
}

const keyOf = (condition: Condition): string => JSON.stringify(condition)

type Counts = Map<string, { condition: Condition; support: number }>
type Numbers = Map<string, { path: ContextPath; minus?: ContextPath; values: Float64Array }>
type Pair = { path: ContextPath; minus: ContextPath }
type Differences = readonly (Pair & { keys: readonly [string, string]; values: Float64Array })[]

const keyed = (leaves: readonly Leaf[]) =>
  leaves.flatMap(({ path, value }) => (typeof value === 'number' ? [{ key: pathKey(path), path, value }] : []))
const numbersIn = (saw: Saw, leaves: Leaves) => keyed([...leaves.leaves, ...readingsOf(saw, leaves), ...repeatsOf(saw)])

/** The numbers of the event itself, two by two, and its dates. */
function pairsIn(saw: Saw, leaves: Leaves): Pair[] {
  const isNumberOf = (part: string) => (one: Leaf) => one.path[0] === part && typeof one.value === 'number'
  const returned = leaves.leaves.filter(isNumberOf(RETURNED)).slice(0, MOST_RETURNED)
  const own = [...returned, ...leaves.leaves.filter(isNumberOf('event'))]
  const read = readingsOf(saw, leaves).filter(({ path: [, part], value }) => part === 'event' && typeof value === 'number')
  return [twoByTwo([...own, ...read]), twoByTwo(daysOf(saw, leaves)), changesOf(saw, leaves)].flat()
}

const twoByTwo = (leaves: readonly Leaf[]): Pair[] =>
  leaves.slice(0, MOST_PAIRED).flatMap(({ path }, index, all) => all.slice(index + 1).map((other) => ({ path, minus: other.path })))

/** The differences of pairs, either way. An episode without one of the two numbers has NaN. */
const differencesOf = (pairs: readonly Pair[], size: number): Differences =>
  pairs.flatMap(({ path, minus }) =>
    [
      { path, minus },
      { path: minus, minus: path },
    ].map((pair) => ({
      ...pair,
      keys: [pathKey(pair.path), pathKey(pair.minus)] as const,
      values: new Float64Array(size).fill(Number.NaN),
    })),
  )

/** The numbers of earlier events that are asked about. */
const earlierIn = (differences: Differences, saw: Saw) =>
  keyed(differences.flatMap(({ minus }) => (minus[0] === EARLIER ? [{ path: minus, value: valueAt(saw, minus) as Leaf['value'] }] : [])))

function readDifferences(differences: Differences, index: number, numbers: ReturnType<typeof numbersIn>): void {
  const own = new Map(numbers.map(({ key, value }) => [key, value]))
  for (const { keys, values } of differences) {
    const [one, other] = [own.get(keys[0]), own.get(keys[1])]
    if (one !== undefined && other !== undefined) values[index] = sumOf(one, -other)
  }
}

/** Counts a key that recurs, until too many are known. */
function countOne<Of extends object>(
  counts: Map<string, Of & { support: number }>,
  key: string,
  { most, of }: { most: number; of: Of },
): void {
  const known = counts.get(key)
  if (known) known.support += 1
  else if (counts.size < most) counts.set(key, { ...of, support: 1 })
}

/** The most frequent, in the same order for the same history. */
const mostOf = <Of extends { support: number }>(counts: Iterable<[string, Of]>, most: number): [string, Of][] =>
  [...counts].sort(([one, { support: left }], [other, { support: right }]) => right - left || (one < other ? -1 : 1)).slice(0, most)

/** A field that is a number in one event and a text in another is asked for its amount. */
function asAmounts<Of extends { path: ContextPath; support: number }>(
  paths: ReadonlyMap<string, Of>,
  mixed: ReadonlySet<string>,
): Map<string, Of> {
  const found = new Map<string, Of>()
  for (const [key, one] of paths) {
    const path = mixed.has(key) ? ['amount', ...one.path] : one.path
    const known = found.get(pathKey(path))
    found.set(pathKey(path), { ...one, path, support: one.support + (known?.support ?? 0) })
  }
  return found
}

type Counted = { counts: Counts; numbers: Numbers; pairs: Pair[]; names: FieldNames }

function* countFacts(episodes: readonly Episode[], isAsked: IsAsked): Steps<Counted> {
  const counts: Counts = new Map()
  const paths = new Map<string, { path: ContextPath; support: number }>()
  const mixed = new Set<string>()
  const names = new Names()
  const pairs = new Map<string, Pair & { support: number }>()
  for (const [index, { saw }] of episodes.entries()) {
    if (index % STEP === 0) yield
    const leaves = leavesOf(saw)
    for (const { key, path } of numbersIn(saw, leaves))
      if (isAsked({ is: 'at_least', path, value: 1 })) countOne(paths, key, { most: MOST_CONDITIONS, of: { path } })
    for (const { path, value } of leaves.leaves)
      if ((typeof value === 'string' || typeof value === 'boolean') && mixed.size < MOST_CONDITIONS) mixed.add(pathKey(path))
    names.read(leaves)
    for (const pair of pairsIn(saw, leaves))
      if (isAsked({ is: 'at_least', ...pair, value: 1 })) countOne(pairs, numberKey(pair), { most: MOST_COUNTED_PAIRS, of: pair })
    eachFact(saw, leaves, (condition) => {
      if (isAsked(condition)) countOne(counts, keyOf(condition), { most: MOST_CONDITIONS, of: { condition } })
    })
  }
  const often = mostOf(asAmounts(paths, mixed), MOST_NUMBERS)
  // A test of an output holds for no number that is missing.
  const missing = (path: ContextPath): number => (path[0] === RETURNED ? Number.NaN : 0)
  const numbers = often.map(([key, { path }]) => [key, { path, values: new Float64Array(episodes.length).fill(missing(path)) }] as const)
  const [changes, others] = [true, false].map((isChange) =>
    mostOf(
      [...pairs].filter(([, { minus }]) => (minus[0] === EARLIER) === isChange),
      isChange ? MOST_CHANGES : MOST_PAIRS,
    ),
  )
  return {
    counts,
    numbers: new Map(numbers),
    pairs: [...(others ?? []), ...(changes ?? [])].map(([, pair]) => pair),
    names: names.all(),
  }
}

/** The first of several conditions that hold in the same episodes is enough: texts repeat. */
function* withoutTwins(features: readonly MatrixFeature[]): Steps<MatrixFeature[]> {
  const seen = new Set<string>()
  const kept: MatrixFeature[] = []
  for (const [index, feature] of features.entries()) {
    if (index % STEP === 0) yield
    const { bits, condition } = feature
    const key = condition.is === 'says' || condition.is === 'begins' ? null : bits.join()
    if (key !== null && seen.has(key)) continue
    if (key !== null) seen.add(key)
    kept.push(feature)
  }
  return kept
}

function* thresholds(numbers: Numbers, size: number): Steps<MatrixFeature[]> {
  const found: MatrixFeature[] = []
  const inOrder = [...numbers].sort(([one, a], [other, b]) => Number('minus' in a) - Number('minus' in b) || (one < other ? -1 : 1))
  for (const [, { values, ...number }] of inOrder) {
    yield
    const known = [...new Set(values)].filter((value) => !Number.isNaN(value))
    const distinct = known.sort((left, right) => left - right).slice(1)
    const asked = values.some(Number.isNaN) && !('minus' in number) ? bitsOf(size, (index) => !Number.isNaN(values[index])) : undefined
    for (const value of chosenOf(distinct, 'minus' in number)) {
      const bits = bitsOf(size, (index) => (values[index] ?? 0) >= value)
      found.push({ condition: { is: 'at_least', ...number, value }, bits, support: 0, ...(asked && { known: asked }) })
    }
  }
  return found
}

/**
 * Thresholds of a number, so that about as many values are between each two. A difference has few,
 * and asks which number is larger: a rule then takes the best threshold of all values.
 */
function chosenOf(distinct: readonly number[], isDifference: boolean): Set<number> {
  const isMany = isDifference && distinct.length > MOST_THRESHOLDS
  const most = isMany ? MOST_PAIR_THRESHOLDS : MOST_THRESHOLDS
  const step = Math.max(1, distinct.length / most)
  const chosen = Array.from({ length: Math.min(most, distinct.length) }, (_, index) => distinct[Math.floor(index * step)] ?? 0)
  const signs = isMany ? [distinct.find((value) => value >= 0), distinct.find((value) => value > 0)] : []
  return new Set([...chosen, ...signs.filter((value) => value !== undefined)])
}

function rowsOf(features: readonly { bits: Bits }[], size: number): Int32Array[] {
  const rows: number[][] = Array.from({ length: size }, () => [])
  features.forEach(({ bits }, feature) => {
    for (let word = 0; word < bits.length; word += 1) {
      for (let rest = bits[word] ?? 0; rest !== 0; rest &= rest - 1) rows[word * 32 + 31 - Math.clz32(rest & -rest)]?.push(feature)
    }
  })
  return rows.map((row) => Int32Array.from(row))
}
