import { certificate } from '../contract/reports/certificate.ts'
import { verdictOf } from '../proof/certificate.ts'
import type { EntryKind, LogEntry } from '../contract/log-entry.ts'
import type { Around } from './given.ts'
import { isProbe } from './recorded-effects.ts'

/** The decisions and outputs of a log, and how the report names them. Other entries are facts. */
const DECISIONS: Partial<Record<EntryKind, string>> = {
  'event-accepted': 'filter',
  'reflex-fired': 'reflex',
  'reflex-passed': 'reflex',
  'reflex-compared': 'trial',
  'reflex-moved': 'trial',
  'reflex-overruled': 'trial',
  'action-ended': 'action',
  'scratch-set': 'action',
  'reply-sent': 'action',
  'turn-ended': 'turn',
  'model-called': 'model',
  'decision-made': 'decision',
  'effect-ended': 'effect',
  'timer-skipped': 'timer',
  'bulletin-built': 'bulletin',
  'skill-decided': 'gate',
  'skill-refused': 'skill',
  'skill-slots-parsed': 'slots',
  'skill-guard-evaluated': 'step',
  'skill-started': 'plan',
  'skill-resumed': 'plan',
  'skill-reused': 'plan',
  'skill-applied': 'plan',
  'skill-step-ended': 'step',
  'skill-compensation-ended': 'step',
  'blackboard-changed': 'plan',
  'approval-requested': 'approval',
}

const REASONS: Partial<Record<EntryKind, string>> = {
  'reflex-moved': 'the metrics of the reflex in this scope are not in the recording',
  'reflex-overruled': 'the earlier actions of the reflex are not in the recording',
  'timer-skipped': 'the schedule of the timer is not in the recording',
}

/** Tests each proof again, by the counts of its certificate. */
export function replayProofs({ source, comparison }: Around): void {
  for (const entry of source.entriesOf('certificate-changed')) {
    const { change, event_type, risk } = entry
    if (change !== 'proven' && change !== 'refuted') continue
    const parsed = certificate.safeParse(entry.certificate)
    const stratum = parsed.data?.strata.find((one) => one.event_type === event_type && one.risk === risk)
    if (parsed.success && stratum) comparison.compare(entry, 'trial', { recorded: change, replayed: verdictOf(parsed.data, stratum) })
    else comparison.cannot(entry, 'trial', 'the counts of the certificate are not in the recording')
  }
}

/** Reports each decision that no part of the replay has compared: none counts as equal unseen. */
export function reportUnseen({ source, comparison }: Around): void {
  const reasons = new Map(comparison.unknown.map(({ span_id, reason }) => [span_id, reason]))
  const calls = new Set(source.entriesOf('call-received').map(({ span_id }) => span_id))
  const read = new Set(
    source
      .entriesOf('effect-started')
      .filter(isProbe)
      .map(({ span_id }) => span_id),
  )
  for (const entry of source.recording.entries) {
    const kind = DECISIONS[entry.kind]
    if (kind === undefined || comparison.covered.has(entry) || read.has(entry.span_id)) continue
    comparison.cannot(entry, kind, reasonOf(entry, { reasons, calls }))
  }
}

function reasonOf(
  { kind, span_id, parent_id }: LogEntry,
  { reasons, calls }: { reasons: Map<string, string>; calls: Set<string> },
): string {
  const known = REASONS[kind] ?? reasons.get(span_id) ?? reasons.get(parent_id ?? '')
  if (known !== undefined) return known
  return calls.has(parent_id ?? '') ? 'a request from outside called it' : 'no replayed decision led to it'
}
