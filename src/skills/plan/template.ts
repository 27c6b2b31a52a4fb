import { byteLength } from '../../base/byte-length.ts'
import { isJsonFields, type Json } from '../../base/json.ts'
import { keyText } from '../../tools/key-text.ts'
import { parsePath, readPath, type Path } from './path.ts'

/**
 * The values of placeholders: an input by its name, or a path that starts with a part of the
 * blackboard or with `inputs`.
 */
export type TemplateScope = { inputs: unknown; ctx: unknown; env: unknown; work: unknown; policy: unknown }

/**
 * A place `{{…}}`: `path` is null where what stands between the braces is no path; `at` is where in
 * the value it stands.
 */
export type Place = { place: string; path: Path | null; at: string }

type Resolved<Value> =
  | { ok: true; value: Value }
  | { ok: false; reason: 'bad_place' | 'missing' | 'not_text' | 'too_large'; place: string; at: string; detail: string }

const PLACE = /\{\{([^{}]*)\}\}/g
const ONLY_PLACE = /^\{\{([^{}]*)\}\}$/
const STARTS = new Set(['ctx', 'env', 'work', 'policy', 'inputs'])
const DEEPEST = 64
const LARGEST = 1_000_000

/** All places in the strings of a JSON value; names of fields are none. */
export function placesIn(value: unknown, at = '', depth = 0): Place[] {
  if (depth > DEEPEST) return []
  if (typeof value === 'string') return Array.from(value.matchAll(PLACE), ([, inner = '']) => placeOf(inner, at))
  if (Array.isArray(value)) return value.flatMap((item, index) => placesIn(item, joined(at, String(index)), depth + 1))
  if (!isJsonFields(value)) return []
  return Object.entries(value).flatMap(([name, inner]) => placesIn(inner, joined(at, name), depth + 1))
}

/**
 * A copy of the value with its placeholders filled. A string that is a single placeholder becomes
 * its value, whatever the type; within a longer text only texts, numbers and booleans fit. Inserted
 * text is never parsed, so a value that contains `{{` stays as it is.
 */
export function resolveTemplate(value: Json, scope: TemplateScope, at = ''): Resolved<Json> {
  return resolving(at, (where) => fill(value, scope, where))
}

/**
 * An idempotency key: as `resolveTemplate`, but different values always give different keys. Values
 * of other types are embedded as JSON.
 */
export function resolveKey(template: string, scope: TemplateScope, at = ''): Resolved<string> {
  return resolving(at, (where) => {
    const { literals, places } = partsOf(template)
    if (places.length > 1)
      return keyText(
        literals,
        places.map((place) => insertedText(place, scope, where)),
      )
    const filled = fillText(template, scope, where)
    return typeof filled === 'string' ? filled : JSON.stringify(filled)
  })
}

type Where = { at: string; left: { size: number }; depth: number }
type Failure = Extract<Resolved<Json>, { ok: false }>

/** The way out of the recursion; it never leaves this file. */
class Unfilled extends Error {
  override readonly name = 'Unfilled'
  readonly why: Failure

  constructor(why: Failure) {
    super(why.detail)
    this.why = why
  }
}

function resolving<Value>(at: string, work: (where: Where) => Value): Resolved<Value> {
  try {
    return { ok: true, value: work({ at, left: { size: LARGEST }, depth: 0 }) }
  } catch (error) {
    if (error instanceof Unfilled) return error.why
    throw error
  }
}

function fill(value: Json, scope: TemplateScope, where: Where): Json {
  if (where.depth > DEEPEST) throw unfilled('too_large', '', where.at, `the arguments are nested deeper than ${DEEPEST} levels`)
  if (typeof value === 'string') return fillText(value, scope, where)
  const within = (name: string): Where => ({ ...where, at: joined(where.at, name), depth: where.depth + 1 })
  if (Array.isArray(value)) return value.map((item, index) => fill(item, scope, within(String(index))))
  if (!isJsonFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fill(inner, scope, within(name))]))
}

function fillText(text: string, scope: TemplateScope, where: Where): Json {
  const only = ONLY_PLACE.exec(text)?.[1]
  if (only !== undefined) {
    const found = valueAt(only, scope, where.at)
    spend(where, only, byteLength(JSON.stringify(found) ?? ''))
    return structuredClone(found)
  }
  return text.replaceAll(PLACE, (_, place: string) => insertedText(place, scope, where))
}

function insertedText(place: string, scope: TemplateScope, where: Where): string {
  const found = textAt(place, scope, where.at)
  spend(where, place, byteLength(found))
  return found
}

/** `split` gives what the pattern captures between the texts around it. */
function partsOf(text: string): { literals: string[]; places: string[] } {
  const parts = text.split(PLACE)
  return { literals: parts.filter((_, index) => index % 2 === 0), places: parts.filter((_, index) => index % 2 === 1) }
}

function textAt(place: string, scope: TemplateScope, at: string): string {
  const found = valueAt(place, scope, at)
  if (typeof found === 'string') return found
  if (typeof found === 'number' || typeof found === 'boolean') return String(found)
  const kind = found === null ? 'null' : Array.isArray(found) ? 'a list' : 'an object'
  throw unfilled('not_text', place, at, `{{${place.trim()}}} is ${kind}, which does not fit into a text: let the place stand alone`)
}

function valueAt(text: string, scope: TemplateScope, at: string): Json {
  const { path, place } = placeOf(text, at)
  if (!path) throw unfilled('bad_place', place, at, `{{${place}}} is no place: write an input's name or a path such as work.image_tag`)
  const found = readPath(scope, path)
  if (found.found) return found.value as Json
  throw unfilled('missing', place, at, `{{${place}}} has no value: there is no ${found.at}`)
}

function spend({ left, at }: Where, place: string, size: number): void {
  left.size -= size
  if (left.size < 0) throw unfilled('too_large', place.trim(), at, `what is inserted takes more than ${LARGEST} bytes`)
}

const unfilled = (reason: Failure['reason'], place: string, at: string, detail: string): Unfilled =>
  new Unfilled({ ok: false, reason, place, at, detail: at === '' ? detail : `${at}: ${detail}` })

/** A bare name is an input. */
function placeOf(text: string, at: string): Place {
  const place = text.trim()
  const path = parsePath(place)
  const [root = ''] = path ?? []
  if (!path) return { place, path: null, at }
  if (STARTS.has(root)) return { place, path: path.length > 1 ? path : null, at }
  return { place, path: ['inputs', ...path], at }
}

const joined = (at: string, name: string): string => (at === '' ? name : `${at}.${name}`)
