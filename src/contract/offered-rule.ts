import { z } from 'zod'
import { trustedText } from './settings/origins.ts'

/** A rule for the setting `trusted_text`, which would have spared questions. */
export const offeredRule = z
  .object({
    says: z.string(),
    rule: trustedText,
    approved: z.int().describe('Questions of this kind that people approved. They rejected and edited none.'),
    values: z.array(z.string()).describe('The values that they approved, the newest first; at most ten.'),
    approvals: z.array(z.string()).describe('The approvals, the newest first; at most ten.'),
    since: z.iso.datetime().describe('When the oldest of the questions was asked.'),
    patch: z
      .object({ trusted_text: z.array(trustedText) })
      .describe('What accepts the rule: the body of `PATCH /v1/scopes/{scope}`. Nothing accepts it by itself.'),
  })
  .meta({ id: 'OfferedRule' })
export type OfferedRule = z.infer<typeof offeredRule>
