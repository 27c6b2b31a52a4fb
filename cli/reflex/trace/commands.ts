import type { Command } from 'commander'
import { exportFile } from '../../../src/features/replay/operations/replay.ts'
import { getReceipt } from '../../../src/features/receipts/operations/receipts.ts'
import { listActivity } from '../../../src/features/traces/operations/activity.ts'
import { find, list as traces } from '../../../src/features/traces/operations/traces.ts'
import { refused } from '../../lib/api.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { isTerminal } from '../../lib/paint.ts'
import { ask, requestOf } from '../ask.ts'
import { addOperation } from '../operation.ts'
import { handler, type Session } from '../session.ts'
import { safeJson } from '../table.ts'
import { writeOutput } from '../values.ts'
import { traceLines } from './draw.ts'
import { addReplay } from './replay.ts'
import { standaloneColumns, standaloneRecording, standaloneTrace, standaloneTraces } from './standalone.ts'

type Of = { scope?: string }

export function addTrace(program: Command): void {
  const trace = program.command('trace').description('List, show and export traces, and decide again from them')
  addOperation(trace, traces, fromFile).option('--file <path>', 'all traces in the file of a standalone process')
  addOperation(trace, listActivity)
  trace
    .command('show <id>')
    .description('Draw a trace as a tree: times, costs, scores, reasons, and what would make a refused skill pass')
    .option('--scope <scope>', 'its scope, for a trace that has just begun')
    .option('--file <path>', 'from the file of a standalone process')
    .option('--details', 'list all attributes')
    .action(handler(show))
  trace
    .command('export <id>')
    .description('Write all that the decisions of a trace were made from as one file')
    .option('--scope <scope>', 'the scope whose log has the trace, if it went through several')
    .option('--output <file>', 'the file; standard output by default')
    .option('--file <path>', 'from the file of a standalone process')
    .action(handler(exported))
  trace
    .command('receipt <id>')
    .description('Write the signed receipt of a trace, which reflex verify checks without the server')
    .option('--scope <scope>', 'the scope whose log has the trace, if it went through several')
    .option('--neighbours', 'with the events of other traces that contexts and prompts quote')
    .option('--output <file>', 'the file; standard output by default')
    .action(handler(receipt))
  addReplay(trace)
}

type ReceiptFlags = Of & { neighbours?: boolean; output?: string }

async function receipt({ api, print, signal }: Session, id: string, { scope, neighbours = false, output }: ReceiptFlags): Promise<void> {
  const { address } = requestOf(getReceipt, { path: [id], fields: { scope, neighbours: String(neighbours) } })
  const response = await api().open(address, {}, signal)
  if (!response.ok) throw await refused(response, `GET ${address}`)
  // The bytes are signed, so that they are not written again.
  const text = await response.text()
  if (output === undefined) return print.raw(`${text}\n`)
  writeOutput(output, `${text}\n`)
  print.result({ trace_id: id, output }, () => [`The receipt is in ${output}. reflex verify ${output} checks it.`])
}

async function fromFile({ print }: Session, { limit, file, ...filter }: { limit: number; file?: string }): Promise<boolean> {
  if (file === undefined) return false
  if (Object.keys(filter).length > 0) throw new UsageError('--file lists all traces: it takes no filter.')
  print.page({ items: await standaloneTraces(file, limit), next_cursor: null }, standaloneColumns, 'The file has no trace.')
  return true
}

type Show = Of & { file?: string; details?: boolean }

async function show({ api, print, signal }: Session, id: string, { scope, file, details = false }: Show): Promise<void> {
  const trace = file !== undefined ? await standaloneTrace(file, id) : await ask({ api, signal }, find, { path: [id], fields: { scope } })
  const width = isTerminal(process.stdout) ? process.stdout.columns : undefined
  print.result(trace, (paint) => traceLines(trace, { paint, width, details }))
}

async function exported(
  { api, print, signal }: Session,
  id: string,
  { scope, output, file }: Of & { output?: string; file?: string },
): Promise<void> {
  const recording =
    file !== undefined ? await standaloneRecording(file, id) : await ask({ api, signal }, exportFile, { path: [id], fields: { scope } })
  if (output === undefined) return print.raw(`${safeJson(recording)}\n`)
  writeOutput(output, `${JSON.stringify(recording)}\n`)
  print.result({ trace_id: id, output }, () => [`The trace is in ${output}.`])
}
