import { z } from 'zod'
import type { Json } from '../../base/json.ts'

/** Keywords whose cost on hostile input has no limit, or that refer elsewhere. */
const REFUSED: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef', 'pattern', 'patternProperties', 'propertyNames'])
const NAMED: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])
const VALUES: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

/** Parsed JSON. The description of the API leaves its values open: `z.json()` never ends there. */
const jsonFields = z.record(z.string(), z.unknown() as unknown as z.ZodType<Json>)

/** A JSON Schema of an object, as settings hold it. */
export const objectSchema = jsonFields.superRefine((schema, context) => {
  const fail = (message: string) => context.addIssue({ code: 'custom', message })
  if (schema['type'] !== 'object') return fail('must describe an object: {"type": "object", "properties": {…}}')
  const refused = refusedIn(schema)
  if (refused !== null) return fail(`must not use the keyword ${refused}`)
  try {
    z.fromJSONSchema(schema)
  } catch (error) {
    fail(`is not a JSON Schema that is supported: ${error instanceof Error ? error.message : String(error)}`)
  }
})

function refusedIn(schema: unknown): string | null {
  if (typeof schema !== 'object' || schema === null) return null
  for (const [keyword, value] of Object.entries(schema)) {
    if (!Array.isArray(schema) && REFUSED.has(keyword)) return keyword
    if (VALUES.has(keyword)) continue
    const inner: unknown[] = NAMED.has(keyword) && typeof value === 'object' && value !== null ? Object.values(value) : [value]
    const found = inner.map(refusedIn).find((one) => one !== null)
    if (found !== undefined) return found
  }
  return null
}
