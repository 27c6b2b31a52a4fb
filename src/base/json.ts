import { canonicalJson } from './canonical-json.ts'

export { canonicalJson }

export type Json = null | boolean | number | string | Json[] | JsonFields
export type JsonFields = { [name: string]: Json }

export const isJsonFields = (value: unknown): value is JsonFields => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Deep equality of JSON values, whatever the order of their names. */
export const sameJson = (left: unknown, right: unknown): boolean => left === right || canonicalJson(left) === canonicalJson(right)

/** SHA-256 of the canonical JSON, 64 hex digits. */
export async function hashJson(value: unknown): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(canonicalJson(value)))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
