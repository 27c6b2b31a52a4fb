import type { ApprovedRun } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import { MOST_DEATHS } from '../upkeep/guard.ts'
import type { Job } from '../jobs.ts'
import { approvalHead } from '../log/spans.ts'
import { tellApproval, type HeldRun } from '../../features/approvals/scope/approval-events.ts'
import { notRun, type OpenRun, type SkillRuns } from './runs.ts'
import type { Skills } from './sessions.ts'
import type { Lanes } from '../effects/wiring.ts'

/** Retry interval of an approved run that waits for another run. */
const WAIT_MS = 60_000
/** Gate checks that pass by themselves over time. */
const PACE = new Set(['cooldown', 'concurrency'])

type RunJobParts = Pick<Lanes, 'jobs' | 'outbox' | 'guard' | 'unit' | 'now' | 'scope' | 'settings' | 'log'> & {
  skills: Skills
  runs: SkillRuns
}

/** Resumes runs after a crash, and starts approved runs. */
export function handleRuns(parts: RunJobParts): void {
  const { jobs, unit } = parts
  jobs.handle<OpenRun>('run', {
    work: 'run',
    at_once: Infinity,
    // A run that keeps crashing its scope is compensated, then given up if that crashes it, too.
    attempts: 2 * MOST_DEATHS,
    run: (job) => resume(parts, job),
    giveUp: (job, reason) => resume(parts, job, reason),
  })
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

async function resume(
  { skills, runs, guard }: RunJobParts,
  { key: run_id, payload, attempts }: Job<OpenRun>,
  give_up?: string,
): Promise<void> {
  const { record, cause, head } = payload
  const session = await skills.sessionFor({ head, causes: [cause] })
  const stop =
    attempts > MOST_DEATHS
      ? `the run crashed its scope ${attempts - 1} times: ${guard.reason({ kind: 'run', id: run_id })}`
      : runs.isStopping(cause, run_id)
        ? 'its turn is over'
        : null
  const signal = stop === null ? undefined : AbortSignal.abort(new Error(stop))
  await session.resume(record, { ...(signal && { signal }), ...(give_up !== undefined && { give_up }) })
}

async function runApproved(parts: RunJobParts, run: ApprovedRun & HeldRun): Promise<{ again_ms: number } | void> {
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
