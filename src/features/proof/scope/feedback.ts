import type { Outcome } from '../../../contract/event-record.ts'
import type { Feedback, AuditedDecision } from '../../../contract/feedback.ts'
import type { Refused, Result } from '../../../base/result.ts'
import { eventHead } from '../../../engine/log/spans.ts'
import { childHead } from '../../../traces/ids.ts'
import type { Unit } from '../../../kernel/unit.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import type { Judgements } from './judgements.ts'
import type { ShadowTrials } from './shadow.ts'

type FeedbackParts = Pick<Lanes, 'scope' | 'database' | 'unit' | 'log' | 'programs'> & {
  shadow_trials: ShadowTrials
  judgements: Judgements
}
type FeedbackRow = { seq: number; type: string; trace_id: string; outcome: string | null }

/** The state key of the latest judged events. */
const KEY = 'feedback'
const MOST_KEPT = 500

/**
 * Logs what a person says about the decision on an event, and counts it against or for the reflex
 * that decided, if it is the first verdict on the event.
 */
export function judge(
  parts: FeedbackParts,
  event_id: string,
  { right, reply, reason = '' }: Feedback,
  by: string,
): Result<{ judged: AuditedDecision }, Refused<'unknown' | 'undecided'>> {
  const { scope, database, unit } = parts
  const row = database.first<FeedbackRow>('SELECT seq, type, trace_id, outcome FROM events WHERE id = ?', event_id)
  if (!row) return { ok: false, reason: 'unknown', detail: `the scope ${scope} does not have the event ${event_id}, or no longer` }
  const outcome = row.outcome === null ? null : (JSON.parse(row.outcome) as Outcome)
  if (outcome?.by !== 'reflex' && outcome?.by !== 'turn')
    return { ok: false, reason: 'undecided', detail: `neither a reflex nor a turn decided about the event ${event_id}` }
  const decided = outcome.by === 'reflex' ? { by: outcome.by, reflex_id: outcome.reflex_id, version: outcome.version } : { by: outcome.by }
  return unit((unit) => {
    const isNew = remember(unit, database.read<number[]>(KEY, []), row.seq)
    const head = childHead(eventHead({ scope, id: event_id, trace_id: row.trace_id }))
    const { log_seq } = outcome
    unit.log({ ...head, kind: 'decision-judged', right, reply: reply ?? null, reason: reason || null, by, decided, log_seq })
    const counted =
      isNew &&
      outcome.by === 'reflex' &&
      count(unit, parts, outcome, { event_id, event_type: row.type, seq: row.seq, right, reason, by, head })
    return { ok: true, judged: { decided, counted } }
  })
}

/** False if the event was judged before. */
function remember(unit: Unit, known: readonly number[], seq: number): boolean {
  if (known.includes(seq)) return false
  unit.write(KEY, [...known, seq].slice(-MOST_KEPT))
  return true
}

type Said = {
  event_id: string
  event_type: string
  seq: number
  right: boolean
  reason: string
  by: string
  head: ReturnType<typeof childHead>
}

function count(
  unit: Unit,
  { log, programs, shadow_trials, judgements }: FeedbackParts,
  { reflex_id, version, log_seq }: Extract<Outcome, { by: 'reflex' }>,
  { event_id, right, reason, by, head, ...of }: Said,
): boolean {
  const found = programs.find({ id: reflex_id, version })
  const fired = log.entry(log_seq)
  if (!found || fired?.kind !== 'reflex-fired') return false
  const said = { judged_by: 'feedback', by } as const
  const text = reason === '' ? `${by} judged its decision wrong` : reason
  // Another version that acts now did not decide this.
  const acts = programs.links.find(({ acting }) => acting?.id === reflex_id)?.acting?.version === version
  if (
    !right &&
    acts &&
    shadow_trials.overruled(unit, reflex_id, { turn_id: null, reason: text, ...said }, (_, of_event) => of_event === event_id)
  )
    return true
  return judgements.said(unit, found, { ...of, ...said, own: fired.action, log_seq, head, agreed: right, ...(reason !== '' && { reason }) })
}
