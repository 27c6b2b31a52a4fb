import type { Episode, Saw } from '../../episode.ts'
import { type Bits, bitsOf, emptyBits, setBit } from './bits.ts'
import { type Condition, type ContextPath, pathKey } from './condition.ts'
import type { Steps } from '../../../../base/steps.ts'
import { eachFact, type Leaves, leavesOf } from './facts.ts'
import { repeatsOf } from './repeats.ts'

/** Which conditions hold in which episodes. */
export type Matrix = {
  size: number
  features: readonly { condition: Condition; bits: Bits; support: number }[]
  /** Features of each episode. */
  rows: readonly Int32Array[]
  /** The numbers that have more values than features: of each episode, by the key of the path. */
  numbers: ReadonlyMap<string, Float64Array>
}

const MOST_FEATURES = 20_000
/** Names of fields may be without end, and each number takes a place in each episode. */
const MOST_NUMBERS = 300
const MOST_THRESHOLDS = 16
const MOST_CONDITIONS = 80_000
/** Episodes, or features, of one step. */
const STEP = 100

/** Reads the episodes twice, so that only conditions that recur are held. */
export function* matrixOf(episodes: readonly Episode[]): Steps<Matrix> {
  const size = episodes.length
  const { counts, numbers } = yield* countFacts(episodes)
  const kept = new Map<string, { condition: Condition; bits: Bits; support: number }>()
  const recurring = [...counts].filter(([, { support }]) => support < size)
  recurring.sort(([one, { support: left }], [other, { support: right }]) => right - left || (one < other ? -1 : 1))
  for (const [key, { condition, support }] of recurring.slice(0, MOST_FEATURES))
    kept.set(key, { condition, bits: emptyBits(size), support })
  for (const [index, { saw }] of episodes.entries()) {
    const leaves = leavesOf(saw)
    for (const { key, value } of numbersIn(saw, leaves)) {
      const values = numbers.get(key)?.values
      if (values) values[index] = value
    }
    eachFact(saw, leaves, (condition) => {
      const feature = kept.get(keyOf(condition))
      if (feature) setBit(feature.bits, index)
    })
    if (index % STEP === 0) yield
  }
  const features = yield* withoutTwins([...kept.values(), ...(yield* thresholds(numbers, size))])
  const many = [...numbers].flatMap(([key, { values }]): [string, Float64Array][] =>
    new Set(values).size > MOST_THRESHOLDS + 1 ? [[key, values]] : [],
  )
  return { size, features, rows: rowsOf(features, size), numbers: new Map(many) }
}

const keyOf = (condition: Condition): string => JSON.stringify(condition)

type Counts = Map<string, { condition: Condition; support: number }>
type Numbers = Map<string, { path: ContextPath; values: Float64Array }>

const numbersIn = (saw: Saw, { leaves }: Leaves) =>
  [...leaves, ...repeatsOf(saw)].flatMap(({ path, value }) => (typeof value === 'number' ? [{ key: pathKey(path), path, value }] : []))

function* countFacts(episodes: readonly Episode[]): Steps<{ counts: Counts; numbers: Numbers }> {
  const counts: Counts = new Map()
  const paths = new Map<string, { path: ContextPath; support: number }>()
  for (const [index, { saw }] of episodes.entries()) {
    if (index % STEP === 0) yield
    const leaves = leavesOf(saw)
    for (const { key, path } of numbersIn(saw, leaves)) {
      const known = paths.get(key)
      if (known) known.support += 1
      else if (paths.size < MOST_CONDITIONS) paths.set(key, { path, support: 1 })
    }
    eachFact(saw, leaves, (condition) => {
      const key = keyOf(condition)
      const known = counts.get(key)
      if (known) known.support += 1
      else if (counts.size < MOST_CONDITIONS) counts.set(key, { condition, support: 1 })
    })
  }
  const often = [...paths].sort(([one, { support: left }], [other, { support: right }]) => right - left || (one < other ? -1 : 1))
  const numbers = often.slice(0, MOST_NUMBERS).map(([key, { path }]) => [key, { path, values: new Float64Array(episodes.length) }] as const)
  return { counts, numbers: new Map(numbers) }
}

/** The first of several conditions that hold in the same episodes is enough: texts repeat. */
function* withoutTwins<Feature extends Matrix['features'][number]>(features: readonly Feature[]): Steps<Feature[]> {
  const seen = new Set<string>()
  const kept: Feature[] = []
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

function* thresholds(numbers: Numbers, size: number): Steps<Matrix['features'][number][]> {
  const found: Matrix['features'][number][] = []
  for (const [, { path, values }] of [...numbers].sort(([one], [other]) => (one < other ? -1 : 1))) {
    yield
    const distinct = [...new Set(values)].sort((left, right) => left - right).slice(1)
    const step = Math.max(1, distinct.length / MOST_THRESHOLDS)
    const chosen = new Set(
      Array.from({ length: Math.min(MOST_THRESHOLDS, distinct.length) }, (_, index) => distinct[Math.floor(index * step)] ?? 0),
    )
    for (const value of chosen) {
      const bits = bitsOf(size, (index) => (values[index] ?? 0) >= value)
      found.push({ condition: { is: 'at_least', path, value }, bits, support: 0 })
    }
  }
  return found
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
