import { z } from 'zod'

/** A change that a person made with a key. */
export const action = z
  .object({
    id: z.string(),
    at: z.iso.datetime(),
    key_id: z.string().describe('`admin`: the key of the deployment.'),
    key_name: z.string(),
    role: z.string().describe('The strongest base role of the key at the time.'),
    action: z.string().describe('The operationId of the request, such as `deleteKey`.'),
    method: z.string(),
    scope: z.string().nullable().describe('The scope that was changed; null for what belongs to no one scope, such as a key.'),
    target: z.string().nullable().describe('The id or name of what was changed, where the request or its answer names one.'),
    trace_id: z.string().nullable(),
    nth: z.int().describe('The number of this action among those of its key: a record that was deleted leaves a gap.'),
  })
  .meta({ id: 'PersonAction' })
export type PersonAction = z.infer<typeof action>
