import type { Span } from '../../contract/reports/trace.ts'
import type { TraceMarks } from '../../contract/event-record.ts'
import { add, type LoggedEntry, type Node } from './node.ts'
import { marksOf } from '../ids.ts'
import { spansOf } from './tree.ts'

/** Bounds of the spans that are held, by their number and by the JSON of their entries. */
const MOST_NODES = 20_000
const MOST_CHARACTERS = 8_000_000
/** Spans that have ended are not held longer than this, such as while a person decides. */
const HOLD_MS = 600_000

/** `marks`: of the sender of the trace's first event or call in the scope. */
export type EndedSpan = Omit<Span, 'children'> & { trace_id: string; links: SpanLink[]; marks: TraceMarks }
export type SpanLink = { trace_id: string; span_id: string }
/** A scope's part of a trace. `since`, `began`: its first log entry. */
type Held = { trace_id: string; nodes: Map<string, Node>; since: number; began: number; characters: number; marks: TraceMarks }
type Taken = { parts: EndedSpan[][]; lost: number }

/**
 * Gathers the spans of a scope's log by trace. A part of a trace is taken once all of its spans
 * have ended, so that each span is complete, and as `GET /v1/traces/:trace_id` shows it.
 */
export class SpanBuffer {
  /** Parts of traces, oldest first. */
  readonly #held = new Map<string, Held>()
  /** Open spans of parts that were held for too long. */
  readonly #long = new Map<string, Held>()
  readonly #touched = new Set<Held>()
  /** The spans of held events. */
  readonly #events = new Map<string, SpanLink>()
  readonly #links = new WeakMap<Node, SpanLink[]>()
  #nodes = 0
  #characters = 0

  /** The first entry that has to be read again after a restart; null if nothing is held. */
  get since(): number | null {
    const oldest = [this.#long, this.#held].flatMap((parts) => parts.values().next().value?.since ?? [])
    return oldest.length === 0 ? null : Math.min(...oldest)
  }

  /** When the spans that have ended of an open trace are to be taken. */
  get due(): number | null {
    const oldest = this.#held.values().next().value
    return oldest ? oldest.began + HOLD_MS : null
  }

  /** `characters`: the length of the entry's JSON. */
  add(logged: LoggedEntry, characters: number): void {
    const { trace_id, seq, at, kind, event_ids } = logged.entry
    let held = this.#held.get(trace_id) ?? this.#long.get(trace_id)
    if (!held) {
      held = { trace_id, nodes: new Map(), since: seq, began: Date.parse(at), characters: 0, marks: {} }
      this.#held.set(trace_id, held)
    }
    const before = held.nodes.size
    if (logged.entry.kind === 'event-accepted' || logged.entry.kind === 'call-received')
      held.marks = { ...marksOf(logged.entry), ...held.marks }
    const node = add(held.nodes, logged)
    held.characters += characters
    this.#characters += characters
    this.#nodes += held.nodes.size - before
    this.#touched.add(held)
    if (node.kind === 'event') this.#events.set(event_ids[0] ?? '', { trace_id, span_id: node.span_id })
    if (kind === 'turn-started') this.#links.set(node, this.#considered(event_ids, trace_id))
  }

  /** The events of a turn that belong to other traces. */
  #considered(event_ids: readonly string[], own: string): SpanLink[] {
    return event_ids.flatMap((id) => {
      const event = this.#events.get(id)
      return event === undefined || event.trace_id === own ? [] : [event]
    })
  }

  /** Removes the parts of traces that are complete. `lost`: spans whose begin or end is unknown. */
  take(now: number): Taken {
    const taken: Taken = { parts: [], lost: 0 }
    for (const held of this.#touched) {
      if (!Array.from(held.nodes.values()).some((node) => isOpen(node, held))) this.#release(held, taken)
      else if (this.#long.has(held.trace_id)) this.#releaseEnded(held, taken)
    }
    this.#touched.clear()
    for (const held of this.#held.values()) {
      if (now - held.began < HOLD_MS) break
      this.#held.delete(held.trace_id)
      this.#long.set(held.trace_id, held)
      this.#releaseEnded(held, taken)
    }
    for (const held of [...this.#long.values(), ...this.#held.values()]) {
      if (this.#nodes <= MOST_NODES && this.#characters <= MOST_CHARACTERS) break
      this.#release(held, taken)
    }
    return taken
  }

  /** Takes a part as a whole. Spans that are still open are lost. */
  #release(held: Held, taken: Taken): void {
    this.#held.delete(held.trace_id)
    this.#long.delete(held.trace_id)
    this.#nodes -= held.nodes.size
    this.#characters -= held.characters
    this.#takeNodes(held, held.nodes, taken)
  }

  /** Takes the spans that have ended, and holds the rest. */
  #releaseEnded(held: Held, taken: Taken): void {
    const ended = new Map(Array.from(held.nodes).filter(([, node]) => !isOpen(node, held)))
    for (const span_id of ended.keys()) held.nodes.delete(span_id)
    this.#nodes -= ended.size
    this.#takeNodes(held, ended, taken)
  }

  #takeNodes({ trace_id, marks }: Held, nodes: Map<string, Node>, taken: Taken): void {
    for (const [span_id, node] of nodes) {
      if (node.kind === 'event') this.#events.delete(node.event_ids[0] ?? '')
      // A later entry about a span that was taken.
      const is_remark = !node.begun && !node.ends && !node.contains
      const is_lost = !is_remark && (node.kind === 'event' ? !node.begun || !node.ends : !node.ends && !node.contains)
      if (is_lost) taken.lost += 1
      if (is_lost || is_remark) nodes.delete(span_id)
    }
    const spans = spansOf(nodes).map((span) => ({
      ...span,
      trace_id,
      marks,
      links: this.#links.get(nodes.get(span.span_id) as Node) ?? [],
    }))
    if (spans.length > 0) taken.parts.push(spans)
  }
}

/** A call has ended with what follows from it. */
function isOpen(node: Node, { nodes }: Held): boolean {
  if (node.ends) return false
  if (!node.contains) return node.begun
  return !Array.from(nodes.values()).some(({ parent_id }) => parent_id === node.span_id)
}
