import type { CallToolResult } from '@modelcontextprotocol/server'
import type { ProposalResult, ProposalStatus } from '../../../../skills/session/result.ts'

/** The result of a call: a summary, the changes needed to pass, and the full proposal result. */
export function callResult(answer: ProposalResult, origin: string): CallToolResult {
  const { skill_id, version, status, dry_run } = answer
  const dry = dry_run ? { dry_run, note: NOTHING_RAN } : {}
  return said(
    { skill_id, version, status, ...dry, ...told[status](answer, origin) },
    { structuredContent: answer, isError: status !== 'ok' },
  )
}

/** A result whose text is JSON for the model. */
export const said = (text: object, rest: Omit<CallToolResult, 'content'>): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(text) }],
  ...rest,
})

const NOTHING_RAN = 'Nothing ran: this is only the decision of the gate. Call again without reflex/dry_run to run it.'

type Told = (answer: ProposalResult, origin: string) => object

const badRun: Told = ({ reason, steps, compensation }) => ({ reason, steps, compensation })

const told: Record<ProposalStatus, Told> = {
  ok: ({ outputs, idempotent, dry_run }) => (dry_run ? {} : { outputs, ...(idempotent ? { idempotent } : {}) }),
  clarify: ({ questions, decision: { to_pass } }) => ({ questions, to_pass }),
  refused: ({ reason, decision: { to_pass } }) => ({ reason, to_pass }),
  needs_approval: ({ reason, approval_id }, origin) => ({
    reason,
    ...(approval_id === null ? {} : { approval: approvalOf(approval_id, origin) }),
  }),
  failed: badRun,
  partial_failure: badRun,
  unknown: badRun,
}

export const approvalOf = (id: string, origin: string): object => ({
  id,
  approve: `POST ${origin}/v1/approvals/${id}/approve`,
  reject: `POST ${origin}/v1/approvals/${id}/reject`,
  role: 'operator',
  note: 'A person decides. An approved call runs once by itself: do not call again.',
})
