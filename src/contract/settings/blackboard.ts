import { z } from 'zod'
import { setting } from '../setting.ts'

const anyFields = z.record(z.string().min(1).max(128), z.json())
const roles = z.array(z.string().min(1).max(64), 'must be a list of roles, such as ["operator"]').max(32)

export const blackboard = z
  .strictObject({
    ctx: anyFields.meta({ description: 'Facts about the situation.' }),
    env: anyFields.meta({ description: 'Facts about the environment.' }),
    work: anyFields
      .refine((work) => !Object.hasOwn(work, 'steps'), { path: ['steps'], message: 'is reserved for the outputs of steps' })
      .meta({ description: 'What skills read and write; `steps` is reserved.' }),
    policy: anyFields
      .superRefine((policy, context) => {
        const judged = Object.hasOwn(policy, 'roles') ? roles.safeParse(policy['roles']) : null
        for (const { path, message } of judged?.error?.issues ?? []) context.addIssue({ code: 'custom', path: ['roles', ...path], message })
      })
      .meta({ description: "`roles` are those of the scope's agent. Default: `agent`." }),
  })
  .partial()

/** The time to live of a probe's answer, unless the probe has one. */
export const PROBE_TTL_S = 60

const scalar = z.union([z.string().max(1000), z.number(), z.boolean(), z.null()])
const name = z.string().regex(/^[A-Za-z]\w{0,63}$/, 'is a letter, then letters, digits and _, at most 64')

const blackboardProbe = z
  .strictObject({
    name: name.meta({ description: 'The answer is at `env.NAME`.' }),
    tool: z.string().max(64).optional().meta({ description: 'An HTTP tool of the scope that only reads: a `GET`, or `repeatable`.' }),
    input: z.record(z.string(), z.string().max(1000)).optional().meta({ description: 'The input of the tool.' }),
    probe: z.string().max(64).optional().meta({ description: "One of the agent's probes, in place of a tool." }),
    args: z.array(scalar).max(8).optional().meta({ description: 'The arguments of the probe.' }),
    ttl_s: z
      .int()
      .min(1)
      .max(86_400)
      .optional()
      .meta({ description: `How long an answer is used, in seconds. ${PROBE_TTL_S} unless set.` }),
  })
  .refine(({ tool, probe }) => (tool === undefined) !== (probe === undefined), 'names either a tool or a probe')
export type BlackboardProbe = z.infer<typeof blackboardProbe>

export const blackboardLayers = {
  blackboard_scratch: setting(
    z.array(name).max(50),
    'Keys of the scratch that the blackboard of each turn begins with, as `ctx.KEY`: they replace those of `blackboard`. At most 16 kB of JSON in all.',
    ['open_ticket'],
  ),
  blackboard_probes: z
    .array(blackboardProbe)
    .max(8)
    .refine((probes) => new Set(probes.map((probe) => probe.name)).size === probes.length, 'holds two of one name')
    .meta({
      description:
        'Values of the environment that are read before a turn proposes skills, as `env.NAME`: they replace those of `blackboard`. An answer is at most 16 kB of JSON; ' +
        'without one the name is not on the blackboard.',
      examples: [[{ name: 'account', tool: 'http.account', ttl_s: 300 }]],
    }),
}
