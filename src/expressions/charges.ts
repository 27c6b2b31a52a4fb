import { spend } from './environment.ts'

/** The cost of one operation or function in addition to its node, by its operands. */
export type Charge = (operands: readonly unknown[]) => void

export const NODE = 100
/** An error creates a stack and an excerpt of the source. */
export const ERROR = 20_000
export const CONVERTED = 200
const ITEM = 60
/** Per item of a list that is searched for a value of another type or length. */
const PASSED = 20
/** Per character of a text that JavaScript iterates, with an allocation each. */
const SLOW_CHARACTER = 16
/** Per character of a joined text, which is copied when it is first read. */
const COPIED_CHARACTER = 2

const lengthOf = (value: unknown): number => (typeof value === 'string' ? value.length : 0)

const sizeOf = (value: unknown): number => {
  if (Array.isArray(value)) return value.length
  return value instanceof Map ? value.size : 0
}

const sameText = (left: unknown, right: unknown): number => (lengthOf(left) === lengthOf(right) ? lengthOf(left) : 0)

/** The most that a comparison with the value can read. */
function weigh(value: unknown): void {
  spend(ITEM + lengthOf(value))
  if (Array.isArray(value)) value.forEach(weigh)
  else if (value instanceof Map) {
    for (const [name, inner] of value) {
      spend(lengthOf(name))
      weigh(inner)
    }
  } else if (typeof value === 'object' && value !== null) weighFields(value)
}

/** A map literal is a plain object. CEL's own objects have no fields. */
function weighFields(value: object): void {
  for (const [name, inner] of Object.entries(value)) {
    spend(name.length)
    weigh(inner)
  }
}

const equality: Charge = ([left, right]) => {
  if (typeof left === 'string') return spend(sameText(left, right))
  if (typeof left === 'object' && left !== null && sizeOf(left) === sizeOf(right)) weigh(left)
}

const order: Charge = ([left, right]) => spend(Math.min(lengthOf(left), lengthOf(right)))

const joining: Charge = ([left, right]) => {
  spend(COPIED_CHARACTER * (lengthOf(left) + lengthOf(right)))
  if (Array.isArray(left)) spend(ITEM * (sizeOf(left) + sizeOf(right)))
}

/** A list is searched, at worst with a whole comparison per item; a map is a lookup. */
const membership: Charge = ([value, list]) => {
  spend(lengthOf(value))
  if (!Array.isArray(list)) return
  for (const item of list) {
    spend(PASSED)
    if (typeof item === 'string') spend(sameText(value, item))
    else if (typeof item === 'object') weigh(item)
  }
}

const slowText: Charge = (operands) => {
  for (const operand of operands) spend(SLOW_CHARACTER * lengthOf(operand))
}

const anyText: Charge = (operands) => {
  for (const operand of operands) spend(lengthOf(operand))
}

/** The library's pattern for durations takes the cube of the text's length. */
const duration: Charge = ([text]) => spend(lengthOf(text) ** 3)

/** Conversion to JSON and back, validation, copy, comparison and the search for secrets. */
const HOST_CHARACTER = 100
const HOST_VALUE = 1000
export function chargeHost(value: unknown): void {
  spend(HOST_VALUE + HOST_CHARACTER * lengthOf(value))
  if (Array.isArray(value)) value.forEach(chargeHost)
  else if (value instanceof Map) {
    for (const [name, inner] of value) {
      spend(HOST_CHARACTER * lengthOf(name))
      chargeHost(inner)
    }
  } else if (typeof value === 'object' && value !== null) Object.values(value).forEach(chargeHost)
}

export const OPERATORS: Readonly<Record<string, Charge>> = {
  '==': equality,
  '!=': equality,
  '<': order,
  '<=': order,
  '>': order,
  '>=': order,
  '+': joining,
  in: membership,
  '[]': ([, name]) => spend(lengthOf(name)),
}

/** Other names are functions of the host. */
export const FUNCTIONS: Readonly<Record<string, Charge>> = {
  size: slowText,
  int: slowText,
  double: slowText,
  bool: slowText,
  timestamp: slowText,
  duration,
  string: anyText,
  type: () => {},
  dyn: () => {},
}

export const METHODS: Readonly<Record<string, Charge>> = {
  size: slowText,
  lowerAscii: slowText,
  upperAscii: slowText,
  trim: slowText,
  startsWith: ([, part]) => spend(lengthOf(part)),
  endsWith: ([, part]) => spend(lengthOf(part)),
}

/** Iterates the items of a list, or a copy of the names of a map. */
export const iteration = (iterable: unknown): void => spend(ITEM * sizeOf(iterable))
