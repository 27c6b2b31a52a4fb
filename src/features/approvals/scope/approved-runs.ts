import { fitsBytes, type JsonFields, isJsonFields, type Json } from '../../../base/json.ts'
import { limits } from '../../../base/limits.ts'
import { APPROVAL_ENDED } from '../../../contract/approval-event.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import type { Accepted } from '../../../contract/scope-api.ts'
import { withDefaults, type Event } from '../../../core/event.ts'
import type { ParkedRun, ApprovedRun } from '../../../skills/session/ports.ts'
import type { ProposalResult } from '../../../skills/session/result.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { approvalHead } from '../../../traces/ids.ts'
import { PACE } from '../../../traces/message-run.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import type { Outbox } from '../../../kernel/outbox.ts'
import type { SkillRuns } from '../../../engine/skills/runs.ts'
import type { Skills } from '../../../engine/skills/sessions.ts'
import type { ApprovalRun } from '../../../contract/approval.ts'

/** `head`: the span whose proposal it was. `decided`: by the person who approved it. */
export type HeldRun = ParkedRun & { head: EntryHead; decided?: { by: string | null; reason: string | null }; edits?: JsonFields }

type Told = Pick<Lanes, 'scope' | 'settings' | 'log' | 'jobs'>
type Ended = {
  decision: 'approved' | 'rejected' | 'expired'
  by?: string | null
  reason?: string | null
  run?: Pick<ProposalResult, 'run_id' | 'status' | 'reason' | 'outputs'>
}

/** The most that the inputs and outputs of an event take. */
const MOST_BYTES = limits.event_bytes / 2
const AGAIN_MS = 60_000

/**
 * Sends the scope the end of an approval as an event, if its settings ask for that: by a job that
 * is written with the end. The event's id comes from the approval, so that a repeated one is a
 * duplicate.
 */
export function tellApproval(
  unit: Unit,
  { scope, settings, log, jobs }: Told,
  parked: HeldRun & { approval_id: string },
  { decision, by = null, reason = null, run }: Ended,
): void {
  if (settings().approval_events !== true) return
  const { approval_id, proposal_id, skill_id, version, head } = parked
  const { trace_id, span_id } = approvalHead(head, { proposal_id, approval_id })
  const cause = head.event_ids.at(-1) ?? null
  const shown = {
    inputs: log.clean({ ...parked.inputs, ...parked.edits }, trace_id) as JsonFields,
    run: run
      ? { run_id: run.run_id, status: run.status, reason: run.reason, outputs: log.clean(run.outputs, trace_id) as JsonFields }
      : null,
  }
  const fits = fitsBytes(JSON.stringify(shown), MOST_BYTES)
  const short = { inputs: {}, run: shown.run && { ...shown.run, outputs: {} }, shortened: true as const }
  const meta = { trace_id, parent_id: span_id, correlation_id: cause, causation_id: cause, ...head.marks, sender: `scope:${scope}` }
  const told = { type: APPROVAL_ENDED, id: `approval:${approval_id}`, approval_id, skill_id, version, decision, by, reason, meta }
  const event = withDefaults({ ...told, ...(fits ? shown : short) }, { now: unit.now, source: 'approvals', scope })
  jobs.add(unit, { kind: 'approval-event', key: approval_id, payload: event })
}

type Entrance = Pick<Lanes, 'jobs' | 'unit'> & { accept: (event: Event) => Accepted }

/** Accepts the events; one that finds the inbox full waits. */
export function handleApprovalEvents({ jobs, unit, accept }: Entrance): void {
  const done = (key: string): void => unit((ending) => void jobs.done(ending, 'approval-event', key))
  jobs.handle<Event>('approval-event', {
    work: 'run',
    at_once: 1,
    attempts: MOST_DEATHS,
    run: async ({ key, payload }) => {
      if (!accept(payload).ok) return { again_ms: AGAIN_MS }
      return done(key)
    },
    giveUp: ({ key }) => done(key),
  })
}

/** Retry interval of an approved run that waits for another run. */
const WAIT_MS = 60_000

type ApprovedRunParts = Pick<Lanes, 'jobs' | 'outbox' | 'guard' | 'unit' | 'now' | 'scope' | 'settings' | 'log'> & {
  skills: Skills
  runs: SkillRuns
}

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
