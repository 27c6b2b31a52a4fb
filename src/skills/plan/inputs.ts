import { type Json, type JsonFields, isJsonFields } from '../../base/json.ts'
import type { Manifest, Input, ValueType } from '../manifest/manifest.ts'
import type { Blackboard } from './blackboard.ts'
import { parsePath, readPath } from '../cel/path.ts'
import { isSecretReference } from './secret-reference.ts'

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
