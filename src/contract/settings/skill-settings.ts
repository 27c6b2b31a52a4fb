import { z } from 'zod'
import { setting } from '../setting.ts'

/** The settings by which skills fit a scope, and that choose between them. */
export const skillSettings = {
  project: setting(
    z.string().min(1).max(200),
    "The project of the scope's agent. Skills whose manifest names another `compat.project` are rejected.",
    'acme/shop',
  ),
  env: setting(
    z.union([z.string().min(1).max(64), z.array(z.string().min(1).max(64)).max(16)]),
    'The environment or environments to compare with `compat.env` of skills.',
    'staging',
  ),
  toolset: setting(z.string().min(1).max(64), 'The toolset to compare with `compat.toolset` of skills.', 'kubernetes'),
  repo: setting(z.string().min(1).max(300), 'The repository to compare with `compat.repo` of skills.', 'github.com/acme/shop'),
  goal_labels: setting(
    z.array(z.string().trim().min(1).max(64)).max(50),
    'Labels of the current goal. A skill with one of them scores higher at the gate.',
    ['defence'],
  ),
  goal_postconditions: setting(
    z.array(z.string().trim().min(1).max(128)).max(50),
    'Desired effects, as named in the `effects` of manifests. Of skills with equal scores, the one with more of them ranks first.',
    ['updated:appservice_image'],
  ),
  k_cards: setting(z.int().min(0).max(5), 'Maximum number of skills in the bulletin. Default: 5.', 3),
  tau: setting(
    z.number().min(0).max(1),
    'The share of its maximum score that a skill must reach at the gate, unless its manifest has a `tau`. Default: 0.85.',
    0.7,
  ),
  approval_events: setting(
    z.boolean(),
    'True: the end of an approval of a run becomes an event of the type `approval.ended` in this scope, which reflexes and the agent see. See docs/approvals.md. Default: false.',
    true,
  ),
  refused_skills: setting(
    z.array(z.string().min(1).max(128)).max(100),
    'Skills that this scope never runs, whoever registered them: ids, versions (`id@version`) or patterns with `*`.',
    ['shop.refund', 'pay.*'],
  ),
  policy_mode: z.enum(['enforce', 'observe']).meta({
    description: '`observe` runs a skill even if its policy denies it, and logs the decision. Default: `enforce`.',
    examples: ['observe'],
  }),
}
