import { isFields } from '../../../base/check-json.ts'
import { messageOf } from '../../../base/error-text.ts'
import { limits } from '../../../base/limits.ts'
import type { Refused } from '../../../base/result.ts'
import { nameOfHook, type HookScheme, type NewHook } from '../contract/hook.ts'
import { fillText, placesIn } from '../../../base/template.ts'
import { escapedName } from '../../../contract/scope.ts'
import { scopeName } from '../../../core/event.ts'
import { compile, compileOnce, run, type Expression } from '../../../expressions/compile.ts'
import { fromCel, toCel, EVALUATION_WORK } from '../../../expressions/environment.ts'

const ROOTS: readonly string[] = ['body', 'headers', 'item']
const MOST_EVENTS = Math.min(100, limits.events_per_request)
const MOST_COMPILED = 500
const compiled = compileOnce(MOST_COMPILED, (source) => compile(source, undefined, 'any'))
const compiledCondition = compileOnce(MOST_COMPILED, (source) => compile(source))

type Mapping = Partial<Pick<NewHook, 'scope' | 'when' | 'each' | 'event'>>
type Delivery = { address: string; delivery: string; body: unknown; headers: Headers }
/** No event: the delivery does not meet the condition. */
type Mapped = { ok: true; events: Record<string, unknown>[] } | Refused<'mapping'>

/** Returns the first mistake in a mapping, or null. */
export function mappingError(mapping: Mapping): string | null {
  for (const [place, known, roots] of expressionsOf(mapping)) {
    if (!known.ok) return `${place}: ${known.detail}`
    const { paths, functions } = known.expression
    const [unknown] = [...functions, ...paths.map(([root = '']) => root).filter((root) => !roots.includes(root))]
    if (unknown !== undefined) return `${place}: ${unknown} is unknown; there ${roots.length === 1 ? 'is' : 'are'} ${roots.join(', ')}`
  }
  return null
}

type Compiled = ReturnType<typeof compiled>

/** The expressions of a mapping, each with its place and what it may read. */
function expressionsOf({ scope = '', when, each, event = {} }: Mapping): [place: string, Compiled, roots: readonly string[]][] {
  return [
    // A delivery has one scope, so that it is accepted as a whole; and headers choose none.
    ...placesIn(scope).map(({ place }): [string, Compiled, string[]] => ['scope', compiled(place), ['body']]),
    ...(when === undefined ? [] : [['when', compiledCondition(when), ROOTS] as [string, Compiled, readonly string[]]]),
    ...(each === undefined ? [] : [['each', compiled(each), ROOTS] as [string, Compiled, readonly string[]]]),
    ...Object.entries(event).map(([name, source]): [string, Compiled, readonly string[]] => [`event.${name}`, compiled(source), ROOTS]),
  ]
}

/** The headers that the sender's signature covers. */
const SIGNED_HEADERS: Record<HookScheme, readonly string[]> = {
  standard: ['webhook-id', 'webhook-timestamp'],
  github: [],
  stripe: [],
  slack: ['x-slack-request-timestamp'],
  telegram: [],
}

/** The headers that a mapping reads although nobody signed them, each with its place. */
export function unsignedIn(mapping: Mapping, scheme: HookScheme): { place: string; header: string }[] {
  return expressionsOf(mapping).flatMap(([place, known]) => {
    const paths = known.ok ? known.expression.paths.filter(([root]) => root === 'headers') : []
    return paths.flatMap(([, header = '*']) => (SIGNED_HEADERS[scheme].includes(header) ? [] : [{ place, header }]))
  })
}

/** The type of the events, if it is the same for each delivery. */
export function fixedType({ event }: Mapping): string | null {
  if (!event) return 'http.request'
  const known = compiled(event['type'] ?? '')
  if (!known.ok || known.expression.paths.length > 0) return null
  const type = evaluated(known, {})
  return typeof type === 'string' ? type : null
}

/**
 * The scope of a delivery. A value can name no scope outside the place that it fills: what is
 * special in a name, and `/` above all, is written as `:` and two hex digits for each byte.
 */
export function scopeOf(template: string, body: unknown): { ok: true; scope: string } | Refused<'mapping'> {
  try {
    const scope = fillText(template, (place) => {
      const value = evaluated(compiled(place), { body })
      if (typeof value !== 'string' && typeof value !== 'number') throw new TypeError(`${place} is neither a text nor a number`)
      if (value === '') throw new TypeError(`${place} is empty`)
      return escapedName(String(value))
    })
    if (scopeName.safeParse(scope).success) return { ok: true, scope }
    return mappingFails(`scope: a name has at most 128 characters, and this one would have ${scope.length}`)
  } catch (error) {
    return mappingFails(`scope: ${messageOf(error)}`)
  }
}

const mappingFails = (why: string): Refused<'mapping'> => ({
  ok: false,
  reason: 'mapping',
  detail: `The mapping of the hook fails on this body: ${why}.`,
})

/** Makes events of a verified delivery. The ids repeat if the delivery does. */
export function mapDelivery({ when, each, event }: Mapping, { address, delivery, body, headers }: Delivery): Mapped {
  const document = { body, headers: Object.fromEntries(headers) }
  try {
    if (when !== undefined && evaluated(compiledCondition(when), document) !== true) return { ok: true, events: [] }
    const items = each === undefined ? [null] : evaluated(compiled(each), document)
    if (!Array.isArray(items)) throw new TypeError('each: is not a list')
    if (items.length > MOST_EVENTS) throw new RangeError(`each: has ${items.length} items; at most ${MOST_EVENTS} are allowed`)
    const base = `${address}:${delivery}`
    const events = items.map((item, index) => ({
      source: `hook:${nameOfHook(address)}`,
      ...(event
        ? fieldsOf(event, { ...document, item })
        : { type: 'http.request', method: 'POST', path: `/v1/hooks/${address}`, body: item ?? body }),
      ...(event?.['id'] === undefined && { id: each === undefined ? base : `${base}:${index}` }),
    }))
    return { ok: true, events }
  } catch (error) {
    return mappingFails(messageOf(error))
  }
}

function fieldsOf(event: Record<string, string>, document: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(event).map(([field, source]) => {
      try {
        return [field, evaluated(compiled(source), document)]
      } catch (error) {
        throw new Error(`${field}: ${messageOf(error)}`, { cause: error })
      }
    }),
  )
}

function evaluated(known: Compiled, document: Record<string, unknown>): unknown {
  if (!known.ok) throw new Error(known.detail)
  const ran = run(known.expression, { variables: variablesOf(known.expression, document), work: { left: EVALUATION_WORK }, host: null })
  if (!ran.ok) throw new Error(ran.detail)
  return fromCel(ran.value)
}

/** Converts only the parts that the expression reads: bodies may be much larger than it may. */
function variablesOf({ paths }: Expression, document: Record<string, unknown>): Map<string, unknown> {
  const roots = new Set(paths.map(([root = '']) => root))
  const read = Array.from(roots, (root) => {
    const below = paths.filter(([first]) => first === root).map(([, ...rest]) => rest)
    return [root, toCel(picked(document[root] ?? null, below))] as const
  })
  return new Map(read)
}

function picked(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (!isFields(value) || paths.some(({ length }) => length === 0)) return value
  const names = new Set(paths.map(([name = '']) => name))
  const found = Array.from(names).filter((name) => Object.hasOwn(value, name))
  return Object.fromEntries(
    found.map((name) => [
      name,
      picked(
        value[name],
        paths.filter(([first]) => first === name).map(([, ...rest]) => rest),
      ),
    ]),
  )
}
