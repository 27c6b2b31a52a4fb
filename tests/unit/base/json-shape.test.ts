import { expect, test } from 'vitest'
import { JsonShape } from '../../../src/base/json-shape.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const shapeOf = (...chunks: string[]) => {
  const shape = new JsonShape()
  return chunks.map((chunk) => shape.add(bytes(chunk)))
}

test('a file of JSON is refused at its first bracket that is nested too deeply', () => {
  expect(shapeOf('['.repeat(128) + ']'.repeat(128))).toEqual([null])
  expect(shapeOf('['.repeat(100), '{"a":'.repeat(29))).toEqual([null, 'is nested deeper than 128 levels'])
})

test('a file of JSON is refused once it has too many values', () => {
  const [first, second] = shapeOf(`[${'{},'.repeat(200_000)}`, '{},'.repeat(200_000))
  expect([first, second]).toEqual([null, 'has more than 500000 values'])
})

test('brackets and commas in texts do not count, also where a chunk ends within a text or an escape', () => {
  expect(shapeOf(`{"a":"${'['.repeat(1000)}`, `${','.repeat(600_000)}\\`, `"${'{'.repeat(1000)}"}`)).toEqual([null, null, null])
})
