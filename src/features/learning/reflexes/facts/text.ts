import { foldCaseSource } from '../../../../base/fold-case.ts'
import { LONGEST_TEXT, MOST_WORDS } from '../../../../base/words-of.ts'

const BEGINNING = 5

/** The first letters of a long word with a mark that no word has: words have endings. */
export const beginningOf = (word: string): string | null => (word.length > BEGINNING ? `${word.slice(0, BEGINNING)}-` : null)

/** The same function in learned code. */
export const WORDS_SOURCE = `function wordsOf(text) {
  if (typeof text !== 'string') return []
  const plain = ${foldCaseSource(`text.slice(0, ${LONGEST_TEXT})`)}.replace(/\\d+(?:[.,:]\\d+)*/g, (number) => (number.length > 3 ? '####' : '#'))
  const words = plain.split(/[\\s!-"$-/:-@[-\`{-~]+/)
  return ['^', ...words.filter((word) => word !== '').slice(0, ${MOST_WORDS})]
}`

/**
 * A JavaScript literal in ASCII and letters: no quote, backtick, tag, comment or line separator
 * of a stranger's text reaches the code unescaped.
 */
export const quote = (text: string): string =>
  `'${JSON.stringify(text)
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replaceAll(/[^\p{L}\p{N} !"#%&()+,\-.:;=?@[\]^_{|}~\\]/gu, escaped)}'`

const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join('')
