import type { NewEntry } from '../../contract/log-entry.ts'
import { bitOf } from '../../contract/reports/trace.ts'
import { spanKindOf } from '../../traces/said.ts'

/** The traits of an event by the log, for the list of traces. `skills` has one id a line. */
export type Traits = { log_from: number; kinds: number; skills: string }

export type Changes = Map<string, Traits>

type About = Pick<NewEntry, 'kind' | 'event_ids'> & { skill_id?: unknown; via?: unknown }

/** Notes the events that an entry names. */
export function noteEntry(changes: Changes, { kind, event_ids, skill_id, via }: About, seq: number): void {
  const bit = bitOf(spanKindOf(kind)) | (via === 'queue' ? bitOf('queue') : 0)
  const skill = typeof skill_id === 'string' ? `\n${skill_id}\n` : ''
  for (const id of event_ids) {
    const known = changes.get(id)
    if (!known) changes.set(id, { log_from: seq, kinds: bit, skills: skill })
    else {
      known.kinds |= bit
      if (!known.skills.includes(skill)) known.skills += skill
    }
  }
}
