import { z } from 'zod'
import { partsOf, withWeights } from '../../../reflexes/weights.ts'

/** A program that says why it decides. `marks`: the conditions that end its decision, in order. */
export type Explaining = {
  code: string
  marks: readonly string[]
  /** The names of the decisions of a table by their class. */
  decisions: ReadonlyMap<number, string>
  /** The names of the parts of an event that the trees of a table ask about. */
  columns: readonly string[]
}

const ENTRY = 'function reflex(context) {'
const LEAVES = /^ {2}if \((.*)\) return null$/
const TAKES = /^ {2}(?:if \((.*)|)\) return act\(context\)$/

/**
 * The same program with another entry, which says which condition ended the decision, and the
 * points of a table. It runs the program's own functions. Null for code that no learner wrote: the
 * learner quotes all text of events, so that its statements are where the lines begin.
 */
export function explaining(program: string): Explaining | null {
  const { ok, code, ...parts } = partsOf(program)
  const lines = code.split('\n')
  if (!ok || lines.filter((line) => line === ENTRY).length !== 1) return null
  const marks: string[] = []
  const marked = lines.map((line, at) => {
    if (line === ENTRY) return 'function $decide(context) {'
    const left = LEAVES.exec(line)?.[1]
    if (left !== undefined) return `  if (${left}) return $left(${marks.push(left) - 1})`
    const taken = TAKES.exec(line)
    if (!taken) return line
    const condition = taken[1] ?? conditionBefore(lines, at)
    return line.replace(/return act\(context\)$/, `return $taken(${marks.push(condition) - 1}, act(context))`)
  })
  const has_trees = lines.includes('function addTrees(context, points) {')
  const has_table = lines.includes('function tablePoints(context) {')
  const sources = [ENTRY_SOURCE, ...(has_table ? [TABLE_SOURCE] : [NO_TABLE]), ...(has_trees ? [TREES_SOURCE] : [NO_TREES])]
  const text = [...marked, ...sources].join('\n')
  const weights = 'weights' in parts ? parts.weights : null
  return {
    code: weights === null ? text : withWeights(text, weights),
    marks: marks.map((mark) => withPaths(mark, lines)),
    decisions: decisionsIn(lines),
    columns: columnsIn(lines),
  }
}

const TEXT = /^ {2}const (text\d*) = ` \$\{wordsOf\((.*)\)\.join\(' '\)\} `$/

/** A condition with the fields whose words it asks about, in place of the names of their texts. */
function withPaths(mark: string, lines: readonly string[]): string {
  const paths = new Map(
    lines.flatMap((line) => (TEXT.exec(line) ? [[TEXT.exec(line)?.[1] ?? '', TEXT.exec(line)?.[2] ?? ''] as const] : [])),
  )
  return mark.replaceAll(/\b(text\d*)\.includes\(' ([^']*) '\)/g, (code, name: string, words: string) =>
    paths.has(name) ? `${paths.get(name)} says '${words}'` : code,
  )
}

/** The conditions of several lines, which end before the line `at`. */
function conditionBefore(lines: readonly string[], at: number): string {
  const from = lines.lastIndexOf('  if (', at)
  return lines
    .slice(from + 1, at)
    .map((line) => line.trim())
    .join(' ')
}

/** A table names a decision in the first line above its function. */
function decisionsIn(lines: readonly string[]): Map<number, string> {
  const found = new Map<number, string>()
  let title = ''
  for (const [at, line] of lines.entries()) {
    if (line.startsWith('// ') && !lines[at - 1]?.startsWith('// ')) title = line
    const own = /^function act(\d+)\(context\) \{$/.exec(line)?.[1]
    const quoted = /^\/\/ '([^']*)': \d+ decisions/.exec(title)?.[1]
    if (own !== undefined && quoted !== undefined) found.set(Number(own), unquoted(quoted))
  }
  return found
}

/** The text in a literal that `quote` wrote. */
export const unquoted = (inner: string): string => String(JSON.parse(`"${inner.replaceAll('"', String.raw`\"`)}"`))

function columnsIn(lines: readonly string[]): string[] {
  const start = lines.indexOf('const partsOf = (context) => [')
  if (start < 0) return []
  const rest = lines.slice(start + 1)
  return rest.slice(0, rest.indexOf(']')).map((line) => / \/\/ (.*)$/.exec(line)?.[1] ?? line.trim().replace(/,$/, ''))
}

/** An empty list stands for a part that is missing. */
const split = z.tuple([z.int(), z.int(), z.number(), z.unknown(), z.number().nullable(), z.number().nullable()])
/** The answer of the entry. `left`, `taken`: places in `marks`. */
export const explained = z.object({
  action: z.unknown(),
  left: z.int().nullable(),
  taken: z.int().nullable(),
  table: z
    .object({
      best: z.int(),
      second: z.int(),
      points: z.tuple([z.number(), z.number()]),
      lead: z.number().nullable(),
      splits: z.array(split),
    })
    .nullable(),
  outside: z.array(z.tuple([z.int(), z.unknown()])),
})
export type Explained = z.infer<typeof explained>

const ENTRY_SOURCE = `
const $left = (mark) => ({ $left: mark })
const $taken = (mark, action) => ({ $taken: mark, action })
function reflex(context) {
  const decided = $decide(context) ?? {}
  const left = decided.$left ?? null
  const taken = decided.$taken ?? null
  const action = taken === null ? (left === null && decided.action_type !== undefined ? decided : null) : decided.action
  const isLeft = action?.$left !== undefined
  return { action: isLeft ? null : action, left: isLeft ? action.$left : left, taken, table: $table(context), outside: $outside(context) }
}`

/** The best two decisions, as \`reflex\` compares them. */
const TABLE_SOURCE = `
function $table(context) {
  const points = tablePoints(context)
  if (points === null || points.length < 2) return null
  let best = 0
  for (let own = 1; own < points.length; own += 1) if (points[own] > points[best]) best = own
  let second = best === 0 ? 1 : 0
  for (let own = 0; own < points.length; own += 1) if (own !== best && points[own] > points[second]) second = own
  const lead = DECISIONS[best] ? DECISIONS[best].lead : null
  return { best, second, points: [points[best], points[second]], lead, splits: $splits(context, [best, second]) }
}`
const NO_TABLE = `
const $table = () => null`

const MOST_SPLITS = 24

/** A test gives the difference of the mean points after and before it. */
const TREES_SOURCE = `
function $splits(context, owns) {
  const slots = isUntaught(context) ? null : slotsIn(context)
  if (slots === null) return []
  const means = new Array(NODES.length)
  for (let at = NODES.length - 1; at >= 0; at -= 1) {
    const node = NODES[at]
    means[at] = node < 0 ? node + 128 : (means[at + 1] + means[at + (node & 255)]) / 2
  }
  const sums = new Map()
  for (const [own, root] of ROOTS) {
    if (!owns.includes(own)) continue
    let at = root
    while (NODES[at] >= 0) {
      const node = NODES[at]
      const next = at + (slots[node >> 16] >= (node & 65280) ? node & 255 : 1)
      let column = 0
      while (SLOTS[column + 1] <= node >> 16) column += 1
      const key = own * 65536 + column
      sums.set(key, (sums.get(key) ?? 0) + means[next] - means[at])
      at = next
    }
  }
  const parts = partsOf(context)
  const splits = []
  for (const [key, points] of sums) {
    const column = key % 65536
    const part = parts[column]
    const asked = typeof part === 'number' ? ASKED[column].filter((one) => typeof one === 'number') : []
    const low = asked.filter((one) => one <= part)
    const high = asked.filter((one) => one > part)
    const shown = typeof part === 'string' ? part.slice(0, 200) : part === undefined ? [] : part
    splits.push([Math.floor(key / 65536), column, Math.round(points), shown, low.length > 0 ? Math.max(...low) : null, high.length > 0 ? Math.min(...high) : null])
  }
  return splits.filter((one) => one[2] !== 0).sort((one, other) => Math.abs(other[2]) - Math.abs(one[2])).slice(0, ${MOST_SPLITS})
}

function $outside(context) {
  const found = []
  for (const [column, part] of partsOf(context).entries()) {
    if (part === undefined ? MISSING[column] === 0 : typeof part !== 'number' && OTHER[column] === 0 && !ASKED[column].includes(part))
      found.push([column, typeof part === 'string' ? part.slice(0, 200) : part === undefined ? [] : part])
  }
  return found.slice(0, 8)
}`
const NO_TREES = `
const $splits = () => []
const $outside = () => []`
