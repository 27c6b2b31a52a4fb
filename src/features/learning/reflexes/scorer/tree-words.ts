import { type ContextPath, REPEATS } from '../facts/condition.ts'
import { EARLIER, isReading, keyIn } from '../facts/readings.ts'
import { quote } from '../facts/text.ts'
import type { TreeNode, TreeTest } from './grow.ts'
import { isCategory, type NumberSource, type TreeColumn } from './numbers.ts'
import type { Trees } from './trees.ts'

/** Fewer rules than this are read as rules, more as the names of what is asked about. */
const MOST_RULES = 12
/** Points of a rule that matters. */
const LEAST_POINTS = 10
const MOST_NAMES = 12
const LEAST_SHARE = 0.005

/** Lines for a comment: rules if they are few, else what is asked about, the most telling first. */
export function linesOf(trees: Trees, classNames: readonly string[]): string[] {
  const rules = rulesOf(trees)
  const nameOf = (own: number): string => quote(classNames[own] ?? 'another decision')
  if (rules.length <= MOST_RULES) return rules.map(({ tests, own, points }) => `${tests}: ${nameOf(own)} ${points > 0 ? '+' : ''}${points}`)
  const shares = trees.columns.map(({ source }, column) => ({ name: nameOfSource(source), share: trees.shares[column] ?? 0 }))
  const telling = shares.filter(({ share }) => share >= LEAST_SHARE).sort((one, other) => other.share - one.share)
  return telling.slice(0, MOST_NAMES).map(({ name, share }) => `${name}: ${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`)
}

/** The leaves, with the points of equal ones added up. */
function rulesOf({ columns, trees }: Trees): { tests: string; own: number; points: number }[] {
  const sums = new Map<string, { tests: string; own: number; points: number }>()
  const visit = (own: number, node: TreeNode, held: readonly (TreeTest & { holds: boolean })[]): void => {
    if ('fails' in node) {
      visit(own, node.fails, [...held, { ...node, holds: false }])
      visit(own, node.passes, [...held, { ...node, holds: true }])
      return
    }
    const tests = testsOf(columns, held)
    const key = `${own} ${tests}`
    const known = sums.get(key) ?? { tests, own, points: 0 }
    sums.set(key, { ...known, points: known.points + node.points })
  }
  for (const { own, root } of trees) visit(own, root, [])
  const rules = [...sums.values()].filter(({ points }) => Math.abs(points) >= LEAST_POINTS)
  return rules.sort((one, other) => Math.abs(other.points) - Math.abs(one.points) || (one.tests < other.tests ? -1 : 1))
}

type Held = readonly (TreeTest & { holds: boolean })[]

function testsOf(columns: readonly TreeColumn[], held: Held): string {
  const byColumn = Map.groupBy(held, ({ column }) => column)
  const tests = [...byColumn].flatMap(([index, own]) => {
    const column = columns[index]
    if (!column) return []
    return isCategory(column) ? valueTests(column, own) : numberTests(column, own)
  })
  return tests.length > 0 ? tests.join(' and ') : 'always'
}

function valueTests({ source, at }: TreeColumn, held: Held): string[] {
  const name = nameOfSource(source)
  const only = held.filter(({ holds }) => holds).slice(0, 1)
  return (only.length > 0 ? only : held).map(({ bin, holds }) => {
    if (bin === 0) return `${name} is ${holds ? '' : 'not '}missing`
    const value = at[bin - 1]
    if (value === undefined) return `${name} is ${holds ? '' : 'not '}another value`
    return `${name} ${holds ? '=' : '!='} ${typeof value === 'string' ? quote(value) : JSON.stringify(value)}`
  })
}

/** The strictest of its tests in each direction. */
function numberTests({ source, at }: TreeColumn, held: Held): string[] {
  const name = nameOfSource(source)
  const low = Math.max(0, ...held.filter(({ holds }) => holds).map(({ bin }) => bin))
  const high = Math.min(Infinity, ...held.filter(({ holds }) => !holds).map(({ bin }) => bin))
  return [
    ...(low === 1 ? [`${name} is not missing`] : []),
    ...(low > 1 ? [`${name} >= ${String(at[low - 2])}`] : []),
    ...(high === 1 ? [`${name} is missing`] : []),
    ...(high > 1 && high < Infinity ? [`${name} < ${String(at[high - 2])}`] : []),
  ]
}

export function nameOfSource(source: NumberSource): string {
  if ('other' in source) return `${nameOfPath(source.path)} ${source.is === 'ratio' ? '/' : '-'} ${nameOfPath(source.other)}`
  return source.is === 'hour' ? `hour of ${nameOfPath(source.path)}` : nameOfPath(source.path)
}

const READ_AS: Readonly<Record<string, string>> = { sum: 'sum of ', most: 'most of ', least: 'least of ' }

export const earlierWords = ({ key, path }: ReturnType<typeof keyIn>): string =>
  `${nameOfPath(path)} of the last event${key.length > 0 ? ` with the same ${nameOfPath(key)}` : ''}`

export function nameOfPath(path: ContextPath): string {
  const [first = '', ...rest] = path
  if (first === 'before') return 'type of the last event of another type'
  if (first === EARLIER) return earlierWords(keyIn(rest))
  if (isReading(path)) return `${READ_AS[first] ?? ''}${nameOfPath(rest)}`
  const name = (first === 'event' ? rest : first === REPEATS ? ['repeats', ...rest] : path).join('.')
  return /^[A-Za-z_]\w*(?:\.\w+)*$/.test(name) ? name : quote(name)
}
