import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byteLength, fitsBytes, jsonChunks } from '../../../src/base/json.ts'
import { assertProperty } from '../../support/property.ts'

/** Characters of one, two, three and four bytes, and both halves of a surrogate pair. */
const character = fc.constantFrom('a', '\0', '"', 'é', 'Ж', '漢', '€', '😀', '\ud83d', '\ude00')
const text = fc.array(character, { maxLength: 60 }).map((parts) => parts.join(''))
const bytesOf = (value: string): number => Buffer.byteLength(value, 'utf8')

describe('byteLength', () => {
  test.each([
    ['', 0],
    ['a', 1],
    ['é', 2],
    ['漢', 3],
    ['😀', 4],
    ['\ud83d', 3],
  ])('%j takes %i bytes', (value, bytes) => {
    expect(byteLength(value)).toBe(bytes)
  })

  test('counts what UTF-8 takes, for any text', () => {
    assertProperty(
      'base/byte-length: the length',
      fc.property(text, (value) => {
        expect(byteLength(value)).toBe(bytesOf(value))
      }),
    )
  })

  test('a text fits exactly where its bytes do', () => {
    assertProperty(
      'base/byte-length: a cut',
      fc.property(text, fc.nat(200), (value, bytes) => {
        expect(fitsBytes(value, bytes)).toBe(bytesOf(value) <= bytes)
      }),
    )
  })
})

describe('jsonChunks', () => {
  const most = 40

  test('keeps every value, in order, in chunks of at most so many bytes', () => {
    assertProperty(
      'base/byte-length: several texts',
      fc.property(fc.array(text, { maxLength: 40 }), (values) => {
        const chunks = jsonChunks(
          values.map((value) => JSON.stringify(value)),
          most,
        )
        expect(chunks.flatMap((chunk) => JSON.parse(chunk) as string[])).toEqual(values)
        for (const chunk of chunks) {
          const alone = (JSON.parse(chunk) as string[]).length === 1
          expect(alone || bytesOf(chunk) <= most).toBe(true)
        }
      }),
    )
  })

  test('fills a chunk to its last byte', () => {
    // Three texts of 5 bytes, two commas and two brackets are 19 bytes.
    expect(jsonChunks(['"漢"', '"漢"', '"漢"'], 19)).toEqual(['["漢","漢","漢"]'])
    expect(jsonChunks(['"漢"', '"漢"', '"漢"'], 18)).toEqual(['["漢","漢"]', '["漢"]'])
  })
})
