import type { Refused } from '../../base/result.ts'
import { byteLength, fitsBytes, isJsonFields, sameJson, type Json, type JsonFields } from '../../base/json.ts'
import { checkJson } from '../../base/check-json.ts'
import { holdsReference } from './secret-reference.ts'
import { parsePath, withPath } from '../cel/path.ts'

/** The knowledge of a turn as plain JSON. It is never changed in place. */
export type Blackboard = { ctx: JsonFields; env: JsonFields; work: JsonFields; policy: JsonFields }

const PARTS = ['ctx', 'env', 'work', 'policy'] as const
export type Part = (typeof PARTS)[number]
type BlackboardSource = 'settings' | 'agent_state' | 'probes' | 'override'

export type Seeds = {
  settings?: Partial<Blackboard>
  agent_state?: Partial<Blackboard>
  probes?: JsonFields
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

export type BlackboardWritten = { ok: true; blackboard: Blackboard } | Refused<'not_a_path' | 'not_writable' | 'not_json' | 'too_large'>

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
