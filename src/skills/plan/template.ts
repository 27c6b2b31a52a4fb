import { parsePath, readPath, type Path } from '../cel/expression.ts'
import { byteLength, type Json, mapJson, partsIn, type JsonFields } from '../../base/json.ts'
import { fillKey, fillPlaces, optionalPlace, placesIn as allPlacesIn, textOf, type Filler } from '../../base/template.ts'
import { isFields } from '../../base/check-json.ts'
import { secretName } from '../../contract/settings/outside-tools.ts'
import type { Manifest } from '../manifest/manifest.ts'

/** Names a secret of the deployment. Its value is filled in only for the call of a step's tool. */
type SecretReference = { secret: string }

export const isSecretReference = (value: unknown): value is SecretReference =>
  isFields(value) && Object.keys(value).length === 1 && secretName.safeParse(value['secret']).success

export function holdsReference(value: unknown): boolean {
  for (const { value: inner } of partsIn(value)) if (typeof inner === 'object' && isSecretReference(inner)) return true
  return false
}

/** The secrets that a run's secret inputs name. They come only from the blackboard's seeds. */
export function secretsOf({ signature }: Manifest, inputs: JsonFields): string[] {
  const named = signature.inputs.filter(({ secret }) => secret).map(({ name }) => inputs[name])
  return named.flatMap((value) => (isSecretReference(value) ? [value.secret] : []))
}

export const withSecrets = (value: unknown, secrets: ReadonlyMap<string, string>): unknown =>
  mapJson(value, (inner) => (isSecretReference(inner) ? (secrets.get(inner.secret) ?? inner) : inner))

/** The secrets that the arguments name, out of the secrets that may be used. */
export function namedIn(value: unknown, secrets: readonly string[]): string[] {
  const named = new Set<string>()
  for (const { value: inner } of partsIn(value)) {
    if (isSecretReference(inner) && secrets.includes(inner.secret)) named.add(inner.secret)
  }
  return [...named]
}

/** The values of placeholders. A path starts with a part of the blackboard or `inputs`. */
export type TemplateScope = { inputs: unknown; ctx: unknown; env: unknown; work: unknown; policy: unknown }
/**
 * `path` is null if the text in the braces is not a path; `at` is the path of the string.
 * `optional` places may have no value.
 */
export type TemplatePlace = { place: string; path: Path | null; at: string; optional?: true }
type Failure = { ok: false; reason: 'bad_place' | 'missing' | 'not_text' | 'too_large'; place: string; at: string; detail: string }
type Resolved<Value> = { ok: true; value: Value } | Failure

const STARTS = new Set(['ctx', 'env', 'work', 'policy', 'inputs'])
const LARGEST = 1_000_000

export const placesIn = (value: unknown): TemplatePlace[] => allPlacesIn(value).map(({ place, at }) => ({ ...placeOf(place), at }))

/** Fills the placeholders of a value. Longer texts may contain no lists and objects. */
export const resolveTemplate = (value: Json, scope: TemplateScope, at = ''): Resolved<Json> =>
  resolving(scope, at, (filler) => fillPlaces(value, filler))

export const resolveKey = (template: string, scope: TemplateScope, at = ''): Resolved<string> =>
  resolving(scope, at, (filler) => fillKey(template, filler))

/** Never leaves this file. */
class Unfilled extends Error {
  readonly why: Failure

  constructor(why: Failure) {
    super(why.detail)
    this.why = why
  }
}

function resolving<Value>(scope: TemplateScope, root: string, work: (filler: Filler) => Value): Resolved<Value> {
  let left = LARGEST
  const read = (text: string, within: string, alone: boolean): Json | undefined => {
    const at = [root, within].filter((part) => part !== '').join('.')
    const { place, path, optional } = placeOf(text)
    const fail = (reason: Failure['reason'], detail: string): never => {
      throw new Unfilled({ ok: false, reason, place, at, detail: at === '' ? detail : `${at}: ${detail}` })
    }
    if (!path) return fail('bad_place', badPlace(place))
    const found = readPath(scope, path)
    if (!found.found && optional) return undefined
    if (!found.found) return fail('missing', `{{${place}}} has no value: there is no ${found.at}`)
    const value = found.value as Json
    const kind = value === null ? 'null' : Array.isArray(value) ? 'a list' : 'an object'
    if (!alone && typeof value === 'object') fail('not_text', `{{${place}}} is ${kind}, which cannot be part of a text`)
    left -= byteLength(alone ? JSON.stringify(value) : textOf(value))
    if (left < 0) fail('too_large', `the inserted values take more than ${LARGEST} bytes`)
    return alone ? structuredClone(value) : value
  }
  try {
    return { ok: true, value: work({ value: (text, at) => read(text, at, true), text: (text, at) => textOf(read(text, at, false) ?? '') }) }
  } catch (error) {
    if (error instanceof Unfilled) return error.why
    throw error
  }
}

export const badPlace = (place: string): string =>
  `{{${place}}} is not a placeholder: write an input's name or a path such as work.image_tag`

/** A bare name is an input. */
function placeOf(text: string): Omit<TemplatePlace, 'at'> {
  const { name, optional } = optionalPlace(text)
  const may = optional ? { optional: true as const } : {}
  const place = text.trim()
  const path = parsePath(name)
  const [root = ''] = path ?? []
  if (!path || (STARTS.has(root) && path.length === 1)) return { place, path: null, ...may }
  return { place, path: STARTS.has(root) ? path : ['inputs', ...path], ...may }
}
