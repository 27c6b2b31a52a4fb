import { isJsonFields, type Json, type JsonFields } from '../base/json.ts'
import type { Result } from '../base/result.ts'
import type { Action, SequenceAct } from '../contract/action.ts'

/** The outputs of the acts so far, by their places; undefined where an act had none. */
export type Outputs = readonly (Json | undefined)[]
/** `reason`: `unknown` if an output is not known, `missing` if it has nothing at the path. */
export type ResolvedAct = Result<{ action: Action }, { reason: 'unknown' | 'missing'; detail: string }>

/**
 * An act as it is done, with the outputs that it uses. Only `uses` and the parts of a reply name
 * outputs, which the code of the reflex wrote: values are never searched, since a stranger may have
 * written them.
 */
export function resolveAct(act: SequenceAct, outputs: Outputs): ResolvedAct {
  if ('parts' in act) return spoken(act.parts, outputs)
  if (act.action_type === 'reply') return { ok: true, action: act }
  const { uses = [], ...own } = act
  // The outputs are written into a copy: the act is stored, and resolved again after a crash.
  const copy = uses.length === 0 ? own : structuredClone(own)
  for (const { at, output, path } of uses) {
    const found = outputAt(outputs, output, path)
    if (!found.ok) return found
    if (!writeAt(copy, at, found.value)) return lacks(`${at} is not in a ${act.action_type}`)
  }
  return { ok: true, action: copy }
}

/** True if an act uses the output of the act at a place. */
export function usesOutput(act: SequenceAct, place: number): boolean {
  if ('parts' in act) return act.parts.some((part) => typeof part !== 'string' && part.output === place)
  return 'uses' in act && (act.uses ?? []).some(({ output }) => output === place)
}

/** The outputs that an act uses, as far as there are any. */
export function outputsUsed(act: SequenceAct, outputs: Outputs): Json[] {
  const named = 'parts' in act ? act.parts.filter((part) => typeof part !== 'string') : 'uses' in act ? (act.uses ?? []) : []
  return named.flatMap(({ output, path }) => {
    const found = outputAt(outputs, output, path)
    return found.ok ? [found.value] : []
  })
}

function spoken(parts: Extract<SequenceAct, { parts: unknown }>['parts'], outputs: Outputs): ResolvedAct {
  const texts: string[] = []
  for (const part of parts) {
    if (typeof part === 'string') {
      texts.push(part)
      continue
    }
    const found = outputAt(outputs, part.output, part.path)
    if (!found.ok) return found
    if (typeof found.value !== 'string' && typeof found.value !== 'number')
      return lacks(`output ${part.output} has no text or number at ${JSON.stringify(part.path)}`)
    texts.push(String(found.value))
  }
  const content = texts.join('')
  return content === '' ? lacks('the reply is empty') : { ok: true, action: { action_type: 'reply', content } }
}

type Lacks = Extract<ResolvedAct, { ok: false }>
const lacks = (detail: string): Lacks => ({ ok: false, reason: 'missing', detail })

function outputAt(outputs: Outputs, place: number, path: string): { ok: true; value: Json } | Lacks {
  if (place >= outputs.length) return lacks(`output ${place} is not of an earlier act`)
  const root = outputs[place]
  if (root === undefined) return { ok: false, reason: 'unknown', detail: `output ${place} is not known` }
  const value = fieldsOf(path).reduce<Json | undefined>(fieldOf, root)
  return value === undefined ? lacks(`output ${place} has nothing at ${JSON.stringify(path)}`) : { ok: true, value }
}

function fieldOf(value: Json | undefined, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return Array.isArray(value) && name === 'length' ? undefined : (value as JsonFields)[name]
}

/** The names of a JSON pointer (RFC 6901). */
const fieldsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))

/** Writes at a JSON pointer. False if there is no such place. The last field may be new. */
export function writeAt(root: object, pointer: string, value: Json): boolean {
  const names = fieldsOf(pointer)
  let place: unknown = root
  for (const name of names.slice(0, -1)) {
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, name)) return false
    place = (place as Record<string, unknown>)[name]
  }
  const last = names.at(-1) ?? ''
  if (Array.isArray(place)) {
    if (!/^\d+$/.test(last) || Number(last) >= place.length) return false
    place[Number(last)] = value
    return true
  }
  if (!isJsonFields(place) || last === '__proto__') return false
  place[last] = value
  return true
}
