import type { Span, TraceReport } from '../../contract/reports/trace.ts'
import { addedUsage } from '../usage.ts'
import { iso } from '../../base/time.ts'
import { add, isOutcome, settle, shown, statusOf, type LoggedEntry, type Node } from './node.ts'

/** Deeper spans hang below this level: JSON is read and written recursively. */
const DEEPEST = 100

/**
 * Builds the tree of a trace from the entries of its scopes, each scope's in the order of its log.
 * Every span is in it, whatever ids the senders chose. Null without entries.
 */
export function buildTrace(trace_id: string, logged: readonly LoggedEntry[], { truncated = false } = {}): TraceReport | null {
  const nodes = new Map<string, Node>()
  for (const one of logged) add(nodes, one)
  const roots = linked(nodes)
  const root = roots.length > 1 ? callerOf(roots, trace_id) : roots[0]
  if (!root) return null
  settle(root)
  const all = [...nodes.values()]
  const statuses = all.map(statusOf)
  const failed = all.some((node) => isOutcome(node) && statusOf(node) === 'error')
  const partial = logged.some(({ entry }) => entry.kind === 'event-ended' && 'partial' in entry.outcome)
  const status = statuses.includes('running') ? 'running' : failed ? 'error' : partial ? 'partial' : 'ok'
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

/** The spans of one scope's part of a trace, without the tree. */
export function spansOf(nodes: Map<string, Node>): Omit<Span, 'children'>[] {
  const all = Array.from(nodes.values())
  // Only spans that contain others depend on them.
  if (all.some(({ contains }) => contains)) for (const root of linked(nodes)) settle(root)
  return all.map((node) => shown({ ...node, children: [] }))
}

/** Links each node to its parent, and returns those without one, in the order of the log. */
function linked(nodes: Map<string, Node>): Node[] {
  const parents = new Map<Node, Node>()
  const events = new Map(Array.from(nodes.values()).flatMap((node) => (node.kind === 'event' ? [[eventKey(node), node]] : [])))
  for (const node of nodes.values()) {
    const parent = (node.parent_id === null ? undefined : nodes.get(node.parent_id)) ?? eventOf(events, node)
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

const eventKey = ({ scope, event_ids: [id = ''] }: Pick<Node, 'scope' | 'event_ids'>): string => `${scope}:${id}`

/** The event that a span without a known parent is about, such as a turn of another trace. */
function eventOf(events: Map<string, Node>, node: Node): Node | undefined {
  const about = node.event_ids.map((id) => events.get(eventKey({ scope: node.scope, event_ids: [id] })))
  return about.findLast((event) => event !== undefined && event !== node)
}

/** The caller's own span, known by its id alone, above several spans. */
function callerOf(roots: Node[], trace_id: string): Node {
  const [first] = roots as [Node]
  const named = new Set(roots.map(({ parent_id }) => parent_id))
  const span_id = named.size === 1 && first.parent_id !== null ? first.parent_id : trace_id.slice(0, 16)
  const times = { started: Math.min(...roots.map(({ started }) => started)), ended: first.ended }
  const rest = { scope: first.scope, log_seq: first.log_seq, attributes: {}, event_ids: [], trace_id, begun: true }
  return { ...rest, ...times, span_id, parent_id: null, kind: 'caller', name: 'caller', ends: undefined, contains: true, children: roots }
}

function usageOf(logged: readonly LoggedEntry[]): TraceReport['usage'] {
  const nothing = { input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 }
  return logged.reduce<TraceReport['usage']>(
    (sum, { entry }) => (entry.kind === 'model-called' ? addedUsage(sum, entry.usage) : sum),
    nothing,
  )
}
