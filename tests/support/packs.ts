import { env } from 'cloudflare:workers'
import { withDefaults, type Event } from '../../src/core/event.ts'
import { replicateEvents, type Report } from '../../src/store/replicate.ts'

/** A report of a scope about itself. */
export const scopeRow = (scope: string) => ({
  scope,
  agent: 'x',
  open: 0,
  wake_at: null,
  updated_at: 0,
  parked: 0,
  spans_exported: 0,
  spans_dropped: 0,
})

export const eventAt = (scope: string, at: number, fields: object = {}): Event =>
  withDefaults(
    { type: 'test.note', text: `note at ${at}`, timestamp: new Date(at).toISOString(), ...fields },
    { now: at, source: 'test', scope },
  ) as Event

/** The report of a scope about an event that has completed. */
export function reportOf(event: Event, fields: Partial<Report> = {}): Report {
  const at = Date.parse(event.timestamp)
  const facts = { attempts: 1, error: null, stack: null, accepted_at: at, ended_at: at + 1, discarded: false, parent_id: null }
  const { id, timestamp, meta } = event
  const traits = { agent: 'x', log_from: 1, kinds: 1, skills: '' }
  const payload = JSON.stringify(event)
  return { id, status: 'completed', revision: 1, payload, trace_id: meta.trace_id, timestamp, ...facts, ...traits, ...fields }
}

/** So many events, a second apart, in one pack. */
export async function packedNotes(scope: string, events: number, from: number): Promise<Event[]> {
  const sent = Array.from({ length: events }, (_, index) => eventAt(scope, from + index * 1000))
  await replicateEvents(
    env.DB,
    sent.map((event, index) => reportOf(event, { nth: index + 1 })),
    scopeRow(scope),
    { least_packed: 1 },
  )
  return sent
}
