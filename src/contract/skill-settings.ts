import { z } from 'zod'

/** The settings that choose between skills. */
export const skillSettings = {
  goal_postconditions: z
    .array(z.string().trim().min(1).max(128))
    .max(50)
    .meta({
      description:
        'Effects that the work is to reach, as manifests name them in `effects`. Of skills with equal scores, the one that reaches more of them comes first.',
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
    description: '`observe` lets a skill run although its policy refuses, and logs the decision. Default: `enforce`.',
    examples: ['observe'],
  }),
}
