import { isJsonFields, type Json } from '../../../base/json.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import type { Outbox } from '../../../kernel/outbox.ts'
import { approvalHead } from '../../../engine/log/spans.ts'
import type { SkillRuns } from '../../../engine/skills/runs.ts'
import type { Skills } from '../../../engine/skills/sessions.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'
import type { ApprovedRun } from '../../../skills/session/ports.ts'
import type { ProposalResult } from '../../../skills/session/result.ts'
import type { ApprovalRun } from '../../../contract/approval.ts'
import { tellApproval, type HeldRun } from './approval-events.ts'

/** Retry interval of an approved run that waits for another run. */
const WAIT_MS = 60_000
/** Gate checks that pass by themselves over time. */
const PACE = new Set(['cooldown', 'concurrency'])

type ApprovedRunParts = Pick<Lanes, 'jobs' | 'outbox' | 'guard' | 'unit' | 'now' | 'scope' | 'settings' | 'log'> & {
  skills: Skills
  runs: SkillRuns
}

/** Starts approved runs. */
export function handleApprovedRuns(parts: ApprovedRunParts): void {
  const { jobs, unit } = parts
  jobs.handle<HeldRun>('approved-run', {
    work: 'run',
    at_once: Infinity,
    attempts: MOST_DEATHS,
    run: ({ key, payload }) => runApproved(parts, { ...payload, approval_id: key }),
    giveUp: ({ key, payload }, reason) =>
      unit((ending) => {
        jobs.done(ending, 'approved-run', key)
        const run = { run_id: null, status: 'failed' as const, reason, outputs: {} }
        tellApproval(ending, parts, { ...payload, approval_id: key }, { decision: 'approved', ...payload.decided, run })
      }),
  })
}

async function runApproved(parts: ApprovedRunParts, run: ApprovedRun & HeldRun): Promise<{ again_ms: number } | void> {
  const { jobs, skills, runs, outbox, guard, unit, now } = parts
  const { approval_id, skill_id, head, expires_at } = run
  const cause = `approval:${approval_id}`
  const begun = runs.earlier(skill_id, [cause], '')
  let result = begun?.result ?? null
  if (begun && !result) {
    await jobs.idle('run', begun.run_id)
    result = runs.earlier(skill_id, [cause], '')?.result ?? null
    if (!result) return undefined
  }
  if (!result) {
    result = await runs.stoppable(cause, async (signal) => {
      const session = await skills.sessionFor({ head: approvalHead(head, run), causes: [cause], signal })
      return session.runApproved(run, { signal })
    })
    guard.done({ kind: 'run', id: approval_id })
    unit((going) => jobs.progressed(going, 'approved-run', approval_id))
    if (hasToWait(result) && now() < expires_at) return { again_ms: WAIT_MS }
  }
  const ended = result
  unit((ending) => {
    jobs.done(ending, 'approved-run', approval_id)
    if (ended.run_id === null) outbox.put(ending, 'approved-runs', approval_id, notRun(ended, ending.now))
    tellApproval(ending, parts, run, { decision: 'approved', ...run.decided, run: ended })
    // Other runs may wait for this one.
    jobs.hurry(ending, 'approved-run')
  })
  return undefined
}

/** True if a run was refused only because the skill is running, or ran a moment ago. */
function hasToWait({ status, decision }: ProposalResult): boolean {
  const failed = decision.stages.flatMap(({ verdict, checks }) => (verdict === 'failed' ? checks.filter(({ passed }) => !passed) : []))
  return status === 'refused' && failed.length > 0 && failed.every(({ check }) => PACE.has(check))
}

/** Tells D1, where the person who approved it looks, how a run goes. */
export const followRuns = (outbox: Pick<Outbox, 'put'>): ScopeFeature => ({
  name: 'approved runs',
  runBegan: (unit, { approval_id, run_id }) => {
    if (approval_id !== null)
      outbox.put(unit, 'approved-runs', approval_id, { ...nothing, run_id, status: 'running' } satisfies ApprovalRun)
  },
  // Built from the log entry of the run's end, which holds no secrets.
  runEnded: (unit, { approval_id }, { result, entry, at: ended_at }) => {
    if (approval_id === null) return
    const { run_id, status, steps, compensation, cost_usd } = result
    const { detail = null, reason = null, outputs = null } = entry ?? ({} as Partial<Record<string, Json>>)
    outbox.put(unit, 'approved-runs', approval_id, {
      run_id,
      status,
      reason: textOf(detail) ?? textOf(reason),
      // Not an object if the setting `redact` hides it as a whole.
      outputs: isJsonFields(outputs) ? outputs : {},
      steps: steps.map(({ tool, status: ended }) => ({ tool, status: ended })),
      compensation: compensation.map(({ tool, status: ended }) => ({ tool, status: ended })),
      cost_usd,
      ended_at,
    } satisfies ApprovalRun)
  },
})

/** The report of an approved run that did not start. */
const notRun = ({ status, reason }: ProposalResult, ended_at: number): ApprovalRun => ({ ...nothing, status, reason, ended_at })

const nothing = { run_id: null, reason: null, outputs: {}, steps: [], compensation: [], cost_usd: 0, ended_at: null }
const textOf = (value: Json): string | null => (typeof value === 'string' ? value : null)
