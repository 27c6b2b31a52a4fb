import type { Event } from '../core/event.ts'
import type { NewEntry, Via } from '../protocol/log-entry.ts'
import type { Accepted } from '../protocol/scope-api.ts'
import type { Settings } from '../protocol/settings.ts'
import type { Counters } from './counters.ts'
import type { Inbox, Judged, Stored } from './inbox.ts'
import type { Log } from './log.ts'
import type { Perception, Verdict } from './perception.ts'
import { eventHead } from './spans.ts'
import type { Turns } from './turns.ts'
import type { UnitOfWork } from './unit-of-work.ts'

type Parts = {
  scope: string
  inbox: Inbox
  log: Log
  counters: Counters
  perception: Perception
  turns: Turns
  settings: () => Settings
  unit: UnitOfWork
  now: () => number
}

const PERCEIVE_BATCH = 1000

/**
 * Step 1: accept. The inbox has the events, the log says so and the filters have judged them, all in one transaction; the object's output gate holds the answer
 * until that is durable. If the process dies before, nothing was answered and nothing kept; after, the events are pending or have their outcome.
 */
export class Intake {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** All of them, or none: a full inbox refuses; an empty one takes any batch, or one larger than the limit could never come in. Ticks of timers are always taken: there are few, and no sender could send them again. */
  accept(events: readonly Event[], via: Via): Accepted {
    const { inbox, settings, unit, turns } = this.#parts
    const limit = settings().inbox_limit
    const full = inbox.open > 0 && inbox.open + events.length > limit
    if (full && via !== 'timer' && inbox.open + inbox.fresh(events).length > limit)
      return { ok: false, reason: 'inbox_full', depth: inbox.open, limit }
    const { fresh, waiting } = unit(() => this.#store(events, via))
    if (waiting > 0) turns.arrived()
    return {
      ok: true,
      receipts: events.map(({ id, scope, meta: { trace_id } }) => ({
        id,
        scope,
        trace_id,
        status: fresh.delete(id) ? 'accepted' : 'duplicate',
      })),
    }
  }

  /** What waited for a filter: after a failure of one, or a change of the settings. */
  perceiveWaiting(): void {
    const { inbox, perception, unit, turns, now, settings } = this.#parts
    if (settings().consumer === 'pull') return
    let waiting = 0
    for (;;) {
      const stored = inbox.unperceived(now(), PERCEIVE_BATCH)
      if (stored.length > 0) waiting += unit(() => perception.perceive(stored))
      if (stored.length < PERCEIVE_BATCH) break
    }
    if (waiting > 0) turns.arrived()
  }

  #store(events: readonly Event[], via: Via): { fresh: Set<string>; waiting: number } {
    const { inbox, log, counters, perception, now } = this.#parts
    const stored = inbox.fresh(events)
    const verdicts = perception.judge(stored)
    const judged = stored.map((one, index) => judgedBy(one, verdicts[index]))
    inbox.insert(judged, now())
    const ended = judged.filter(({ outcome }) => outcome !== null)
    log.append([...stored.map((one) => acceptedEntry(one, via)), ...ended.flatMap(endedEntry)])
    counters.add({ accepted: stored.length, duplicates: events.length - stored.length })
    for (const { status } of ended) if (status !== 'pending') counters.add({ [status]: 1 })
    perception.retryFailed(stored, verdicts)
    if (ended.length > 0) perception.trim()
    return {
      fresh: new Set(stored.map(({ event }) => event.id)),
      waiting: judged.filter(({ status, in_context }) => in_context && status === 'pending').length,
    }
  }
}

const judgedBy = (stored: Stored, verdict: Verdict | undefined): Judged => ({
  stored,
  status: verdict?.end?.status ?? 'pending',
  in_context: verdict?.joined ?? false,
  outcome: verdict?.end?.outcome ?? null,
})

function endedEntry({ stored: { event }, status, outcome }: Judged): NewEntry[] {
  if (status === 'pending' || outcome === null) return []
  return [{ ...headOf(event), kind: 'event-ended', status, attempts: 0, outcome, error: null }]
}

const headOf = (event: Event) => eventHead({ id: event.id, trace_id: event.meta.trace_id })

const acceptedEntry = ({ event }: Stored, via: Via): NewEntry => ({
  ...headOf(event),
  kind: 'event-accepted',
  event_type: event.type,
  source: event.source,
  via,
})
