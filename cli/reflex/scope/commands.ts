import { type Command, Option } from 'commander'
import type { z } from 'zod'
import { askModel, cancel, list } from '../../../src/contract/operations/scopes.ts'
import type { ContextView, scopeState } from '../../../src/contract/scope.ts'
import { counted } from '../../lib/text.ts'
import { addOperation } from '../operation.ts'
import { route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { fields, safeJson, written } from '../table.ts'
import { limitOption, wholeNumber } from '../values.ts'
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
  const { last_seq } = await api().json<{ last_seq: number }>(route(['scopes', scope]), { signal })
  const after = Math.max(0, last_seq - last)
  if (follow) return followLog(api(), { scope, after, signal, onEntry })
  for (let cursor: string | null = String(after); cursor !== null;) {
    type LogPage = { items: LogEntry[]; next_cursor: string | null }
    const query = { after: cursor, before: last_seq + 1, limit: 1000 }
    const page: LogPage = await api().json(route(['scopes', scope, 'log'], query), { signal })
    page.items.forEach(onEntry)
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

type ShownState = z.infer<typeof scopeState>

export function addScope(program: Command): void {
  const scope = program.command('scope').description('Look into scopes, configure and stop them')
  addOperation(scope, list)
  scope.command('show <scope>').description("Show a scope's inbox, turn, counters and settings").action(handler(show))
  addSet(scope)
  addTail(scope)
  scope
    .command('context <scope>')
    .description('Show the working memory: the events since the last action, and the scratch')
    .addOption(limitOption())
    .option('--at <seq>', 'as it was after this entry of the log', wholeNumber)
    .action(handler(context))
  for (const op of [cancel, askModel]) addOperation(scope, op)
}

async function show({ api, print, signal }: Session, scope: string): Promise<void> {
  const state = await api().json<ShownState>(route(['scopes', scope]), { signal })
  const { inbox, turn, waiting_for_model: waiting, outbox, archive, parked, counters, settings } = state
  const used = Object.entries(counters).filter(([, value]) => value !== 0)
  // A mistyped name would look like a scope that is idle.
  if (state.last_seq === 0) {
    print.note(`There is no scope ${written(scope)} yet: nothing was sent to it or set. It would begin like this.`)
    process.exitCode = 1
  }
  print.result(state, (paint) => [
    ...fields(
      {
        scope: state.scope,
        agent: state.agent,
        inbox: `${inbox.pending} pending, ${inbox.processing} processing, ${inbox.delayed} delayed`,
        turn: turn && `${turn.turn_id} since ${turn.since}, ${counted(turn.events, 'event')}`,
        model: waiting ? `waiting until ${waiting.until}: ${waiting.detail}` : 'reachable',
        context: counted(state.context.events, 'event'),
        outbox: `${outbox.waiting} waiting${outbox.last_error === null ? '' : `; ${outbox.last_error}`}`,
        parked: parked.length === 0 ? 'nothing' : undefined,
        archive: archive ? `${counted(archive.files, 'file')}${archive.last_error === null ? '' : `; ${archive.last_error}`}` : undefined,
        sockets: state.sockets,
        log: `${state.last_seq} entries`,
      },
      paint,
    ),
    ...parked.map(({ kind, id, reason }) => paint('red', `parked ${written(kind)} ${written(id)}: ${written(reason)}`)),
    ...(used.length > 0 ? ['', paint('bold', 'Counters'), ...fields(Object.fromEntries(used), paint)] : []),
    '',
    paint('bold', 'Settings'),
    ...fields(Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, safeJson(value)])), paint),
  ])
}

/** The API gives the newest page first, and the events of a page oldest first. */
async function context({ api, print, signal }: Session, scope: string, { limit, at }: { limit: number; at?: number }): Promise<void> {
  const view = await api().json<ContextView>(route(['scopes', scope, 'context'], { limit, ...(at !== undefined && { at }) }), { signal })
  print.result(view, (paint) => [
    ...fields({ scope: view.scope, since: view.created_at, 'last action': view.last_action_at, events: view.count }, paint),
    ...fields(Object.fromEntries(Object.entries(view.scratch).map(([name, value]) => [`scratch.${name}`, safeJson(value)])), paint),
    ...(view.events.length < view.count ? [paint('dim', `The newest ${view.events.length}; --limit shows more.`)] : []),
    ...view.events.map((event) => safeJson(event)),
  ])
}
