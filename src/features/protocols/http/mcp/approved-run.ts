import { ProtocolError, ProtocolErrorCode, type CallToolResult } from '@modelcontextprotocol/server'
import { isJsonFields, jsonValue } from '../../../../base/json.ts'
import type { StoredApproval } from '../../../../contract/approval.ts'
import { hasRole } from '../../../../contract/principal.ts'
import type { ProposalResult } from '../../../../skills/session/result.ts'
import { findApproval } from '../../../approvals/store/approvals.ts'
import { storeOf } from '../../../../store/store.ts'
import { demandRole, type Caller } from '../../../../http/auth/middleware.ts'
import { decide } from '../../../approvals/http/approvals.ts'
import { callResult, said } from './answer.ts'
import { editsIn, type ElicitedDecision } from './questions.ts'

export const originOf = ({ req }: Caller): string => new URL(req.url).origin
export const badState = (): ProtocolError => new ProtocolError(ProtocolErrorCode.InvalidParams, 'Invalid or expired requestState')

/** Decides with the same rules as the routes of approvals. */
export async function decideHere(c: Caller, approval: StoredApproval, answer: ElicitedDecision): Promise<void> {
  const { id, status } = approval
  const { decision, reason } = answer
  if (decision === 'wait' || status !== 'pending') return
  demandRole(c.var.principal, 'operator')
  await decide(c.env, c.var.principal, {
    id,
    status: decision === 'approve' ? 'approved' : 'rejected',
    reason,
    ...(decision === 'approve' && { edits: editsIn(answer, approval) }),
    traceparent: c.req.header('traceparent'),
  })
}

/** An approval of this scope that the key asked for, or may read. */
export async function approvalHere({ env, var: { scope, principal } }: Caller, id: string): Promise<StoredApproval> {
  const found = await findApproval(storeOf(env), id, Date.now())
  if (found?.scope === scope && (found.requested_key === principal.key_id || hasRole(principal, 'operator'))) return found
  throw badState()
}

type McpApprovedRun = { at: 'waiting' | 'working' } | { at: 'ended'; ended_at: number; result: CallToolResult }

/** The run of an approval: the scope has it, except one that the gate refused in the end. */
export async function approvedRun(c: Caller, approval: StoredApproval): Promise<McpApprovedRun> {
  const { id, status, skill_id, version, reason, run } = approval
  const ended_at = approval.decided_at ?? approval.expires_at
  if (status === 'pending') return { at: 'waiting' }
  if (status !== 'approved') return { at: 'ended', ended_at, result: said({ skill_id, version, status, reason }, { isError: true }) }
  const begun = await c.env.SCOPE.getByName(c.var.scope).skillCall(`approval:${id}`)
  const result = begun && resultOf(begun.result)
  if (begun && result) return { at: 'ended', ended_at: begun.ended_at ?? ended_at, result: callResult(result, originOf(c)) }
  if (begun || !run || run.status === 'running') return { at: 'working' }
  const { status: ended, reason: why, outputs } = run
  const text = { skill_id, version, status: ended, reason: why, outputs }
  return { at: 'ended', ended_at: run.ended_at ?? ended_at, result: said(text, { isError: ended !== 'ok' }) }
}

export function resultOf(text: string | null): ProposalResult | null {
  const value = text === null ? undefined : jsonValue(text)
  return isJsonFields(value) ? (value as unknown as ProposalResult) : null
}
