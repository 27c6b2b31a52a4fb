import { Option, type Command } from 'commander'
import { list as deadLetters } from '../../../src/contract/operations/dead-letters.ts'
import { list as listAlerts } from '../../../src/features/alerts/resources.ts'
import { incidentFile } from '../../../src/contract/lists/incident.ts'
import { exportFile } from '../../../src/features/replay/operations/replay.ts'
import { getReceipt } from '../../../src/features/receipts/operations/receipts.ts'
import { listActivity } from '../../../src/features/traces/operations/activity.ts'
import { find, list as traces } from '../../../src/features/traces/operations/traces.ts'
import { refused } from '../../lib/api.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import { isTerminal } from '../../lib/paint.ts'
import { counted } from '../../lib/text.ts'
import { ask, askPages, requestOf, type Asking } from '../ask.ts'
import { addOperation } from '../operation.ts'
import { handler, type Session } from '../session.ts'
import { safeJson } from '../table.ts'
import { timeOption, wholeNumber, writeOutput } from '../values.ts'
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
  trace
    .command('bundle')
    .description('Write an incident as one file: the traces of a scope and a time, their receipts, alerts and dead letters')
    .requiredOption('--scope <scope>', 'the scope')
    .addOption(timeOption('since', 'traces at or after a time'))
    .addOption(timeOption('until', 'traces before a time'))
    .addOption(new Option('--limit <n>', 'the largest number of traces').default(50).argParser(wholeNumber))
    .requiredOption('--output <file>', 'the file')
    .action(handler(bundle))
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

type IncidentFlags = { scope: string; since?: string; until?: string; limit: number; output: string }
const PAGE = 100

/** Writes the traces of a scope and a time, with their receipts, and what was noted of them. */
async function bundle({ api, print, signal }: Session, { scope, since, until, limit, output }: IncidentFlags): Promise<void> {
  const asking = { api, signal }
  const times = { since, until }
  const found = await askPages(asking, traces, { fields: { scope, ...times }, limit, most: PAGE })
  if (found.items.length === 0) throw new CliError(`No trace of ${scope} is in this time.`)
  const whole = []
  for (const summary of found.items) {
    const given = { path: [summary.trace_id], fields: { scope } }
    whole.push({ summary, recording: await ask(asking, exportFile, given), receipt: await receiptOf(asking, given) })
  }
  const [alerts, letters] = await Promise.all([
    noted(askPages(asking, listAlerts, { fields: times, limit, most: PAGE })),
    noted(askPages(asking, deadLetters, { fields: { scope }, limit, most: PAGE })),
  ])
  const noticed = { alerts, dead_letters: letters, has_more: found.next_cursor !== null }
  const file = incidentFile({ scope, ...times, traces: whole, ...noticed }, Date.now())
  const { report } = file
  writeOutput(output, `${JSON.stringify(file)}\n`)
  print.result({ output, ...report }, () => [
    `${counted(report.traces, 'trace')} and ${counted(report.receipts, 'receipt')} are in ${output}.`,
    ...(report.has_more ? ['There are more traces: raise --limit, or name a shorter time.'] : []),
  ])
}

/** The text that is signed; null if the deployment signs nothing. */
async function receiptOf({ api, signal }: Asking, given: { path: string[]; fields: { scope: string } }): Promise<string | null> {
  const { address } = requestOf(getReceipt, given)
  const response = await api().open(address, {}, signal)
  const text = await response.text()
  return response.ok ? text : null
}

/** Null where the key may not read it. */
const noted = <Item>(page: Promise<{ items: Item[] }>): Promise<Item[] | null> =>
  page.then(
    ({ items }) => items,
    () => null,
  )
