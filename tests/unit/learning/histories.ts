import type { JsonFields } from '../../../src/base/json.ts'
import type { Episode, EpisodeAct } from '../../../src/features/learning/episode.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'

type Fields = { type?: string } & JsonFields

/** A decision about an event with these fields. */
export function episode(index: number, fields: Fields, acts: EpisodeAct[], source = `user:${index % 7}`): Episode {
  const event = { ...sampleContext.event, id: `e${index}`, source, ...fields }
  return {
    id: `e${index}`,
    at: index,
    trace_id: `t${index}`,
    log_seq: index,
    place: { agent: 'test', agent_version: '1' },
    teacher: { by: 'model', agent_version: '1', model: 'm', prompt_hash: 'p', tools_hash: 't', settings_revision: 1 },
    source,
    saw: { event, recent_events: [event], window: sampleContext.window, scratch: {}, recent_actions: [] },
    acts,
    usage: { model_calls: 1, tokens: 10, cost_usd: 0, duration_ms: 1 },
    outcome: 'ok',
  }
}

const done = { ok: true, cost_usd: 0, duration_ms: 1 }
export const call = (name: string, input: JsonFields): EpisodeAct[] => [{ kind: 'tool', name, input, ...done }]
export const reply = (content: string): EpisodeAct[] => [{ kind: 'reply', name: '', input: { content }, ...done }]

/** Decides on `count` events, each of which `event` makes from its index. */
export const history = (count: number, event: (index: number) => [Fields, EpisodeAct[], string?]): Episode[] =>
  Array.from({ length: count }, (_, index) => episode(index, ...event(index)))
