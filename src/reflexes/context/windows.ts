import { WINDOW_MS, type ReflexContext, type WindowCounts } from '../reflex-context.ts'

export type Counted = { seq: number; at: number; type: string; source: string }
type Span = { ms: number; from: number; by_type: Map<string, number>; by_source: Map<string, number> }

/** Maximum number of events kept for counting. */
export const MOST_COUNTED = 20_000
/** Maximum number of names in a table of counts, the event's own included. */
const MOST_NAMES = 50

/** Counts the events of the latest windows, for contexts of reflexes. Times must not fall. */
export class WindowCounter {
  readonly #seen: Counted[] = []
  readonly #seqs = new Set<number>()
  readonly #spans: Record<keyof typeof WINDOW_MS, Span> = { '10s': span('10s'), '1m': span('1m'), '10m': span('10m') }

  constructor(seen: readonly Counted[] = []) {
    for (const one of seen) this.add(one)
  }

  /** Counts an event once, even if it is retried. */
  add(one: Counted): void {
    if (this.#seqs.has(one.seq)) return
    this.#seqs.add(one.seq)
    this.#seen.push(one)
    for (const span of Object.values(this.#spans)) count(span, one, 1)
    if (this.#seen.length > MOST_COUNTED * 2) this.#compact()
  }

  counts(now: number, own: { type: string; source: string }): ReflexContext['window'] {
    const seen = this.#seen
    const of = (name: keyof typeof WINDOW_MS): WindowCounts => {
      const span = this.#spans[name]
      const oldest = Math.max(0, seen.length - MOST_COUNTED)
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

  #compact(): void {
    const spans = Object.values(this.#spans)
    const gone = this.#seen.length - MOST_COUNTED
    for (const span of spans) {
      for (; span.from < gone; span.from += 1) {
        const one = this.#seen[span.from]
        if (one) count(span, one, -1)
      }
      span.from -= gone
    }
    for (const { seq } of this.#seen.splice(0, gone)) this.#seqs.delete(seq)
  }
}

function span(name: keyof typeof WINDOW_MS): Span {
  return { ms: WINDOW_MS[name], from: 0, by_type: new Map(), by_source: new Map() }
}

function count({ by_type, by_source }: Span, { type, source }: Counted, change: 1 | -1): void {
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
