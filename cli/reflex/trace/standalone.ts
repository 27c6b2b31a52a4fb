import { isJsonFields } from '../../../src/base/json.ts'
import type { Usage } from '../../../src/contract/log-entry.ts'
import type { Span, SpanKind, TraceReport } from '../../../src/contract/reports/trace.ts'
import type { StandaloneRow } from '../../../src/standalone/rows.ts'
import { sum } from '../../../src/features/replay/what-if/live-model.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import type { Column } from '../table.ts'
import { openStandalone, type StandaloneFile } from '../standalone-file.ts'

export type StandaloneTrace = { trace_id: string; started_at: string; entries: number; errors: number; kinds: string[] }
export const standaloneColumns: Column<StandaloneTrace>[] = [
  { title: 'STARTED', of: ({ started_at }) => started_at },
  { title: 'STATUS', of: ({ errors }) => (errors > 0 ? 'error' : 'ok'), colour: ({ errors }) => (errors > 0 ? 'red' : 'green') },
  { title: 'ENTRIES', of: ({ entries }) => entries },
  { title: 'TRACE', of: ({ trace_id }) => trace_id },
  { title: 'KINDS', of: ({ kinds }) => kinds.join(' ') },
]

/** Traces of a standalone process can be read, but not replayed. */
export const notRecorded = (id: string | undefined, file: string): UsageError =>
  new UsageError(
    `${file} belongs to a standalone process: its log does not have all that a decision was made from, so it cannot be exported or replayed.`,
    `reflex trace show ${id ?? 'ID'} --file ${file} --json prints the entries of a trace.`,
  )

/** Entries read at a time. */
const PAGE = 1000
const isError = ({ error, status }: StandaloneRow): boolean => (error ?? null) !== null || status === 'failed'

/** The traces of a standalone process, newest first. */
export async function standaloneTraces(file: string, limit: number): Promise<StandaloneTrace[]> {
  const traces = new Map<string, StandaloneTrace>()
  for (const entry of entriesOf(await openStandalone(file))) {
    const { trace_id, at, kind } = entry
    const trace = traces.get(trace_id) ?? { trace_id, started_at: at, entries: 0, errors: 0, kinds: [] }
    traces.set(trace_id, trace)
    trace.entries += 1
    if (isError(entry)) trace.errors += 1
    if (!trace.kinds.includes(kind)) trace.kinds.push(kind)
  }
  return [...traces.values()].toReversed().slice(0, limit)
}

export function* entriesOf({ log }: StandaloneFile, trace_id?: string): Iterable<StandaloneRow> {
  for (let after = 0; ;) {
    const page = log.entries({ after, limit: PAGE, ...(trace_id !== undefined && { trace_id }) })
    if (page.length === 0) return
    yield* page
    after = page.at(-1)?.seq ?? after
  }
}

/** A tree of the entries: they have no spans, so the entries of a run are below its first one. */
export async function standaloneTrace(file: string, trace_id: string): Promise<TraceReport> {
  const entries = Array.from(entriesOf(await openStandalone(file), trace_id))
  const [first] = entries
  if (!first) throw new CliError(`${file} has no trace ${trace_id}.`, `reflex trace list --file ${file} lists the traces.`)
  const runs = new Map<string, Span>()
  const top: Span[] = []
  for (const entry of entries) {
    const span = spanOf(entry)
    const run = typeof entry['run_id'] === 'string' ? runs.get(entry['run_id']) : undefined
    if (typeof entry['run_id'] === 'string' && !run) runs.set(entry['run_id'], span)
    const siblings = run?.children ?? top
    siblings.push(span)
  }
  const started = Date.parse(first.at)
  const ended = Date.parse(entries.at(-1)?.at ?? first.at)
  const status = entries.some(isError) ? 'error' : 'ok'
  const times = { status, started_at: first.at, duration_ms: ended - started } as const
  const root: Span = { span_id: '0', parent_id: null, name: 'process', kind: 'call', ...times, attributes: {}, children: top }
  const usage = entries.map(usageOf).reduce(sum)
  return { trace_id, scopes: [], ended_at: new Date(ended).toISOString(), usage, truncated: false, ...times, root }
}

const NONE: Usage = { input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 }

/** Tokens and cost of a model call; other entries have none. */
const usageOf = ({ kind, usage }: StandaloneRow): Usage => (kind === 'model-called' && isJsonFields(usage) ? { ...NONE, ...usage } : NONE)

const kinds: Record<string, SpanKind> = {
  'model-called': 'model',
  'tool-called': 'effect',
  'skill-decided': 'gate',
  'skill-started': 'run',
  'bulletin-built': 'bulletin',
}

/** The names under which a trace shows what a call of a model took. */
function spentOn(entry: StandaloneRow): Record<string, unknown> {
  const { input_tokens, output_tokens, cost_usd, model_calls } = usageOf(entry)
  if (model_calls === 0) return {}
  return { 'gen_ai.usage.input_tokens': input_tokens, 'gen_ai.usage.output_tokens': output_tokens, 'reflex.cost_usd': cost_usd }
}

function spanOf(entry: StandaloneRow): Span {
  const { seq, at, kind, trace_id: _, ...attributes } = entry
  const duration_ms = typeof attributes['duration_ms'] === 'number' ? attributes['duration_ms'] : 0
  const about = attributes['tool'] ?? attributes['skill_id'] ?? attributes['model']
  return {
    span_id: String(seq),
    parent_id: null,
    name: typeof about === 'string' ? `${kind} ${about}` : kind,
    kind: kinds[kind] ?? 'note',
    status: isError(entry) ? 'error' : 'ok',
    started_at: new Date(Date.parse(at) - duration_ms).toISOString(),
    duration_ms,
    attributes: { ...attributes, ...spentOn(entry) },
    children: [],
  }
}
