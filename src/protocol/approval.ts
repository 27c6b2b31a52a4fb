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
  created_at: number
  expires_at: number
}

export type Approval = ApprovalRequest & {
  status: ApprovalStatus
  decided_by: string | null
  decided_at: number | null
  reason: string | null
}
