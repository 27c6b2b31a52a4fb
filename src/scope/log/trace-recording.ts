import type { LogEntry } from '../../contract/log-entry.ts'
import type { TraceRecording } from '../../contract/scope-api.ts'
import type { Event } from '../../core/event.ts'
import type { Ground } from '../storage/wiring.ts'

/** Entries and event bytes of one recording: it is sent as one message. */
const MOST_ENTRIES = 5000
const MOST_EVENT_BYTES = 16_000_000

type Parts = Pick<Ground, 'scope' | 'database' | 'log' | 'log_parts' | 'settings' | 'agent' | 'env'>

/** The scope's part of a trace, without secrets; null if its log does not name the trace. */
export function recordingOf(parts: Parts, trace_id: string): TraceRecording | null {
  const { scope, log, log_parts, settings, agent, env } = parts
  const entries = log.ofTrace(trace_id, MOST_ENTRIES)
  if (entries.length === 0) return null
  const { name, version = null } = agent()
  return {
    scope,
    agent: { name, version },
    deployment: env.CF_VERSION_METADATA?.id ?? null,
    settings: log.clean(settings()) as TraceRecording['settings'],
    complete: isComplete(entries),
    entries,
    events: eventsOf(parts, entries),
    parts: log_parts.read([...new Set(entries.flatMap(partsNamed))]),
  }
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

function partsNamed(entry: LogEntry): string[] {
  if (entry.kind === 'model-called') return entry.prompt ?? []
  const named = (entry.kind === 'event-accepted' || entry.kind === 'turn-started') && entry.basis
  return named ? [named] : []
}

/** The events that the entries are about, and those that a turn saw. */
function eventsOf({ database, log }: Parts, entries: readonly LogEntry[]): TraceRecording['events'] {
  const ids = [...new Set(entries.flatMap(({ event_ids }) => event_ids))]
  const seen = entries.flatMap((entry) => (entry.kind === 'turn-started' ? entry.saw.seqs : []))
  const rows = [
    ...database.allOf<Row>(ids, 'SELECT seq, payload FROM events WHERE id IN (SELECT value FROM json_each(?1))'),
    ...seen.flatMap(([first, last]) => database.all<Row>('SELECT seq, payload FROM events WHERE seq BETWEEN ? AND ?', first, last)),
  ]
  const found = new Map<number, Event>()
  let left = MOST_EVENT_BYTES
  for (const { seq, payload } of rows) {
    left -= payload.length
    if (left > 0) found.set(seq, log.clean(JSON.parse(payload)) as Event)
  }
  return Array.from(found, ([seq, event]) => ({ seq, event })).toSorted((one, other) => one.seq - other.seq)
}

type Row = { seq: number; payload: string }
