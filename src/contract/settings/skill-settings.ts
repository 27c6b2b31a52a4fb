import { z } from 'zod'

/** The settings that choose between skills. */
export const skillSettings = {
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
