import { fitsBytes, type JsonFields } from '../../../base/json.ts'
import { limits } from '../../../base/limits.ts'
import { APPROVAL_ENDED } from '../../../contract/approval-event.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import type { Accepted } from '../../../contract/scope-api.ts'
import { withDefaults, type Event } from '../../../core/event.ts'
import type { ParkedRun } from '../../../skills/session/ports.ts'
import type { ProposalResult } from '../../../skills/session/result.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { approvalHead } from '../../../engine/log/spans.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'

/** `head`: the span whose proposal it was. `decided`: by the person who approved it. */
export type HeldRun = ParkedRun & { head: EntryHead; decided?: { by: string | null; reason: string | null } }

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
    inputs: log.clean(parked.inputs, trace_id) as JsonFields,
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
