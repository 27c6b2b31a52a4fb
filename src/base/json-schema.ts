import { z } from 'zod'
import { isFields } from './check-json.ts'
import { sameJson } from './json.ts'

/**
 * Values that are compared with a part of a schema: the alternatives of a list's items multiply.
 * It takes some milliseconds. The reference of the settings names the number.
 */
const MOST_WORK = 50_000
const MOST_ISSUES = 10

type SchemaIssue = { path: PropertyKey[]; message: string }
/** Several values may share the work of one. */
export type SchemaWork = { left: number }
export type Judge = (value: unknown, work?: SchemaWork) => SchemaIssue[]
type Parse = (value: unknown) => { ok: true; value: unknown } | { ok: false; issues: SchemaIssue[] }

export const workOfOne = (): SchemaWork => ({ left: MOST_WORK })

/** True if the value fits. It notes an issue if not, unless it is one of several alternatives. */
type Check = (value: unknown, at: PropertyKey[], run: SchemaRun) => boolean

type ObjectFound = { object: Record<string, unknown>; named: Record<string, unknown> }

/** A value that is judged. It ends at the first issues, or where it takes too much work. */
class SchemaRun {
  readonly issues: SchemaIssue[] = []
  readonly #work: SchemaWork
  #alternatives = 0
  #objects: ObjectFound[] = []

  constructor(work: SchemaWork) {
    this.#work = work
  }

  get isOver(): boolean {
    return this.isTooMuch || this.issues.length >= MOST_ISSUES
  }

  get isTooMuch(): boolean {
    return this.#work.left < 0
  }

  work(units = 1): boolean {
    this.#work.left -= units
    return !this.isOver
  }

  found(object: ObjectFound): void {
    this.#objects.push(object)
  }

  /** The objects that the schema names the fields of, where it fits. */
  get objects(): readonly ObjectFound[] {
    return this.#objects
  }

  /** An alternative that does not fit says nothing about the objects in the value. */
  tries(work: () => boolean): boolean {
    const before = this.#objects.length
    const fits = work()
    if (!fits) this.#objects.length = before
    return fits
  }

  fail(path: PropertyKey[], message: string): false {
    if (this.#alternatives === 0) this.issues.push({ path, message })
    return false
  }

  /** Alternatives note no issues: one issue says that none fits. */
  alternatives<Result>(work: () => Result): Result {
    this.#alternatives += 1
    const result = work()
    this.#alternatives -= 1
    return result
  }

  /** An issue ends an alternative, but not the rest of a value that may have others. */
  get isQuiet(): boolean {
    return this.#alternatives > 0
  }
}

/** Compiles a JSON Schema that `z.fromJSONSchema` supports; its own work is not bounded. */
export function judgeOf(schema: unknown): Judge {
  const check = checkOf(schema)
  return (value, work = workOfOne()) => judged(check, value, new SchemaRun(work))
}

/**
 * As `judgeOf`, with the value as zod would parse it: with defaults, and with the fields that the
 * schema names first, in its order, so that equal arguments of a tool have one text.
 */
export function parseOf(schema: unknown): Parse {
  const check = checkOf(schema)
  return (given) => {
    const value = copyOf(given)
    const run = new SchemaRun(workOfOne())
    const issues = judged(check, value, run)
    if (issues.length > 0) return { ok: false, issues }
    for (const found of run.objects) complete(found)
    return { ok: true, value }
  }
}

function judged(check: Check, value: unknown, run: SchemaRun): SchemaIssue[] {
  const fits = check(value, [], run)
  if (run.isTooMuch)
    return [{ path: [], message: 'takes too much work to check: give its type fewer alternatives, or its lists fewer items' }]
  return fits ? [] : run.issues
}

/** Each object once: one that stands at two places may be completed by two schemas. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf)
  return isFields(value) ? Object.fromEntries(Object.entries(value).map(([name, field]) => [name, copyOf(field)])) : value
}

function complete({ object, named }: ObjectFound): void {
  const given = Object.entries(object).filter(([, value]) => value !== undefined)
  const isGiven = (name: string) => Object.hasOwn(object, name) && object[name] !== undefined
  const fields = Object.entries(named).flatMap(([name, schema]) => {
    if (isGiven(name)) return [[name, object[name]] as const]
    return isFields(schema) && 'default' in schema ? [[name, copyOf(schema['default'])] as const] : []
  })
  for (const name of Object.keys(object)) delete object[name]
  for (const [name, value] of new Map([...fields, ...given])) Object.defineProperty(object, name, { value, ...PLAIN })
}

/** A field named `__proto__` must be a field as well. */
const PLAIN = { enumerable: true, configurable: true, writable: true }

type Schema = Record<string, unknown>

function checkOf(schema: unknown): Check {
  if (!isFields(schema)) return schema === false ? (_value, at, run) => run.fail(at, 'must not be there') : () => true
  const checks = [typed(schema), oneOfValues(schema), ...combined(schema), scalar(schema), fields(schema), items(schema)]
  const found = checks.filter((check) => check !== null)
  return (value, at, run) => run.work() && found.every((check) => check(value, at, run))
}

const typeOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)

function typed({ type, nullable }: Schema): Check | null {
  if (type === undefined) return null
  const types = [type].flat().map(String)
  const allowed = (value: unknown): boolean =>
    types.includes(typeOf(value)) || (types.includes('integer') && Number.isSafeInteger(value)) || (nullable === true && value === null)
  return (value, at, run) =>
    allowed(value) || run.fail(at, `expected ${types.join(' or ')}, received ${value === undefined ? 'nothing' : typeOf(value)}`)
}

/** `const` and `enum`. */
function oneOfValues(schema: Schema): Check | null {
  const values = 'const' in schema ? [schema['const']] : Array.isArray(schema['enum']) ? (schema['enum'] as unknown[]) : null
  if (values === null) return null
  const plain = new Set(values.filter((value) => typeof value !== 'object' || value === null))
  const deep = values.filter((value) => !plain.has(value))
  const shown = JSON.stringify(values).slice(1, -1)
  return (value, at, run) => {
    if (plain.has(value) || (typeof value === 'object' && deep.some((one) => run.work() && sameJson(one, value)))) return true
    return run.fail(at, `expected ${shown.length > 200 ? 'a value that the schema names' : shown}`)
  }
}

function combined({ anyOf, oneOf, allOf, not }: Schema): Check[] {
  const checksOf = (of: unknown): Check[] | null => (Array.isArray(of) ? of.map(checkOf) : null)
  const any = checksOf(anyOf)
  const one = checksOf(oneOf)
  const all = checksOf(allOf)
  const checks: Check[] = []
  if (any)
    checks.push((value, at, run) => {
      const fits = run.alternatives(() => any.some((check) => !run.isOver && run.tries(() => check(value, at, run))))
      return fits || run.fail(at, 'fits none of the alternatives')
    })
  if (one)
    checks.push((value, at, run) => {
      const fitting = run.alternatives(() => one.filter((check) => !run.isOver && run.tries(() => check(value, at, run))).length)
      return fitting === 1 || run.fail(at, fitting === 0 ? 'fits none of the alternatives' : 'fits several of the alternatives')
    })
  if (all) checks.push((value, at, run) => all.every((check) => check(value, at, run)))
  if (isFields(not)) checks.push((_value, at, run) => run.fail(at, 'must not be there'))
  return checks
}

const SCALAR = {
  string: ['format', 'minLength', 'maxLength', 'contentEncoding', 'contentMediaType'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
} as const

/** Texts and numbers are judged as zod judges them, which knows the formats. */
function scalar(schema: Schema): Check | null {
  const made = Object.entries(SCALAR).flatMap(([type, keywords]) => {
    const own = Object.fromEntries(keywords.flatMap((keyword) => (keyword in schema ? [[keyword, schema[keyword]]] : [])))
    return Object.keys(own).length === 0 ? [] : [[type, z.fromJSONSchema({ ...own, type } as never)] as const]
  })
  if (made.length === 0) return null
  const schemas = new Map<string, z.ZodType>(made)
  return (value, at, run) => {
    const [issue] = schemas.get(typeof value)?.safeParse(value).error?.issues ?? []
    return issue === undefined || run.fail(at, issue.message)
  }
}

/** True if all of them fit; without alternatives, all are looked at. */
function each<One>(of: Iterable<One>, run: SchemaRun, check: (one: One) => boolean): boolean {
  let fits = true
  for (const one of of) {
    if (run.isOver) return false
    if (check(one)) continue
    if (run.isQuiet) return false
    fits = false
  }
  return fits
}

function fields({ properties, required, additionalProperties, minProperties, maxProperties }: Schema): Check | null {
  const named = isFields(properties) ? properties : {}
  const checks = Object.entries(named).map(([name, schema]) => ({ name, check: checkOf(schema) }))
  const hasDefault = (name: string): boolean => isFields(named[name]) && 'default' in named[name]
  const needed = Array.isArray(required) ? (required as string[]).filter((name) => !hasDefault(name)) : []
  const other = additionalProperties === undefined || additionalProperties === true ? null : checkOf(additionalProperties)
  if (checks.length + needed.length === 0 && !other && minProperties === undefined && maxProperties === undefined) return null
  return (value, at, run) => {
    if (!isFields(value)) return true
    const names = Object.keys(value)
    if (!run.work(Math.ceil((needed.length + checks.length + names.length) / 10))) return false
    if (typeof minProperties === 'number' && names.length < minProperties) return run.fail(at, `has fewer than ${minProperties} fields`)
    if (typeof maxProperties === 'number' && names.length > maxProperties) return run.fail(at, `has more than ${maxProperties} fields`)
    if (checks.length > 0) run.found({ object: value, named })
    const has = (name: string) => Object.hasOwn(value, name) && value[name] !== undefined
    const lacking = needed.filter((name) => !has(name))
    const complete = each(lacking, run, (name) => run.fail([...at, name], 'is required'))
    const known = each(checks, run, ({ name, check }) => !has(name) || check(value[name], [...at, name], run))
    const others = other ? names.filter((name) => !Object.hasOwn(named, name)) : []
    const more = each(others, run, (name) => other === null || other(value[name], [...at, name], run))
    return complete && known && more
  }
}

function items(schema: Schema): Check | null {
  const { items: rest, prefixItems, additionalItems, minItems, maxItems, contains, uniqueItems } = schema
  const first = [prefixItems, rest].find((one) => Array.isArray(one)) as unknown[] | undefined
  const places = (first ?? []).map(checkOf)
  const more = Array.isArray(rest) ? additionalItems : rest
  const other = more === undefined ? null : checkOf(more)
  const contained = contains === undefined ? null : checkOf(contains)
  if (!places.length && !other && !contained && minItems === undefined && maxItems === undefined && uniqueItems !== true) return null
  return (value, at, run) => {
    if (!Array.isArray(value)) return true
    if (typeof minItems === 'number' && value.length < minItems) return run.fail(at, `has fewer than ${minItems} items`)
    if (typeof maxItems === 'number' && value.length > maxItems) return run.fail(at, `has more than ${maxItems} items`)
    if (uniqueItems === true && !areUnique(value, run)) return run.fail(at, 'has an item twice')
    if (contained && !containsEnough(value, { contained, at, run, schema }))
      return run.fail(at, 'lacks items of the kind that it must contain')
    return each(value.entries(), run, ([index, item]) => {
      const check = places[index] ?? other
      return check === null || check(item, [...at, index], run)
    })
  }
}

const areUnique = (value: unknown[], run: SchemaRun): boolean =>
  run.work(value.length) && new Set(value.map((item) => JSON.stringify(item))).size === value.length

type Containing = { contained: Check; at: PropertyKey[]; run: SchemaRun; schema: Schema }

function containsEnough(
  value: unknown[],
  { contained, at, run, schema: { minContains = 1, maxContains = Infinity } }: Containing,
): boolean {
  const found = run.alternatives(() => value.filter((item) => !run.isOver && run.tries(() => contained(item, at, run))).length)
  return found >= Number(minContains) && found <= Number(maxContains)
}
