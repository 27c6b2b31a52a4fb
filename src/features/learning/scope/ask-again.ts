import { v7 as uuidv7 } from 'uuid'
import { type AskedAgain, MOST_ASKED } from '../../../contract/feedback.ts'
import type { DryView } from '../../../contract/dry-turn.ts'
import type { Outcome } from '../../../contract/event-record.ts'
import type { EntryHead, LogEntry } from '../../../contract/log-entry.ts'
import type { Past } from '../../../engine/log/past.ts'
import { childHead } from '../../../traces/ids.ts'
import type { DryParts } from '../../../engine/turns/dry/deps.ts'
import { type DryTurns, isDecided } from '../../../engine/turns/dry/dry-turn.ts'

type AskAgainParts = Pick<DryParts, 'database' | 'unit' | 'now'> & { history: Past; dry_turns: DryTurns }
type Refused = Extract<AskedAgain, { ok: false }>
type AskAgainAnswer = Pick<Refused, 'reason' | 'detail'> | Omit<Extract<AskedAgain, { ok: true }>, 'event_id'>

/** A call ends after this time; what is left is answered as `later`. */
const MOST_MS = 60_000

/**
 * Asks the slow path again about events that turns decided on, each turn once. Writes only what was
 * asked: the caller repeats a call that a crash ends.
 */
export async function askAgain(parts: AskAgainParts, event_ids: readonly string[]): Promise<AskedAgain[]> {
  const until = parts.now() + MOST_MS
  const answers: AskedAgain[] = []
  const of_turns = new Map<string, AskAgainAnswer>()
  for (const [index, event_id] of event_ids.entries()) {
    const outcome = outcomeOf(parts, event_id)
    if (outcome === null) answers.push(refused(event_id, 'unknown', 'the scope does not have the event, or no longer'))
    else if (outcome?.by !== 'turn') answers.push(refused(event_id, 'undecided', 'no turn decided about the event'))
    else {
      const is_late = index >= MOST_ASKED || parts.now() > until
      const asked = of_turns.get(outcome.turn_id) ?? (is_late ? LATER : await askOnce(parts, outcome))
      of_turns.set(outcome.turn_id, asked)
      answers.push({ event_id, ...('ok' in asked ? asked : { ok: false, ...asked }) })
    }
  }
  return answers
}

const LATER = { reason: 'later', detail: `a call takes at most ${MOST_ASKED} events and a minute` } as const
const refused = (event_id: string, reason: Refused['reason'], detail: string): Refused => ({ event_id, ok: false, reason, detail })

/** Null if the event is unknown, undefined while it has no outcome. */
function outcomeOf({ database }: AskAgainParts, id: string): Outcome | null | undefined {
  const row = database.first<{ outcome: string | null }>('SELECT outcome FROM events WHERE id = ?', id)
  if (!row) return null
  return row.outcome === null ? undefined : (JSON.parse(row.outcome) as Outcome)
}

async function askOnce(parts: AskAgainParts, { turn_id: decided_by, log_seq }: Extract<Outcome, { by: 'turn' }>): Promise<AskAgainAnswer> {
  const ended = await entryAt(parts, log_seq)
  const started = ended?.kind === 'turn-ended' ? await entryAt(parts, ended.started_seq) : null
  if (started?.kind !== 'turn-started') return { reason: 'gone', detail: 'the entries of its turn are no longer kept' }
  const { seqs, scratch, created_at, last_action_at = null } = started.saw
  const at = started.since ?? Date.parse(started.at)
  const saw = { seqs, scratch, created_at: created_at ?? at, last_action_at }
  const view: DryView = { considered: started.considered, saw, decided_at: at }
  const asked = { turn_id: uuidv7(), head: childHead(headIn(started)), view, answers_of: [decided_by] }
  const answer = await parts.dry_turns.ask(asked)
  const log_seq_of = parts.unit((unit) => parts.dry_turns.log(unit, asked, answer, 'asked-again'))
  const { status, error, usage } = answer
  if (isDecided(answer)) {
    // The caller learns from them: without redacted values, as from the acts of turns.
    const logged = await entryAt(parts, log_seq_of)
    if (logged?.kind !== 'dry-turn-ended') return { reason: 'gone', detail: 'the entry of its answer is no longer kept' }
    return { ok: true, event_ids: started.event_ids, acts: logged.acts, did: logged.did, usage, log_seq: log_seq_of }
  }
  const detail = error ?? status
  if (status === 'gone') return { reason: 'gone', detail }
  return { reason: status === 'waiting' || status === 'refused' ? 'later' : 'failed', detail }
}

const headIn = ({ trace_id, span_id, parent_id, event_ids, event_count }: LogEntry): EntryHead => ({
  trace_id,
  span_id,
  parent_id,
  event_ids,
  ...(event_count !== undefined && { event_count }),
  duration_ms: null,
})

async function entryAt({ history }: AskAgainParts, seq: number): Promise<LogEntry | null> {
  const { entries } = await history.log(seq - 1, 1, seq + 1)
  const [text] = entries
  return text === undefined ? null : (JSON.parse(text) as LogEntry)
}
