import { isReading, MOST_ITEMS, partAt, readingAt, readingCode, SUM_PLACES } from './readings.ts'
import { quote } from './text.ts'

/**
 * Names from the context to a value. `repeats`, NAME: the recent events that are alike there. See
 * `READINGS` for what else is read from values.
 */
export type ContextPath = readonly string[]

/** A question about a context, answered alike by the learner and by learned code. */
export type Condition =
  | { is: 'equal'; path: ContextPath; value: string | number | boolean | null }
  /** The field has one of these few values: not another one, nor one that nobody has seen. */
  | { is: 'one_of'; path: ContextPath; values: readonly string[] }
  /**
   * A missing number is 0. `minus`: the number there is taken from the one at `path`; where one of
   * the two is missing, the condition does not hold.
   */
  | { is: 'at_least'; path: ContextPath; minus?: ContextPath; value: number }
  /** `of`: the field of an item; without it the item itself. */
  | { is: 'contains'; path: ContextPath; of?: string; value: string | number | boolean | null }
  /** The event, or an output, has such a field. */
  | { is: 'present'; path: ContextPath }
  /** A word, or two in a row. */
  | { is: 'says'; path: ContextPath; words: string }
  /** A word of more letters begins with these. */
  | { is: 'begins'; path: ContextPath; letters: string }
  /** The types of the recent events end with these. */
  | { is: 'follows'; types: string }

export type Literal = { condition: Condition; holds: boolean }

export const REPEATS = 'repeats'
const NAME = /^[A-Za-z_$][\w$]*$/

/** Reading a missing part gives undefined. */
export function pathCode(path: ContextPath): string {
  if (path[0] === REPEATS) return `repeats(context, ${quote(path[1] ?? '')})`
  return isReading(path) ? readingCode(path, partCode) : partCode(path)
}

const partCode = (path: ContextPath): string =>
  path.reduce((code, name, index) => {
    const link = index < 2 ? '' : '?.'
    if (NAME.test(name) && name !== '__proto__') return `${code}${index < 2 ? '.' : '?.'}${name}`
    return `${code}${link}[${quote(name)}]`
  }, 'context')

/** The variable that holds the text at a path, as ` ^ word word `. */
export type TextNames = ReadonlyMap<string, string>
export const pathKey = (path: ContextPath): string => JSON.stringify(path)

export type AtLeast = Extract<Condition, { is: 'at_least' }>
type NumberPlace = Pick<AtLeast, 'path' | 'minus'>
/** Names a number, or the difference of two. */
export const numberKey = ({ path, minus }: NumberPlace): string => (minus ? `${pathKey(path)} - ${pathKey(minus)}` : pathKey(path))

function numberCode({ path, minus }: NumberPlace): string {
  if (minus) return `difference(${pathCode(path)}, ${pathCode(minus)})`
  return path[0] === REPEATS ? pathCode(path) : `(${pathCode(path)} ?? 0)`
}

export const sumOf = (one: number, other: number): number => {
  const sum = one + other
  return Number.isInteger(sum) ? sum : Number(sum.toFixed(SUM_PLACES))
}
export const DIFFERENCE_SOURCE = `// undefined if one of them is not a number.
const difference = (one, other) =>
  typeof one === 'number' && typeof other === 'number' ? Number((one - other).toFixed(${SUM_PLACES})) : undefined`

const scalar = (value: string | number | boolean | null): string => (typeof value === 'string' ? quote(value) : JSON.stringify(value))

// oxlint-disable-next-line typescript/consistent-return -- the switch is exhaustive
export function conditionCode({ condition, holds }: Literal, texts: TextNames): string {
  switch (condition.is) {
    case 'equal':
      return `${pathCode(condition.path)} ${holds ? '===' : '!=='} ${scalar(condition.value)}`
    case 'one_of':
      return `${holds ? '' : '!'}[${condition.values.map(quote).join(', ')}].includes(${pathCode(condition.path)})`
    case 'at_least': {
      const value = numberCode(condition)
      return holds ? `${value} >= ${condition.value}` : `!(${value} >= ${condition.value})`
    }
    case 'present':
      return `${pathCode(condition.path)} ${holds ? '!==' : '==='} undefined`
    case 'contains':
      return `${holds ? '' : '!'}has(${pathCode(condition.path)}, ${scalar(condition.value)}${condition.of === undefined ? '' : `, ${quote(condition.of)}`})`
    case 'says':
      return `${holds ? '' : '!'}${texts.get(pathKey(condition.path))}.includes(${quote(` ${condition.words} `)})`
    case 'begins':
      return `${holds ? '' : '!'}${texts.get(pathKey(condition.path))}.split(' ').some((word) => word.length > ${condition.letters.length} && word.startsWith(${quote(condition.letters)}))`
    case 'follows':
      return `${holds ? '' : '!'}types.endsWith(${quote(` ${condition.types} `)})`
  }
}

export const HAS_SOURCE = `// True if a list has an item, or one with such a field.
const has = (list, item, of) =>
  Array.isArray(list) &&
  (of === undefined
    ? list.includes(item)
    : list.slice(0, ${MOST_ITEMS}).some((one) => typeof one === 'object' && one !== null && !Array.isArray(one) && one[of] === item))`

/** The value at a path of a context. */
export const valueAt = (saw: unknown, path: ContextPath): unknown => (isReading(path) ? readingAt(path, saw) : partAt(saw, path))
