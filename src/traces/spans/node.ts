import { iso } from '../../base/time.ts'
import type { LogEntry } from '../../contract/log-entry.ts'
import type { Span, SpanKind, SpanStatus } from '../../contract/reports/trace.ts'
import type { SpanText } from '../entries/kind.ts'
import { describe, spanKindOf } from '../entries/table.ts'
import { queueSpan, runSpan, stepSpan } from '../ids.ts'

export type LoggedEntry = { scope: string; entry: LogEntry }

/** Longer values are left to the log, where `reflex.log_seq` finds them. */
const MOST_SHOWN = 4000

/** A span while its entries are read. */
export type Node = {
  span_id: string
  parent_id: string | null
  scope: string
  log_seq: number
  kind: SpanKind
  name: string
  /** An entry of its begin was read, or names it. */
  begun: boolean
  ends: SpanText['ends'] | undefined
  contains: boolean
  started: number
  ended: number
  attributes: Record<string, unknown>
  event_ids: readonly string[]
  trace_id: string
  children: Node[]
}

/** The spans whose end is the outcome of what the caller sent. */
export const isOutcome = ({ kind }: Node): boolean => kind === 'event' || kind === 'call' || kind === 'run' || kind === 'caller'

/** Adds an entry to the span that it belongs to, and returns that. */
export function add(nodes: Map<string, Node>, { scope, entry }: LoggedEntry): Node {
  const { span_id, parent_id, seq, event_ids, trace_id } = entry
  const said = describe(entry, scope)
  const at = Date.parse(entry.at)
  const started = at - durationOf(entry)
  const blank = {
    scope,
    log_seq: seq,
    begun: false,
    contains: false,
    ends: undefined,
    attributes: {},
    children: [],
    trace_id,
    event_ids,
    started,
    ended: at,
  }
  const node = nodes.get(span_id) ?? { span_id, parent_id, kind: spanKindOf(entry.kind), name: entry.kind, ...blank }
  nodes.set(span_id, node)
  node.parent_id ??= parent_id
  node.started = Math.min(node.started, started)
  node.ended = Math.max(node.ended, at)
  if (said.kind) node.kind = said.kind
  if (said.name) node.name = said.name
  if (said.contains) node.contains = true
  if (said.begins) Object.assign(node, { begun: true, ends: undefined })
  else node.ends = said.ends ?? node.ends
  Object.assign(node.attributes, said.attributes)
  if (entry.kind === 'event-accepted' && entry.via === 'queue') addQueue(nodes, node)
  if (entry.kind === 'effect-started' && entry.step) addStep(nodes, entry.step, node)
  return node
}

/** The way through the queue ends with the acceptance. Its begin is known from most ids. */
function addQueue(nodes: Map<string, Node>, event: Node): void {
  const { scope, event_ids, attributes, started } = event
  const span_id = queueSpan({ scope, id: event_ids[0] ?? '' })
  if (nodes.has(span_id)) return
  const operation = { 'messaging.operation.type': 'send', 'messaging.operation.name': 'send' }
  const messaging = Object.entries(attributes).filter(([name]) => name.startsWith('messaging.'))
  const queued_ms = Number(attributes['reflex.event.queued_ms'] ?? 0)
  nodes.set(span_id, {
    ...event,
    span_id,
    kind: 'queue',
    name: `send ${scope}`,
    begun: true,
    ends: 'ok',
    started: started - queued_ms,
    ended: started,
    attributes: { ...Object.fromEntries(messaging), ...operation },
    children: [],
  })
  event.parent_id = span_id
}

/** A step is logged when it ends; until then its effect names it. */
function addStep(
  nodes: Map<string, Node>,
  { run_id, phase, index }: { run_id: string; phase: 'step' | 'compensation'; index: number },
  effect: Node,
): void {
  const span_id = stepSpan(run_id, phase, index)
  if (nodes.has(span_id)) return
  const attributes = { 'reflex.step.index': index }
  nodes.set(span_id, {
    ...effect,
    span_id,
    parent_id: runSpan(run_id),
    kind: phase,
    name: `${phase} ${index}`,
    begun: true,
    ends: undefined,
    attributes,
    children: [],
  })
}

function durationOf(entry: LogEntry): number {
  if ('duration_us' in entry && typeof entry.duration_us === 'number') return entry.duration_us / 1000
  return typeof entry.duration_ms === 'number' ? Math.max(0, entry.duration_ms) : 0
}

/** Children first: spans that only contain others begin and end with them. */
export function settle(root: Node): void {
  const order = [root]
  for (const node of order) order.push(...node.children)
  for (const node of order.toReversed()) {
    node.children = node.children.toSorted((one, other) => one.started - other.started || one.log_seq - other.log_seq)
    if (!node.contains) continue
    node.started = Math.min(node.started, ...node.children.map(({ started }) => started))
    node.ended = Math.max(node.ended, ...node.children.map(({ ended }) => ended))
    if (node.ends || node.children.some((child) => statusOf(child) === 'running')) continue
    node.ends = node.children.some((child) => isOutcome(child) && child.ends === 'error') ? 'error' : 'ok'
  }
}

/** An approval that nobody has decided keeps nothing running: its event has ended. */
export const statusOf = ({ ends, kind }: Node): SpanStatus => ends ?? (kind === 'approval' ? 'waiting' : 'running')

export function shown(node: Node): Span {
  const { span_id, parent_id, name, kind, scope, log_seq, started, ended } = node
  const status = statusOf(node)
  const attributes = Object.fromEntries(
    Object.entries({ ...node.attributes, 'reflex.scope': scope, 'reflex.log_seq': log_seq }).flatMap(([field, value]) =>
      bounded(field, value),
    ),
  )
  const duration_ms = status === 'running' || status === 'waiting' ? null : Math.round((ended - started) * 1000) / 1000
  return { span_id, parent_id, name, kind, status, started_at: iso(started), duration_ms, attributes, children: node.children.map(shown) }
}

function bounded(field: string, value: unknown): [string, unknown][] {
  if (value === undefined || value === null) return []
  if (typeof value === 'number' || typeof value === 'boolean') return [[field, value]]
  // A character has at most six in JSON.
  if (typeof value === 'string' && value.length < MOST_SHOWN / 7) return [[field, value]]
  const { length } = JSON.stringify(value) ?? ''
  return [[field, length <= MOST_SHOWN ? value : { not_shown: length }]]
}
