import { describe, expect, test } from 'vitest'
import { linesOf } from '../../../src/base/prompt-lines.ts'

const same = (one: string, other: string) => linesOf(one, [])[0] === linesOf(other, [])[0]

describe('lines of a prompt', () => {
  test.each([
    ['dates and times', 'Today is 2026-01-05T10:00:00Z, Monday.', 'Today is 2027-11-30, Friday.', true],
    ['days in words', 'It is 5 January 2026.', 'It is 6 May 2027.', true],
    ['ids', 'You serve 0199a-b2-c3d4 here.', 'You serve ffff1-0-a here.', true],
    ['long ids', 'You serve deadbeef1 here.', 'You serve 12345678 here.', true],
    ['objects', 'State: {"a": {"b": 1}} of {"c": 2} now.', 'State: {"x": []} now.', true],
    ['small numbers', 'Refund up to 10.', 'Refund up to 20.', false],
    ['words in hexadecimal without a digit', 'Serve a-b-c.', 'Serve a-b-d.', false],
    ['what is around an object', 'A {"a": 1} b.', 'A {"a": 1} c.', false],
    ['an object that does not end', 'A } {"a": 1', 'A } {"a": 2', false],
  ])('that differ in %s: %s and %s are alike: %s', (_, one, other, alike) => {
    expect(same(one, other)).toBe(alike)
  })

  test('are read in good time, whatever a stranger wrote into one', { tags: ['timed'] }, () => {
    const started = performance.now()
    for (const part of ['{"":', 'a-', '{ "', '1-a', 'ff-fg', ' {', '12:']) expect(linesOf(`${part.repeat(60_000)}!`, [])).toHaveLength(1)
    expect(performance.now() - started).toBeLessThan(3000)
  })
})
