import { sha256 } from './hash.ts'

export type Json = null | boolean | number | string | Json[] | JsonFields
export type JsonFields = { [name: string]: Json }

export const isJsonFields = (value: unknown): value is JsonFields => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Deep equality of JSON values, independent of the order of keys. */
export const sameJson = (left: unknown, right: unknown): boolean => left === right || canonicalJson(left) === canonicalJson(right)

/** SHA-256 of the canonical JSON. */
export const hashJson = (value: unknown): Promise<string> => sha256(canonicalJson(value))

/** JSON with sorted keys: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = value as Record<string, unknown>
  const texts = Object.keys(fields)
    .filter((name) => fields[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(fields[name])}`)
  return `{${texts.join(',')}}`
}
