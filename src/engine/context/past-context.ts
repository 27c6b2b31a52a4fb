import { isoOrNull } from '../../base/time.ts'
import { limits } from '../../base/limits.ts'
import type { Refused, Result } from '../../base/result.ts'
import type { LogEntry } from '../../contract/log-entry.ts'
import type { PastContext } from '../../contract/scope-api.ts'
import type { Event } from '../../core/event.ts'
import type { Past } from '../log/past.ts'
import type { Ground } from '../storage/wiring.ts'
import { CHANGES, isWhole, rolled, type Places } from '../../traces/held-context.ts'
import { toRanges } from '../../traces/ranges.ts'

/** Entries that are read at a time, and at most, back to one that has the whole context. */
const CHUNK = 1000
const MOST_READ = 50_000

type PastContextParts = Pick<Ground, 'scope' | 'database' | 'log' | 'memory'> & { history: Past }
type Page = { limit: number; before?: number | undefined }

/** The context as it was after the entry `at` of the log, without redacted values. */
export async function contextAt(
  parts: PastContextParts,
  at: number,
  { limit, before = Number.MAX_SAFE_INTEGER }: Page,
): Promise<PastContext> {
  const { scope, log, memory } = parts
  if (at > log.last) return { ok: false, reason: 'unknown', detail: `the log ends at ${log.last}` }
  const read = await entriesUpTo(parts, at)
  if (!read.ok) return read
  const ids = read.entries.flatMap((entry) => (entry.kind in CHANGES ? entry.event_ids : []))
  const { seqs, scratch, last_action_at } = rolled(read.entries, await placesOf(parts, ids))
  const page = seqs.filter((seq) => seq < before).slice(-limit)
  const events = await eventsAt(parts, page)
  const missing = page.find((seq) => !events.has(seq))
  if (missing !== undefined)
    return { ok: false, reason: 'gone', detail: `the event at place ${missing} of the inbox, which the context had, is no longer kept` }
  const shown = newest(page, events)
  const first = shown[0] ?? 0
  const context = {
    scope,
    created_at: new Date(memory.live.created_at).toISOString(),
    last_action_at: isoOrNull(last_action_at),
    events: shown.map((seq) => log.clean(JSON.parse(events.get(seq) ?? 'null')) as Event),
    count: seqs.length,
    scratch,
    next_cursor: seqs[0] !== undefined && seqs[0] < first ? String(first) : null,
  }
  return { ok: true, context }
}

/** The newest of these places whose events fit into a page. */
function newest(seqs: readonly number[], texts: ReadonlyMap<number, string>): number[] {
  let from = seqs.length
  let bytes = 0
  while (from > 0 && (bytes += texts.get(seqs[from - 1] ?? 0)?.length ?? 0) <= limits.page_bytes) from -= 1
  return seqs.slice(Math.min(from, Math.max(0, seqs.length - 1)))
}

type Read = Result<{ entries: LogEntry[] }, Refused<'gone' | 'unavailable'>>

/** The entries from the newest that has the whole context, or from the first, up to `at`. */
async function entriesUpTo({ history }: PastContextParts, at: number): Promise<Read> {
  const entries: LogEntry[] = []
  if (at === 0) return { ok: true, entries }
  for (let last = at; last > 0 && at - last < MOST_READ; last -= CHUNK) {
    const first = Math.max(1, last - CHUNK + 1)
    const chunk: LogEntry[] = []
    for (let after: number | null = first - 1; after !== null;) {
      const page: Awaited<ReturnType<Past['log']>> = await history.log(after, CHUNK, last + 1)
      if (page.unavailable !== undefined) return { ok: false, reason: 'unavailable', detail: page.unavailable }
      chunk.push(...page.entries.map((text) => JSON.parse(text) as LogEntry))
      // Retention has deleted the rest.
      after = page.next === after ? null : page.next
    }
    entries.unshift(...chunk)
    const from = entries.findLastIndex((entry, index) => isWhole(entry) && !needsEarlier(entries.slice(index)))
    if (from !== -1) return { ok: true, entries: entries.slice(from) }
    if (chunk[0]?.seq !== first) break
    if (first === 1) return { ok: true, entries }
  }
  return { ok: false, reason: 'gone', detail: `the entries before ${at} that tell what the context held are no longer kept` }
}

/** True if a turn acted that had started before these entries: its start says what it cleared. */
const needsEarlier = (entries: readonly LogEntry[]): boolean =>
  entries.some((entry) => entry.kind === 'turn-ended' && entry.status === 'result' && entry.started_seq < (entries[0]?.seq ?? 0))

async function placesOf({ database, history }: PastContextParts, ids: readonly string[]): Promise<Places> {
  const wanted = [...new Set(ids)]
  const sql = 'SELECT id, seq FROM events WHERE id IN (SELECT value FROM json_each(?1))'
  const found = new Map(database.allOf<{ id: string; seq: number }>(wanted, sql).map(({ id, seq }) => [id, seq]))
  const missing = new Set(wanted.filter((id) => !found.has(id)))
  const old = await history.search<{ id: string; seq: number }>('events', { ids: [...missing] }, ({ id }) => missing.has(id))
  for (const { id, seq } of old.rows) found.set(id, seq)
  return found
}

/** The JSON of the events at these places. */
export async function eventsAt(
  { database, history }: Pick<PastContextParts, 'database' | 'history'>,
  seqs: readonly number[],
): Promise<Map<number, string>> {
  const sql = 'SELECT seq, payload FROM events WHERE seq IN (SELECT value FROM json_each(?1))'
  const found = new Map(database.allOf<{ seq: number; payload: string }>(seqs, sql).map(({ seq, payload }) => [seq, payload]))
  const missing = new Set(seqs.filter((seq) => !found.has(seq)))
  const ranges = toRanges([...missing])
  const old = await history.search<{ seq: number; payload: Event }>('events', { ids: [], ranges }, ({ seq }) => missing.has(seq))
  for (const { seq, payload } of old.rows) found.set(seq, JSON.stringify(payload))
  return found
}
