import type { LogEntry, EntryOf } from '../../../contract/log-entry.ts'
import type { Episode, EpisodeAct } from '../episode.ts'
import { replyAct } from './decided.ts'

/** A judgement of the decision on an event, by a person or by a later turn that undid it. */
export type Correction = Pick<Episode, 'id' | 'at' | 'log_seq' | 'outcome'> & {
  by: 'person' | 'model'
  /** Null: the acts of the decision itself. */
  acts: EpisodeAct[] | null
}

/** Decisions that somebody may still judge. */
const MOST_KNOWN = 1000

/** The episode of a decision after somebody judged it. */
export const corrected = (episode: Episode, { by, acts, ...change }: Correction): Episode => ({
  ...episode,
  ...change,
  teacher: by === 'model' ? episode.teacher : { ...byPerson, agent_version: episode.place.agent_version },
  acts: acts ?? episode.acts,
  usage: { model_calls: 0, tokens: 0, cost_usd: 0, duration_ms: 0 },
})

const byPerson = { by: 'person', model: 'none', prompt_hash: '', tools_hash: '', settings_revision: 0 } as const

/** Follows judgements of decisions, which count instead of them. */
export class People {
  readonly #known = new Map<string, Episode>()
  readonly #fired = new Map<string, EntryOf<'reflex-fired'>>()
  readonly #judged = new Set<string>()
  /** About decisions that were read before, or are not kept. */
  #apart: Correction[] = []

  know(episodes: readonly Episode[]): void {
    for (const episode of episodes) this.#known.set(episode.id, episode)
    forgetOldest(this.#known)
  }

  /** The action of a reflex that has ended an event, until somebody judges it. */
  decidedBy(entry: EntryOf<'event-ended'>): EntryOf<'reflex-fired'> | null {
    const [id = ''] = entry.event_ids
    const fired = this.#fired.get(id)
    this.#fired.delete(id)
    return entry.outcome.by === 'reflex' ? (fired ?? null) : null
  }

  /** The episodes that replace the episodes of decisions which this entry judges. */
  feed(entry: LogEntry): Episode[] {
    const [id = ''] = entry.event_ids
    if (entry.kind === 'reflex-fired' && entry.state === 'active' && !entry.reused) {
      this.#fired.set(id, entry)
      forgetOldest(this.#fired)
    }
    const correction = this.#correction(entry, id)
    if (!correction) return []
    const known = this.#known.get(id)
    if (!known) this.#apart.push(correction)
    return known ? [corrected(known, correction)] : []
  }

  takeApart(): Correction[] {
    const apart = this.#apart
    this.#apart = []
    return apart
  }

  #correction(entry: LogEntry, id: string): Correction | null {
    const place = { id, at: Date.parse(entry.at), log_seq: entry.seq }
    if (entry.kind === 'decision-judged') {
      this.#judged.add(id)
      forgetOldest(this.#judged)
      const { right, reply } = entry
      if (right || reply === null) return { ...place, by: 'person', acts: null, outcome: right ? 'ok' : 'overruled' }
      return { ...place, by: 'person', acts: [replyAct(reply)], outcome: 'corrected' }
    }
    // A judgement of a person is more than that the act was overruled by it.
    if (entry.kind !== 'reflex-overruled' || id === '' || this.#judged.has(id)) return null
    return { ...place, by: entry.turn_id === null ? 'person' : 'model', acts: [], outcome: 'corrected' }
  }
}

function forgetOldest(all: Map<string, unknown> | Set<string>): void {
  const [oldest] = all.keys()
  if (all.size > MOST_KNOWN && oldest !== undefined) all.delete(oldest)
}
