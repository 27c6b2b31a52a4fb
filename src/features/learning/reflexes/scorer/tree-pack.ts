import { type ContextPath, pathCode, REPEATS } from '../facts/condition.ts'
import { REPEATS_SOURCE } from '../facts/repeats.ts'
import { quote } from '../facts/text.ts'
import type { TreeNode } from './grow.ts'
import { HOUR, isCategory, type NumberSource, type TreeColumn } from './numbers.ts'
import type { Trees } from './trees.ts'

/** Stands for a leaf, and for the end. No character is 0. */
const MARK = 1
const FIRST_CLASS = 2
const FIRST_COLUMN = 2
const ZERO_POINTS = 128
/** From here on, a test is for one bin; below, for a bin and the ones above. */
const EQUAL = 128

/**
 * The trees as characters from 1 to 255, to be read where they are. A tree: its class, its length,
 * its root. A test: its column, its bin, the length of the node for events that fail it, that node,
 * and the node for events that pass. A leaf: a mark, its points. A mark ends the trees.
 */
export function packTrees({ trees }: Trees): string {
  const characters = trees.flatMap(({ own, root }) => {
    const packed = packNode(root)
    return [own + FIRST_CLASS, packed.length, ...packed]
  })
  return [...characters, MARK].map((character) => String.fromCharCode(character)).join('')
}

function packNode(node: TreeNode): number[] {
  if (!('fails' in node)) return [MARK, node.points + ZERO_POINTS]
  const fails = packNode(node.fails)
  return [node.column + FIRST_COLUMN, node.bin + (node.equal ? EQUAL : 0), fails.length, ...fails, ...packNode(node.passes)]
}

/**
 * JavaScript with `addTrees(context, points)`, which adds the points of the trees that begin at
 * `start` of `weights`. It returns false, and adds nothing, for a context unlike the taught ones.
 */
export function treesSource({ columns, taught, spans }: Trees, start: number): string {
  const parts = [
    `// The thresholds of the numbers, and the values, that the trees ask about.
const ASKED = [
${columns.map(({ at }) => `  [${at.map(valueCode).join(', ')}],`).join('\n')}
]
const partsOf = (context) => [
${columns.map(({ source }) => `  ${partCode(source)},`).join('\n')}
]
// Where a part may be missing, and where a value may be another than the listed ones.
const MISSING = ${flagsCode(taught.map(({ missing }) => missing))}
const OTHER = ${flagsCode(taught.map(({ other }) => other))}

function isUntaught(context) {
  return ${spans.map(({ path, span: [low, high] }) => `isOutside(${readCode(path)}, ${low}, ${high})`).join(' ||\n    ') || 'false'}
}`,
    WALK_SOURCE.replace('START', String(start)),
    ...helpersFor(columns, spans),
  ]
  return parts.join('\n\n')
}

const valueCode = (value: string | number | boolean | null): string => (typeof value === 'string' ? quote(value) : JSON.stringify(value))
const flagsCode = (flags: readonly boolean[]): string => `[${flags.map((flag) => (flag ? 1 : 0)).join(', ')}]`

/** Trees are walked by the numbers of bins, as in `addTreePoints`. */
const WALK_SOURCE = `function binsOf(context) {
  const bins = [0, 0]
  const parts = partsOf(context)
  for (let column = 0; column < parts.length; column += 1) {
    const part = parts[column]
    const asked = ASKED[column]
    let bin = 0
    if (typeof part === 'number') {
      let high = asked.length
      while (bin < high) {
        const middle = (bin + high) >> 1
        if (part >= asked[middle]) bin = middle + 1
        else high = middle
      }
      bin += 1
    } else if (part !== undefined) {
      const place = asked.indexOf(part)
      if (place < 0 && OTHER[column] === 0) return null
      bin = 1 + (place < 0 ? asked.length : place)
    } else if (MISSING[column] === 0) return null
    bins.push(bin)
  }
  return bins
}

function addTrees(context, points) {
  if (isUntaught(context)) return false
  const bins = binsOf(context)
  if (bins === null) return false
  let at = START
  for (let own = weights.charCodeAt(at); own !== ${MARK}; own = weights.charCodeAt(at)) {
    const end = at + 2 + weights.charCodeAt(at + 1)
    at += 2
    for (let column = weights.charCodeAt(at); column !== ${MARK}; column = weights.charCodeAt(at)) {
      const bin = bins[column]
      const asked = weights.charCodeAt(at + 1)
      at += 3
      if (asked < ${EQUAL} ? bin >= asked : bin === asked - ${EQUAL}) at += weights.charCodeAt(at - 1)
    }
    points[own - ${FIRST_CLASS}] += weights.charCodeAt(at + 1) - ${ZERO_POINTS}
    at = end
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
  return path.slice(2).every(isPlain) ? pathCode(path) : `valueAt(context, [${path.map(quote).join(', ')}])`
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
    paths.some((path) => readCode(path).startsWith('valueAt')) ? PATH_SOURCE : '',
    paths.some(([first]) => first === REPEATS) ? REPEATS_SOURCE : '',
  ].filter((source) => source !== '')
}
