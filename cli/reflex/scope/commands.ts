import { type Command, Option } from 'commander'
import type { AnswerOf } from '../../../src/contract/operation.ts'
import { askModel, cancel, context, list, log, state, tools } from '../../../src/contract/operations/scopes.ts'
import { addOperation } from '../operation.ts'
import { ask } from '../ask.ts'
import { handler, type Session } from '../session.ts'
import { safeJson, written } from '../table.ts'
import { wholeNumber } from '../values.ts'
import { addSet } from './set.ts'
import { setTimeout as wait } from 'node:timers/promises'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import type { StandaloneRow as StandaloneEntry } from '../../../src/standalone/rows.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { followLog } from '../../lib/follow-log.ts'
import type { Paint } from '../../lib/paint.ts'
import { openStandalone, type StandaloneFile } from '../standalone-file.ts'

type TailedEntry = LogEntry | StandaloneEntry
type TailOptions = { last: number; kind?: string; trace?: string; follow: boolean; file?: string }

function addTail(scope: Command): void {
  scope
    .command('tail [scope]')
    .description('Show the newest entries of the log, and those that follow until Ctrl-C')
    .addOption(new Option('--last <n>', 'the number of entries to begin with').default(20).argParser(wholeNumber))
    .option('--kind <kinds>', 'only these kinds, separated by commas, such as turn-ended,event-ended')
    .option('--trace <id>', 'only one trace')
    .option('--no-follow', 'end after the newest entries')
    .option('--file <path>', 'the log of a standalone process, in place of a scope')
    .action(handler(tail))
}

async function tail({ api, print, signal }: Session, scope: string | undefined, options: TailOptions): Promise<void> {
  const { last, kind, trace, follow, file } = options
  const kinds = kind === undefined ? null : new Set(kind.split(',').map((name) => name.trim()))
  const onEntry = (entry: TailedEntry) => {
    if ((kinds && !kinds.has(entry.kind)) || (trace !== undefined && entry.trace_id !== trace)) return
    print.item(entry, (paint) => entryLine(entry, paint))
  }
  if (file !== undefined) return tailFile(await openStandalone(file), { last, follow, signal, onEntry })
  if (scope === undefined) throw new UsageError('Name a scope, or a file with --file.')
  const { last_seq } = await ask({ api, signal }, state, { path: [scope] })
  const after = Math.max(0, last_seq - last)
  if (last_seq === 0) print.note(`The log of ${scope} has no entry yet.`)
  if (follow) return followLog(api(), { scope, after, signal, onEntry })
  for (let cursor: string | null = String(after); cursor !== null;) {
    const fields = { after: cursor, before: last_seq + 1, limit: 1000 }
    const page: AnswerOf<typeof log.answers> = await ask({ api, signal }, log, { path: [scope], fields })
    // The entries of a kind have more fields than the schema of all.
    for (const entry of page.items) onEntry(entry as unknown as LogEntry)
    cursor = page.next_cursor
  }
}

type Following = { last: number; follow: boolean; signal: AbortSignal; onEntry: (entry: TailedEntry) => void }
const POLL_MS = 500
/** Entries read at a time. */
const PAGE = 1000

async function tailFile({ log }: StandaloneFile, { last, follow, signal, onEntry }: Following): Promise<void> {
  let newest: readonly TailedEntry[] = []
  for (let after = 0; ;) {
    const page = log.entries({ after, limit: PAGE })
    if (page.length === 0) break
    after = page.at(-1)?.seq ?? after
    newest = [...newest, ...page].slice(-last)
  }
  newest.forEach(onEntry)
  let after = newest.at(-1)?.seq ?? 0
  if (!follow) return
  while (!signal.aborted) {
    const page = log.entries({ after, limit: PAGE })
    page.forEach(onEntry)
    after = page.at(-1)?.seq ?? after
    if (page.length === 0) await wait(POLL_MS, undefined, { signal })
  }
}

/** Fields of every entry that a person does not read. */
const HEAD = new Set(['seq', 'at', 'kind', 'trace_id', 'span_id', 'parent_id', 'event_ids', 'event_count', 'duration_ms', 'scope'])
const LONGEST = 120

function entryLine(entry: TailedEntry, paint: Paint): string {
  const own = Object.entries(entry).flatMap(([name, value]) => (HEAD.has(name) || value === null ? [] : [`${name}=${brief(value)}`]))
  const { duration_ms, error } = entry as { duration_ms?: number | null; error?: unknown }
  const timed = typeof duration_ms === 'number' ? [`${Math.round(duration_ms)} ms`] : []
  const isBad = /-(?:failed|lost)$/.test(entry.kind) || (error !== undefined && error !== null)
  const kind = written(entry.kind).padEnd(18)
  return [paint('dim', written(entry.at)), isBad ? paint('red', kind) : paint('cyan', kind), ...timed, ...own].join('  ').trimEnd()
}

function brief(value: unknown): string {
  const text = typeof value === 'string' ? written(value) : safeJson(value)
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`
}

export function addScope(program: Command): void {
  const scope = program.command('scope').description('Look into scopes, configure and stop them')
  addOperation(scope, list)
  addOperation(scope, state)
  addSet(scope)
  addTail(scope)
  for (const op of [context, tools, cancel, askModel]) addOperation(scope, op)
}
