import { fieldsOf } from '../../../evidence/attribution.ts'
import { canonicalJson, isJsonFields, type Json, type JsonFields } from '../../../base/json.ts'
import type { Occurrence } from './trace.ts'

/** A value that a plan can name by `place`, as it was in each occurrence. */
export type ValueSource = { place: string; values: readonly Json[] }

/** Fields that every one of the values has. */
export function sharedFields(values: readonly unknown[], prefix: string, deepest?: number): ValueSource[] {
  const all = values.map((value) => fieldsOf(value, deepest))
  const [first = new Map<string, Json>()] = all
  return Array.from(first.keys()).flatMap((path): ValueSource[] => {
    const own = all.map((fields) => fields.get(path))
    if (own.some((value) => value === undefined)) return []
    return [{ place: path === '' ? prefix : `${prefix}.${path}`, values: own.map((value) => value ?? null) }]
  })
}

const ROOTS = ['ctx', 'env', 'policy', 'work'] as const
/** A path on the blackboard has at most sixteen parts. */
const DEEPEST_PLACE = 14

/** The blackboard before the pattern, without outputs of steps. */
export function blackboardSources(occurrences: readonly Occurrence[]): ValueSource[] {
  return ROOTS.flatMap((root) =>
    sharedFields(
      occurrences.map(({ trace }) => withoutSteps(trace.blackboard?.[root])),
      root,
      DEEPEST_PLACE,
    ).filter(({ place }) => place.includes('.')),
  )
}

const withoutSteps = (value: Json | undefined): JsonFields => {
  const { steps: _steps, ...fields } = isJsonFields(value) ? value : {}
  return fields
}

/** Equal if two lists of values are. */
export const keyOf = (values: readonly Json[]): string => canonicalJson(values)

export const isConstant = ([first, ...others]: readonly Json[]): boolean =>
  others.every((other) => other === first || canonicalJson(other) === canonicalJson(first))
