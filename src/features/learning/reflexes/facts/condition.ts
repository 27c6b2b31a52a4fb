import { quote } from './text.ts'

/** Names from the context to a value. `repeats`, NAME: the recent events that are alike there. */
export type ContextPath = readonly string[]

/** A question about a context, answered alike by the learner and by learned code. */
export type Condition =
  | { is: 'equal'; path: ContextPath; value: string | number | boolean | null }
  /**
   * A missing number is 0. `minus`: the number there is taken from the one at `path`; where one of
   * the two is missing, the condition does not hold.
   */
  | { is: 'at_least'; path: ContextPath; minus?: ContextPath; value: number }
  | { is: 'contains'; path: ContextPath; value: string | number }
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
export const pathCode = (path: ContextPath): string => (path[0] === REPEATS ? `repeats(context, ${quote(path[1] ?? '')})` : partCode(path))

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

/** Decimal places of a sum: sums of binary fractions differ after them. */
export const SUM_PLACES = 9
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
    case 'at_least': {
      const value = numberCode(condition)
      return holds ? `${value} >= ${condition.value}` : `!(${value} >= ${condition.value})`
    }
    case 'contains':
      return `${holds ? '' : '!'}has(${pathCode(condition.path)}, ${scalar(condition.value)})`
    case 'says':
      return `${holds ? '' : '!'}${texts.get(pathKey(condition.path))}.includes(${quote(` ${condition.words} `)})`
    case 'begins':
      return `${holds ? '' : '!'}${texts.get(pathKey(condition.path))}.split(' ').some((word) => word.length > ${condition.letters.length} && word.startsWith(${quote(condition.letters)}))`
    case 'follows':
      return `${holds ? '' : '!'}types.endsWith(${quote(` ${condition.types} `)})`
  }
}

export function valueAt(root: unknown, path: ContextPath): unknown {
  let value = root
  for (const name of path) value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
  return value
}
