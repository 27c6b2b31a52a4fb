import { textOf } from '../../base/template.ts'
import { tokensOf } from '../../skills/manifest/keyword.ts'
import type { Occurrence } from './mine.ts'
import type { Slot } from './generalise.ts'
import type { Trace } from './trace.ts'

const MOST_KEYWORDS = 8
/** A cue multiplies the odds of the pattern by this much, and is in this share of its turns. */
const LEAST_ODDS = 3
const LEAST_SHARE = 0.3
const SHORTEST_WORD = 3

/** Words and goal labels by which turns with the pattern differ from those without. */
export function activationOf(occurrences: readonly Occurrence[], others: readonly Trace[], slots: readonly Slot[]) {
  const turns = occurrences.map(({ trace }) => trace)
  const isWord = (word: string): boolean => word.length >= SHORTEST_WORD && !/^\d+$/.test(word)
  const wordsOf = ({ goal }: Trace): string[] => tokensOf(goal?.text ?? '').filter(isWord)
  // A value of one turn says nothing about what a word means in another.
  const cuesIn = (turn: Trace, index: number): string[] => {
    const ofValues = new Set(slots.flatMap(({ values }) => tokensOf(textOf(values[index] ?? null))))
    return wordsOf(turn).filter((word) => !ofValues.has(word))
  }
  const keywords_any = telling(turns.map(cuesIn), others.map(wordsOf)).slice(0, MOST_KEYWORDS)
  const labelsOf = ({ goal }: Trace): string[] => goal?.labels ?? []
  const goal_labels = telling(turns.map(labelsOf), others.map(labelsOf)).slice(0, MOST_KEYWORDS)
  const score_weights = { goal_label: goal_labels.length > 0 ? 3 : 0, keyword_hit: keywords_any.length > 0 ? 1 : 0 }
  return { keywords_any, goal_labels, score_weights }
}

/** By log-odds with half a turn added to each count, highest first. */
function telling(withPattern: readonly (readonly string[])[], without: readonly (readonly string[])[]): string[] {
  const [inside, outside] = [countsOf(withPattern), countsOf(without)]
  const oddsOf = (count: number, turns: number): number => (count + 0.5) / (turns - count + 0.5)
  return Array.from(inside, ([word, count]) => ({
    word,
    share: count / withPattern.length,
    odds: oddsOf(count, withPattern.length) / oddsOf(outside.get(word) ?? 0, without.length),
  }))
    .filter(({ share, odds }) => share >= LEAST_SHARE && odds >= LEAST_ODDS)
    .sort((one, other) => other.odds - one.odds || (one.word < other.word ? -1 : 1))
    .map(({ word }) => word)
}

/** In how many of the turns each word is. */
function countsOf(turns: readonly (readonly string[])[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const words of turns) for (const word of new Set(words)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}
