import { z } from 'zod'

export const skillName = z.string().min(1).max(80)
export const skillVersionName = z.string().min(1).max(64)
export const environment = z.string().trim().min(1).max(64)
const MOST_ENVIRONMENTS = 16
export const MOST_ROLES = 64
export const LONGEST_ROLE = 64

/** A question to the control plane before a version of a skill runs. */
export const policyQuestion = z.strictObject({
  skill_id: skillName,
  version: skillVersionName,
  project: z.string().min(1).max(256).nullish(),
  env: z
    .union([environment, z.array(environment).min(1).max(MOST_ENVIRONMENTS)])
    .describe('Of a list, the policy must allow each environment.'),
  roles: z
    .array(z.string().min(1).max(LONGEST_ROLE))
    .max(MOST_ROLES)
    .describe('The roles of whoever runs the skill. Implied roles count as held.'),
  inputs: z
    .record(z.string().max(64), z.unknown())
    .optional()
    .describe('If given, conditions of the policy that read only these inputs are evaluated. They are not stored.'),
})
export type PolicyQuestion = z.infer<typeof policyQuestion>

export const policyVerdict = z
  .object({
    verdict: z.enum(['allow', 'deny', 'needs_promotion']),
    reason: z.string().max(4000),
  })
  .meta({ id: 'PolicyVerdict' })
export type PolicyVerdict = z.infer<typeof policyVerdict>

/** A verdict as a gate gets it. `unknown`: the control plane is away and never answered. */
export type ControlPlaneVerdict = {
  verdict: PolicyVerdict['verdict'] | 'unknown'
  reason: string
  /** In ms; null if it was never asked. */
  asked_at: number | null
  cached: boolean
  /** Why a person here must approve it, whatever its manifest says. */
  approval?: string
}

/** The owner of the skills that came from the control plane. No key has this id. */
export const CONTROL_PLANE = 'control-plane'
