import { z } from 'zod'

export const approvalStatuses = ['pending', 'approved', 'rejected', 'expired'] as const
export const approvalStatus = z.enum(approvalStatuses)
export type ApprovalStatus = z.infer<typeof approvalStatus>

/** A scope asks whether a skill may run with these inputs: what secrets they hold it has masked. The hashes say what exactly was approved. Times in ms. */
export type ApprovalRequest = {
  id: string
  scope: string
  skill_id: string
  version: string
  manifest_hash: string
  inputs_hash: string
  inputs: Record<string, unknown>
  why: string
  /** Who or what the skill would run for. */
  requested_by: string
  /** The id of the key that proposed it; null where an agent or a reflex did. */
  requested_key: string | null
  /** Whether that key may approve it, too: else it takes a second one. */
  self_approval: boolean
  created_at: number
  expires_at: number
}

export const approvalRunStatuses = [
  'running',
  'ok',
  'refused',
  'clarify',
  'needs_approval',
  'partial_failure',
  'failed',
  'unknown',
] as const

/** What the approval led to. `run_id` is null where the gate refused it after all; `outputs` are as the scope's log shows them. */
export type ApprovalRun = {
  run_id: string | null
  status: (typeof approvalRunStatuses)[number]
  reason: string | null
  outputs: Record<string, unknown>
  steps: { tool: string; status: string }[]
  compensation: { tool: string; status: string }[]
  cost_usd: number
  ended_at: number | null
}

export type Approval = ApprovalRequest & {
  status: ApprovalStatus
  decided_by: string | null
  decided_at: number | null
  reason: string | null
  /** Null until it has begun, as far as D1 has been told. */
  run: ApprovalRun | null
}

/** Who decides. */
export type Decider = { key_id: string; name: string; is_admin: boolean }

export const decisionReason = z.string().min(1).max(1000)

/** A decision as it comes over a socket. */
export const approvalDecision = z.strictObject({
  type: z.enum(['approve', 'reject']),
  approval_id: z.string().min(1).max(128),
  reason: decisionReason.optional(),
})
export type ApprovalDecision = z.infer<typeof approvalDecision>

export const decided = { approve: 'approved', reject: 'rejected' } as const
