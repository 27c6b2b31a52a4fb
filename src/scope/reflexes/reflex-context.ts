import { createHash } from 'node:crypto'
import type { Agent } from '../../agent/define-agent.ts'
import type { Event } from '../../core/event.ts'
import { ContextJson } from '../../reflexes/context-json.ts'
import { RECENT_EVENTS, type ReflexContext, type RecentAction, WINDOW_MS, type WindowCounts } from '../../reflexes/reflex-context.ts'
import { sandboxLimits } from '../../reflexes/sandbox.ts'
import type { Budget } from '../turns/budget.ts'
import type { Stored } from '../inbox/event-row.ts'
import type { DecisionContext } from '../../core/decision-context.ts'
import type { Shown } from '../../reflexes/decide.ts'
import type { OwnedReflexes } from './versions.ts'
import type { Database } from '../storage/database.ts'

type Parts = {
  windows: Windows
  budget: Budget
  agent: () => Agent
  owned: Pick<OwnedReflexes, 'ids'>
  turns: { readonly current: { since: number } | null }
}
/** Builds the context of reflexes: a copy of the scope's state, small enough for the sandbox. */
export class ReflexContexts {
  readonly #parts: Parts
  /** JSON of the latest events. */
  #recent: ReadonlyMap<Event, string> = new Map()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Builds an event's context, then each reflex's own variant. */
  of(stored: Stored, context: DecisionContext, now: number): (recent_actions: RecentAction[]) => Shown {
    const { windows, budget, agent, owned, turns } = this.#parts
    const event = stored.event as Event & Record<string, unknown>
    const turn = turns.current
    windows.add(event, now, stored.seq)
    const base: ReflexContext = {
      agent_id: agent().name,
      tick: stored.seq,
      balance: 0,
      llm_tokens_remaining: budget.remaining(),
      recent_events: recentOf(context.events, event),
      pending_purchases: [],
      pending_contracts: [],
      owned_artifacts: owned.ids,
      event,
      window: windows.counts(now, event),
      recent_actions: [],
      scratch: context.scratch,
      thinking: turn && { since: new Date(turn.since).toISOString() },
    }
    const recent_events = this.#texts(base.recent_events, stored)
    const json = ContextJson.of(base, { event: stored.text, recent_events: arrayOf(recent_events) }, recent_events)
    const seen = (recent_actions: RecentAction[]): Shown => {
      const texts = recent_actions.map((action) => JSON.stringify(action))
      return fitted({ ...base, recent_actions }, json.with('recent_actions', arrayOf(texts), texts), recent_events)
    }
    // Share one context among reflexes without recent actions.
    let plain: Shown | undefined
    return (recent_actions) => (recent_actions.length === 0 ? (plain ??= seen([])) : seen(recent_actions))
  }

  /** Serializes each event once. */
  #texts(events: readonly Event[], { event: own, text }: Stored): string[] {
    const texts = new Map(events.map((event) => [event, event === own ? text : (this.#recent.get(event) ?? JSON.stringify(event))]))
    this.#recent = texts
    return Array.from(texts.values())
  }
}

function recentOf(events: readonly Event[], event: Event): ReflexContext['recent_events'] {
  const last = events.slice(-RECENT_EVENTS)
  // A retried event is not the newest in the context, so move it to the end.
  return last.at(-1) === event ? last : [...last.filter((one) => one !== event).slice(1 - RECENT_EVENTS), event]
}

const arrayOf = (texts: readonly string[]): string => `[${texts.join()}]`

/** Fits a context to the sandbox's limit, which still rejects a single oversized event. */
export const shownOf = (context: ReflexContext): ReflexContext =>
  fitted(
    context,
    ContextJson.of(context),
    context.recent_events.map((event) => JSON.stringify(event)),
  ).context

/** Drops the oldest of `recent_events` until the rest fits. */
function fitted(context: ReflexContext, whole: ContextJson, recent_events: readonly string[]): Shown {
  for (let from = 0; ; from += 1) {
    const json = from === 0 ? whole : whole.with('recent_events', arrayOf(recent_events.slice(from)))
    const fits = json.fits(sandboxLimits.context_bytes)
    if (!fits && from < recent_events.length) continue
    const shown = from === 0 ? context : { ...context, recent_events: context.recent_events.slice(from) }
    return { context: shown, json, hash: createHash('sha256').update(json.text).digest('hex'), fits }
  }
}

type Seen = { seq: number; at: number; type: string; source: string }
type Span = { ms: number; from: number; by_type: Map<string, number>; by_source: Map<string, number> }

/** Maximum number of events kept for counting. */
const MOST_SEEN = 20_000
/** Maximum number of names in a table of counts, the event's own included. */
const MOST_NAMES = 50

/** Counts recent events by the scope's clock. Loads them from the inbox on first use. */
export class Windows {
  readonly #database: Database
  #seen: Seen[] | null = null
  #seqs = new Set<number>()
  #spans: Record<keyof typeof WINDOW_MS, Span> = fresh()

  constructor(database: Database) {
    this.#database = database
  }

  /** Drops the counts; the next event loads them from the inbox again. */
  forget(): void {
    this.#seen = null
  }

  /** Counts an event once, even if it is retried. `seq` is its place in the inbox. */
  add(event: { type: string; source: string }, at: number, seq: number): void {
    const seen = (this.#seen ??= this.#load(at, seq))
    if (this.#seqs.has(seq)) return
    const one = { seq, at, type: event.type, source: event.source }
    this.#seqs.add(seq)
    seen.push(one)
    for (const span of Object.values(this.#spans)) count(span, one, 1)
    if (seen.length > MOST_SEEN * 2) this.#compact(seen)
  }

  counts(now: number, own: { type: string; source: string }): Record<keyof typeof WINDOW_MS, WindowCounts> {
    const seen = this.#seen ?? []
    const of = (name: keyof typeof WINDOW_MS): WindowCounts => {
      const span = this.#spans[name]
      const oldest = Math.max(0, seen.length - MOST_SEEN)
      for (let first = seen[span.from]; first && (first.at < now - span.ms || span.from < oldest); first = seen[(span.from += 1)])
        count(span, first, -1)
      return {
        total: seen.length - span.from,
        by_type: table(span.by_type, own.type),
        by_source: table(span.by_source, own.source),
      }
    }
    return { '10s': of('10s'), '1m': of('1m'), '10m': of('10m') }
  }

  #load(now: number, own: number): Seen[] {
    const rows = this.#database.all<Seen>(
      `SELECT seq, at, type, source FROM (SELECT seq, accepted_at AS at, type, source, status FROM events WHERE seq <> ? ORDER BY seq DESC LIMIT ${MOST_SEEN})
        WHERE at >= ? AND status <> 'ignored' ORDER BY seq`,
      own,
      now - WINDOW_MS['10m'],
    )
    this.#spans = fresh()
    this.#seqs = new Set(rows.map(({ seq }) => seq))
    for (const row of rows) for (const span of Object.values(this.#spans)) count(span, row, 1)
    return rows
  }

  #compact(seen: Seen[]): void {
    const spans = Object.values(this.#spans)
    const gone = seen.length - MOST_SEEN
    for (const span of spans) {
      for (; span.from < gone; span.from += 1) {
        const one = seen[span.from]
        if (one) count(span, one, -1)
      }
      span.from -= gone
    }
    for (const { seq } of seen.splice(0, gone)) this.#seqs.delete(seq)
  }
}

function fresh(): Record<keyof typeof WINDOW_MS, Span> {
  const span = (ms: number): Span => ({ ms, from: 0, by_type: new Map(), by_source: new Map() })
  return { '10s': span(WINDOW_MS['10s']), '1m': span(WINDOW_MS['1m']), '10m': span(WINDOW_MS['10m']) }
}

function count({ by_type, by_source }: Span, { type, source }: Seen, change: 1 | -1): void {
  for (const [names, name] of [
    [by_type, type],
    [by_source, source],
  ] as const) {
    const sum = (names.get(name) ?? 0) + change
    if (sum === 0) names.delete(name)
    else names.set(name, sum)
  }
}

function table(names: ReadonlyMap<string, number>, own: string): Record<string, number> {
  const shown: [string, number][] = []
  const mine = names.get(own)
  if (mine !== undefined) shown.push([own, mine])
  for (const [name, sum] of names) {
    if (shown.length >= MOST_NAMES) break
    if (name !== own) shown.push([name, sum])
  }
  return Object.fromEntries(shown)
}
