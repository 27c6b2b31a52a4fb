import type { ApprovalRun } from '../../contract/approval.ts'
import { isJsonFields, type Json } from '../../base/json.ts'
import type { SessionEntry } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'

/** How an approved run stands, for D1, where whoever approved it looks. */
export const begunRun = (run_id: string): ApprovalRun => ({ ...nothing, run_id, status: 'running' })

/** Built from the log entry of the run's end, which holds no secrets. */
export function endedRun(
  { run_id, status, steps, compensation, cost_usd }: ProposalResult,
  told: SessionEntry | undefined,
  ended_at: number,
): ApprovalRun {
  const { detail = null, reason = null, outputs = null } = told ?? ({} as Partial<Record<string, Json>>)
  return {
    run_id,
    status,
    reason: textOf(detail) ?? textOf(reason),
    // Not an object if the setting `redact` hides it as a whole.
    outputs: isJsonFields(outputs) ? outputs : {},
    steps: steps.map(({ tool, status: ended }) => ({ tool, status: ended })),
    compensation: compensation.map(({ tool, status: ended }) => ({ tool, status: ended })),
    cost_usd,
    ended_at,
  }
}

/** The report of an approved run that did not start. */
export const notRun = ({ status, reason }: ProposalResult, ended_at: number): ApprovalRun => ({ ...nothing, status, reason, ended_at })

const nothing = { run_id: null, reason: null, outputs: {}, steps: [], compensation: [], cost_usd: 0, ended_at: null }
const textOf = (value: Json): string | null => (typeof value === 'string' ? value : null)
