import { foldCase } from './fold-case.ts'

/** Longer texts are read up to here, by the learner, its code and sequences alike. */
export const LONGEST_TEXT = 2000
export const MOST_WORDS = 256

/** Lower-case words after a mark `^`; a number is `#`, or `####` from four characters on. */
export const wordsOf = (text: string): string[] => [
  '^',
  ...foldCase(text.slice(0, LONGEST_TEXT))
    .replaceAll(/\d+(?:[.,:]\d+)*/g, (number) => (number.length > 3 ? '####' : '#'))
    .split(/[\s!-"$-/:-@[-`{-~]+/)
    .filter((word) => word !== '')
    .slice(0, MOST_WORDS),
]
