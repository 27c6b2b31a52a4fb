import { z } from 'zod'
import { nearestFirst } from '../base/nearest.ts'

/** A setting with its description and examples, for the API description and docs/settings.md. */
export const setting = <Schema extends z.ZodType>(schema: Schema, description: string, ...examples: z.output<Schema>[]): Schema =>
  schema.meta({ description, ...(examples.length > 0 && { examples }) })

/** An object without other fields; the refusal of another one names the nearest that exists. */
export const closed = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape, { error: unknownIn(Object.keys(shape)) })

const unknownIn = (known: readonly string[]) => (issue: z.core.$ZodRawIssue) => {
  if (issue.code !== 'unrecognized_keys') return undefined
  const names = issue.keys.slice(0, 3).map((name) => `${name} (the nearest is ${nearestFirst(name, known)[0]})`)
  return `there is no ${names.join(', ')}`
}
