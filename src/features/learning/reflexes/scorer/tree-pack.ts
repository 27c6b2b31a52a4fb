import { type ContextPath, pathCode, REPEATS } from '../facts/condition.ts'
import { REPEATS_SOURCE } from '../facts/repeats.ts'
import { quote } from '../facts/text.ts'
import type { TreeNode } from './grow.ts'
import { isReading, readingCode } from '../facts/readings.ts'
import { HOUR, isCategory, type NumberSource, type TreeColumn } from './numbers.ts'
import { nameOfSource } from './tree-words.ts'
import type { Trees } from './trees.ts'

/** Stands for a leaf, and for the end. No character is 0. */
const MARK = 1
const FIRST = 2
const ZERO_POINTS = 128
const BASE = 250

/**
 * The trees as characters from 1 to 255. A tree: its class, its nodes; first a node, then the ones
 * for events that fail its test, then the ones for events that pass. A test: two digits of its
 * slot, its bin, the distance to the node for events that pass. A leaf: a mark, its points. A class
 * that is a mark ends the trees. A number has a slot with its bin, a category one for each bin.
 */
export function packTrees({ columns, trees }: Trees): string {
  const slots = slotsOf(columns)
  const characters = trees.flatMap(({ own, root }) => {
    const nodes = nodesOf(root, slots)
    return [own + FIRST, nodes.length, ...nodes.flat()]
  })
  return [...characters, MARK].map((character) => String.fromCharCode(character)).join('')
}

function nodesOf(node: TreeNode, slots: readonly number[]): number[][] {
  if (!('fails' in node)) return [[MARK, node.points + ZERO_POINTS]]
  const { column, bin, equal } = node
  const slot = (slots[column] ?? 0) + (equal ? bin : 0)
  const fails = nodesOf(node.fails, slots)
  const test = [Math.floor(slot / BASE) + FIRST, (slot % BASE) + FIRST, equal ? 1 : bin, fails.length + 1]
  return [test, ...fails, ...nodesOf(node.passes, slots)]
}

/** The first slot of each column, and the number of all. */
function slotsOf(columns: readonly TreeColumn[]): number[] {
  const slots = [0]
  for (const column of columns) slots.push((slots.at(-1) ?? 0) + (isCategory(column) ? column.at.length + 2 : 1))
  return slots
}

/**
 * JavaScript with `addTrees(context, points)`, which adds the points of the trees that begin at
 * `start` of `weights`. It returns false, and adds nothing, for a context unlike the taught ones.
 */
export function treesSource({ columns, taught, spans }: Trees, start: number): string {
  const slots = slotsOf(columns)
  const parts = [
    `// The thresholds of the numbers, and the values, that the trees ask about.
const ASKED = [
${columns.map(({ at }) => `  [${at.map(valueCode).join(', ')}],`).join('\n')}
]
const partsOf = (context) => [
${columns.map(({ source }) => `  ${partCode(source)}, // ${nameOfSource(source)}`).join('\n')}
]
// Where a part may be missing, and where a value may be another than the listed ones.
const MISSING = ${flagsCode(taught.map(({ missing }) => missing))}
const OTHER = ${flagsCode(taught.map(({ other }) => other))}
const SLOTS = [${slots.join(', ')}]

function isUntaught(context) {
  return ${spans.map(({ path, span: [low, high] }) => `isOutside(${readCode(path)}, ${low}, ${high})`).join(' ||\n    ') || 'false'}
}`,
    BINS_SOURCE,
    WALK_SOURCE.replace('START', String(start)),
    ...helpersFor(columns, spans),
  ]
  return parts.join('\n\n')
}

const valueCode = (value: string | number | boolean | null): string => (typeof value === 'string' ? quote(value) : JSON.stringify(value))
const flagsCode = (flags: readonly boolean[]): string => `[${flags.map((flag) => (flag ? 1 : 0)).join(', ')}]`

/** As `binsIn`. A bin is kept as 256 of it, as tests have it. */
const BINS_SOURCE = `function slotsIn(context) {
  const slots = new Array(SLOTS[SLOTS.length - 1]).fill(0)
  const parts = partsOf(context)
  for (let column = 0; column < parts.length; column += 1) {
    const part = parts[column]
    const asked = ASKED[column]
    const slot = SLOTS[column]
    if (typeof part === 'number') {
      let bin = 0
      for (let high = asked.length; bin < high;) {
        const middle = (bin + high) >> 1
        if (part >= asked[middle]) bin = middle + 1
        else high = middle
      }
      slots[slot] = (bin + 1) << 8
    } else if (part !== undefined) {
      const place = asked.indexOf(part)
      if (place < 0 && OTHER[column] === 0) return null
      slots[slot + 1 + (place < 0 ? asked.length : place)] = 256
    } else if (MISSING[column] === 0) return null
    else if (SLOTS[column + 1] > slot + 1) slots[slot] = 256
  }
  return slots
}`

/** As `addTreePoints`. A node is a number: a leaf is negative, a test has slot, bin, distance. */
const WALK_SOURCE = `const NODES = []
const ROOTS = []
for (let at = START; weights.charCodeAt(at) !== ${MARK};) {
  ROOTS.push([weights.charCodeAt(at) - ${FIRST}, NODES.length])
  const end = NODES.length + weights.charCodeAt(at + 1)
  at += 2
  while (NODES.length < end) {
    const first = weights.charCodeAt(at)
    const second = weights.charCodeAt(at + 1)
    if (first === ${MARK}) NODES.push(second - ${2 * ZERO_POINTS})
    else NODES.push((((first - ${FIRST}) * ${BASE} + second - ${FIRST}) << 16) | (weights.charCodeAt(at + 2) << 8) | weights.charCodeAt(at + 3))
    at += first === ${MARK} ? 2 : 4
  }
}

function addTrees(context, points) {
  const slots = isUntaught(context) ? null : slotsIn(context)
  if (slots === null) return false
  const nodes = NODES
  for (const [own, root] of ROOTS) {
    let at = root
    let node = nodes[at]
    while (node >= 0) {
      at += slots[node >> 16] >= (node & 65280) ? node & 255 : 1
      node = nodes[at]
    }
    points[own] += node + ${ZERO_POINTS}
  }
  return true
}`

function partCode(source: NumberSource): string {
  if ('other' in source) return `${source.is}(numberIn(${readCode(source.path)}), numberIn(${readCode(source.other)}))`
  return `${source.is}In(${readCode(source.path)})`
}

/** A name that nothing but an own field of an object has. */
const isPlain = (name: string): boolean => !/^\d+$/.test(name) && !(name in Object('') || name in Object(0))

/** The value at a path, as `valueAt` reads it. */
function readCode(path: ContextPath): string {
  // Only a text is repeated.
  if (path[0] === REPEATS) return `(typeof ${pathCode(['event', path[1] ?? ''])} === 'string' ? ${pathCode(path)} : undefined)`
  if (isReading(path)) return readingCode(path, readCode)
  return path.slice(1).every(isPlain) ? pathCode(path) : `valueAt(context, [${path.map(quote).join(', ')}])`
}

const NUMBER_SOURCE = `const numberIn = (value) => (typeof value === 'number' ? value : undefined)`
const VALUE_SOURCE = `const categoryIn = (value) => (typeof value === 'string' || typeof value === 'boolean' || value === null ? value : undefined)`
const HOUR_SOURCE = `function hourIn(value) {
  const hour = typeof value === 'string' ? ${HOUR}.exec(value)?.[1] : undefined
  return hour === undefined ? undefined : Number(hour)
}`
const RATIO_SOURCE = `const ratio = (one, other) => (one === undefined || other === undefined || other === 0 ? undefined : one / other)`
const DIFFERENCE_SOURCE = `const difference = (one, other) => (one === undefined || other === undefined ? undefined : one - other)`
const OUTSIDE_SOURCE = `const isOutside = (value, low, high) => typeof value === 'number' && (value < low || value > high)`
const PATH_SOURCE = `function valueAt(value, path) {
  for (const name of path) value = typeof value === 'object' && value !== null ? value[name] : undefined
  return value
}`

function helpersFor(columns: readonly TreeColumn[], spans: Trees['spans']): string[] {
  const has = (is: NumberSource['is']): boolean => columns.some(({ source }) => source.is === is)
  const paths = [
    ...columns.flatMap(({ source }) => ('other' in source ? [source.path, source.other] : [source.path])),
    ...spans.map(({ path }) => path),
  ]
  return [
    has('number') || has('ratio') || has('difference') ? NUMBER_SOURCE : '',
    columns.some(isCategory) ? VALUE_SOURCE : '',
    has('hour') ? HOUR_SOURCE : '',
    has('ratio') ? RATIO_SOURCE : '',
    has('difference') ? DIFFERENCE_SOURCE : '',
    spans.length > 0 ? OUTSIDE_SOURCE : '',
    paths.some((path) => readCode(path).includes('valueAt(')) ? PATH_SOURCE : '',
    paths.some(([first]) => first === REPEATS) ? REPEATS_SOURCE : '',
  ].filter((source) => source !== '')
}
