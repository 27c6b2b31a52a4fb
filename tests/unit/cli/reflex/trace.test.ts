import { expect, test } from 'vitest'
import { plainPaint } from '../../../../cli/lib/paint.ts'
import { traceLines } from '../../../../cli/reflex/trace/draw.ts'
import type { Span, TraceReport } from '../../../../src/contract/reports/trace.ts'

const at = (ms: number) => new Date(Date.parse('2026-11-22T05:00:00Z') + ms).toISOString()

function span(kind: Span['kind'], name: string, more: Partial<Span> = {}): Span {
  return {
    span_id: name,
    parent_id: null,
    name,
    kind,
    status: 'ok',
    started_at: at(0),
    duration_ms: 5,
    attributes: {},
    children: [],
    ...more,
  }
}

const model = span('model', 'chat gpt', {
  started_at: at(20),
  duration_ms: 900,
  attributes: { 'gen_ai.usage.input_tokens': 1200, 'gen_ai.usage.output_tokens': 30, 'reflex.cost_usd': 0.0012 },
})
const gate = span('gate', 'gate network.block', {
  status: 'error',
  started_at: at(930),
  attributes: {
    'reflex.verdict': 'refused',
    'reflex.score': { score: 0.5, tau: 1, components: [] },
    'reflex.reason': 'Score 0.5, needs 1.\u001b[31m',
    'reflex.to_pass': ['Use a keyword.', 'Ask an operator.'],
  },
})
const turn = span('turn', 'turn', { status: 'running', duration_ms: null, children: [model, gate] })
const trace: TraceReport = {
  trace_id: 'a'.repeat(32),
  scopes: ['ssh/web'],
  status: 'running',
  started_at: at(0),
  ended_at: null,
  duration_ms: null,
  usage: { input_tokens: 1200, output_tokens: 30, cost_usd: 0.0012, model_calls: 1 },
  truncated: false,
  root: span('event', 'log.line', { children: [span('filter', 'dedupe'), turn] }),
}
const drawn = (more: object = {}) => traceLines(trace, { paint: plainPaint, details: false, ...more })

test('a trace is drawn as a tree with times, costs, scores, reasons and what would pass', () => {
  const lines = drawn()
  expect(lines.slice(lines.indexOf('') + 1)).toEqual([
    '✓ log.line  event  5 ms',
    '├─ ✓ dedupe  filter  5 ms',
    '└─ … turn  turn  running',
    '   ├─ ✓ chat gpt  +20 ms  model  900 ms  1,200+30 tokens  $0.0012',
    '   └─ ✗ gate network.block  +930 ms  gate  5 ms  refused  score 0.5 of 1',
    '          Score 0.5, needs 1.?[31m',
    '          → Use a keyword.',
    '          → Ask an operator.',
  ])
})

test('the lines of a tree fit the terminal, and details list every attribute', () => {
  expect(Math.max(...drawn({ width: 60 }).map((line) => line.length))).toBeLessThanOrEqual(60)
  expect(drawn({ details: true }).join('\n')).toContain('reflex.cost_usd = 0.0012')
})
