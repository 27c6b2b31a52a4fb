import { z } from '@hono/zod-openapi'

/** A JSON schema of its own for the description, where zod-openapi's generator would not come to an end: JSON is recursive. */
export function plainSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override: simplify })
  return JSON.parse(JSON.stringify(plain, withoutReferences)) as Record<string, unknown>
}

/** What a `$ref` names here is any JSON, and its path would be wrong inside the document. */
const withoutReferences = (key: string, value: unknown): unknown => (key === '$defs' || key === '$ref' ? undefined : value)

/** Described by a plain schema, and so not validated by zod-openapi: the handler does. The type makes `hc` know the body. */
export const described = <Input>(schema: object): z.ZodType<Input, Input> => schema as unknown as z.ZodType<Input, Input>

/** A date-time's pattern says no more than its format. */
function simplify({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void {
  if (jsonSchema['format'] !== undefined) delete jsonSchema['pattern']
}
