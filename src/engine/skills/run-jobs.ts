import { MOST_DEATHS } from '../upkeep/guard.ts'
import type { Job } from '../jobs.ts'
import type { OpenRun, SkillRuns } from './runs.ts'
import type { Skills } from './sessions.ts'
import type { Lanes } from '../effects/wiring.ts'

type RunJobParts = Pick<Lanes, 'jobs' | 'guard'> & {
  skills: Skills
  runs: SkillRuns
}

/** Resumes runs after a crash. */
export function handleRuns(parts: RunJobParts): void {
  parts.jobs.handle<OpenRun>('run', {
    work: 'run',
    at_once: Infinity,
    // A run that keeps crashing its scope is compensated, then given up if that crashes it, too.
    attempts: 2 * MOST_DEATHS,
    run: (job) => resume(parts, job),
    giveUp: (job, reason) => resume(parts, job, reason),
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
