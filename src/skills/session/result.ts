import { STAGES, type GateCheck, type GateDecision, type GateStage, type GateVerdict } from '../gate/decision.ts'
import type { JsonFields } from '../../base/json.ts'
import type { CompensationReport, RunResult, RunStatus, StepStatus } from '../runner/ports.ts'
import type { Question } from '../plan/slots.ts'

/** `failed`: nothing happened. `unknown`: the effect cannot be determined. */
export type ProposalStatus = 'ok' | 'refused' | 'clarify' | 'needs_approval' | 'partial_failure' | 'failed' | 'unknown'

type StageReport = { stage: GateStage; verdict: 'passed' | 'failed' | 'not_reached'; reason: string | null; checks: GateCheck[] }

/** The decision as the proposer receives it. `enforced` is false if it was only observed. */
export type DecisionReport = {
  verdict: GateVerdict
  stages: StageReport[]
  score: number | null
  tau: number | null
  to_pass: string[]
  enforced: boolean
}

/** `planned`: of a dry run, which runs nothing. */
type StepSummary = { index: number; tool: string; status: StepStatus | 'planned'; duration_ms: number }

export type ProposalResult = {
  proposal_id: string
  skill_id: string
  /** Null if the skill does not exist. */
  version: string | null
  status: ProposalStatus
  reason: string | null
  outputs: JsonFields
  questions: Question[]
  approval_id: string | null
  decision: DecisionReport
  steps: StepSummary[]
  compensation: CompensationReport[]
  /** Nothing ran: the outputs come from an earlier run under the same idempotency key. */
  idempotent: boolean
  /** Nothing ran, whatever the status: the gate alone decided. */
  dry_run: boolean
  run_id: string | null
  cost_usd: number
  trace_id: string
}

export type ProposalHead = Pick<ProposalResult, 'proposal_id' | 'skill_id' | 'version' | 'trace_id'>

export function reportOf(decision: GateDecision, enforced: boolean): DecisionReport {
  const stages = decision.stages.map(({ stage, status, checks }): StageReport => {
    const failed = checks.filter(({ passed }) => !passed).map(({ detail }) => detail)
    return { stage, verdict: status, reason: status === 'failed' ? failed.join('; ') : null, checks }
  })
  const { verdict, score, to_pass } = decision
  return { verdict, stages, score: score?.score ?? null, tau: score?.tau ?? null, to_pass, enforced }
}

export function unreached(to_pass: string): DecisionReport {
  const stages = STAGES.map((stage): StageReport => ({ stage, verdict: 'not_reached', reason: null, checks: [] }))
  return { verdict: 'refused', stages, score: null, tau: null, to_pass: [to_pass], enforced: true }
}

type Answered = Partial<ProposalResult> & Pick<ProposalResult, 'status' | 'decision'>

export function answer(head: ProposalHead, answered: Answered): ProposalResult {
  const nothing = { outputs: {}, questions: [], approval_id: null, steps: [], compensation: [] }
  return { ...head, reason: null, ...nothing, idempotent: false, dry_run: false, run_id: null, cost_usd: 0, ...answered }
}

const statuses: Record<RunStatus, ProposalStatus> = {
  ok: 'ok',
  reused: 'ok',
  failed: 'failed',
  partial_failure: 'partial_failure',
  unknown: 'unknown',
}

export function ranAs(run: RunResult): Omit<Answered, 'decision'> {
  return {
    status: statuses[run.status],
    reason: run.detail ?? run.reason,
    outputs: run.outputs,
    steps: run.steps.map(({ tool, status, duration_ms }, index) => ({ index, tool, status, duration_ms })),
    compensation: run.compensation,
    idempotent: run.status === 'reused',
    cost_usd: run.cost_usd,
  }
}
