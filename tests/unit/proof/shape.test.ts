import { expect, test } from 'vitest'
import { shapeOf } from '../../../src/proof/shape.ts'

const note = { type: 'note', id: 'a', text: 'x', more: { n: 1, tags: ['a'] } }

test('the shape of an event has the kinds of its fields and no values', () => {
  const same = [
    { ...note, id: 'b', text: 'other', more: { tags: ['b', 'c'], n: 7 } },
    { type: 'note', more: { tags: ['a'], n: 1 }, text: '', source: 's' },
  ]
  const others = [
    { ...note, type: 'other' },
    { ...note, text: 1 },
    { ...note, text: null },
    { ...note, extra: true },
    { ...note, more: { n: 1, tags: [1] } },
    { ...note, more: { n: 1 } },
  ]
  for (const event of same) expect(shapeOf(event)).toBe(shapeOf(note))
  expect(new Set([note, ...others].map(shapeOf)).size).toBe(others.length + 1)
})
