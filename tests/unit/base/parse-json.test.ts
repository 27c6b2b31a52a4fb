import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseJson } from '../../../src/base/check-json.ts'
import { assertProperty } from '../../support/property.ts'

describe('malformed JSON is refused with the place', () => {
  test.each([
    ['', 0, 'unexpected end'],
    ['{', 1, 'unexpected end'],
    ['{"a":}', 5, 'unexpected "}"'],
    ['{"a" 1}', 5, 'unexpected "1"'],
    ['{"a":1,}', 7, 'unexpected "}"'],
    ['{a:1}', 1, 'unexpected "a"'],
    ['[1 2]', 3, 'unexpected "2"'],
    ['[1,]', 3, 'unexpected "]"'],
    ['[1}', 2, 'unexpected "}"'],
    ['[01]', 2, 'unexpected "1"'],
    ['[+1]', 1, 'unexpected "+"'],
    ['nul', 0, 'unexpected "n"'],
    ['"a', 2, 'unexpected end'],
    ['"a\\x"', 2, 'unexpected "\\\\"'],
    ['"a\nb"', 2, 'unexpected "\\n"'],
    ['{} {}', 3, 'unexpected "{"'],
    ["['a']", 1, 'unexpected "\'"'],
    ['"\u007f\u0085" x', 5, 'unexpected "x"'],
  ])('%j at %i', (text, position, found) => {
    expect(parseJson(text)).toEqual({ ok: false, message: expect.stringContaining(`at position ${position} (`) })
    expect(parseJson(text)).toEqual({ ok: false, message: expect.stringContaining(found) })
  })

  test('in lines and columns too', () => {
    expect(parseJson('{\n  "a": x\n}')).toEqual({ ok: false, message: 'malformed JSON at position 9 (line 2, column 8): unexpected "x"' })
  })

  test('however deep or long it is', () => {
    expect(parseJson('['.repeat(500_000))).toMatchObject({ ok: false, message: expect.stringContaining('position 500000 ') })
    expect(parseJson(`"${'é\\n'.repeat(300_000)}`)).toMatchObject({ ok: false, message: expect.stringContaining('position 900001 ') })
  })

  test('and what is cut short or broken is never said to break later than it does', () => {
    assertProperty(
      'base/parse-json: a cut',
      fc.property(fc.json(), fc.nat(), (text, cut) => {
        const broken = `${text.slice(0, cut % text.length)}\u0000`
        const at = Number(/position (\d+)/.exec(JSON.stringify(parseJson(broken)))?.[1])
        expect(at).toBeLessThan(broken.length)
      }),
    )
  })

  test('and what JSON.parse takes is taken', () => {
    assertProperty(
      'base/parse-json: any text',
      fc.property(fc.json(), (text) => {
        expect(parseJson(text)).toEqual({ ok: true, value: JSON.parse(text) })
      }),
    )
  })
})
