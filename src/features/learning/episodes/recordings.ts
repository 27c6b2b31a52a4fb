import { isFields } from '../../../base/check-json.ts'
import { senderOf } from '../../../contract/sender.ts'
import type { Event } from '../../../core/event.ts'
import type { Recording } from '../../replay/recording.ts'
import type { ReflexContext } from '../../../reflexes/reflex-context.ts'
import type { Episode, Saw } from '../episode.ts'
import type { Trace } from '../skills/trace.ts'
import type { ContextsOf, EpisodeEvent } from './contexts.ts'
import { EpisodeReader, placeOf, textOf, type Skipped } from './reader.ts'
import { EpisodeTurns } from './turns.ts'

/** The decisions of exported traces, oldest first. */
export function readRecordings(recordings: readonly Recording[]): { episodes: Episode[]; skipped: Skipped[] } {
  const reasons = new Map<string, number>()
  const skip = (reason: string) => void reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  const episodes = recordings.flatMap((recording) => {
    const reader = new EpisodeReader(new RecordedContexts(recording))
    reader.receive(recording)
    return recording.entries.flatMap((entry) => reader.feed(entry, skip))
  })
  return {
    episodes: episodes.sort((one, other) => one.at - other.at || (one.id < other.id ? -1 : 1)),
    skipped: Array.from(reasons, ([reason, count]) => ({ reason, count })),
  }
}

/** The turns of an exported trace, with their calls; a run of a skill is one call. */
export function tracesOf(recording: Recording): Trace[] {
  const { agent, deployment, settings, trace_id, events } = recording
  const turns = new EpisodeTurns()
  return recording.entries.flatMap((entry) =>
    turns.feed(entry).flatMap((decided): Trace[] => {
      if (decided.by !== 'model' || !decided.whole) return []
      const ids = new Set(decided.ids)
      const about = events.flatMap(({ event }) => (ids.has(event.id) ? [event] : []))
      const [first] = about
      return [
        {
          trace_id,
          at: decided.at,
          place: placeOf({ agent, deployment, settings }, decided.agent),
          ...(first && { source: senderOf(first) }),
          goal: { text: textOf(about), labels: [...settings.goal_labels] },
          ...(decided.blackboard && { blackboard: decided.blackboard }),
          acts: decided.acts.map(({ act }) => act),
          usage: decided.usage,
          outcome: decided.outcome,
        },
      ]
    }),
  )
}

const UNKNOWN = 'the export does not have the context of its event'

/** Contexts in a recording: shown to reflexes that ran, or rebuilt by its scope. */
class RecordedContexts implements ContextsOf {
  readonly #by_id: ReadonlyMap<string, EpisodeEvent>
  readonly #by_seq: ReadonlyMap<number, EpisodeEvent>

  constructor({ entries, events, contexts = {} }: Recording) {
    const shown = new Map<string, Record<string, unknown>>()
    for (const [id, context] of Object.entries(contexts)) if (isFields(context)) shown.set(id, context)
    for (const entry of entries) {
      const [id = ''] = entry.event_ids
      if ((entry.kind === 'reflex-fired' || entry.kind === 'reflex-passed') && isFields(entry.context)) shown.set(id, entry.context)
    }
    const perceived = events.map(({ seq, event }): EpisodeEvent => {
      const saw = sawIn(shown.get(event.id))
      return { seq, event, saw, unknown: saw ? null : UNKNOWN }
    })
    this.#by_id = new Map(perceived.map((one) => [one.event.id, one]))
    this.#by_seq = new Map(perceived.map((one) => [one.seq, one]))
  }

  readonly lead = 1
  receive(): void {}
  feed(): void {}
  lost(): void {}
  forget(): void {}

  eventOf(id: string): Event | undefined {
    return this.#by_id.get(id)?.event
  }

  of(id: string): EpisodeEvent | undefined {
    return this.#by_id.get(id)
  }

  at(seq: number): EpisodeEvent | undefined {
    return this.#by_seq.get(seq)
  }
}

/** A file may have anything in place of a context. */
function sawIn(context: Record<string, unknown> | undefined): Saw | null {
  const { event, recent_events, window, scratch } = context ?? {}
  if (!isFields(event) || !Array.isArray(recent_events) || !isFields(window) || !isFields(scratch)) return null
  if (!['10s', '1m', '10m'].every((name) => isFields(window[name]) && isFields(window[name]['by_type']))) return null
  const seen = context as unknown as ReflexContext
  return { event: seen.event, recent_events: seen.recent_events, window: seen.window, scratch: seen.scratch, recent_actions: [] }
}
