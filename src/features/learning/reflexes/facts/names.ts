import { wordsOf } from '../../../../base/words-of.ts'
import { pathKey, type ContextPath } from './condition.ts'
import type { Leaves } from './facts.ts'

/** Characters of a name, such as `B-KL 123` or `db-7.eu`; a longer text is prose. */
const LONGEST_NAME = 32
/** Words that the names of a field have, numbers apart. */
const MOST_WORDS_OF_NAMES = 60
/** Times that each of these words has to come. */
const LEAST_OF_A_WORD = 3

/** Fields whose texts are read, the first ones: a guard for each of them is in the code. */
const MOST_FIELDS = 40

export type FieldNames = ReadonlyMap<string, { path: ContextPath; words: readonly string[] }>

/**
 * The fields of events whose texts are names: short, and made of words that come again and again,
 * beside numbers. A word that nobody has seen tells another text from them, so that a guard that
 * knows the words keeps a rule to names.
 */
export class Names {
  /** Null: a field with prose. */
  readonly #fields = new Map<string, { path: ContextPath; counts: Map<string, number> } | null>()

  read({ leaves }: Leaves): void {
    for (const { path, value } of leaves) {
      if (typeof value !== 'string' || path[0] !== 'event' || path[1] === 'type' || path[1] === 'meta') continue
      const key = pathKey(path)
      const known = this.#fields.get(key)
      if (known === null || (known === undefined && this.#fields.size >= MOST_FIELDS)) continue
      const { counts } = known ?? { counts: new Map<string, number>() }
      if (value.length <= LONGEST_NAME) for (const word of wordsOf(value)) counts.set(word, (counts.get(word) ?? 0) + 1)
      this.#fields.set(key, value.length > LONGEST_NAME || counts.size > MOST_WORDS_OF_NAMES ? null : { path, counts })
    }
  }

  /** The fields by `pathKey`, with their words. */
  all(): FieldNames {
    return new Map(
      Array.from(this.#fields).flatMap(([key, field]) => {
        if (!field || [...field.counts.values()].some((times) => times < LEAST_OF_A_WORD)) return []
        return [[key, { path: field.path, words: [...field.counts.keys()].sort() }]]
      }),
    )
  }
}
