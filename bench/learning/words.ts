import type { EpisodeAct } from '../../src/features/learning/episode.ts'
import { withoutWords } from '../../src/features/learning/reflexes/classes.ts'
import { same } from '../../src/features/learning/run/policy.ts'
import { hashOf } from './draw.ts'

const PHRASES = ['Done.', 'I have taken care of that for you.', 'All set!', 'Okay, it is on its way.']

/** A phrase that says nothing about the event, drawn for each answer. */
export function wordsOf(id: string, attempt: number): EpisodeAct {
  const content = PHRASES[hashOf(`words ${id} ${attempt}`) % PHRASES.length] ?? ''
  return { kind: 'reply', name: '', input: { content }, ok: true, cost_usd: 0, duration_ms: 0 }
}

/** True for the same acts, as a scope compares them where nobody hears the words. */
export const sameActs = (one: readonly EpisodeAct[], other: readonly EpisodeAct[]): boolean => same(withoutWords(one), withoutWords(other))
