import type { Json } from '../../../base/json.ts'
import type { Episode } from '../episode.ts'
import {
  type AtLeast,
  conditionCode,
  type Condition,
  type ContextPath,
  type Literal,
  pathCode,
  pathKey,
  valueAt,
} from './facts/condition.ts'
import { IS_FILLED, leavesOf, LONGEST_VALUE, MOST_DEPTH_RETURNED, MOST_RETURNED_ITEMS, RETURNED } from './facts/facts.ts'
import { spanOf } from './facts/ranges.ts'
import { EARLIER, isReading, SUM_PLACES } from './facts/readings.ts'
import { LONGEST_POINTER, LONGEST_SAID, MOST_NAMED } from '../../../contract/action.ts'
import { FAILED_AT, failureIn, isSaid, wholeOf } from '../../../reflexes/sequence.ts'
import { quote } from './facts/text.ts'
import { LEAST_EACH, listCode, MOST_VALUES } from './guards.ts'

/** Code of the questions of a branch: `given` of the event, `when` of the outputs. */
export type BranchTests = { given: readonly string[]; when: readonly string[] }

/** Values of outputs that a branch keeps to. */
const MOST_GUARDED = 12
/** Objects in outputs whose fields are counted. */
const MOST_OBJECTS = 100
const OF_EVENT: ReadonlySet<string | undefined> = new Set(['event', 'scratch'])

const isOfEvent = (path: ContextPath): boolean =>
  OF_EVENT.has(isReading(path) ? path[1] : path[0]) || path[0] === 'before' || path[0] === EARLIER
const isOfList = (path: ContextPath): boolean => path.at(-1) === IS_FILLED
const isReturned = ([first]: ContextPath): boolean => first === RETURNED
const pointerOf = (path: readonly string[]): string => path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
const isShort = ([, , ...path]: ContextPath): boolean => pointerOf(path).length <= LONGEST_POINTER

/** True if code can ask it of the event, or an action of an output. */
export function isExpressible(condition: Condition): boolean {
  if (condition.is === 'says')
    return (
      isReturned(condition.path) && !condition.words.startsWith('^') && condition.words.length <= LONGEST_SAID && isShort(condition.path)
    )
  if (condition.is !== 'equal' && condition.is !== 'present' && condition.is !== 'at_least') return false
  const paths = [condition.path, ...('minus' in condition && condition.minus ? [condition.minus] : [])]
  if (paths.length > 1 && paths.some(isOfList)) return false
  const isEither = paths.every((path) => (isReturned(path) ? isShort(path) : isOfEvent(path)))
  return isEither && (paths.length === 1 || paths.filter(isReturned).length === 1)
}

/**
 * The questions of a rule, and that the outputs are as in the decisions that taught it: their
 * numbers in the ranges of these, and values that are few none but these.
 */
export function branchTests(literals: readonly Literal[], own: readonly Episode[]): BranchTests {
  const failures = failuresOf(own)
  const isOfOutputs = ({ condition }: Literal): boolean =>
    ('path' in condition && isReturned(condition.path)) || ('minus' in condition && condition.minus !== undefined)
  const outputs = literals.filter(isOfOutputs)
  const numbers = outputs.flatMap(({ condition }) => ('minus' in condition && condition.minus ? [condition.path, condition.minus] : []))
  return {
    given: [
      ...literals.filter((literal) => !isOfOutputs(literal)).map((literal) => conditionCode(literal, new Map())),
      ...numbers.filter((path) => !isReturned(path)).map((path) => `typeof ${pathCode(path)} === 'number'`),
    ],
    when: merged([
      ...failures,
      ...outputs.filter((literal) => !isImplied(literal, own)).map(testOf),
      ...guardsOf(own, literals),
      ...fieldGuardsOf(own),
    ]),
  }
}

/** The way in which the last call failed; undefined if it did not. */
export const failureSeen = ({ saw }: Episode): string | undefined => failureIn(saw.returned?.at(-1))

/** The ways to fail that taught a branch: another one may be no answer at all. */
function failuresOf(own: readonly Episode[]): Test[] {
  const counts = Map.groupBy(
    own.flatMap((one) => failureSeen(one) ?? []),
    (kind) => kind,
  )
  const known = [...counts].flatMap(([kind, { length }]) => (length >= LEAST_EACH ? [kind] : []))
  const last = String((own[0]?.saw.returned?.length ?? 0) - 1)
  return counts.size === 0
    ? []
    : [{ path: [RETURNED, last, FAILED_AT.slice(1)], test: 'one_of', code: listCode(known.sort().slice(0, MOST_VALUES)) }]
}

/** True for words that each of the few values has which a guard keeps to. */
function isImplied({ condition, holds }: Literal, own: readonly Episode[]): boolean {
  if (condition.is !== 'says' || !holds) return false
  const values = valuesAt(condition.path, own)
  return guardOf(condition.path, values).length > 0 && values.every((value) => isSaid(value, condition.words))
}

const valuesAt = (path: ContextPath, own: readonly Episode[]) => own.map(({ saw }) => valueAt(saw, path) as Json | undefined)

/** A test of a part of an output, such as `at_least` with the code `5`. */
type Test = { path: ContextPath; test: string; code: string }

function testOf({ condition, holds }: Literal): Test {
  if (condition.is === 'present') return { path: condition.path, test: 'present', code: String(holds) }
  if (condition.is === 'equal') return { path: condition.path, test: holds ? 'one_of' : 'none_of', code: listCode([condition.value]) }
  if (condition.is === 'says') return { path: condition.path, test: holds ? 'says' : 'says_none', code: listCode([condition.words]) }
  const { path, minus, value } = condition as AtLeast
  if (isOfList(path)) return { path: path.slice(0, -1), test: 'empty', code: String(!holds) }
  if (!minus) return { path, test: holds ? 'at_least' : 'below', code: String(value) }
  // The number of the event is known in code.
  return isReturned(path)
    ? { path, test: 'at_least', code: shifted(minus, value) }
    : { path: minus, test: 'at_most', code: shifted(path, -value) }
}

const shifted = (path: ContextPath, by: number): string =>
  by === 0 ? pathCode(path) : `Number((${pathCode(path)} ${by < 0 ? '-' : '+'} ${Math.abs(by)}).toFixed(${SUM_PLACES}))`

function guardsOf(own: readonly Episode[], literals: readonly Literal[]): Test[] {
  const [first] = own
  if (!first) return []
  const fixed = new Set(literals.flatMap(({ condition, holds }) => (condition.is === 'equal' && holds ? [pathKey(condition.path)] : [])))
  const paths = leavesOf(first.saw)
    .leaves.map(({ path }) => path)
    .filter((path) => isReturned(path) && !isOfList(path) && isShort(path))
  return paths
    .filter((path) => !fixed.has(pathKey(path)))
    .flatMap((path) => guardOf(path, valuesAt(path, own)))
    .slice(0, MOST_GUARDED)
}

function guardOf(path: ContextPath, values: readonly (Json | undefined)[]): Test[] {
  if (values.every((value) => typeof value === 'number')) {
    const span = spanOf(values.map((value) => [value]))
    return span === null
      ? []
      : [
          { path, test: 'at_least', code: String(span[0]) },
          { path, test: 'at_most', code: String(span[1]) },
        ]
  }
  const codes = Map.groupBy(values, (value) => JSON.stringify(value))
  const isFew = codes.size <= MOST_VALUES && [...codes.values()].every(({ length }) => length >= LEAST_EACH)
  const isValue = (value: Json | undefined): boolean =>
    value === null || typeof value === 'boolean' || (typeof value === 'string' && value.length <= LONGEST_VALUE)
  if (!isFew || !values.every(isValue)) return []
  return [{ path, test: 'one_of', code: listCode([...codes.keys()].sort().map((text) => JSON.parse(text) as Json)) }]
}

type Names = { path: ContextPath; counts: Map<string, number> }

/** The fields that objects in these outputs have: a new one may say something. */
function fieldGuardsOf(own: readonly Episode[]): Test[] {
  const found = new Map<string, Names>()
  for (const { acts, saw } of own)
    // As it is kept, an output has the names of what is masked.
    for (const place of (saw.returned ?? []).keys()) countNames(acts[place]?.output as Json | undefined, [RETURNED, String(place)], found)
  const isKnown = ([name, count]: [string, number]): boolean => name.length <= LONGEST_SAID && count >= LEAST_EACH
  return [...found.values()]
    .filter(({ path, counts }) => counts.size <= MOST_NAMED && isShort(path) && [...counts].every(isKnown))
    .slice(0, MOST_GUARDED / 2)
    .map(({ path, counts }) => ({ path, test: 'only', code: listCode([...counts.keys()].sort()) }))
}

function countNames(value: Json | undefined, path: ContextPath, found: Map<string, Names>): void {
  const whole = wholeOf(value)
  if (typeof whole !== 'object' || whole === null || path.length > MOST_DEPTH_RETURNED || found.size > MOST_OBJECTS) return
  if (!Array.isArray(whole)) {
    const { counts } = found.get(pathKey(path)) ?? { counts: new Map<string, number>() }
    for (const name of Object.keys(whole)) counts.set(name, (counts.get(name) ?? 0) + 1)
    if (counts.size > 0) found.set(pathKey(path), { path, counts })
  }
  const inner = Array.isArray(whole) ? whole.slice(0, MOST_RETURNED_ITEMS) : whole
  for (const [name, one] of Object.entries(inner)) countNames(one, [...path, name], found)
}

/** Joins the tests of a place to one condition, as far as they differ in kind. */
function merged(tests: readonly Test[]): string[] {
  const found: { path: ContextPath; tests: Map<string, string> }[] = []
  for (const { path, test, code } of tests) {
    const known = found.find((one) => pathKey(one.path) === pathKey(path) && !one.tests.has(test))
    if (known) known.tests.set(test, code)
    else if (!found.some((one) => pathKey(one.path) === pathKey(path) && one.tests.get(test) === code))
      found.push({ path, tests: new Map([[test, code]]) })
  }
  return found.map(({ path: [, place = '0', ...path], tests: own }) => {
    const told = Array.from(own, ([test, code]) => `${test}: ${code}`)
    return `{ output: ${place}, path: ${pointerCode(path)}, ${told.join(', ')} }`
  })
}

/** A JSON pointer (RFC 6901), in code. Its slashes stand as they are. */
export const pointerCode = (path: readonly string[]): string =>
  `'${path.map((name) => `/${quote(pointerOf([name]).slice(1)).slice(1, -1)}`).join('')}'`
