import type { NewEntry } from '../../contract/log-entry.ts'
import { PARTIAL } from '../../contract/reports/trace.ts'
import type { CallReport } from '../../store/traces/calls.ts'
import { spanBitOf } from '../../traces/entries/table.ts'

/** The traits of an event by the log, for the list of traces. `skills` has one id a line. */
export type TraceTraits = { log_from: number; kinds: number; skills: string }

/** Changed events by id, and traces by the entries that name no event. */
export type TraitChanges = { events: Map<string, TraceTraits>; calls: Map<string, CallReport> }
export const noChanges = (): TraitChanges => ({ events: new Map(), calls: new Map() })

type About = Pick<NewEntry, 'kind' | 'event_ids' | 'trace_id' | 'duration_ms'> & { skill_id?: unknown; status?: unknown; outcome?: unknown }

/** Notes the events that an entry names, or else its trace. `at` in ms. */
export function noteEntry({ events, calls }: TraitChanges, entry: About, { seq, at }: { seq: number; at: number }): void {
  const bit = spanBitOf(entry.kind) | (isPartial(entry) ? PARTIAL : 0)
  const skill = typeof entry.skill_id === 'string' ? `\n${entry.skill_id}\n` : ''
  for (const id of entry.event_ids) extend(events, id, { log_from: seq, kinds: bit, skills: skill })
  // A replay writes nothing but its entry of the log.
  if (entry.event_ids.length > 0 || entry.kind === 'replay-done') return
  const known = calls.get(entry.trace_id)
  const failed = entry.status === 'failed' || entry.status === 'unknown' || entry.status === 'error'
  const status = entry.kind.endsWith('-started') ? 'running' : failed || known?.status === 'error' ? 'error' : 'ok'
  const started_at = Math.floor(at - (entry.duration_ms ?? 0))
  const { trace_id } = entry
  const call = extend(calls, trace_id, {
    trace_id,
    log_from: seq,
    kinds: bit,
    skills: skill,
    started_at,
    ended_at: at,
    status,
    revision: seq,
  })
  Object.assign(call, { status, revision: seq, ended_at: Math.max(call.ended_at, at), started_at: Math.min(call.started_at, started_at) })
}

const isPartial = ({ kind, outcome }: About): boolean =>
  kind === 'event-ended' && (outcome as { partial?: unknown } | null)?.partial === true

function extend<Kept extends TraceTraits>(changes: Map<string, Kept>, id: string, traits: Kept): Kept {
  const known = changes.get(id)
  if (!known) {
    changes.set(id, traits)
    return traits
  }
  known.kinds |= traits.kinds
  if (!known.skills.includes(traits.skills)) known.skills += traits.skills
  return known
}
