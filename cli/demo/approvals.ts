import type { Page } from '../../src/contract/scope-api.ts'
import type { Api } from '../lib/api.ts'

/** A pending approval, as the API lists it. */
export type WaitingApproval = {
  id: string
  scope: string
  skill_id: string
  inputs: Record<string, unknown>
  why: string
  expires_at: string
}

export async function waitingApprovals(api: Api, signal: AbortSignal): Promise<WaitingApproval[]> {
  const { items } = await api.json<Page<WaitingApproval>>('/v1/approvals?status=pending', { signal })
  return items.map(({ id, scope, skill_id, inputs, why, expires_at }) => ({ id, scope, skill_id, inputs, why, expires_at }))
}

/** The command that approves it, for a shell with the key and the address. */
export const approveCommand = ({ id }: Pick<WaitingApproval, 'id'>): string =>
  `curl -s -X POST -H "Authorization: Bearer $KEY" $URL/v1/approvals/${id}/approve`
