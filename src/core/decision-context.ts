import type { Event } from './event.ts'

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
