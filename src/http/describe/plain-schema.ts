import { z } from '@hono/zod-openapi'

export type PlainSchema = { properties?: Record<string, object>; required?: string[]; oneOf?: PlainSchema[] }

/** A JSON schema of its own for the description, where zod-openapi's generator would not come to an end: JSON is recursive. */
export function plainSchema(schema: z.ZodType): PlainSchema {
  const { $schema: _draft, ...plain } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override: simplify })
  const text = JSON.stringify(plain, withoutReferences)
  return JSON.parse(text)
}

/** What a `$ref` names here is any JSON, and its path would be wrong inside the document. */
const withoutReferences = (key: string, value: unknown): unknown => (key === '$defs' || key === '$ref' ? undefined : value)

/** Described by a plain schema, and so not validated by zod-openapi: the handler does. The type makes `hc` know the body. */
export function described<Input>(schema: object): z.ZodType<Input, Input>
export function described(schema: object): unknown {
  return schema
}

/** A date-time's pattern says no more than its format. */
function simplify({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void {
  if (jsonSchema['format'] !== undefined) delete jsonSchema['pattern']
}
