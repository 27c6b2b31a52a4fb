import { fitsBytes } from '../../base/json.ts'
import { type ReflexContext, RECENT_EVENTS, WINDOW_MS, type WindowCounts } from '../reflex-context.ts'
import { createHash } from 'node:crypto'
import type { Event } from '../../core/event.ts'
import { sandboxLimits } from '../sandbox.ts'

const LARGE = 256
/** A reference to a shorter text saves nothing. */
const SHARED = 32
const MOST_LATE = 24

/** JSON of a value, or of each item of a list. */
type KnownJson = string | readonly string[]
/** `items`: JSON of a list's items, which other contexts may repeat. */
type Field = { json: string; items: readonly string[] | null }

/** A context as JSON, field by field: written once for the sandbox, the hash and the log. */
export class ContextJson {
  readonly #fields: ReadonlyMap<string, Field>
  #text: string | null = null

  private constructor(fields: ReadonlyMap<string, Field>) {
    this.#fields = fields
  }

  get text(): string {
    return (this.#text ??= textOf(Array.from(this.#fields, ([name, { json }]) => [name, json])))
  }

  /** True if the whole context takes at most this many bytes. */
  fits(bytes: number): boolean {
    return fitsBytes(this.text, bytes)
  }

  /** `known`: fields whose JSON the caller has. A value that is not an object has no fields. */
  static of(context: unknown, known: Readonly<Record<string, KnownJson>> = {}): ContextJson {
    if (typeof context !== 'object' || context === null || Array.isArray(context)) {
      const json = new ContextJson(new Map())
      json.#text = JSON.stringify(context) ?? 'null'
      return json
    }
    const fields = new Map<string, Field>()
    for (const [name, value] of Object.entries(context)) {
      const json = Object.hasOwn(known, name) ? known[name] : JSON.stringify(value)
      if (json !== undefined) fields.set(name, fieldOf(json))
    }
    return new ContextJson(fields)
  }

  /** Replaces the value of a field. */
  with(name: string, json: KnownJson): ContextJson {
    return new ContextJson(new Map(this.#fields).set(name, fieldOf(json)))
  }

  /** The text in pieces. Other contexts may repeat each second one, which is long. */
  get pieces(): readonly string[] {
    if (this.#fields.size === 0) return [this.text]
    const pieces: string[] = []
    let before = '{'
    for (const [place, [name, { json, items }]] of [...this.#fields].entries()) {
      before += `${place > 0 ? ',' : ''}${JSON.stringify(name)}:`
      for (const [index, text] of (items ?? [json]).entries()) {
        if (items) before += index > 0 ? ',' : '['
        if (text.length < SHARED) before += text
        else {
          pieces.push(before, text)
          before = ''
        }
      }
      if (items) before += items.length > 0 ? ']' : '[]'
    }
    return [...pieces, `${before}}`]
  }

  /** `text` without the large fields, whose names and JSON follow in `late`. */
  get parts(): { text: string; late: readonly string[] } {
    const late: string[] = []
    const early: [string, string][] = []
    for (const [name, { json }] of this.#fields) {
      const isLate = json.length >= LARGE && late.length < MOST_LATE * 2
      if (isLate) late.push(name, json)
      early.push([name, isLate ? '0' : json])
    }
    return late.length === 0 ? { text: this.text, late } : { text: textOf(early), late }
  }
}

const fieldOf = (json: KnownJson): Field => (typeof json === 'string' ? { json, items: null } : { json: `[${json.join()}]`, items: json })

const textOf = (fields: readonly (readonly [name: string, json: string])[]): string =>
  `{${fields.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join()}}`

/** `fits` is false if the context is too large for the sandbox. */
export type ShownContext = { context: ReflexContext; json: ContextJson; hash: string; fits: boolean }

/** The newest events of a context, of which the last is the current one. */
export function recentOf(events: readonly Event[], event: Event): ReflexContext['recent_events'] {
  const last = events.slice(-RECENT_EVENTS)
  // A retried event is not the newest in the context, so move it to the end.
  return last.at(-1) === event ? last : [...last.filter((one) => one !== event).slice(1 - RECENT_EVENTS), event]
}

/** Fits a context to the sandbox's limit, which still rejects a single oversized event. */
export const shownOf = (context: ReflexContext): ReflexContext =>
  fitted(
    context,
    ContextJson.of(context),
    context.recent_events.map((event) => JSON.stringify(event)),
  ).context

/** Drops the oldest of `recent_events` until the rest fits. */
export function fitted(context: ReflexContext, whole: ContextJson, recent_events: readonly string[]): ShownContext {
  for (let from = 0; ; from += 1) {
    const json = from === 0 ? whole : whole.with('recent_events', recent_events.slice(from))
    const fits = json.fits(sandboxLimits.context_bytes)
    if (!fits && from < recent_events.length) continue
    const shown = from === 0 ? context : { ...context, recent_events: context.recent_events.slice(from) }
    return { context: shown, json, hash: createHash('sha256').update(json.text).digest('hex'), fits }
  }
}

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
