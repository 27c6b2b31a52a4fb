import { z } from 'zod'

type PlainSchema = { properties?: Record<string, object>; required?: string[]; oneOf?: PlainSchema[] }

/** A standalone JSON schema, for recursive JSON that zod-openapi's generator cannot expand. */
export function plainSchema(schema: z.ZodType): PlainSchema {
  const { $schema: _draft, ...plain } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override: simplify })
  const text = JSON.stringify(plain, withoutReferences)
  return JSON.parse(text)
}

/** Each `$ref` here means arbitrary JSON, and its path would be wrong inside the document. */
const withoutReferences = (key: string, value: unknown): unknown => (key === '$defs' || key === '$ref' ? undefined : value)

/** Documents a body, and types it for callers; the handler reads and validates it. */
export function described<Input>(schema: object): z.ZodType<never, Input>
export function described(schema: object): unknown {
  return schema
}

/** The pattern of a date-time is redundant to its format. */
function simplify({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void {
  if (jsonSchema['format'] !== undefined) delete jsonSchema['pattern']
}
