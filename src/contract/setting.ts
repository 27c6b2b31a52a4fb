import type { z } from 'zod'

/** A setting with its description and examples, for the API description and docs/settings.md. */
export const setting = <Schema extends z.ZodType>(schema: Schema, description: string, ...examples: z.output<Schema>[]): Schema =>
  schema.meta({ description, ...(examples.length > 0 && { examples }) })
