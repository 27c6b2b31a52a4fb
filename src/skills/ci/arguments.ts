import type { FieldError } from '../../base/check-json.ts'
import { judgeOf, type Judge, workOfOne, type SchemaWork } from '../../base/json-schema.ts'
import { isJsonFields, type Json, type JsonFields } from '../../base/json.ts'
import { compileExpression } from '../cel/expression.ts'
import type { Input, Manifest, ValueType } from '../manifest/manifest.ts'
import { placesIn } from '../plan/template.ts'

/** The JSON Schemas of tools' inputs, by tool. `scope`: where a tool is. `acts`: how it acts. */
export type ToolInputs = ReadonlyMap<string, { schema: JsonFields; scope: string; acts?: string | null }>

const JSON_TYPES: Record<ValueType, readonly string[]> = {
  string: ['string'],
  url: ['string'],
  number: ['number', 'integer'],
  integer: ['integer', 'number'],
  boolean: ['boolean'],
  list: ['array'],
  object: ['object'],
}

/**
 * The arguments that a manifest's calls cannot give to their tools, whatever its inputs are. Values
 * of the blackboard and of earlier steps are unknown here, and may fit.
 */
export function argumentErrors(manifest: Manifest, tools: ToolInputs): FieldError[] {
  const { steps, compensation } = manifest.plan
  const calls = [
    ...steps.map(({ tool, args }, index) => ({ tool, args, path: `plan.steps.${index}.args` })),
    ...compensation.map(({ tool, args }, index) => ({ tool, args, path: `plan.compensation.${index}.args` })),
  ]
  return calls.flatMap(({ tool, args, path }) => {
    const known = tools.get(tool)
    if (!known) return []
    const found = misfits(args, { additionalProperties: false, ...known.schema }, { manifest, path, judges: new Map(), work: workOfOne() })
    return found.map((error) => ({ ...error, message: `${error.message} (${tool} of scope ${known.scope})` }))
  })
}

/** A call's literal values share the work of one value, and each schema is compiled once. */
type At = { manifest: Manifest; path: string; judges: Map<JsonFields, Judge>; work: SchemaWork }

function misfits(value: Json, schema: unknown, at: At): FieldError[] {
  if (!isJsonFields(schema)) return []
  if (placesIn(value).length === 0) return literalMisfits(value, schema, at)
  const types = typesOf(schema)
  const takes = (type: string) => types === null || types.includes(type)
  const wrong = (what: string): FieldError[] => [{ path: at.path, message: `is ${what}, where the tool takes ${types?.join(' or ')}` }]
  if (typeof value === 'string') {
    const given = givenTypes(value, at.manifest)
    return given === null || given.types.some(takes) ? [] : wrong(given.what)
  }
  if (Array.isArray(value)) {
    if (!takes('array')) return wrong('a list')
    return value.flatMap((item, index) => misfits(item, schema['items'], { ...at, path: `${at.path}.${index}` }))
  }
  if (!isJsonFields(value)) return []
  return takes('object') ? fieldMisfits(value, schema, at) : wrong('an object')
}

function fieldMisfits(fields: JsonFields, schema: JsonFields, at: At): FieldError[] {
  const { properties, required, additionalProperties } = schema
  const known = isJsonFields(properties) ? properties : {}
  const needed = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
  const isDropped = (value: Json | undefined): boolean =>
    typeof value === 'string' && /^\{\{[^{}]*\}\}$/.test(value) && placesIn(value)[0]?.optional === true
  return [
    ...needed.flatMap((name) => {
      if (!Object.hasOwn(fields, name)) return [{ path: at.path, message: `has no ${name}, which the tool requires` }]
      const message = `may be absent, and the tool requires it: require the input, and write {{…}} without ?`
      return isDropped(fields[name]) ? [{ path: `${at.path}.${name}`, message }] : []
    }),
    ...Object.entries(fields).flatMap(([name, value]) => {
      const path = `${at.path}.${name}`
      if (Object.hasOwn(known, name)) return misfits(value, known[name], { ...at, path })
      if (additionalProperties !== false) return misfits(value, additionalProperties, { ...at, path })
      return [{ path, message: `is no field of the tool, which takes ${Object.keys(known).join(', ') || 'none'}` }]
    }),
  ]
}

function literalMisfits(value: Json, schema: JsonFields, { path, judges, work }: At): FieldError[] {
  const judge = judges.get(schema) ?? judgeOf(schema)
  judges.set(schema, judge)
  return judge(value, work).map(({ path: within, message }) => ({ path: [path, ...within.map(String)].join('.'), message }))
}

/** Null where any type may be meant. */
function typesOf({ type }: JsonFields): readonly string[] | null {
  if (typeof type === 'string') return [type]
  return Array.isArray(type) ? type.map(String) : null
}

/** The types that a text with placeholders may become; null if they are unknown. */
function givenTypes(text: string, manifest: Manifest): { types: readonly string[]; what: string } | null {
  if (!/^\{\{[^{}]*\}\}$/.test(text)) return { types: ['string'], what: 'a text' }
  const [root, name] = placesIn(text)[0]?.path ?? []
  const input = root === 'inputs' ? manifest.signature.inputs.find((one) => one.name === name) : undefined
  if (!input || (placesIn(text)[0]?.path ?? []).length > 2) return null
  return { types: JSON_TYPES[input.type], what: `the input ${input.name} (${input.type})` }
}

/**
 * The steps that fail where an optional input is absent. A guard that reads the input decides about
 * that itself; a path on the blackboard may have its value.
 */
export function absentInputs(manifest: Manifest): { name: string; reason: string }[] {
  const { signature, plan } = manifest
  const optional = signature.inputs.filter((input) => mayBeAbsent(input, manifest))
  const calls = [...plan.steps, ...plan.compensation]
  return optional.flatMap(({ name }) => {
    const first = calls.find((call) => {
      const used = placesIn(call.args).some(({ path, optional: dropped }) => path?.[0] === 'inputs' && path[1] === name && !dropped)
      return used && !('guard' in call && call.guard !== undefined && readsInput(call.guard, name))
    })
    if (!first) return []
    const reason = `${first.tool} fails without the optional input ${name}: write {{${name}?}}, which leaves the argument out, or require the input`
    return [{ name: `without ${name}`, reason }]
  })
}

const mayBeAbsent = ({ name, required }: Input, { signature, activation, preconditions }: Manifest): boolean =>
  !required &&
  !activation.required_slots.includes(name) &&
  !preconditions.data_present.includes(name) &&
  !Object.hasOwn(signature.blackboard_bindings.inputs, name)

function readsInput(guard: string, input: string): boolean {
  const compiled = compileExpression(guard)
  return compiled.ok && compiled.expression.paths.some(([root, name]) => root === input || (root === 'inputs' && name === input))
}
