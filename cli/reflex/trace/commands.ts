import { Option, type Command } from 'commander'
import { traceStatuses, type TraceReport, type TraceSummary } from '../../../src/contract/reports/trace.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { isTerminal } from '../../lib/paint.ts'
import { duration } from '../../lib/text.ts'
import { pages, route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { safeJson, type Column } from '../table.ts'
import { limitOption, timeOption, wholeNumber, writeOutput } from '../values.ts'
import { traceColour, traceLines } from './draw.ts'
import { addReplay } from './replay.ts'
import { notRecorded, standaloneColumns, standaloneTrace, standaloneTraces } from './standalone.ts'

type Of = { scope?: string }

export function addTrace(program: Command): void {
  const trace = program.command('trace').description('List, show and export traces, and decide again from them')
  trace
    .command('list')
    .description('List traces, newest first')
    .option('--scope <scope>', 'of one scope')
    .option('--agent <agent>', 'of one agent')
    .option('--kind <kind>', 'with a span of a kind, such as turn, model, gate or effect')
    .option('--skill <id>', 'with a decision on a skill')
    .addOption(new Option('--status <status>', 'in one state').choices(traceStatuses))
    .addOption(new Option('--min-duration <ms>', 'that took at least as long').argParser(wholeNumber))
    .addOption(timeOption('since', 'at or after a time'))
    .addOption(timeOption('until', 'before a time'))
    .option('--file <path>', 'all traces in the file of a standalone process')
    .addOption(limitOption(20))
    .action(handler(list))
  trace
    .command('show <id>')
    .description('Draw a trace as a tree: times, costs, scores, reasons, and what would make a refused skill pass')
    .option('--scope <scope>', 'its scope, for a trace that has just begun')
    .option('--file <path>', 'from the log of a standalone process, which has no spans')
    .option('--details', 'list all attributes')
    .action(handler(show))
  trace
    .command('export <id>')
    .description('Write all that the decisions of a trace were made from as one file')
    .option('--scope <scope>', 'the scope whose log has the trace, if it went through several')
    .option('--output <file>', 'the file; standard output by default')
    .option('--file <path>', 'refused: the log of a standalone process is not enough to decide again from')
    .action(handler(exported))
  addReplay(trace)
}

const columns: Column<TraceSummary>[] = [
  { title: 'STARTED', of: ({ started_at }) => started_at },
  { title: 'STATUS', of: ({ status }) => status, colour: ({ status }) => traceColour(status) },
  { title: 'TOOK', of: ({ duration_ms }) => (duration_ms === null ? null : duration(duration_ms)) },
  { title: 'TRACE', of: ({ trace_id }) => trace_id },
  { title: 'SCOPES', of: ({ scopes }) => scopes.join(' ') },
  { title: 'EVENT', of: ({ first_event }) => first_event?.type ?? '-' },
  { title: 'KINDS', of: ({ kinds, skills }) => [...kinds, ...skills].join(' ') },
]

type List = Of & {
  file?: string
  agent?: string
  kind?: string
  skill?: string
  status?: string
  minDuration?: number
  since?: string
  until?: string
}

async function list({ api, print, signal }: Session, { limit, minDuration, file, ...filter }: List & { limit: number }): Promise<void> {
  if (file !== undefined) {
    if (minDuration !== undefined || Object.keys(filter).length > 0) throw new UsageError('--file lists all traces: it takes no filter.')
    return print.page({ items: await standaloneTraces(file, limit), next_cursor: null }, standaloneColumns, 'The file has no trace.')
  }
  const query = { ...filter, min_duration_ms: minDuration }
  print.page(await pages<TraceSummary>(api(), { parts: ['traces'], query, limit, most: 100, signal }), columns, 'No trace matches.')
}

type Show = Of & { file?: string; details?: boolean }

async function show({ api, print, signal }: Session, id: string, { scope, file, details = false }: Show): Promise<void> {
  const trace =
    file !== undefined ? await standaloneTrace(file, id) : await api().json<TraceReport>(route(['traces', id], { scope }), { signal })
  const width = isTerminal(process.stdout) ? process.stdout.columns : undefined
  print.result(trace, (paint) => traceLines(trace, { paint, width, details }))
}

async function exported(
  { api, print, signal }: Session,
  id: string,
  { scope, output, file }: Of & { output?: string; file?: string },
): Promise<void> {
  if (file !== undefined) throw notRecorded(id, file)
  const recording = await api().json<Record<string, unknown>>(route(['traces', id, 'export'], { scope }), { signal })
  if (output === undefined) return print.raw(`${safeJson(recording)}\n`)
  writeOutput(output, `${JSON.stringify(recording)}\n`)
  print.result({ trace_id: id, output }, () => [`The trace is in ${output}.`])
}
