import type { OutcomeStatus, EventStatus } from '../../../src/contract/event-record.ts'
import type { ApprovalStatus } from '../../../src/features/approvals/contract/approval.ts'

/**
 * `wait`: somebody or something is waited for. `idle`: nothing happens any more, and nothing is
 * wrong.
 */
type Tone = 'ok' | 'run' | 'wait' | 'bad' | 'idle'
type Shown = { text: string; tone: Tone }

/** The one text and tone of each status that the API names; pages add none of their own. */
const events: Record<EventStatus | OutcomeStatus, Shown> = {
  queued: { text: 'queued', tone: 'wait' },
  pending: { text: 'pending', tone: 'wait' },
  processing: { text: 'processing', tone: 'run' },
  completed: { text: 'completed', tone: 'ok' },
  ignored: { text: 'ignored', tone: 'idle' },
  dead_lettered: { text: 'dead letter', tone: 'bad' },
  cancelled: { text: 'cancelled', tone: 'idle' },
}
const approvals: Record<Exclude<ApprovalStatus, 'pending'>, Shown> = {
  approved: { text: 'approved', tone: 'ok' },
  rejected: { text: 'rejected', tone: 'idle' },
  expired: { text: 'expired', tone: 'idle' },
  withdrawn: { text: 'withdrawn', tone: 'idle' },
}
const deals: Record<string, Shown> = {
  proposed: { text: 'proposed', tone: 'wait' },
  disputed: { text: 'disputed', tone: 'bad' },
  offered: { text: 'offered', tone: 'wait' },
  accepted: { text: 'accepted', tone: 'ok' },
  settled: { text: 'settled', tone: 'ok' },
}
const artifacts: Record<string, Shown> = {
  draft: { text: 'draft', tone: 'idle' },
  candidate: { text: 'candidate', tone: 'wait' },
  shadow: { text: 'shadow', tone: 'wait' },
  active: { text: 'active', tone: 'ok' },
  retired: { text: 'retired', tone: 'idle' },
  deprecated: { text: 'deprecated', tone: 'idle' },
}
const work: Record<string, Shown> = {
  ok: { text: 'ok', tone: 'ok' },
  partial: { text: 'a tool failed', tone: 'wait' },
  done: { text: 'done', tone: 'ok' },
  running: { text: 'running', tone: 'run' },
  result: { text: 'result', tone: 'ok' },
  none: { text: 'did nothing', tone: 'idle' },
  failed: { text: 'failed', tone: 'bad' },
  error: { text: 'error', tone: 'bad' },
  timeout: { text: 'timed out', tone: 'bad' },
  interrupted: { text: 'interrupted', tone: 'idle' },
  refused: { text: 'refused', tone: 'bad' },
  clarify: { text: 'needs an answer', tone: 'wait' },
  needs_approval: { text: 'needs approval', tone: 'wait' },
  partial_failure: { text: 'partly failed', tone: 'bad' },
  unknown: { text: 'outcome unknown', tone: 'bad' },
  waiting: { text: 'waiting', tone: 'wait' },
  lost: { text: 'lost', tone: 'bad' },
  reused: { text: 'reused', tone: 'ok' },
  passed: { text: 'passed', tone: 'ok' },
  not_reached: { text: 'not reached', tone: 'idle' },
  degraded: { text: 'degraded', tone: 'bad' },
  open: { text: 'open', tone: 'wait' },
  closed: { text: 'closed', tone: 'idle' },
}
const all: Readonly<Record<string, Shown>> = { ...work, ...deals, ...artifacts, ...approvals, ...events }

/** The tone has a shape, too: colours alone say nothing to some people. */
const shapes: Record<Tone, string> = { ok: '✓', run: '▸', wait: '◷', bad: '✕', idle: '–' }

export const statusText = (status: string): string => all[status]?.text ?? status.replaceAll('_', ' ')

/** A status that this page does not know is shown as the API named it. */
export function Status({ status }: { status: string }) {
  const { tone } = all[status] ?? { tone: 'idle' as const }
  return (
    <span class={`status ${tone}`}>
      <span aria-hidden="true">{shapes[tone]}</span> {statusText(status)}
    </span>
  )
}
