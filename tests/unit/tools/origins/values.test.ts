import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assertProperty } from '../../../support/property.ts'
import { formOf, linksIn, WholeWords } from '../../../../src/tools/origins/values.ts'

describe('the form of a value', () => {
  test.each([
    ['Bob@Example.com', 'bob@example.com'],
    ['https://www.example.com/', 'www.example.com'],
    ['mailto:bob@example.com', 'bob@example.com'],
    ['bob%40example.com', 'bob@example.com'],
    ['GB29 NWBK 6016 1331 9268 19', 'GB29NWBK60161331926819'],
    ['+49 (30) 123-4567', '+49301234567'],
    ['1,200.00', 1200],
    ['2026-01-05', '5.1.2026'],
    ['2026/01/05', '2026-1-5'],
    ['20260105', '2026-01-05'],
    ['#general', 'general'],
    ['Zoe\u0301', 'Zo\u00e9'],
  ])('%s is one with %s', (one, other) => {
    expect(formOf(one)).toBe(formOf(other))
  })

  test.each([
    ['192.168.1.10', '1.92.168.110'],
    ['007', 7],
    ['2026-01-05', '2026-05-01'],
    ['2026-13-05', '5.13.2026'],
    ['5/1/2026', '2026-01-05'],
    ['1.2.3', '2001-02-03'],
    ['111-2223333', '1112-223333'],
    ['bob@example.com', 'bob@example.co'],
    ['www.example.com/a', 'www.example.com'],
    ['аlice', 'alice'],
    ['bob\u200b', 'bob'],
    ['ｂob', 'bob'],
    ['bob%E2%80%8B', 'bob'],
  ])('%s is another one than %s', (one, other) => {
    expect(formOf(one)).not.toBe(formOf(other))
  })
})

describe('the links in a text', () => {
  test.each([
    ['Look at www.evil.example.', ['www.evil.example']],
    ['[here](https://evil.example/?q=secret)', ['https://evil.example/?q=secret']],
    ['<img src="https://evil.example/a.png">', ['https://evil.example/a.png']],
    ['url=https://evil.example', ['https://evil.example']],
    ['see evil.com or evil.example/login', ['evil.com', 'evil.example/login']],
    ['write to mailto:eve@evil.example', ['mailto:eve@evil.example']],
    ['ｗｗｗ.evil.example', ['www.evil.example']],
    ['w\u200bww.evil.example', ['www.evil.example']],
    ['www.evil.example www.evil.example', ['www.evil.example']],
  ])('of “%s” are %j', (text, links) => {
    expect(linksIn(text)).toEqual(links)
  })

  test.each(['e.g. this, and 1.5/2 or index.ts', 'Mr.Smith wrote v1.2.3 in node.js at 10:30', 'bob@example.com', 'and/or', ''])(
    'of “%s” are none',
    (text) => {
      expect(linksIn(text)).toEqual([])
    },
  )
})

describe('the words of a text', () => {
  const has = (text: string, value: string | number) => new WholeWords(text).has(value)

  test.each([
    ['Send it to bob@example.com, please.', 'bob@example.com'],
    ['Pay "Alice Smith" 20', 'Alice Smith'],
    ["Read Bob's page", 'Bob'],
    ['Pay the account GB29 NWBK 6016 1331 9268 19.', 'GB29NWBK60161331926819'],
    ['Order 4711 is late', 4711],
    ['See (https://example.com/news).', 'example.com/news'],
    ['Post it to www.our-company.com.They know.', 'www.our-company.com'],
  ])('of “%s” have %s', (text, value) => {
    expect(has(text, value)).toBe(true)
  })

  test.each([
    ['Send it to bob@example.com.au', 'bob@example.com'],
    ['Send it to not-bob@example.com', 'bob@example.com'],
    ['Read www.example.com', 'www.example.com/steal?data=1'],
    ['Read evil-example.com', 'example.com'],
    ['Order 47110', 4711],
    ['Pay GB29 NWBK 6016 1331 9268 19', 'GB29NWBK6016133192681'],
    ['Alice and Smith', 'Alice Smith'],
    ['Post it to www.our-company.com.They.example', 'www.our-company.com'],
    ['Post it to www.our-company.com.evil', 'www.our-company.com'],
    ['anything', ''],
  ])('of “%s” do not have %s', (text, value) => {
    expect(has(text, value)).toBe(false)
  })

  test('have each word of the text, and no other', () => {
    const word = fc.stringMatching(/^[a-z]{1,8}(?:@[a-z]{1,6}\.[a-z]{2,3})?$/)
    assertProperty(
      'tools/origins: words',
      fc.property(fc.array(word, { minLength: 1, maxLength: 12 }), word, (words, other) => {
        const said = new WholeWords(words.join(' '))
        for (const one of words) expect(said.has(one)).toBe(true)
        expect(said.has(other)).toBe(words.includes(other))
      }),
    )
  })
})
