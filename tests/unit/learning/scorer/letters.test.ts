import { describe, expect, test } from 'vitest'
import { NUMBERS_SOURCE, numbersIn } from '../../../../src/evidence/numbers.ts'
import { wordsOf } from '../../../../src/base/words-of.ts'
import { WORDS_SOURCE } from '../../../../src/features/learning/reflexes/facts/text.ts'
import { QuickJsSandbox } from '../../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../../src/reflexes/reflex-context.ts'
import { sandboxModule } from '../../../support/sandbox-module.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const code = `function reflex(context) {
  const read = ${read.toString()}
  return { read: read(context.event.texts, wordsOf, numbersIn) }
}
${WORDS_SOURCE}
${NUMBERS_SOURCE}`

function read(texts: readonly string[], words: typeof wordsOf, numbers: typeof numbersIn): string[][] {
  return texts.map((text) => [...words(text), ...numbers(text).map(({ place }) => place)])
}
const inSandbox = (texts: readonly string[]): unknown =>
  sandbox.run({ hash: 'letters', code }, { ...sampleContext, event: { ...sampleContext.event, texts } }).value

/** The letter alone, and beside a sigma, whose small form depends on what is around it. */
const textWith = (letter: string): string => `${letter} a${letter}Σ aΣ${letter}b aΣ${letter} ${letter}Σ 7`

describe('the words and numbers of a text', () => {
  // A machine with other work takes three times as long as a quiet one.
  test('are the same in the sandbox for each character, whatever version of Unicode has it', { timeout: 300_000 }, () => {
    // The plane of ideographs, which have no case, by samples.
    const planes = [
      { first: 0, end: 0x2_00_00, step: 64 },
      { first: 0x2_00_00, end: 0x3_00_00, step: 1024 },
      { first: 0xe_00_00, end: 0xe_02_00, step: 64 },
    ]
    for (const { first, end, step } of planes) {
      for (let from = first; from < end; from += step) {
        const texts = Array.from({ length: 64 }, (_, nth) => textWith(String.fromCodePoint(from + nth)))
        expect(inSandbox(texts)).toEqual({ read: read(texts, wordsOf, numbersIn) })
      }
    }
  })

  test.each([
    ['WHERE IS MY CARD', '^ where is my card'],
    ['ÄRGER MIT İSTANBUL UND ẞ', '^ ärger mit i̇stanbul und ß'],
    ['ΟΔΟΣ ΣΟΦΙΑΣ', '^ οδοσ σοφιασ'],
    ['οδος Σοφίας', '^ οδοσ σοφίασ'],
    ['ГДЕ МОЯ КАРТА', '^ где моя карта'],
    ['ՈՒՐ Է ԻՄ ՔԱՐՏԸ', '^ ուր է իմ քարտը'],
    ['ᲡᲐᲓ ẤP ＡＢ', '^ სად ấp ａｂ'],
    ['漢字AB 𐐀', '^ 漢字ab 𐐀'],
  ])('of %s are in small letters, if its script is one of those that are folded', (text, words) => {
    expect(wordsOf(text).join(' ')).toBe(words)
  })
})
