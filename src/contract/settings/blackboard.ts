import { z } from 'zod'

const anyFields = z.record(z.string().min(1).max(128), z.json())
const roles = z.array(z.string().min(1).max(64), 'is a list of roles, such as ["operator"]').max(32)

/** The setting `blackboard`: what a turn's blackboard begins with. */
export const blackboard = z
  .strictObject({
    ctx: anyFields.meta({ description: 'Facts about the situation.' }),
    env: anyFields.meta({ description: 'Facts about the environment.' }),
    work: anyFields
      .refine((work) => !Object.hasOwn(work, 'steps'), { path: ['steps'], message: 'is where a plan finds what its steps gave' })
      .meta({ description: 'What skills read and write; `steps` is reserved.' }),
    policy: anyFields
      .superRefine((policy, context) => {
        const judged = Object.hasOwn(policy, 'roles') ? roles.safeParse(policy['roles']) : null
        for (const { path, message } of judged?.error?.issues ?? []) context.addIssue({ code: 'custom', path: ['roles', ...path], message })
      })
      .meta({ description: "`roles` are those of the scope's own agent, `agent` unless set." }),
  })
  .partial()
