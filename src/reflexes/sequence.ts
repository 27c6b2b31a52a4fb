import { isJsonFields, jsonValue, type Json, type JsonFields } from '../base/json.ts'
import type { Result } from '../base/result.ts'
import { wordsOf } from '../base/words-of.ts'
import type { Action, Branching, OutputCondition, SequenceAct, SequenceBranch } from '../contract/action.ts'

/** The outputs of the acts so far, by their places; undefined where an act had none. */
export type Outputs = readonly (Json | undefined)[]
/** `reason`: `unknown` if an output is not known, `missing` if it has nothing at the path. */
type ResolvedAct = Result<{ action: Action }, { reason: 'unknown' | 'missing'; detail: string }>

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

/**
 * The acts of a sequence as far as they are known: once the first ones have their outputs, the acts
 * of the first branch whose conditions hold, too. Null if none of them do, or if one asks about an
 * output that is not known: it may not be missing.
 */
export function actsOnPath({ acts, branches }: Branching, outputs: Outputs): readonly SequenceAct[] | null {
  if (!branches || outputs.length < acts.length) return acts
  if (asksUnknown({ acts, branches }, outputs)) return null
  // A branch is chosen by what its acts before it returned, also once it has begun.
  const known = outputs.slice(0, acts.length)
  const branch = branches.find((one) => isFor(one, known))
  return branch ? [...acts, ...branch.acts] : null
}

const FAILED = '@failed'
/** The place in the output of a look-up that failed which says how it did. */
export const FAILED_AT = `/${FAILED}`

/**
 * The output of a look-up that failed: the status of the answer, or else the words of the error. A
 * branch may be for it.
 */
export function failureOf(error: string): JsonFields {
  const [, status] = /^(?:\w+: )?[^\s:]+: (\d{3})(?: |$)/.exec(error) ?? []
  return { [FAILED]: status ?? wordsOf(error).slice(1).join(' ').slice(0, LONGEST_KIND) }
}
const LONGEST_KIND = 100

/** The way in which a look-up failed; undefined if it did not. */
export function failureIn(output: Json | undefined): string | undefined {
  const kind = isJsonFields(output) ? output[FAILED] : undefined
  return typeof kind === 'string' ? kind : undefined
}

/** True if a branch is for such outputs: for a failure, one that asks about it. */
const isFor = ({ when }: SequenceBranch, outputs: Outputs): boolean =>
  outputs.every((output, place) => failureIn(output) === undefined || when.some((one) => one.output === place && one.path === FAILED_AT)) &&
  when.every((condition) => isMet(condition, outputs))

/** True if a branch asks about an output that is not known. */
export const asksUnknown = ({ branches = [] }: Branching, outputs: Outputs): boolean =>
  branches.some(({ when }) => when.some(({ output }) => output < outputs.length && outputs[output] === undefined))

function isMet({ output, path, ...tests }: OutputCondition, outputs: Outputs): boolean {
  const found = outputAt(outputs, output, path)
  const value = found.ok ? found.value : undefined
  const { one_of, none_of, says, says_none, empty, present, only } = tests
  return (
    (one_of === undefined || one_of.some((one) => one === value)) &&
    (none_of === undefined || !none_of.some((one) => one === value)) &&
    isWithin(value, tests) &&
    (says === undefined || says.every((words) => isSaid(value, words))) &&
    (says_none === undefined || (typeof value === 'string' && !says_none.some((words) => isSaid(value, words)))) &&
    (empty === undefined || (Array.isArray(value) && (value.length === 0) === empty)) &&
    (present === undefined || (value !== undefined) === present) &&
    (only === undefined || !hasOther(value, only))
  )
}

/** True for an object with another field. */
function hasOther(value: Json | undefined, names: readonly string[]): boolean {
  const whole = wholeOf(value)
  return isJsonFields(whole) && Object.keys(whole).some((name) => !names.includes(name))
}

type Bounds = Pick<OutputCondition, 'at_least' | 'above' | 'at_most' | 'below'>

/** Only a number is within bounds. */
function isWithin(value: Json | undefined, { at_least, above, at_most, below }: Bounds): boolean {
  const is = (bound: number | undefined, fits: (number: number, bound: number) => boolean): boolean =>
    bound === undefined || (typeof value === 'number' && fits(value, bound))
  return (
    is(at_least, (number, bound) => number >= bound) &&
    is(above, (number, bound) => number > bound) &&
    is(at_most, (number, bound) => number <= bound) &&
    is(below, (number, bound) => number < bound)
  )
}

/** True if a text has these words in a row. */
export const isSaid = (value: unknown, words: string): boolean =>
  typeof value === 'string' && spacedWords(value).includes(spacedWords(words))

const spacedWords = (text: string): string => ` ${wordsOf(text).slice(1).join(' ')} `

/** True if what follows an act uses or asks about its output. */
export const needsOutput = ({ acts, branches = [] }: Branching, place: number): boolean =>
  acts.slice(place + 1).some((act) => usesOutput(act, place)) ||
  branches.some((branch) => branch.when.some(({ output }) => output === place) || branch.acts.some((act) => usesOutput(act, place)))

/** True if an act uses the output of the act at a place. */
function usesOutput(act: SequenceAct, place: number): boolean {
  if ('parts' in act) return act.parts.some((part) => typeof part !== 'string' && part.output === place)
  return 'uses' in act && (act.uses ?? []).some(({ output }) => output === place)
}

/** The outputs that an act uses, as far as there are any. */
export function outputsUsed(act: SequenceAct, outputs: Outputs): Json[] {
  const named = 'parts' in act ? act.parts.filter((part) => typeof part !== 'string') : 'uses' in act ? (act.uses ?? []) : []
  return valuesAt(named, outputs)
}

/** The outputs that the branches of a sequence ask about, as far as there are any. */
export const outputsAsked = ({ branches = [] }: Branching, outputs: Outputs): Json[] =>
  valuesAt(
    branches.flatMap(({ when }) => when),
    outputs,
  )

const valuesAt = (places: readonly Pick<OutputCondition, 'output' | 'path'>[], outputs: Outputs): Json[] =>
  places.flatMap(({ output, path }) => {
    const found = outputAt(outputs, output, path)
    return found.ok ? [found.value] : []
  })

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
  const value = partOf(root, fieldsOf(path))
  return value === undefined ? lacks(`output ${place} has nothing at ${JSON.stringify(path)}`) : { ok: true, value }
}

/** The value below these names. A text that is JSON, as tools of MCP return, is read as such. */
export const partOf = (root: Json | undefined, names: readonly string[]): Json | undefined => names.reduce(fieldOf, root)

function fieldOf(value: Json | undefined, name: string): Json | undefined {
  const whole = wholeOf(value)
  if (typeof whole !== 'object' || whole === null || !Object.hasOwn(whole, name)) return undefined
  return Array.isArray(whole) && name === 'length' ? undefined : (whole as JsonFields)[name]
}

/** A text that is JSON is what it says. */
export const wholeOf = (value: Json | undefined): Json | undefined => (typeof value === 'string' ? (jsonIn(value) ?? value) : value)

/** An object or a list that is written as a text; undefined if it is another text. */
export function jsonIn(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  const value = jsonValue(text) as Json | undefined
  return typeof value === 'object' && value !== null ? value : undefined
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
