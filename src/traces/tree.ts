import type { LogEntry } from '../contract/log-entry.ts'
import type { Span, SpanKind, Trace, TraceStatus } from '../contract/reports/trace.ts'
import { describe } from './describe.ts'
import { spanKindOf, type Said } from './said.ts'
import { runSpan, spanOf, stepSpan } from './span-id.ts'

/** An entry of a scope's log. */
export type Logged = { scope: string; entry: LogEntry }

/** Longer values are left to the log, where `reflex.log_seq` finds them. */
const MOST_SHOWN = 4000
/** Deeper spans hang below this level: JSON is read and written recursively. */
const DEEPEST = 100

type Node = {
  span_id: string
  parent_id: string | null
  scope: string
  log_seq: number
  kind: SpanKind
  name: string
  ends: Said['ends'] | undefined
  contains: boolean
  started: number
  ended: number
  attributes: Record<string, unknown>
  event_ids: readonly string[]
  trace_id: string
  children: Node[]
}

/**
 * Builds the tree of a trace from the entries of its scopes, each scope's in the order of its log.
 * Every span is in it, whatever ids the senders chose. Null without entries.
 */
export function buildTrace(trace_id: string, logged: readonly Logged[], { truncated = false } = {}): Trace | null {
  const nodes = new Map<string, Node>()
  for (const one of logged) add(nodes, one)
  const roots = linked(nodes)
  const root = roots.length > 1 ? callerOf(roots, trace_id) : roots[0]
  if (!root) return null
  settle(root)
  const all = [...nodes.values()]
  const statuses = all.map(statusOf)
  const failed = all.some((node) => isOutcome(node) && statusOf(node) === 'error')
  const status = statuses.includes('running') ? 'running' : failed ? 'error' : 'ok'
  const ended = status === 'running' ? null : Math.max(...all.map((node) => node.ended))
  return {
    trace_id,
    scopes: [...new Set(logged.map(({ scope }) => scope))].toSorted(),
    status,
    started_at: iso(root.started),
    ended_at: ended === null ? null : iso(ended),
    duration_ms: ended === null ? null : ended - root.started,
    usage: usageOf(logged),
    truncated,
    root: shown(root),
  }
}

/** The spans whose end is the outcome of what the caller sent. */
const isOutcome = ({ kind }: Node): boolean => kind === 'event' || kind === 'call' || kind === 'run' || kind === 'caller'

function add(nodes: Map<string, Node>, { scope, entry }: Logged): void {
  const { span_id, parent_id, seq, event_ids, trace_id } = entry
  const said = describe(entry, scope)
  const at = Date.parse(entry.at)
  const started = at - durationOf(entry)
  const blank = {
    scope,
    log_seq: seq,
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
  if (said.begins) node.ends = undefined
  else node.ends = said.ends ?? node.ends
  Object.assign(node.attributes, said.attributes)
  if (entry.kind === 'effect-started' && entry.step) addStep(nodes, entry.step, node)
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
    ends: undefined,
    attributes,
    children: [],
  })
}

function durationOf(entry: LogEntry): number {
  if ('duration_us' in entry && typeof entry.duration_us === 'number') return entry.duration_us / 1000
  return typeof entry.duration_ms === 'number' ? Math.max(0, entry.duration_ms) : 0
}

/** Links each node to its parent, and returns those without one, in the order of the log. */
function linked(nodes: Map<string, Node>): Node[] {
  const parents = new Map<Node, Node>()
  for (const node of nodes.values()) {
    const parent = (node.parent_id === null ? undefined : nodes.get(node.parent_id)) ?? eventOf(nodes, node)
    if (parent) parents.set(node, parent)
  }
  const depths = new Map<Node, number>()
  const roots: Node[] = []
  for (const start of nodes.values()) {
    // Up to a placed node, a root or a cycle, which is cut at this place.
    const path: Node[] = []
    const seen = new Set<Node>()
    let top: Node | undefined = start
    while (top && !depths.has(top) && !seen.has(top)) {
      seen.add(top)
      path.push(top)
      top = parents.get(top)
    }
    let above = top && depths.has(top) ? top : undefined
    for (const node of path.toReversed()) {
      while (above && (depths.get(above) ?? 0) >= DEEPEST) above = parents.get(above)
      if (above) {
        parents.set(node, above)
        above.children.push(node)
      } else {
        parents.delete(node)
        roots.push(node)
      }
      depths.set(node, above ? (depths.get(above) ?? 0) + 1 : 0)
      above = node
    }
  }
  return roots
}

/** The event that a span without a known parent is about, such as a turn of another trace. */
function eventOf(nodes: Map<string, Node>, node: Node): Node | undefined {
  const spans = node.event_ids.map(spanOf).filter((span_id) => span_id !== node.span_id && nodes.has(span_id))
  return spans.length > 0 ? nodes.get(spans.at(-1) ?? '') : undefined
}

/** The caller's own span, known by its id alone, above several spans. */
function callerOf(roots: Node[], trace_id: string): Node {
  const [first] = roots as [Node]
  const named = new Set(roots.map(({ parent_id }) => parent_id))
  const span_id = named.size === 1 && first.parent_id !== null ? first.parent_id : trace_id.slice(0, 16)
  const times = { started: Math.min(...roots.map(({ started }) => started)), ended: first.ended }
  const rest = { scope: first.scope, log_seq: first.log_seq, attributes: {}, event_ids: [], trace_id }
  return { ...rest, ...times, span_id, parent_id: null, kind: 'caller', name: 'caller', ends: undefined, contains: true, children: roots }
}

/** Children first: spans that only contain others begin and end with them. */
function settle(root: Node): void {
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

const statusOf = ({ ends }: Node): TraceStatus => ends ?? 'running'

function shown(node: Node): Span {
  const { span_id, parent_id, name, kind, scope, log_seq, started, ended } = node
  const status = statusOf(node)
  const attributes = Object.fromEntries(
    Object.entries({ ...node.attributes, 'reflex.scope': scope, 'reflex.log_seq': log_seq }).flatMap(([field, value]) =>
      bounded(field, value),
    ),
  )
  const duration_ms = status === 'running' ? null : Math.round((ended - started) * 1000) / 1000
  return { span_id, parent_id, name, kind, status, started_at: iso(started), duration_ms, attributes, children: node.children.map(shown) }
}

function bounded(field: string, value: unknown): [string, unknown][] {
  if (value === undefined || value === null) return []
  if (typeof value === 'number' || typeof value === 'boolean') return [[field, value]]
  const { length } = JSON.stringify(value) ?? ''
  return [[field, length <= MOST_SHOWN ? value : { not_shown: length }]]
}

function usageOf(logged: readonly Logged[]): Trace['usage'] {
  const usage: Trace['usage'] = { input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 }
  for (const { entry } of logged) {
    if (entry.kind !== 'model-called') continue
    usage.input_tokens += entry.usage.input_tokens
    usage.output_tokens += entry.usage.output_tokens
    usage.model_calls += entry.usage.model_calls
    usage.cost_usd = usage.cost_usd === null || entry.usage.cost_usd === null ? null : usage.cost_usd + entry.usage.cost_usd
  }
  return usage
}

const iso = (ms: number): string => new Date(ms).toISOString()
