import { SECRET_SCOPES, TOOL_SECRET_HOSTS } from '../base/secrets.ts'
import { z } from 'zod'
import { nearestFirst } from '../base/nearest.ts'

/** A setting with its description and examples, for the API description and docs/settings.md. */
export const setting = <Schema extends z.ZodType>(schema: Schema, description: string, ...examples: z.output<Schema>[]): Schema =>
  schema.meta({ description, ...(examples.length > 0 && { examples }) })

/** An object without other fields; the refusal of another one names the nearest that exists. */
export const closed = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape, { error: unknownIn(Object.keys(shape)) })

/** The name of a secret of the deployment, which no variable beside a secret has. */
export const secretNamed = (prefix: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}[A-Z0-9_]{1,64}$`), `must be the name of a secret that begins with ${prefix}`)
    .refine(
      (name) => !name.endsWith(TOOL_SECRET_HOSTS),
      `must not end with ${TOOL_SECRET_HOSTS}: that variable lists the hosts of a secret`,
    )
    .refine((name) => !name.endsWith(SECRET_SCOPES), `must not end with ${SECRET_SCOPES}: that variable lists the scopes of a secret`)

/** A list with at most one item of a name. */
export const namedOnce = <Item extends z.ZodType<{ name: string }>>(item: Item, most: number) =>
  z
    .array(item)
    .max(most)
    .refine((items) => new Set(items.map(({ name }) => name)).size === items.length, 'must not contain a name twice')

const unknownIn = (known: readonly string[]) => (issue: z.core.$ZodRawIssue) => {
  if (issue.code !== 'unrecognized_keys') return undefined
  const names = issue.keys.slice(0, 3).map((name) => `${name} (the nearest is ${nearestFirst(name, known)[0]})`)
  return `there is no ${names.join(', ')}`
}
