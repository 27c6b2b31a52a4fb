import type { ApprovalRun } from '../../contract/approval.ts'
import { isJsonFields, type Json } from '../../base/json.ts'
import type { SessionEntry } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import { tellApprovalRuns, type RunReport } from '../../store/approvals.ts'
import type { Database } from '../database.ts'
import { withDeadline } from '../../base/deadline.ts'

const TIMEOUT_MS = 10_000
const BATCH = 50

/**
 * Reports on approved runs for D1, where the approver sees them. A row is written with the run's
 * own change and deleted once the outbox has replicated it. Replicating it twice changes nothing.
 */
export class RunReports {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  get waits(): boolean {
    return this.#database.first('SELECT 1 AS one FROM run_reports LIMIT 1') !== undefined
  }

  /** Within a unit of work. */
  note(approval_id: string, run: ApprovalRun): void {
    this.#database.all(
      'INSERT INTO run_reports (approval_id, run) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET run = ?2',
      approval_id,
      JSON.stringify(run),
    )
  }

  async tell(db: D1Database): Promise<void> {
    for (;;) {
      const reports = this.#database.all<RunReport>('SELECT approval_id, run FROM run_reports LIMIT ?', BATCH)
      if (reports.length === 0) return
      await withDeadline(() => tellApprovalRuns(db, reports), { timeout_ms: TIMEOUT_MS, what: 'reporting approved runs to D1' })
      for (const { approval_id, run } of reports)
        this.#database.all('DELETE FROM run_reports WHERE approval_id = ? AND run = ?', approval_id, run)
    }
  }
}

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
