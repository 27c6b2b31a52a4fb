import type { EventRecord, Outcome, EventOutcome, Waiting } from '../../contract/event-record.ts'
import { byteLength } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import type { LogEntry, EntryOf } from '../../contract/log-entry.ts'
import type { EventsAsked, Page } from '../../contract/scope-api.ts'
import type { Database } from '../../kernel/unit.ts'
import type { InboxView, OpenEvent } from './view.ts'
import type { Log } from '../log/log.ts'
import { iso } from '../../base/time.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Budget, ModelOutage } from '../turns/model-access.ts'
import { UNTIL_SETTLED } from './inbox.ts'
import type { Turns } from '../turns/turn-lane.ts'

/** Length of errors and reasons once the answer is full. */
const SHORT = 500
/** Maximum number of events that a page reads, however few match: its cursor continues there. */
const MOST_LOOKED_AT = 20_000

type EventOutcomesParts = SituationParts & { database: Database; log: Log; view: InboxView }
type OutcomeRow = OpenEvent & Pick<EventOutcome, 'id' | 'trace_id' | 'status'> & { outcome: string | null; ended_at: number | null }
type Placed = { seq: number; id: string }
type EntryAt = (seq: number) => LogEntry | null

/** Joins ended events with the decisions in the log, which are not stored with each event. */
export class EventOutcomes {
  readonly #parts: EventOutcomesParts

  constructor(parts: EventOutcomesParts) {
    this.#parts = parts
  }

  /** Without redacted values. */
  record(id: string, entryAt: EntryAt = (seq) => this.#parts.log.entry(seq)): EventRecord | null {
    const { view, log } = this.#parts
    const row = view.record(id)
    if (!row) return null
    const { open, ...record } = row
    const outcome = withDecision(record.outcome, entryAt)
    const event = log.clean(record.event) as EventRecord['event']
    return { ...record, event, outcome, waiting: open && waitingOf(open, situationOf(this.#parts)) }
  }

  /** Newest first, without redacted values. A page is also limited in bytes. */
  page(asked: EventsAsked): Page<EventRecord> {
    const entryAt = this.#remembering()
    const { found, next } = this.#found(asked)
    const items: EventRecord[] = []
    let bytes = 0
    for (const [index, { id, seq }] of found.entries()) {
      const record = this.record(id, entryAt)
      if (record) items.push(record)
      bytes += byteLength(JSON.stringify(record))
      if (bytes >= limits.page_bytes && index < found.length - 1) return { items, next_cursor: String(seq) }
    }
    return { items, next_cursor: next === null ? null : String(next) }
  }

  /** `next`: the place of the last event that was looked at, unless there are no more. */
  #found({ limit, before = Number.MAX_SAFE_INTEGER, status, type, partial }: EventsAsked): { found: Placed[]; next: number | null } {
    const rows = this.#parts.database.each<Placed & { fits: number }>(
      `SELECT seq, id, (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR type = ?3) AND (?5 IS NULL OR coalesce(outcome->>'partial', 0) = ?5) AS fits
        FROM events WHERE seq < ?1 ORDER BY seq DESC LIMIT ?4`,
      before,
      status ?? null,
      type ?? null,
      MOST_LOOKED_AT,
      partial === undefined ? null : Number(partial),
    )
    const found: Placed[] = []
    let looked = 0
    let next = before
    for (const { fits, ...place } of rows) {
      if (found.length === limit) return { found, next }
      ;[looked, next] = [looked + 1, place.seq]
      if (fits) found.push(place)
    }
    return { found, next: looked === MOST_LOOKED_AT ? next : null }
  }

  /** Returns the known events of `ids`. Past the page's byte limit, outcomes are shortened. */
  of(ids: readonly string[]): EventOutcome[] {
    const entryAt = this.#remembering()
    const situation = situationOf(this.#parts)
    let left: number = limits.page_bytes
    const found = new Map<string, EventOutcome>()
    for (const row of this.#rows(ids)) {
      const { id, trace_id, status, attempts, error } = row
      const waiting = row.ended_at === null ? waitingOf(row, situation) : null
      const outcome = row.outcome === null ? null : (JSON.parse(row.outcome) as Outcome)
      const record = { id, trace_id, status, attempts, error, outcome, waiting }
      const whole = left > 0 ? { ...record, outcome: withDecision(record.outcome, entryAt) } : record
      const bytes = byteLength(JSON.stringify(whole))
      found.set(row.id, bytes <= left ? whole : inShort(record))
      left -= bytes
    }
    return ids.flatMap((id) => found.get(id) ?? [])
  }

  /** Joins stored outcomes, as JSON, with their decisions. */
  joined(outcomes: readonly (string | null)[]): (Outcome | null)[] {
    const entryAt = this.#remembering()
    return outcomes.map((outcome) => (outcome === null ? null : withDecision(JSON.parse(outcome) as Outcome, entryAt)))
  }

  #rows(ids: readonly string[]): Iterable<OutcomeRow> {
    return this.#parts.database.each<OutcomeRow>(
      `SELECT id, trace_id, status, attempts, error, outcome, ended_at, coalesce(ack_token, '') AS token, due_at, lease_until,
          parked, parked_at, accepted_at FROM events
        WHERE id IN (SELECT value FROM json_each(?)) ORDER BY seq`,
      JSON.stringify(ids),
    )
  }

  /** Caches the last entry read, since one turn decides on many events. */
  #remembering(): EntryAt {
    let known: { seq: number; entry: LogEntry | null } | undefined
    return (seq) => (known = known?.seq === seq ? known : { seq, entry: this.#parts.log.entry(seq) }).entry
  }
}

function withDecision(outcome: Outcome | null, entryAt: EntryAt): Outcome | null {
  const entry = outcome && 'log_seq' in outcome && outcome.log_seq !== undefined ? entryAt(outcome.log_seq) : null
  if (outcome?.by === 'turn') return { ...outcome, ...(entry?.kind === 'turn-ended' ? decisionOf(entry) : { result: null }) }
  if (outcome?.by === 'decision') return { ...outcome, ...(entry?.kind === 'decision-made' && answerOf(entry)) }
  if (outcome?.by === 'reflex') return { ...outcome, ...(entry?.kind === 'reflex-fired' && { action: entry.action }) }
  if (outcome?.by !== 'failure' || !entry || !('stack' in entry) || typeof entry.stack !== 'string') return outcome
  return { ...outcome, stack: entry.stack }
}

const answerOf = ({ model, answered_by, answers, middle, usage: { input_tokens, output_tokens } }: EntryOf<'decision-made'>) => ({
  model: answered_by ?? model,
  ...(answers && { answers }),
  ...(middle?.action && { action: middle.action }),
  usage: { input_tokens, output_tokens },
})

const decisionOf = ({ result, failed_calls, failed_runs }: EntryOf<'turn-ended'>) => ({
  result,
  ...(failed_calls && { failed_calls }),
  ...(failed_runs && { failed_runs }),
})

function inShort({ error, outcome, waiting, ...record }: EventOutcome): EventOutcome {
  const cut = <Text extends string | null>(text: Text) => (text === null ? text : text.slice(0, SHORT))
  const reason = outcome && 'reason' in outcome ? { reason: cut(outcome.reason) } : {}
  const waits = waiting && { ...waiting, detail: cut(waiting.detail) }
  return { ...record, error: cut(error), outcome: outcome && { ...outcome, ...reason }, waiting: waits, shortened: true }
}

/** The scope's activity; times in ms. */
type OutcomeSituation = {
  now: number
  pulled: boolean
  paused: boolean
  turn_since: number | null
  /** Earliest start of a debounced turn. */
  debounced_until: number | null
  max_attempts: number
  /** Details of an outage and of a spent budget, or null. */
  outage: string | null
  budget: { until: number | null; detail: string } | null
  /** The reason of the last turn that a budget refused. */
  refused: string | null
}

type SituationParts = { turns: Turns; budget: Budget; outage: ModelOutage; settings: () => Settings; now: () => number }

function situationOf({ turns, budget, outage, settings, now }: SituationParts): OutcomeSituation {
  const { consumer, retry, paused = false } = settings()
  const allowance = budget.allow()
  const at = now()
  return {
    now: at,
    pulled: consumer === 'pull',
    paused,
    turn_since: turns.current?.since ?? null,
    debounced_until: turns.debouncedUntil(at),
    max_attempts: retry.max_attempts,
    outage: outage.told,
    budget: allowance.ok ? null : allowance,
    refused: budget.told,
  }
}

/** Explains why an event has no outcome yet. */
function waitingOf(event: OpenEvent, situation: OutcomeSituation): Waiting {
  return event.status === 'processing' ? inHand(event, situation) : (delayed(event, situation) ?? queued(situation))
}

function inHand({ token, lease_until, accepted_at }: OpenEvent, { turn_since }: OutcomeSituation): Waiting {
  if (token.startsWith('turn:')) return told('turn', { since: turn_since }, 'a turn considers the event')
  if (token.startsWith('reflex:'))
    return told('reflex', { since: accepted_at }, 'an action of a reflex about the event, or a call of the decision model, has not ended')
  const until = lease_until === UNTIL_SETTLED ? null : lease_until
  return told('pull', { until }, 'a consumer has claimed the event, and has not acknowledged it')
}

/** The event is due at a later time. */
function delayed({ due_at, parked, parked_at, attempts, error }: OpenEvent, situation: OutcomeSituation): Waiting | null {
  if (due_at <= situation.now) return null
  const { outage, budget, max_attempts } = situation
  if (parked === 'model') return told('model', { since: parked_at, until: due_at }, outage ?? 'the model is not available')
  if (parked === 'budget') {
    return told(
      'budget',
      { since: parked_at, until: budget ? budget.until : due_at },
      budget?.detail ?? situation.refused ?? 'a budget is spent',
    )
  }
  if (attempts === 0 || error === null) {
    return told('retry', { until: due_at }, 'the server died or lost a connection while a turn considered the event')
  }
  return told('retry', { until: due_at }, `attempt ${attempts} of ${max_attempts} failed: ${error}`)
}

function queued({ paused, pulled, turn_since, debounced_until, now }: OutcomeSituation): Waiting {
  if (paused) return told('pause', {}, 'the scope is paused: its setting paused is true')
  if (pulled) return told('pull', {}, 'the setting consumer is pull: the event waits for a consumer to claim it')
  if (turn_since !== null) return told('turn', { since: turn_since }, 'a turn is in flight; the next one considers the event')
  if (debounced_until !== null && debounced_until > now) {
    return told('debounce', { until: debounced_until }, 'the overlap policy is debounce: the turn starts after a quiet time')
  }
  return told('start', {}, 'a turn is about to start')
}

function told(reason: Waiting['reason'], times: { since?: number | null; until?: number | null }, detail: string): Waiting {
  return { reason, since: isoOrNull(times.since), until: isoOrNull(times.until), detail }
}

const isoOrNull = (ms: number | null | undefined): string | null => (ms === null || ms === undefined ? null : iso(ms))
