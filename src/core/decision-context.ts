import type { Event } from './event.ts'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { EventStore } from './event-store.ts'

/** The values that a trigger and its tools receive. `signal` aborts when the turn must stop. */
export type ReflexDeps<E extends Event = Event, Database = unknown> = {
  context: DecisionContext<E>
  store: EventStore<E>
  fetch: typeof fetch
  db: Database
  scope: string
  model: LanguageModelV4
  signal: AbortSignal
}

export type Filter<E extends Event = Event> = (event: E, context: DecisionContext<E>) => boolean
/** Considers the context. Returns a result if it acted, or null if there was nothing to do. */
export type Trigger<E extends Event = Event, D = ReflexDeps<E>, R = unknown> = (context: DecisionContext<E>, deps: D) => Promise<R | null>

/** An event is relevant if any filter passes it, or if there are no filters. */
export const relevant = <E extends Event>(filters: readonly Filter<E>[], event: E, context: DecisionContext<E>): boolean =>
  filters.length === 0 || filters.some((filter) => filter(event, context))

/** Stops at the first rejection, so that a limit in last place counts only events that pass. */
export function all<const T extends string, E extends Event>(first: TypeFilter<T>, ...rest: Filter<E & { type: T }>[]): Filter<E>
export function all<E extends Event>(...filters: Filter<E>[]): Filter<E>
export function all(...filters: Filter[]): Filter {
  return made(filters, (event, context) => filters.every((filter) => filter(event, context)))
}
export const any = <E extends Event>(...filters: Filter<E>[]): Filter<E> =>
  made(filters, (event, context) => filters.some((filter) => filter(event, context)))
export const not = <E extends Event>(filter: Filter<E>): Filter<E> => made([filter], (event, context) => !filter(event, context))
const made = <E extends Event>(of: Filter<E>[], filter: Filter<E>) =>
  Object.assign(filter, { types: of.flatMap(namedTypes), stateful: of.some((one) => 'stateful' in one && one.stateful) })
const stateful = (filter: Filter): Filter => Object.assign(filter, { stateful: true })
type TypeFilter<Type extends string> = Filter & { types: readonly Type[] }
export const typeFilter = <const Type extends string>(...types: Type[]): TypeFilter<Type> =>
  Object.assign(({ type }: Event) => types.some((one) => one === type), { types })
/** The types that a filter names, so that a misspelt type is found before any event arrives. */
export const namedTypes = (filter: object): readonly string[] => ('types' in filter ? (filter.types as string[]) : [])

/** Matches the whole source, where `*` is any text, or a part of it with a RegExp. */
export function sourceFilter(pattern: string | RegExp): Filter {
  const literal = String(pattern).replaceAll(/[$()+.?[\\\]^{|}]/g, String.raw`\$&`)
  const expression = typeof pattern === 'string' ? new RegExp(`^${literal.replaceAll(/\*+/g, '.*')}$`, 's') : pattern
  // Unlike `test`, `search` keeps no position between calls in a global RegExp.
  return (event) => event.source.search(expression) >= 0
}

/** Matches keywords anywhere in the event's JSON, except in its sender. Case-insensitive. */
export function keywordFilter(keywords: readonly string[]): Filter {
  const escaped = keywords.map((keyword) => JSON.stringify(keyword).slice(1, -1).toLowerCase())
  return (event) => {
    const text = JSON.stringify({ ...event, meta: { ...event.meta, sender: undefined } }).toLowerCase()
    return escaped.some((keyword) => text.includes(keyword))
  }
}

type Limit = { window_s: number; limit: number; key?: (event: Event) => string }
/** Passes `limit` events of a key within `window_s`, by their timestamps; a retry passes again. */
export function rateLimitFilter({ limit, window_s, key = ({ scope }) => scope }: Limit): Filter {
  const [window_ms, passed] = [window_s * 1000, new Map<string, { id: string; at: number }[]>()]
  return stateful((event) => {
    const [at, name] = [Date.parse(event.timestamp), key(event)]
    const earlier = passed.get(name) ?? []
    if (earlier.some(({ id }) => id === event.id)) return true
    // Within the window on either side: a future timestamp must not block current events.
    if (earlier.filter((other) => Math.abs(at - other.at) < window_ms).length >= limit) return false
    passed.delete(name)
    passed.set(name, [...earlier, { id: event.id, at }].slice(-limit))
    // An event adds at most one key and drops up to two idle ones: bounded, without a sweep.
    const [first, second] = passed
    for (const rested of [first, second]) if (rested?.[1].every((other) => other.at <= at - window_ms)) passed.delete(rested[0])
    return true
  })
}

/** Passes the first event of each key within `window_s`. */
export const dedupeFilter = (per: { window_s: number; key: (event: Event) => string }): Filter => rateLimitFilter({ ...per, limit: 1 })

type Memory = 'events' | 'scratch' | 'created_at' | 'last_action_at'
type ContextOptions<E extends Event> = Partial<Pick<DecisionContext<E>, Memory>> & { scope: string; now?: () => number }

/** A scope's working memory: the events since the last action, and `scratch`. Times in ms. */
export class DecisionContext<E extends Event = Event> {
  readonly scope: string
  events: E[]
  scratch: Record<string, unknown>
  created_at: number
  last_action_at: number | null
  readonly #now: () => number

  constructor({ scope, events = [], scratch = {}, now = Date.now, created_at = now(), last_action_at = null }: ContextOptions<E>) {
    this.scope = scope
    this.events = events
    this.scratch = scratch
    this.created_at = created_at
    this.last_action_at = last_action_at
    this.#now = now
  }

  add(event: E): void {
    this.events.push(event)
  }

  /** The events of the last `seconds`, by their own timestamps. */
  window(seconds: number): E[] {
    const from = this.#now() - seconds * 1000
    return this.events.filter((event) => Date.parse(event.timestamp) >= from)
  }

  ofType<const Type extends E['type']>(...types: Type[]): (E & { type: Type })[] {
    return this.events.filter((event): event is E & { type: Type } => types.some((type) => type === event.type))
  }

  countByType(): Record<string, number> {
    const byType = Map.groupBy(this.events, (event) => event.type)
    return Object.fromEntries(Array.from(byType, ([type, events]) => [type, events.length]))
  }

  sinceLastAction(): number | null {
    return this.last_action_at === null ? null : this.#now() - this.last_action_at
  }

  /** For a prompt: counts, span and the latest events as JSON lines, in at most `max_chars`. */
  summarize({ max_events = 10, max_chars = 4000 } = {}): string {
    const all = this.events.length
    const times = this.events.map((event) => event.timestamp).sort()
    const counts = Object.entries(this.countByType()).map(([type, count]) => `${count} ${type}`)
    const head = [`${all} events in scope ${this.scope}`, ...counts, ...(all > 0 ? [`${times[0]} to ${times.at(-1)}`] : [])].join(', ')
    const lines = this.events.slice(Math.max(0, all - max_events)).map(({ meta: _meta, scope: _scope, ...own }) => JSON.stringify(own))
    const text = () => [head, ...(all > 0 ? [`The latest ${lines.length} of ${all}, oldest first:`] : []), ...lines].join('\n')
    while (lines.length > 1 && text().length > max_chars) lines.shift()
    return cut(text(), max_chars)
  }

  /** Called after an action: the memory starts empty. */
  clear(): void {
    this.events = []
    this.scratch = {}
    this.last_action_at = this.#now()
  }
}

function cut(text: string, length: number): string {
  const mark = `… (cut from ${text.length} characters)`
  return text.length <= length ? text : (text.slice(0, Math.max(0, length - mark.length)) + mark).slice(0, Math.max(0, length))
}
