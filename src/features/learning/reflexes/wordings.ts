import type { Steps } from '../../../base/steps.ts'
import { MOST_BRANCHES } from '../../../contract/action.ts'

/** The share of all words that the kinds say together. */
const TOGETHER = 0.9
/** A word of so many texts is one of their own, and not the value of a slot. */
const COMMON = 0.2

/** `own`: places in the texts. `said`: the words, without what a slot gives. */
export type Wording = { own: readonly number[]; said: string }
/** `saidBy`: how such texts are said, if one template gives them. */
type Wanted = { least: number; saidBy: (own: readonly number[]) => Steps<string | null> }

/**
 * The kinds of words that are said beside the same acts, such as those after either outcome of a
 * look-up. None if they do not say almost all.
 */
export function* wordingsOf(texts: readonly string[], wanted: Wanted): Steps<Wording[]> {
  const found = yield* given(texts, shapesOf(texts).values(), wanted)
  const told = found.reduce((sum, { own }) => sum + own.length, 0)
  const isNamed = new Set(found.map(({ said }) => said)).size === found.length
  return told >= texts.length * TOGETHER && isNamed && found.length <= MOST_BRANCHES && found.length > 1 ? found : []
}

/** The most frequent kinds of words, whatever the others say. */
export function* frequentOf(texts: readonly string[], wanted: Wanted): Steps<Wording[]> {
  const found = yield* given(texts, bySize(texts), wanted)
  // Their words name decisions.
  return [...new Map(found.toReversed().map((one) => [one.said, one])).values()].toReversed().slice(0, MOST_BRANCHES)
}

/** The order of kinds of words by their senders, so that no sender alone chooses what all hear. */
export const mostHeard =
  (senders: readonly string[]) =>
  (one: readonly number[], other: readonly number[]): number => {
    const heardBy = (own: readonly number[]): number => new Set(own.map((place) => senders[place])).size
    return heardBy(other) - heardBy(one) || other.length - one.length
  }

/** The kind of words that comes first in an order. */
export function* likeliestOf(
  texts: readonly string[],
  { compare, ...wanted }: Wanted & { compare: ReturnType<typeof mostHeard> },
): Steps<Wording | undefined> {
  const found = yield* given(texts, bySize(texts), wanted)
  return found.sort((one, other) => compare(one.own, other.own))[0]
}

/** The kinds of words that one template gives, in texts of these shapes. */
function* given(texts: readonly string[], shapes: Iterable<readonly number[]>, { least, saidBy }: Wanted): Steps<Wording[]> {
  const found: Wording[] = []
  for (const own of shapes) yield* wordingsIn(own)
  return found

  function* wordingsIn(own: readonly number[]): Steps<void> {
    if (own.length < least || found.length > MOST_BRANCHES) return
    const said = yield* saidBy(own)
    if (said !== null) found.push({ own, said })
    else {
      const kinds = [...Map.groupBy(own, skeletonIn(texts, own)).values()]
      if (kinds.length > 1) for (const kind of kinds) yield* wordingsIn(kind)
    }
  }
}

/** The texts by their number of words and their first one. */
const shapesOf = (texts: readonly string[]): Map<string, number[]> =>
  Map.groupBy(texts.keys(), (place) => {
    const words = wordsIn(texts[place])
    return `${words.length} ${words[0]}`
  })

const bySize = (texts: readonly string[]): number[][] => [...shapesOf(texts).values()].sort((one, other) => other.length - one.length)

/** A text by its words that many of the others have, too. */
function skeletonIn(texts: readonly string[], own: readonly number[]): (place: number) => string {
  const counts = new Map<string, number>()
  for (const place of own) for (const word of new Set(wordsIn(texts[place]))) counts.set(word, (counts.get(word) ?? 0) + 1)
  return (place) =>
    wordsIn(texts[place])
      .map((word) => ((counts.get(word) ?? 0) >= own.length * COMMON ? word : GAP))
      .join(' ')
}

export const GAP = '…'
const wordsIn = (text = ''): string[] => text.split(/\s+/)
