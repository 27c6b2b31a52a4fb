import type { TraceReport } from '../../../src/contract/reports/trace.ts'
import { buildTrace } from '../../../src/traces/spans/tree.ts'
import { entriesOf, rowsOf } from '../../../src/standalone/entries.ts'
import type { Recording } from '../../../src/standalone/replay.ts'
import type { StandaloneRow } from '../../../src/standalone/rows.ts'
import { CliError } from '../../lib/cli-error.ts'
import type { Column } from '../table.ts'
import { openStandalone } from '../standalone-file.ts'

type StandaloneTrace = { trace_id: string; started_at: string; entries: number; errors: number; kinds: string[] }
export const standaloneColumns: Column<StandaloneTrace>[] = [
  { title: 'STARTED', of: ({ started_at }) => started_at },
  { title: 'STATUS', of: ({ errors }) => (errors > 0 ? 'error' : 'ok'), colour: ({ errors }) => (errors > 0 ? 'red' : 'green') },
  { title: 'ENTRIES', of: ({ entries }) => entries },
  { title: 'TRACE', of: ({ trace_id }) => trace_id },
  { title: 'KINDS', of: ({ kinds }) => kinds.join(' ') },
]

const isError = ({ error, status }: StandaloneRow): boolean => (error ?? null) !== null || status === 'failed'

/** The traces of a standalone process, newest first. */
export async function standaloneTraces(file: string, limit: number): Promise<StandaloneTrace[]> {
  const traces = new Map<string, StandaloneTrace>()
  for (const entry of rowsOf(await openStandalone(file))) {
    const { trace_id, at, kind } = entry
    const trace = traces.get(trace_id) ?? { trace_id, started_at: at, entries: 0, errors: 0, kinds: [] }
    traces.set(trace_id, trace)
    trace.entries += 1
    if (isError(entry)) trace.errors += 1
    if (!trace.kinds.includes(kind)) trace.kinds.push(kind)
  }
  return [...traces.values()].toReversed().slice(0, limit)
}

/** The tree of a trace, as a server draws it. */
export async function standaloneTrace(file: string, trace_id: string): Promise<TraceReport> {
  const logged = entriesOf(await openStandalone(file), trace_id).map((entry) => ({ scope: '', entry }))
  const trace = buildTrace(trace_id, logged)
  if (!trace) throw noTrace(file, trace_id)
  return { ...trace, scopes: [] }
}

/** All that the decisions of a trace were made from. */
export async function standaloneRecording(file: string, trace_id: string): Promise<Recording> {
  const { recordingOf } = await import('../../../src/standalone/replay.ts')
  const recording = await recordingOf(await openStandalone(file), trace_id)
  if (!recording) throw noTrace(file, trace_id)
  return recording
}

const noTrace = (file: string, trace_id: string): CliError =>
  new CliError(`${file} has no trace ${trace_id}.`, `reflex trace list --file ${file} lists the traces.`)
