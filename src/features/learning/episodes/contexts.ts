import { iso } from '../../../base/time.ts'
import { DECISION_ASKED } from '../../../contract/decision-asked.ts'
import { MODEL_ASKED } from '../../../contract/model-asked.ts'
import type { LogEntry, EntryOf } from '../../../contract/log-entry.ts'
import type { Event } from '../../../core/event.ts'
import { shownOf, WindowCounter } from '../../../reflexes/context/context-json.ts'
import { RECENT_EVENTS, sampleContext, WINDOW_MS, type ReflexContext } from '../../../reflexes/reflex-context.ts'
import { isWhole, nothingHeld, roll } from '../../../traces/held-context.ts'
import type { Saw } from '../episode.ts'

/**
 * An event, its place in the inbox, and the context that a reflex would get for it. `needs`: the
 * entry before it with the whole context, and its time.
 */
export type EpisodeEvent = { seq: number; event: Event; saw: Saw | null; unknown: string | null; needs?: Start }
/** The contexts of events, as a reader of entries needs them. */
export type ContextsOf = {
  /** Takes the events of a page, before its entries and after the entries of the page before. */
  receive(events: readonly { seq: number; event: Event }[]): void
  /** `claimed`: the scope's events are claimed from outside, so they join no context. */
  feed(entry: LogEntry, of: { claimed: boolean; agent: string }): void
  /** Nothing is known of what was before this entry, since the log has a gap. */
  lost(entry: LogEntry): void
  forget(ended: Iterable<string>): void
  eventOf(id: string): Event | undefined
  of(id: string): EpisodeEvent | undefined
  at(seq: number): EpisodeEvent | undefined
  readonly lead: number
}

/** The first entry that is read, and the time from which nothing is missing. */
type Start = { seq: number; at: number }

/** Types of events that join no context, and on which reflexes decide. */
const BESIDE: ReadonlySet<string> = new Set([DECISION_ASKED, MODEL_ASKED])
const MARK_MS = 1000
const MOST_MARKS = 10_000

const UNKNOWN = {
  context: 'the entries that say what the context held before it are not kept',
  windows: 'the ten minutes before it are not kept',
  event: 'an event that the context held is not kept',
} as const

/**
 * Follows the log of a scope and rebuilds the context of each event as of when it was perceived:
 * what the scope held, its notes, and its counts. A reflex that does not exist yet has no recent
 * actions.
 */
export class Contexts implements ContextsOf {
  readonly #held = nothingHeld()
  readonly #windows = new WindowCounter()
  #start: Start
  /** The events that may be needed, by their places. */
  readonly #events = new Map<number, Event>()
  readonly #places = new Map<string, number>()
  /** Events without an outcome. */
  readonly #open = new Map<string, EpisodeEvent>()
  #known: boolean
  #agent = ''
  /** The newest entry with the whole context. */
  #whole = 0
  /** Entries by the second, as far back as windows of open events reach. */
  #marks: Start[] = []

  constructor(start: Start) {
    this.#start = start
    this.#known = start.seq <= 1
  }

  receive(events: readonly { seq: number; event: Event }[]): void {
    for (const [seq, event] of this.#events) {
      if (this.#held.seqs.has(seq) || this.#open.has(event.id)) continue
      this.#events.delete(seq)
      this.#places.delete(event.id)
    }
    for (const { seq, event } of events) {
      if (this.#events.has(seq)) continue
      this.#events.set(seq, event)
      this.#places.set(event.id, seq)
    }
  }

  lost({ seq, at }: LogEntry): void {
    this.#start = { seq, at: Date.parse(at) }
    this.#known = false
  }

  feed(entry: LogEntry, { claimed, agent }: { claimed: boolean; agent: string }): void {
    this.#agent = agent
    const [id = ''] = entry.event_ids
    if (isWhole(entry)) {
      this.#known = true
      this.#whole = entry.seq
    }
    this.#mark({ seq: entry.seq, at: Date.parse(entry.at) })
    if (entry.kind === 'turn-ended' && entry.cleared > 0 && !entry.left && !this.#held.turns.has(entry.turn_id)) this.#known = false
    roll(this.#held, entry, this.#places)
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- no other entry perceives an event
    switch (entry.kind) {
      case 'event-accepted':
        if (entry.joined !== false || claimed || BESIDE.has(entry.event_type)) this.#perceive(id, Date.parse(entry.at), { claimed })
        break
      case 'event-joined':
        this.#perceive(id, Date.parse(entry.at), { claimed: false })
        break
      case 'reflex-fired':
        this.#fired(id, entry)
        break
      case 'reflex-passed':
        this.#perceive(id, Date.parse(entry.at), { claimed: false })
        break
      default:
    }
  }

  of(id: string): EpisodeEvent | undefined {
    return this.#open.get(id)
  }

  eventOf(id: string): Event | undefined {
    return this.#events.get(this.#places.get(id) ?? -1)
  }

  at(seq: number): EpisodeEvent | undefined {
    const event = this.#events.get(seq)
    return event && this.#open.get(event.id)
  }

  forget(ended: Iterable<string>): void {
    for (const id of ended) this.#open.delete(id)
  }

  /** The first entry that another process needs: for open events, or for the next one. */
  get lead(): number {
    const last = this.#marks.at(-1)
    const [oldest = { seq: this.#whole, at: last?.at ?? 0 }] = this.#needs()
    const from = this.#marks.findLast(({ at }) => at <= oldest.at - WINDOW_MS['10m']) ?? this.#marks[0]
    return Math.max(1, Math.min(oldest.seq, from?.seq ?? 1))
  }

  *#needs(): Iterable<Start> {
    for (const { needs } of this.#open.values()) if (needs) yield needs
  }

  #mark(entry: Start): void {
    const last = this.#marks.at(-1)
    if (last && entry.at < last.at + MARK_MS) return
    this.#marks.push(entry)
    if (this.#marks.length < MOST_MARKS) return
    const [oldest = { seq: 0, at: entry.at }] = this.#needs()
    const needed = this.#marks.findLastIndex(({ at }) => at <= oldest.at - WINDOW_MS['10m'])
    this.#marks = this.#marks.slice(Math.max(needed, this.#marks.length - MOST_MARKS / 2))
  }

  /** A consumed event has not joined; an action at once is seen by the next event of its batch. */
  #fired(id: string, entry: EntryOf<'reflex-fired'>): void {
    this.#perceive(id, Date.parse(entry.at), { claimed: false })
    const { action, state, reused } = entry
    if (state === 'active' && !reused && action.action_type === 'set_scratch')
      this.#held.scratch = { ...this.#held.scratch, [action.key]: action.value }
  }

  #perceive(id: string, at: number, { claimed }: { claimed: boolean }): void {
    if (this.#open.has(id)) return
    const seq = this.#places.get(id)
    const event = seq === undefined ? undefined : this.#events.get(seq)
    if (seq === undefined || !event) return
    this.#windows.add({ seq, at, type: event.type, source: event.source })
    const counts = this.#windows.counts(at, event)
    const recent = claimed ? [event] : this.#recent(seq, event)
    const unknown = this.#unknown(at, recent)
    const saw = unknown === null ? this.#shown({ seq, event, recent, window: counts }) : null
    this.#open.set(id, { seq, event, saw, unknown, needs: { seq: this.#whole, at } })
  }

  #unknown(at: number, recent: readonly (Event | undefined)[]): string | null {
    if (!this.#known) return UNKNOWN.context
    if (this.#start.seq > 1 && at - WINDOW_MS['10m'] < this.#start.at) return UNKNOWN.windows
    return recent.includes(undefined) ? UNKNOWN.event : null
  }

  #recent(seq: number, event: Event): (Event | undefined)[] {
    const others = this.#newest(RECENT_EVENTS).filter((one) => one !== seq)
    return [...others.slice(1 - RECENT_EVENTS).map((one) => this.#events.get(one)), event]
  }

  /** The newest places that the context holds, in order. */
  #newest(count: number): number[] {
    const found: number[] = []
    for (const seq of this.#held.seqs) {
      if (found.length === count && seq < (found[0] ?? 0)) continue
      const later = found.findLastIndex((one) => one < seq) + 1
      found.splice(later, 0, seq)
      if (found.length > count) found.shift()
    }
    return found
  }

  #shown(of: { seq: number; event: Event; recent: (Event | undefined)[]; window: Saw['window'] }): Saw {
    const [turn] = this.#held.turns.values()
    const recent_events = of.recent.filter((one) => one !== undefined) as ReflexContext['recent_events']
    const {
      event,
      recent_events: fitting,
      window,
      scratch,
      recent_actions,
    } = shownOf({
      ...sampleContext,
      agent_id: this.#agent,
      tick: of.seq,
      thinking: turn?.since === undefined ? null : { since: iso(turn.since) },
      event: of.event,
      recent_events,
      window: of.window,
      scratch: this.#held.scratch,
    })
    return { event, recent_events: fitting, window, scratch, recent_actions }
  }
}
