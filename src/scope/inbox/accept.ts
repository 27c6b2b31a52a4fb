import type { Event } from '../../core/event.ts'
import type { NewEntry, Via } from '../../contract/log-entry.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import type { Settings } from '../../contract/settings.ts'
import type { Judged, Stored } from './event-row.ts'
import { CALLER, together, type Guard } from '../guard.ts'
import type { Inbox } from './inbox.ts'
import type { Log } from '../log.ts'
import { stays, type Perception, type Verdict } from '../context/perception.ts'
import { headOf } from '../spans.ts'
import type { Left } from '../reflexes/fire.ts'
import type { ReflexOutcome } from '../reflexes/reflex-outcome.ts'
import type { Settlement } from './settlement.ts'
import type { Turns } from '../turns/turn-lane.ts'
import type { Unit, UnitOfWork } from '../unit.ts'

type Parts = {
  scope: string
  guard: Guard
  inbox: Inbox
  log: Log
  perception: Perception
  settlement: Settlement
  reflexes: ReflexOutcome
  /** Reflexes' actions wait for the effect lane. */
  act: () => void
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
  /** Events are being perceived one by one. */
  #careful = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get busy(): boolean {
    return this.#careful
  }

  /** Whether not a single event more is taken from outside. */
  get full(): boolean {
    const { inbox, settings } = this.#parts
    return inbox.open >= settings().inbox_limit
  }

  /** All of them, or none: a full inbox refuses; an empty one takes any batch, or one larger than the limit could never come in. Ticks of timers that get here are taken: no sender could send them again. */
  accept(events: readonly Event[], via: Via): Accepted {
    const { inbox, settings, unit, turns, act } = this.#parts
    const limit = settings().inbox_limit
    const full = inbox.open > 0 && inbox.open + events.length > limit
    if (full && via !== 'timer' && inbox.open + inbox.fresh(events).length > limit)
      return { ok: false, reason: 'inbox_full', depth: inbox.open, limit }
    // What the scope's own turns and reflexes publish is theirs.
    const { fresh, waiting } = unit((unit) => this.#store(unit, events, via), via === 'agent' || via === 'reflex' ? undefined : CALLER)
    act()
    if (waiting > 0) turns.arrived()
    // A duplicate is answered with the trace of the first, which is the one that the log has.
    const first = fresh.size < events.length ? inbox.tracesOf(events.map(({ id }) => id)) : null
    return {
      ok: true,
      receipts: events.map(({ id, scope, meta: { trace_id } }) => ({
        id,
        scope,
        trace_id: first?.get(id) ?? trace_id,
        status: fresh.delete(id) ? 'accepted' : 'duplicate',
      })),
    }
  }

  /** What waited for a filter: after a failure of one, or a change of the settings. */
  perceiveWaiting(): void {
    const { guard, inbox, perception, unit, turns, now, settings, act } = this.#parts
    if (settings().consumer === 'pull' || this.#careful) return
    if (guard.careful('event')) return void this.#perceiveOneByOne()
    let waiting = 0
    for (;;) {
      const stored = inbox.unperceived(now(), PERCEIVE_BATCH)
      if (stored.length > 0) waiting += unit((unit) => perception.perceive(unit, stored), together('event'))
      if (stored.length < PERCEIVE_BATCH) break
    }
    act()
    if (waiting > 0) turns.arrived()
  }

  /** After a death while events were perceived: the one that causes it ends as a dead letter, the others go on. */
  async #perceiveOneByOne(): Promise<void> {
    const { guard, inbox, perception, settlement, unit, turns, now, act } = this.#parts
    this.#careful = true
    try {
      for (let [one] = inbox.unperceived(now(), 1); one; [one] = inbox.unperceived(now(), 1)) {
        const stored = one
        const work = { kind: 'event' as const, id: String(stored.seq) }
        if (await guard.begin(work)) {
          const waiting = unit((unit) => perception.perceive(unit, [stored]), work)
          guard.done(work)
          act()
          if (waiting > 0) turns.arrived()
        } else {
          const reason = `this event took its scope down ${guard.deaths(work)} times when it was perceived: ${guard.reason(work)}`
          unit((unit) => {
            settlement.end(unit, [stored.seq], { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
            guard.park(unit, work, reason)
          }, work)
        }
      }
      guard.done(together('event'))
    } catch {
      // The unit has told of it, and the object starts anew.
    } finally {
      this.#careful = false
    }
  }

  #store(unit: Unit, events: readonly Event[], via: Via): { fresh: Set<string>; waiting: number } {
    const { inbox, log, perception, reflexes } = this.#parts
    const stored = inbox.fresh(events)
    const verdicts = perception.judge(unit, stored)
    const entries = stored.map((one) => acceptedEntry(one, via))
    const places: number[] = []
    const judged = stored.map((one, index) => {
      const verdict = verdicts[index]
      const decided = verdict?.joined ? verdict.decided : null
      const place = log.last + 1 + entries.length
      places.push(place)
      if (decided) entries.push(...decided.entries)
      return { ...judgedBy(one, verdict, reflexes.leaves(decided, place)), chain_seq: decided && decided.entries.length > 0 ? place : null }
    })
    inbox.insert(unit, judged)
    const ended = judged.filter(({ outcome }) => outcome !== null)
    unit.log(...entries, ...ended.flatMap(endedEntry))
    unit.count({ accepted: stored.length, duplicates: events.length - stored.length })
    for (const { status } of ended) if (status !== 'pending' && status !== 'processing') unit.count({ [status]: 1 })
    perception.retryFailed(unit, stored, verdicts)
    for (const [index, one] of stored.entries()) {
      const verdict = verdicts[index]
      if (verdict?.joined && verdict.decided) {
        reflexes.begin(unit, one, verdict.decided, { first: places[index] ?? 0, waits: judged[index]?.status === 'pending' })
      }
    }
    if (ended.length > 0) perception.trim(unit)
    return {
      fresh: new Set(stored.map(({ event }) => event.id)),
      waiting: judged.filter(({ status, in_context }) => in_context && status === 'pending').length,
    }
  }
}

/** A reflex that fired goes before what perceiving came to. */
const judgedBy = (stored: Stored, verdict: Verdict | undefined, left: Left | null): Omit<Judged, 'chain_seq'> => ({
  stored,
  status: left?.status ?? verdict?.end?.status ?? 'pending',
  in_context: stays(verdict),
  outcome: left ? left.outcome : (verdict?.end?.outcome ?? null),
})

function endedEntry({ stored: { event }, status, outcome }: Judged): NewEntry[] {
  if (status === 'pending' || status === 'processing' || outcome === null) return []
  return [{ ...headOf(event), kind: 'event-ended', status, attempts: 0, outcome, error: null }]
}

const acceptedEntry = ({ event }: Stored, via: Via): NewEntry => ({
  ...headOf(event),
  kind: 'event-accepted',
  event_type: event.type,
  source: event.source,
  via,
})
