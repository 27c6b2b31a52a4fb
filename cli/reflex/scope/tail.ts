import { Option, type Command } from 'commander'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { followLog } from '../../lib/follow-log.ts'
import type { Paint } from '../../lib/paint.ts'
import { route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { safeJson, written } from '../table.ts'
import { wholeNumber } from '../values.ts'

type Options = { last: number; kind?: string; trace?: string; follow: boolean }

export function addTail(scope: Command): void {
  scope
    .command('tail <scope>')
    .description('Show the newest entries of the log, and those that follow until Ctrl-C')
    .addOption(new Option('--last <n>', 'the number of entries to begin with').default(20).argParser(wholeNumber))
    .option('--kind <kinds>', 'only these kinds, separated by commas, such as turn-ended,event-ended')
    .option('--trace <id>', 'only one trace')
    .option('--no-follow', 'end after the newest entries')
    .action(handler(tail))
}

async function tail({ api, print, signal }: Session, scope: string, { last, kind, trace, follow }: Options): Promise<void> {
  const kinds = kind === undefined ? null : new Set(kind.split(',').map((name) => name.trim()))
  const onEntry = (entry: LogEntry) => {
    if ((kinds && !kinds.has(entry.kind)) || (trace !== undefined && entry.trace_id !== trace)) return
    print.item(entry, (paint) => entryLine(entry, paint))
  }
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

/** Fields of every entry that a person does not read. */
const HEAD = new Set(['seq', 'at', 'kind', 'trace_id', 'span_id', 'parent_id', 'event_ids', 'event_count', 'duration_ms', 'scope'])
const LONGEST = 120

export function entryLine(entry: LogEntry, paint: Paint): string {
  const own = Object.entries(entry).flatMap(([name, value]) => (HEAD.has(name) || value === null ? [] : [`${name}=${brief(value)}`]))
  const timed = entry.duration_ms === null ? [] : [`${Math.round(entry.duration_ms)} ms`]
  const isBad = /-(?:failed|lost)$/.test(entry.kind) || ('error' in entry && entry.error !== null)
  const kind = written(entry.kind).padEnd(18)
  return [paint('dim', written(entry.at)), isBad ? paint('red', kind) : paint('cyan', kind), ...timed, ...own].join('  ').trimEnd()
}

function brief(value: unknown): string {
  const text = typeof value === 'string' ? written(value) : safeJson(value)
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`
}
