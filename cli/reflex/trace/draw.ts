import type { Span, SpanStatus, TraceReport, TraceStatus } from '../../../src/contract/reports/trace.ts'
import type { Colour, Paint } from '../../lib/paint.ts'
import { count, counted, cut, dollars, duration, wrap } from '../../lib/text.ts'
import { fields, safeJson, written } from '../table.ts'

const marks: Record<TraceStatus | SpanStatus, { mark: string; colour: Colour }> = {
  ok: { mark: '✓', colour: 'green' },
  partial: { mark: '!', colour: 'yellow' },
  waiting: { mark: '?', colour: 'yellow' },
  error: { mark: '✗', colour: 'red' },
  running: { mark: '…', colour: 'yellow' },
}

/** The width of a reason if no terminal gives one. */
const NOTE_WIDTH = 120

type Look = { paint: Paint; width?: number | undefined; details: boolean }

/** The trace as a tree: each span with its time, cost, score, reason and what a refusal needs. */
export function traceLines({ root, ...trace }: TraceReport, look: Look): string[] {
  const { status, duration_ms, usage, scopes, truncated } = trace
  const tokens = usage.input_tokens + usage.output_tokens
  return [
    ...fields(
      {
        trace: trace.trace_id,
        status,
        started: trace.started_at,
        took: duration_ms === null ? 'running' : duration(duration_ms),
        scopes: scopes.join(', '),
        models: `${counted(usage.model_calls, 'call')}, ${counted(tokens, 'token')}, ${dollars(usage.cost_usd)}`,
      },
      look.paint,
    ),
    ...(truncated ? [look.paint('yellow', 'The logs have more entries of this trace than are shown.')] : []),
    '',
    ...spanLines(root, { ...look, began: Date.parse(trace.started_at), lead: '', below: '' }),
  ]
}

type Place = Look & { began: number; lead: string; below: string }

function spanLines(span: Span, place: Place): string[] {
  const { paint, width, details, lead, below } = place
  const { mark, colour } = marks[span.status]
  const rest = below + (span.children.length > 0 ? '│ ' : '  ')
  const offset = Date.parse(span.started_at) - place.began
  const plain = [...(offset > 0 ? [`+${duration(offset)}`] : []), ...factsOf(span)].join('  ')
  const fit = (text: string, taken: number) => (width === undefined ? text : cut(text, Math.max(20, width - taken)))
  const name = written(span.name)
  return [
    `${lead}${paint(colour, mark)} ${paint('bold', name)}  ${paint('dim', fit(plain, lead.length + name.length + 4))}`.trimEnd(),
    ...notesOf(span).flatMap((note) => wrap(note, Math.max(20, (width ?? NOTE_WIDTH) - rest.length - 2)).map((line) => `${rest}  ${line}`)),
    ...(details
      ? Object.entries(span.attributes).map(([key, value]) => `${rest}  ${paint('dim', `${written(key)} = ${safeJson(value)}`)}`)
      : []),
    ...span.children.flatMap((child, index) => {
      const isLast = index === span.children.length - 1
      return spanLines(child, { ...place, lead: `${below}${isLast ? '└─' : '├─'} `, below: `${below}${isLast ? '   ' : '│  '}` })
    }),
  ]
}

/** Short facts behind the name. */
function factsOf({ kind, duration_ms, status, attributes }: Span): string[] {
  const number = (name: string): number | null => (typeof attributes[name] === 'number' ? attributes[name] : null)
  const input = number('gen_ai.usage.input_tokens')
  const output = number('gen_ai.usage.output_tokens')
  const cost = number('reflex.cost_usd')
  const verdict = attributes['reflex.verdict']
  return [
    kind,
    ...(duration_ms === null ? (status === 'running' ? ['running'] : []) : [duration(duration_ms)]),
    ...(input === null && output === null ? [] : [`${count(input ?? 0)}+${count(output ?? 0)} tokens`]),
    ...(cost === null ? [] : [dollars(cost)]),
    ...(typeof verdict === 'string' ? [written(verdict)] : []),
    ...scoreOf(attributes['reflex.score']),
  ]
}

/** The score of the gate, and the threshold. */
function scoreOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || !('score' in value && 'tau' in value)) return []
  return [`score ${Number(value.score)} of ${Number(value.tau)}`]
}

/** Lines of their own below the name: why it ended so, and what would make it pass. */
function notesOf({ attributes }: Span): string[] {
  const why = ['reflex.reason', 'reflex.pass_reason', 'reflex.refused_for', 'error.message'].flatMap((name) => textOf(attributes[name]))
  const advice = attributes['reflex.to_pass']
  const reasons = why.length > 0 ? new Set(why) : textOf(attributes['error.type'])
  return [...reasons, ...(Array.isArray(advice) ? advice.flatMap(textOf).map((text) => `→ ${text}`) : [])]
}

const textOf = (value: unknown): string[] => (typeof value === 'string' && value !== '' ? [written(value)] : [])
