import type { OutcomeStatus, EventStatus } from '../../../src/contract/event-record.ts'
import type { ApprovalStatus } from '../../../src/contract/approval.ts'

/**
 * `wait`: somebody or something is waited for. `idle`: nothing happens any more, and nothing is
 * wrong.
 */
type Tone = 'ok' | 'run' | 'wait' | 'bad' | 'idle'

/** The one tone of each status that the API names; pages add none of their own. */
const events: Record<EventStatus | OutcomeStatus, Tone> = {
  queued: 'wait',
  pending: 'wait',
  processing: 'run',
  completed: 'ok',
  ignored: 'idle',
  dead_lettered: 'bad',
  cancelled: 'idle',
}
const approvals: Record<Exclude<ApprovalStatus, 'pending'>, Tone> = {
  approved: 'ok',
  rejected: 'idle',
  expired: 'idle',
  withdrawn: 'idle',
}
const deals: Record<string, Tone> = {
  proposed: 'wait',
  disputed: 'bad',
  offered: 'wait',
  accepted: 'ok',
  settled: 'ok',
}
const artifacts: Record<string, Tone> = {
  draft: 'idle',
  candidate: 'wait',
  shadow: 'wait',
  active: 'ok',
  retired: 'idle',
  deprecated: 'idle',
}
const work: Record<string, Tone> = {
  ok: 'ok',
  partial: 'wait',
  done: 'ok',
  running: 'run',
  result: 'ok',
  none: 'idle',
  failed: 'bad',
  error: 'bad',
  timeout: 'bad',
  interrupted: 'idle',
  refused: 'bad',
  clarify: 'wait',
  needs_approval: 'wait',
  partial_failure: 'bad',
  unknown: 'bad',
  waiting: 'wait',
  lost: 'bad',
  reused: 'ok',
  passed: 'ok',
  not_reached: 'idle',
  degraded: 'bad',
  open: 'wait',
  closed: 'idle',
}
const all: Readonly<Record<string, Tone>> = { ...work, ...deals, ...artifacts, ...approvals, ...events }

/** Statuses that are named otherwise than by the API. */
const texts: Readonly<Record<string, string>> = {
  dead_lettered: 'dead letter',
  partial: 'a tool failed',
  none: 'did nothing',
  timeout: 'timed out',
  clarify: 'needs an answer',
  partial_failure: 'partly failed',
  unknown: 'outcome unknown',
}

/** The tone has a shape, too: colours alone say nothing to some people. */
const shapes: Record<Tone, string> = { ok: '✓', run: '▸', wait: '◷', bad: '✕', idle: '–' }

export const statusText = (status: string): string => texts[status] ?? status.replaceAll('_', ' ')

/** A status that this page does not know is shown as the API named it. */
export function Status({ status }: { status: string }) {
  const tone = all[status] ?? 'idle'
  return (
    <span class={`status ${tone}`}>
      <span aria-hidden="true">{shapes[tone]}</span> {statusText(status)}
    </span>
  )
}
