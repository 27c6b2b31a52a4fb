import { z } from 'zod'

/** The settings by which skills fit a scope, and that choose between them. */
export const skillSettings = {
  project: z
    .string()
    .min(1)
    .max(200)
    .meta({
      description: "The project of the scope's agent. Skills whose manifest names another `compat.project` are rejected.",
      examples: ['acme/shop'],
    }),
  env: z.union([z.string().min(1).max(64), z.array(z.string().min(1).max(64)).max(16)]).meta({
    description: 'The environment or environments to compare with `compat.env` of skills.',
    examples: ['staging'],
  }),
  toolset: z
    .string()
    .min(1)
    .max(64)
    .meta({
      description: 'The toolset to compare with `compat.toolset` of skills.',
      examples: ['kubernetes'],
    }),
  repo: z
    .string()
    .min(1)
    .max(300)
    .meta({
      description: 'The repository to compare with `compat.repo` of skills.',
      examples: ['github.com/acme/shop'],
    }),
  goal_labels: z
    .array(z.string().trim().min(1).max(64))
    .max(50)
    .meta({
      description: 'Labels of the current goal. A skill with one of them scores higher at the gate.',
      examples: [['defence']],
    }),
  goal_postconditions: z
    .array(z.string().trim().min(1).max(128))
    .max(50)
    .meta({
      description:
        'Desired effects, as named in the `effects` of manifests. Of skills with equal scores, the one with more of them ranks first.',
      examples: [['updated:appservice_image']],
    }),
  k_cards: z
    .int()
    .min(0)
    .max(5)
    .meta({ description: 'Maximum number of skills in the bulletin. Default: 5.', examples: [3] }),
  tau: z
    .number()
    .min(0)
    .max(1)
    .meta({
      description: 'The share of its maximum score that a skill must reach at the gate, unless its manifest has a `tau`. Default: 0.85.',
      examples: [0.7],
    }),
  policy_mode: z.enum(['enforce', 'observe']).meta({
    description: '`observe` runs a skill even if its policy denies it, and logs the decision. Default: `enforce`.',
    examples: ['observe'],
  }),
}
