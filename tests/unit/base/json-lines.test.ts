import { expect, test } from 'vitest'
import { JsonText, jsonLines, readJsonLines } from '../../../src/base/json-lines.ts'
import { limits } from '../../../src/base/limits.ts'

const item = (index: number) => ({ index, text: 'x\n"ü'.repeat(500), gone: undefined })
const named = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`key ${index}`, item(index)]))
const large = {
  name: null,
  list: Array.from({ length: 300 }, (_, index) => item(index)),
  named,
  empty: [],
  none: {},
  gone: undefined,
  yes: true,
}

async function* chunks(texts: Iterable<string>, size: number) {
  for (const text of texts) {
    const bytes = new TextEncoder().encode(text)
    for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
  }
}
const asJson = (value: object) => JSON.parse(JSON.stringify(value)) as object

test('an object is the same after it was written as lines and read, however they are cut', async () => {
  for (const size of [4093, 1_000_000]) expect(await readJsonLines(chunks(jsonLines(large), size))).toEqual(asJson(large))
  const odd = asJson({ own: JSON.parse('{"__proto__":{"a":1}}') as object, list: [undefined, [1], null] })
  expect(await readJsonLines(chunks(jsonLines(odd), 3))).toEqual(odd)
  expect([...jsonLines({ small: 1, none: [] })]).toHaveLength(1)
})

test('an item that is JSON already is written as it is', async () => {
  expect(await readJsonLines(chunks(jsonLines({ list: [new JsonText('{"a":1}'), { b: 2 }] }), 5))).toEqual({ list: [{ a: 1 }, { b: 2 }] })
})

test('a large object is written in texts of a limited size', () => {
  const texts = [...jsonLines(large)]
  expect(texts.length).toBeGreaterThan(4)
  for (const text of texts) expect(text.length).toBeLessThan(2 * limits.stream_page_bytes + 10_000)
})

test('lines that are cut off are refused', async () => {
  const [text = ''] = jsonLines({ list: [1, 2], named: { a: 1 } })
  await expect(readJsonLines(chunks([text.slice(0, -2)], 1000))).rejects.toThrow(/cut off/)
})
