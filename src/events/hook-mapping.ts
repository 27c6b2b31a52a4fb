import { isFields } from '../base/check-json.ts'
import { messageOf } from '../base/error-text.ts'
import { limits } from '../base/limits.ts'
import type { Refused } from '../base/result.ts'
import type { NewHook } from '../contract/settings/hook.ts'
import { compile, compileOnce, run, type Expression } from '../expressions/compile.ts'
import { fromCel, toCel } from '../expressions/values.ts'
import { EVALUATION_WORK } from '../expressions/work.ts'

const ROOTS: readonly string[] = ['body', 'headers', 'item']
const MOST_EVENTS = Math.min(100, limits.events_per_request)
const MOST_COMPILED = 500
const compiled = compileOnce(MOST_COMPILED, (source) => compile(source, undefined, 'any'))
const compiledCondition = compileOnce(MOST_COMPILED, (source) => compile(source))

type Mapping = Pick<NewHook, 'when' | 'each' | 'event'>
type Delivery = { name: string; delivery: string; body: unknown; headers: Headers }
/** No event: the delivery does not meet the condition. */
export type Mapped = { ok: true; events: Record<string, unknown>[] } | Refused<'mapping'>

/** Returns the first mistake in a mapping, or null. */
export function mappingError({ when, each, event = {} }: Mapping): string | null {
  const sources = { ...(when !== undefined && { when }), ...(each !== undefined && { each }) }
  const fields = Object.fromEntries(Object.entries(event).map(([name, source]) => [`event.${name}`, source]))
  for (const [place, source] of Object.entries({ ...sources, ...fields })) {
    const known = place === 'when' ? compiledCondition(source) : compiled(source)
    if (!known.ok) return `${place}: ${known.detail}`
    const { paths, functions } = known.expression
    const [unknown] = [...functions, ...paths.map(([root = '']) => root).filter((root) => !ROOTS.includes(root))]
    if (unknown !== undefined) return `${place}: ${unknown} is unknown; there are ${ROOTS.join(', ')}`
  }
  return null
}

/** Makes events of a verified delivery. The ids repeat if the delivery does. */
export function mapDelivery({ when, each, event }: Mapping, { name, delivery, body, headers }: Delivery): Mapped {
  const document = { body, headers: Object.fromEntries(headers) }
  try {
    if (when !== undefined && evaluated(compiledCondition(when), document) !== true) return { ok: true, events: [] }
    const items = each === undefined ? [null] : evaluated(compiled(each), document)
    if (!Array.isArray(items)) throw new TypeError('each: is not a list')
    if (items.length > MOST_EVENTS) throw new RangeError(`each: has ${items.length} items; at most ${MOST_EVENTS} are allowed`)
    const base = `${name}:${delivery}`
    const events = items.map((item, index) => ({
      source: `hook:${name}`,
      ...(event
        ? fieldsOf(event, { ...document, item })
        : { type: 'http.request', method: 'POST', path: `/v1/hooks/${name}`, body: item ?? body }),
      ...(event?.['id'] === undefined && { id: each === undefined ? base : `${base}:${index}` }),
    }))
    return { ok: true, events }
  } catch (error) {
    return { ok: false, reason: 'mapping', detail: `The mapping of the hook fails on this body: ${messageOf(error)}.` }
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

function evaluated(known: ReturnType<typeof compiled>, document: Record<string, unknown>): unknown {
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
