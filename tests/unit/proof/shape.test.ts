import { expect, test } from 'vitest'
import { shapeOf } from '../../../src/evidence/shape.ts'

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

test('the shape of an event goes five levels deep', () => {
  const at = (deep: unknown) => shapeOf({ type: 'note', a: { b: { c: { d: deep } } } } as { type: string })
  expect(at({ x: 1 })).toBe(at({ x: 'text' }))
  expect(at({ x: 1 })).not.toBe(at({ y: 1 }))
  expect(at(1)).not.toBe(at('text'))
  expect(at([1])).toBe(at(['text']))
})

test('a list has the kinds of its items, whatever their order and number', () => {
  const of = (...list: unknown[]) => shapeOf({ type: 'note', list } as { type: string })
  expect(of(1, 'a')).toBe(of('a', 2, 3))
  expect(of(1, 'a')).not.toBe(of(1))
  expect(of()).not.toBe(of(1))
})

test('a shape is eight hexadecimal digits', () => {
  expect(shapeOf(note)).toMatch(/^[\da-f]{8}$/)
})

test('lists are read as deep as fields', () => {
  const at = (list: unknown) => shapeOf({ type: 'note', list } as { type: string })
  expect(at([[[1]]])).not.toBe(at([[['text']]]))
  expect(at([[[[1]]]])).toBe(at([[[['text']]]]))
})

test('a shape stays what it was: certificates have it stored', () => {
  const event = { ...note, extra: null, yes: true }
  expect(shapeOf(event)).toBe('362a155f')
})
