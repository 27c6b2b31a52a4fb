import { z } from 'zod'
import { setting } from './setting.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Keywords whose cost on hostile input has no limit, or that refer elsewhere. */
const REFUSED: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef', 'pattern', 'patternProperties', 'propertyNames'])
const NAMED: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])
const VALUES: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])
/** Fields that every event has. */
export const envelope = ['id', 'type', 'scope', 'source', 'timestamp', 'meta'] as const

const jsonSchema = z.record(z.string(), z.json()).superRefine((schema, context) => {
  const fail = (message: string) => context.addIssue({ code: 'custom', message })
  if (schema['type'] !== 'object') return fail('must describe an object: {"type": "object", "properties": {…}}')
  const properties = Object.keys((schema['properties'] ?? {}) as object)
  const taken = envelope.find((field) => properties.includes(field))
  if (taken !== undefined) return fail(`properties.${taken}: every event has this field; name only the fields of the type`)
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

export const eventTypes = setting(
  z
    .record(z.string(), jsonSchema)
    .refine(
      (types) => Object.keys(types).every((type) => NAME.test(type)),
      'a type is named by 1 to 128 characters of A-Z a-z 0-9 . _ -, of which the first is a letter or digit',
    )
    .refine((types) => Object.keys(types).length <= 50, 'must be at most 50 types'),
  "Event types of this scope beside those of the deployment: each type's name, with a JSON Schema of its own fields. An event that does not fit is refused, with " +
    'the path of each field. Not supported: references (`$ref`) and patterns.',
  {
    'order.placed': {
      type: 'object',
      properties: { order: { type: 'string' }, total: { type: 'number', minimum: 0 } },
      required: ['order', 'total'],
    },
  },
)
