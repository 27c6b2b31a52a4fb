import type { LogEntry, EntryOf } from '../contract/log-entry.ts'
import type { LogRange, OfTrace, RangeRecording, TraceRecording } from '../contract/scope-api.ts'
import type { Event } from '../core/event.ts'
import { JsonText } from '../base/json-lines.ts'
import type { RequestParts } from '../contract/model-request.ts'
import { isModelAsked } from '../contract/model-asked.ts'
import { isoDay } from '../base/time.ts'
import { RECENT_EVENTS } from '../reflexes/reflex-context.ts'
import { partsNamed } from '../traces/ids.ts'
import { joined, placesIn, toRanges } from '../traces/ranges.ts'
import type { Database } from '../kernel/unit.ts'
import { serving } from './storage/serving.ts'
import type { Recordings } from './reflexes/recordings.ts'
import type { Past } from './log/past.ts'
import type { Ground } from './storage/wiring.ts'

/** Entries and event bytes of one recording: it is sent as one message. */
const MOST_ENTRIES = 5000
const MOST_EVENT_BYTES = 16_000_000
const MOST_CONTEXT_BYTES = 8_000_000
/** Parts that are read before others are served: a prompt has some 10 kB. */
const PARTS_AT_ONCE = 32

type TraceRecordingParts = Pick<Ground, 'scope' | 'database' | 'log' | 'log_parts' | 'settings' | 'agent' | 'env'> & {
  history: Past
  recordings: Pick<Recordings, 'rebuilt'>
}

/**
 * The scope's part of a trace, without secrets; null if its log does not name the trace, and
 * without entries if the files that do cannot be read. What retention has deleted comes from the
 * archive. The scope is read first: rows may move meanwhile.
 */
export async function recordingOf(parts: TraceRecordingParts, { trace_id, contexts }: OfTrace): Promise<TraceRecording | null> {
  const { log, history } = parts
  const live = await liveEntries(log, trace_id)
  const old = await history.search<LogEntry>('log', { ids: [trace_id] }, (entry) => entry.trace_id === trace_id)
  const entries = merged([...live, ...old.rows]).slice(0, MOST_ENTRIES)
  if (entries.length === 0 && old.complete) return null
  const recording = await recordingWith(parts, entries, { is_whole: old.complete, lean: false })
  return { ...recording, ...(contexts && { contexts: await unseenBy(parts, entries) }) }
}

/** Lets other calls of the scope run between the parts of its log. */
async function liveEntries(log: TraceRecordingParts['log'], trace_id: string): Promise<LogEntry[]> {
  const found: LogEntry[] = []
  for (let after: number | null = 0; after !== null && found.length < MOST_ENTRIES;) {
    const { entries, next } = log.ofTrace(trace_id, after)
    found.push(...entries)
    after = next
    if (after !== null) await scheduler.wait(0)
  }
  return found
}

type RangeTexts = Omit<RangeRecording, 'entries'> & { entries: JsonText[] }

/** A part of the log, without secrets, with what its entries name. It is sent as the log has it. */
export async function rangeOf(
  parts: TraceRecordingParts,
  { since, after, limit, contexts = false, lean = false }: LogRange,
): Promise<RangeTexts> {
  const from = after ?? before(parts.database, since)
  const { entries, next, unavailable } = await parts.history.log(
    from,
    Math.min(limit, MOST_ENTRIES),
    undefined,
    lean ? { contexts: false } : {},
  )
  const resting = serving()
  const read: LogEntry[] = []
  for (const text of entries) {
    read.push(JSON.parse(text) as LogEntry)
    await resting.rest()
  }
  const recording = await recordingWith(parts, read, { is_whole: unavailable === undefined, lean })
  return {
    ...recording,
    entries: entries.map((text) => new JsonText(text)),
    ...(contexts && { contexts: await unseenBy(parts, read) }),
    next,
    ...(unavailable !== undefined && { unavailable }),
  }
}

/** The last place in the log that is before a time. Halves the log, whose times only grow. */
function before(database: Database, since: number): number {
  const oldest = database.first<{ seq: number; at: number }>('SELECT seq, at FROM log ORDER BY seq LIMIT 1')
  if (!oldest || oldest.at > since) {
    const sql = `SELECT first_seq AS seq FROM archive_files WHERE kind = 'log' AND day >= ? ORDER BY first_seq LIMIT 1`
    return (database.first<{ seq: number }>(sql, isoDay(since))?.seq ?? 1) - 1
  }
  let low = oldest.seq
  let high = database.first<{ seq: number }>('SELECT seq FROM log ORDER BY seq DESC LIMIT 1')?.seq ?? oldest.seq
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const row = database.first<{ seq: number; at: number }>('SELECT seq, at FROM log WHERE seq <= ? ORDER BY seq DESC LIMIT 1', middle)
    if (row && row.at < since) low = middle
    else high = (row?.seq ?? middle) - 1
  }
  return low - 1
}

type How = { is_whole: boolean; lean: boolean }

async function recordingWith(parts: TraceRecordingParts, entries: LogEntry[], { is_whole, lean }: How): Promise<TraceRecording> {
  const { scope, log, settings, agent, env } = parts
  const events = await eventsOf(parts, entries, lean)
  const asked = lean ? [] : await requestsOf(parts, events.rows)
  const named = await partsOf(parts, [...new Set([...entries.flatMap(lean ? basisNamed : partsNamed), ...asked])])
  const { name, version = null } = agent()
  return {
    scope,
    agent: { name, version },
    deployment: env.CF_VERSION_METADATA?.id ?? null,
    settings: log.clean(settings()) as TraceRecording['settings'],
    complete: is_whole && isComplete(entries) && events.complete && named.complete,
    entries,
    events: events.rows,
    parts: named.parts,
  }
}

/** Rebuilds contexts for the events on which no reflex ran. */
async function unseenBy({ recordings }: TraceRecordingParts, entries: readonly LogEntry[]): Promise<Record<string, unknown>> {
  const accepted = entries.flatMap(({ kind, event_ids }) => (kind === 'event-accepted' ? event_ids : []))
  return accepted.length === 0 ? {} : recordings.rebuilt(accepted, MOST_CONTEXT_BYTES)
}

const merged = <Row extends { seq: number }>(rows: Row[]): Row[] =>
  Array.from(new Map(rows.map((row) => [row.seq, row])).values()).toSorted((one, other) => one.seq - other.seq)

/** The parts that requests to a model consist of. */
async function requestsOf(parts: TraceRecordingParts, rows: TraceRecording['events']): Promise<string[]> {
  const hashes = rows.flatMap(({ event }) => (isModelAsked(event) ? [event.request_hash] : []))
  if (hashes.length === 0) return []
  const { parts: requests } = await partsOf(parts, hashes)
  const named = Object.values(requests).flatMap((request) => {
    const { prompt, tools } = request as Partial<RequestParts>
    return [...(prompt ?? []), ...(tools === undefined ? [] : [tools])]
  })
  return [...hashes, ...named]
}

async function partsOf({ log_parts, history }: TraceRecordingParts, hashes: readonly string[]) {
  const parts: Record<string, unknown> = {}
  const resting = serving()
  for (let from = 0; from < hashes.length; from += PARTS_AT_ONCE) {
    Object.assign(parts, log_parts.read(hashes.slice(from, from + PARTS_AT_ONCE)))
    await resting.rest(PARTS_AT_ONCE)
  }
  const missing = hashes.filter((hash) => !Object.hasOwn(parts, hash))
  const old = await history.search<{ hash: string; value: unknown }>('parts', { ids: missing }, ({ hash }) => missing.includes(hash))
  for (const { hash, value } of old.rows) parts[hash] = value
  return { parts, complete: old.complete }
}

/** True if each event that the trace brought has its outcome, and each turn its end. */
function isComplete(entries: readonly LogEntry[]): boolean {
  const open = new Set<string>()
  for (const entry of entries) {
    const [id = ''] = entry.event_ids
    if (entry.kind === 'event-accepted' || entry.kind === 'event-reopened') open.add(id)
    if (entry.kind === 'event-ended') open.delete(id)
    if (entry.kind === 'turn-started') open.add(entry.turn_id)
    if (entry.kind === 'turn-ended') open.delete(entry.turn_id)
  }
  return open.size === 0
}

const basisNamed = (entry: LogEntry): string[] => ('basis' in entry && typeof entry.basis === 'string' ? [entry.basis] : [])

/** The events of a turn, and the newest of its context. */
const newestSeen = ({ considered, saw }: EntryOf<'turn-started'>): [number, number][] => [
  ...considered,
  ...toRanges(placesIn(saw.seqs).slice(-RECENT_EVENTS)),
]

/** The events that the entries are about, and those that a turn saw. */
async function eventsOf({ database, log, history }: TraceRecordingParts, entries: readonly LogEntry[], lean: boolean) {
  const named = new Set(entries.flatMap(({ event_ids }) => event_ids))
  const ids = [...named]
  const seen = joined(entries.flatMap((entry) => (entry.kind === 'turn-started' ? (lean ? newestSeen(entry) : entry.saw.seqs) : [])))
  const live = [
    ...database.allOf<RecordedRow>(ids, 'SELECT seq, payload FROM events WHERE id IN (SELECT value FROM json_each(?1))'),
    ...seen.flatMap(([first, last]) => database.all<RecordedRow>('SELECT seq, payload FROM events WHERE seq BETWEEN ? AND ?', first, last)),
  ]
  const isSeen = ({ id, seq }: OldRow) => named.has(id) || seen.some(([first, last]) => first <= seq && seq <= last)
  const old = await history.search<OldRow>('events', { ids, ranges: seen }, isSeen)
  const rows: TraceRecording['events'] = []
  let left = MOST_EVENT_BYTES
  const found = merged([...live, ...old.rows.map((row) => ({ ...row, payload: JSON.stringify(row.payload) }))])
  const resting = serving()
  for (const { seq, payload } of found) {
    await resting.rest()
    left -= payload.length
    if (left > 0) rows.push({ seq, event: log.clean(JSON.parse(payload)) as Event })
  }
  return { rows, complete: old.complete }
}

type RecordedRow = { seq: number; payload: string }
type OldRow = { seq: number; id: string; payload: Event }
