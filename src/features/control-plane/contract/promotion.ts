import { z } from 'zod'
import type { InMs } from '../../../base/time.ts'
import { ciReport } from '../../../contract/reports/skill-test.ts'
import { environment, skillName, skillVersionName } from '../../../contract/policy.ts'

const time = z.iso.datetime()

export const newPromotion = z.strictObject({
  skill_id: skillName,
  version: skillVersionName,
  from_env: environment.describe('An environment in which this version may run already.'),
  to_env: z.array(environment).min(1).max(8),
  reason: z.string().min(1).max(1000).optional(),
})
export type NewPromotion = z.infer<typeof newPromotion>

/** `failed`: the tests did not pass in an environment. */
export const promotionStatuses = ['failed', 'pending', 'approved', 'rejected', 'expired'] as const
export const promotionStatus = z.enum(promotionStatuses)
export type PromotionStatus = z.infer<typeof promotionStatus>

export const promotion = z
  .object({
    id: z.string(),
    skill_id: z.string(),
    version: z.string(),
    hash: z.string().describe('SHA-256 of the manifest that was tested.'),
    from_env: z.string(),
    to_env: z.array(z.string()),
    status: promotionStatus,
    reports: z.record(z.string(), ciReport).describe("By environment: the report of the skill's tests, run as if there."),
    requested_by: z.string(),
    request_reason: z.string().nullable(),
    created_at: time,
    expires_at: time.describe('A pending promotion cannot be approved after this.'),
    decided_by: z.string().nullable(),
    decided_at: time.nullable(),
    reason: z.string().nullable(),
  })
  .meta({ id: 'Promotion' })

/** As stored, with times in ms. */
export type StoredPromotion = InMs<z.infer<typeof promotion>, 'created_at' | 'expires_at' | 'decided_at'> & {
  requested_key: string
  decided_key: string | null
}
