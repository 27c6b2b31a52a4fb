import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { onAccount } from '../../../src/expressions/environment.ts'
import { isFound, patternOf } from '../../../src/expressions/pattern.ts'
import { assertProperty } from '../../support/property.ts'

function found(source: string, text: string): boolean | string {
  const read = patternOf(source)
  return read.ok ? onAccount({ left: Number.MAX_SAFE_INTEGER }, () => isFound(read.pattern, text)) : read.detail
}

describe('a pattern', () => {
  test.each([
    ['^INV-\\d{4}$', 'INV-2026', true],
    ['^INV-\\d{4}$', 'INV-20261', false],
    ['@example\\.com$', 'bob@example.com', true],
    ['@example\\.com$', 'bob@example.com.evil', false],
    ['(?i)straße|weg', 'STRASSE 3, Weg 4', true],
    ['(?:ab|cd)+e', 'xxabcde', true],
    ['[^a-c\\]]', 'abc]', false],
    ['[]x]', ']', true],
    ['[a-]', '-', true],
    ['\\bcat\\b', 'a cat.', true],
    ['\\bcat\\b', 'concat', false],
    ['a{2,}', 'a', false],
    ['a{0}b', 'b', true],
    ['a??b', 'b', true],
    ['.', '\n', false],
    ['^.$', '😀', true],
    ['', 'anything', true],
  ])('%s in %s: %s', (source, text, is_there) => {
    expect(found(source, text)).toBe(is_there)
  })

  test.each([
    ['(a)\\1', '\\1 is not available'],
    ['(?<n>a)', 'there is only `(?:`'],
    ['a**', 'a repetition is repeated'],
    ['+a', '`+` repeats nothing'],
    ['a{2,1}', '{2,1} is not a repetition'],
    ['a{1001}', '{1001} is not a repetition'],
    ['[z-a]', 'z-a is no range'],
    ['[[:alpha:]]', 'are not available'],
    ['[a', 'it ends too early'],
    ['a)', 'closes nothing'],
    ['('.repeat(30) + ')'.repeat(30), 'nested deeper than 20'],
  ])('%s is refused', (source, why) => {
    expect(found(source, '')).toContain(why)
  })

  test('is found where the patterns of JavaScript find it', () => {
    const leaf = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\d', '\\W', '\\b', '^', '$', '1')
    const pattern = fc.letrec<{ whole: string }>((tie) => ({
      whole: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        leaf,
        fc.tuple(tie('whole'), tie('whole')).map(([one, other]) => one + other),
        fc.tuple(tie('whole'), tie('whole')).map(([one, other]) => `(?:${one}|${other})`),
        fc.tuple(tie('whole'), fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '*?')).map(([of, times]) => `(${of})${times}`),
      ),
    })).whole
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '1', ' ', '\n'), maxLength: 8 })
    assertProperty(
      'expressions/pattern',
      fc.property(pattern, text, (source, said) => {
        expect(found(source, said)).toBe(new RegExp(source, 'u').test(said))
      }),
      { numRuns: 1000 },
    )
  })
})
