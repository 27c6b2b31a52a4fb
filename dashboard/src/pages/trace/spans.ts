import type { Span, TraceReport } from '../../../../src/contract/reports/trace.ts'
import { usd } from '../../ui/numbers.ts'
import { withTimes } from '../../ui/time.tsx'

/** A span with its place in the tree; `from` and `to` are ms since the begin of the trace. */
export type SpanRow = { span: Span; depth: number; position: number; siblings: number; from: number; to: number | null }

/** The spans in the order of the tree, without those below a closed one. */
export function rowsOf({ root, started_at }: TraceReport, closed: ReadonlySet<string> = new Set()): SpanRow[] {
  const began = Date.parse(started_at)
  const rows: SpanRow[] = []
  const add = (span: Span, depth: number, position: number, siblings: number) => {
    const from = Date.parse(span.started_at) - began
    rows.push({ span, depth, position, siblings, from, to: span.duration_ms === null ? null : from + span.duration_ms })
    if (closed.has(span.span_id)) return
    span.children.forEach((child, index) => add(child, depth + 1, index + 1, span.children.length))
  }
  add(root, 1, 1, 1)
  return rows
}

/** The spans from the root to one, the nearest last. Empty if there is no such span. */
export function pathTo(span: Span, id: string): Span[] {
  if (span.span_id === id) return [span]
  for (const child of span.children) {
    const path = pathTo(child, id)
    if (path.length > 0) return [span, ...path]
  }
  return []
}

export function firstOf(span: Span, kind: Span['kind']): Span | undefined {
  if (span.kind === kind) return span
  for (const child of span.children) {
    const found = firstOf(child, kind)
    if (found) return found
  }
  return undefined
}

/** The spans that follow from an event, without the spans of the events that it caused. */
export function below(event: Span): Span[] {
  const found: Span[] = []
  const add = (span: Span) => {
    for (const child of span.children) {
      if (child.kind === 'event') continue
      found.push(child)
      add(child)
    }
  }
  add(event)
  return found
}

export function textOf({ attributes }: Span, name: string): string | null {
  const value = attributes[name]
  return typeof value === 'string' && value !== '' ? value : null
}

export function numberOf({ attributes }: Span, name: string): number | null {
  const value = attributes[name]
  return typeof value === 'number' ? value : null
}

/** Why it ended so, in the words of the log. */
export function reasonsOf(span: Span): string[] {
  const names = ['reflex.reason', 'reflex.pass_reason', 'reflex.refused_for', 'reflex.decision.detail', 'error.message']
  const found = names.flatMap((name) => textOf(span, name) ?? [])
  return found.length > 0 ? [...new Set(found)].map(withTimes) : ['error.type'].flatMap((name) => textOf(span, name) ?? [])
}

/** The changes that would let a refused proposal pass its gate. */
export function needsOf({ attributes }: Span): string[] {
  const needs = attributes['reflex.to_pass']
  return Array.isArray(needs) ? needs.filter((need) => typeof need === 'string') : []
}

type Score = { score: number; tau: number | null; components?: unknown }
export function scoreOf({ attributes }: Span): Score | null {
  const value = attributes['reflex.score']
  return typeof value === 'object' && value !== null && 'score' in value ? (value as Score) : null
}

/** Short facts beside the name. */
export function factsOf(span: Span): string[] {
  const input = numberOf(span, 'gen_ai.usage.input_tokens')
  const output = numberOf(span, 'gen_ai.usage.output_tokens')
  const cost = numberOf(span, 'reflex.cost_usd')
  const score = scoreOf(span)
  const { 'reflex.fired': fired, 'reflex.action': action } = span.attributes
  return [
    ...(fired === true ? [`fired: ${actionText(action)}`] : fired === false ? ['passed'] : []),
    ...['reflex.verdict', 'reflex.approval.status'].flatMap((name) => textOf(span, name) ?? []),
    ...(score ? [`score ${score.score} of ${score.tau ?? '–'}`] : []),
    ...(input === null && output === null ? [] : [`${(input ?? 0) + (output ?? 0)} tokens`]),
    ...(cost === null || cost === 0 ? [] : [usd(cost)]),
  ]
}

/** An action in a few words: its type, and the tool, skill or event that it names. */
export function actionText(action: unknown): string {
  if (typeof action !== 'object' || action === null) return 'nothing'
  const { action_type, act, tool, skill_id, event, reason, content } = action as Record<string, unknown>
  const type = (event as { type?: unknown } | undefined)?.type
  const about = [tool, skill_id, type, reason, content].find((text) => typeof text === 'string')
  return [action_type ?? act, about]
    .filter((text) => typeof text === 'string')
    .join(' ')
    .slice(0, 80)
}
