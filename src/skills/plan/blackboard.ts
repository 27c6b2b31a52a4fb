import type { Refused } from '../../base/result.ts'
import { byteLength, fitsBytes, isJsonFields, sameJson, type Json, type JsonFields } from '../../base/json.ts'
import { checkJson } from '../../base/check-json.ts'
import { holdsReference, isSecretReference } from './template.ts'
import { parsePath, withPath, readPath } from '../cel/expression.ts'
import type { Manifest, Input, ValueType } from '../manifest/manifest.ts'

/** The knowledge of a turn as plain JSON. It is never changed in place. */
export type Blackboard = { ctx: JsonFields; env: JsonFields; work: JsonFields; policy: JsonFields }

const PARTS = ['ctx', 'env', 'work', 'policy'] as const
export type Part = (typeof PARTS)[number]
type BlackboardSource = 'settings' | 'agent_state' | 'probes' | 'override'

export type Seeds = {
  settings?: Partial<Blackboard> | undefined
  agent_state?: Partial<Blackboard> | undefined
  probes?: JsonFields | undefined
  /** The caller's values, which win; the values that they replace are reported. */
  override?: Partial<Blackboard>
}

/** `ages_ms`: ages of cached answers. `omitted`: why a value was left out, by its path. */
export type SeedNotes = { ages_ms?: Record<string, number>; omitted?: Record<string, string> }

export type Seeded =
  | ({ ok: true; blackboard: Blackboard; sources: Record<string, BlackboardSource>; overridden: BlackboardChange[] } & SeedNotes)
  | Refused<'not_json' | 'too_large'>

const BLACKBOARD_BYTES = 256_000

export const emptyBlackboard = (): Blackboard => ({ ctx: {}, env: {}, work: {}, policy: {} })

/** Merges the sources by top-level name; later sources win. `sources` names the source of each. */
export function seedBlackboard({ settings = {}, agent_state = {}, probes = {}, override = {} }: Seeds): Seeded {
  const layers: [BlackboardSource, Partial<Blackboard>][] = [
    ['settings', settings],
    ['agent_state', agent_state],
    ['probes', { env: probes }],
    ['override', override],
  ]
  for (const [source, layer] of layers) {
    const json = checkJson(layer)
    if (!json.ok) return { ok: false, reason: 'not_json', detail: `${source}: ${json.error.path} ${json.error.message}` }
  }
  const seeded = merge(layers)
  const bytes = byteLength(JSON.stringify(seeded.blackboard))
  if (bytes > BLACKBOARD_BYTES) {
    return { ok: false, reason: 'too_large', detail: `the blackboard takes ${bytes} bytes as JSON; ${BLACKBOARD_BYTES} are allowed` }
  }
  const overridden = diff(merge(layers.slice(0, -1)).blackboard, seeded.blackboard)
  return { ok: true, ...seeded, overridden }
}

function merge(layers: [BlackboardSource, Partial<Blackboard>][]): { blackboard: Blackboard; sources: Record<string, BlackboardSource> } {
  const sources = new Map<string, BlackboardSource>()
  const parts = PARTS.map((part) => {
    const fields = new Map<string, Json>()
    for (const [source, layer] of layers) {
      for (const [name, value] of Object.entries(layer[part] ?? {})) {
        fields.set(name, value)
        sources.set(`${part}.${name}`, source)
      }
    }
    return [part, structuredClone(Object.fromEntries(fields))]
  })
  return { blackboard: Object.fromEntries(parts) as Blackboard, sources: Object.fromEntries(sources) }
}

/** A value that exists on one side only has null on the other, and `change` says which. */
export type BlackboardChange = { path: string; change: 'added' | 'changed' | 'removed'; before: Json; after: Json }

const MOST_CHANGES = 100

/** The changes at their deepest paths; above a hundred changes, by top-level name or by part. */
export function diff(before: Blackboard, after: Blackboard): BlackboardChange[] {
  for (const depth of [16, 2]) {
    const changes = changesOf(before, after, { path: [], depth })
    if (changes.length <= MOST_CHANGES) return changes
  }
  return changesOf(before, after, { path: [], depth: 1 })
}

const PLAIN_NAME = /^[\w-]+$/

function changesOf(before: JsonFields, after: JsonFields, { path, depth }: { path: string[]; depth: number }): BlackboardChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.flatMap((name) => {
    const there = [...path, name]
    const old = Object.hasOwn(before, name) ? before[name] : undefined
    const fresh = Object.hasOwn(after, name) ? after[name] : undefined
    if (old !== undefined && fresh !== undefined && sameJson(old, fresh)) return []
    const goesOn = depth > 1 && isJsonFields(old) && isJsonFields(fresh) && [...Object.keys(old), ...Object.keys(fresh)].every(isPlain)
    if (goesOn) return changesOf(old, fresh, { path: there, depth: depth - 1 })
    const change = old === undefined ? 'added' : fresh === undefined ? 'removed' : 'changed'
    return [{ path: there.join('.'), change, before: old ?? null, after: fresh ?? null }]
  })
}

/** A name that a path can contain. */
const isPlain = (name: string): boolean => PLAIN_NAME.test(name)

type BlackboardWritten = { ok: true; blackboard: Blackboard } | Refused<'not_a_path' | 'not_writable' | 'not_json' | 'too_large'>

/** Writes a value under `work`, or to a path in `bound`, to which the manifest binds an output. */
export function writeBlackboard(blackboard: Blackboard, path: string, value: Json, bound: readonly string[] = []): BlackboardWritten {
  const parts = parsePath(path)
  if (!parts || parts.length < 2 || !(PARTS as readonly string[]).includes(parts[0] ?? ''))
    return { ok: false, reason: 'not_a_path', detail: `${path} is no path on the blackboard, such as work.image_tag` }
  if (parts[0] === 'policy' || (parts[0] !== 'work' && !bound.includes(path))) {
    return { ok: false, reason: 'not_writable', detail: `${path} cannot be written: only what is under work, or bound to an output` }
  }
  if (holdsReference(value))
    return { ok: false, reason: 'not_writable', detail: `what is written to ${path} names a secret, which only settings may do` }
  const json = checkJson(value)
  if (!json.ok) return { ok: false, reason: 'not_json', detail: `what is written to ${path} ${json.error.message}` }
  const written = withPath(blackboard, parts, structuredClone(value)) as Blackboard
  if (!fitsBytes(JSON.stringify(written), BLACKBOARD_BYTES)) {
    return { ok: false, reason: 'too_large', detail: `with ${path} the blackboard would take more than ${BLACKBOARD_BYTES} bytes as JSON` }
  }
  return { ok: true, blackboard: written }
}

/** `caller`: the API, such as an agent's code or a user. */
export type InputSource = 'model' | 'caller'

export type BoundInputs = {
  inputs: JsonFields
  from: Record<string, 'given' | 'blackboard'>
  /** Required, and neither given nor on the blackboard. */
  missing: Input[]
  /** There, but not of their type. */
  wrong: Input[]
  /** Given, but not declared. */
  unknown: string[]
}

/** The inputs of a run: given values, then the manifest's blackboard bindings. */
export function bindInputs(manifest: Manifest, given: JsonFields, blackboard: Blackboard): BoundInputs {
  const { inputs: declared, blackboard_bindings: bindings } = manifest.signature
  const found = declared.flatMap((input): { input: Input; value: Json; from: 'given' | 'blackboard' }[] => {
    const own = Object.hasOwn(given, input.name) ? given[input.name] : undefined
    if (hasValue(own)) return [{ input, value: own, from: 'given' }]
    const path = Object.hasOwn(bindings.inputs, input.name) ? bindings.inputs[input.name] : undefined
    const there = path === undefined ? { found: false as const } : readPath(blackboard, parsePath(path) ?? [])
    const bound = there.found ? (there.value as Json) : undefined
    return hasValue(bound) ? [{ input, value: bound, from: 'blackboard' }] : []
  })
  const names = new Set(found.map(({ input }) => input.name))
  return {
    inputs: Object.fromEntries(found.map(({ input, value }) => [input.name, value])),
    from: Object.fromEntries(found.map(({ input, from }) => [input.name, from])),
    missing: declared.filter((input) => isRequired(manifest, input) && !names.has(input.name)),
    wrong: found.filter((one) => !isNamedSecret(one) && !fitsType(one.input.type, one.value)).map(({ input }) => input),
    unknown: Object.keys(given).filter((name) => !declared.some((input) => input.name === name)),
  }
}

/** The secret itself, which is a text, is put in when a step's tool is called. */
const isNamedSecret = ({ input: { secret }, value, from }: { input: Input; value: Json; from: string }): boolean =>
  secret === true && from === 'blackboard' && isSecretReference(value)

const isRequired = (manifest: Manifest, { name, required }: Input): boolean => required || manifest.activation.required_slots.includes(name)

/** The required inputs for which the blackboard has no value of their type. */
export function neededInputs(manifest: Manifest, blackboard: Blackboard): string[] {
  const { missing, wrong } = bindInputs(manifest, {}, blackboard)
  const lacking = new Set([...missing, ...wrong])
  return manifest.signature.inputs.flatMap((input) => (lacking.has(input) && isRequired(manifest, input) ? [input.name] : []))
}

/** A model that does not know leaves a blank or null: neither is a value. */
const hasValue = (value: Json | undefined): value is Json =>
  value !== undefined && value !== null && !(typeof value === 'string' && value.trim() === '')

const fits: Record<ValueType, (value: Json) => boolean> = {
  string: (value) => typeof value === 'string',
  url: (value) => typeof value === 'string' && URL.canParse(value),
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  integer: (value) => Number.isSafeInteger(value),
  boolean: (value) => typeof value === 'boolean',
  list: (value) => Array.isArray(value),
  object: (value) => isJsonFields(value),
}

/** True if the value has the type. Nothing is converted: a number in a text is not a number. */
export const fitsType = (type: ValueType, value: Json): boolean => fits[type](value)
