import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { diff, emptyBlackboard, seedBlackboard, writeBlackboard, type Blackboard } from '../../../../src/skills/plan/blackboard.ts'
import type { JsonFields } from '../../../../src/base/json.ts'
import { assertProperty } from '../../../support/property.ts'

describe('a blackboard', () => {
  test('is seeded from its sources, the later ones winning, and says whose each value is', () => {
    const seeded = seedBlackboard({
      settings: { ctx: { subscription: 'blue', region: 'eu' }, env: { os: 'linux' } },
      agent_state: { ctx: { region: 'us' }, work: { step: 1 } },
      probes: { os: 'bsd', az: { account: 1 } },
      override: { work: { step: 2 } },
    })
    expect(seeded).toEqual({
      ok: true,
      blackboard: { ctx: { subscription: 'blue', region: 'us' }, env: { os: 'bsd', az: { account: 1 } }, work: { step: 2 }, policy: {} },
      sources: {
        'ctx.subscription': 'settings',
        'ctx.region': 'agent_state',
        'env.os': 'probes',
        'env.az': 'probes',
        'work.step': 'override',
      },
      overridden: [{ path: 'work.step', change: 'changed', before: 1, after: 2 }],
    })
  })

  test('copies what it is seeded from', () => {
    const work = { list: [1] }
    const seeded = seedBlackboard({ settings: { work } })
    expect(seeded.ok && seeded.blackboard.work['list']).not.toBe(work.list)
  })

  test.each([
    ['a name that is not allowed', { settings: { work: JSON.parse('{"__proto__": {"x": 1}}') } }, 'not_json'],
    ['values that are not JSON', { probes: { at: new Map() as unknown as JsonFields, f: (() => 1) as unknown as number } }, 'not_json'],
    ['too much', { agent_state: { work: { text: 'x'.repeat(300_000) } } }, 'too_large'],
  ])('refuses %s', (_, seeds, reason) => {
    expect(seedBlackboard(seeds)).toMatchObject({ ok: false, reason })
  })

  test('is written under work, and where an output is bound, without changing the old one', () => {
    const before = emptyBlackboard()
    const written = writeBlackboard(before, 'work.a.b', 1)
    expect(written).toMatchObject({ ok: true, blackboard: { work: { a: { b: 1 } } } })
    expect(before).toEqual(emptyBlackboard())
    expect(writeBlackboard(before, 'ctx.endpoint', 'x', ['ctx.endpoint'])).toMatchObject({
      ok: true,
      blackboard: { ctx: { endpoint: 'x' } },
    })
  })

  test.each([
    ['ctx.endpoint', 'not_writable'],
    ['env.x', 'not_writable'],
    ['policy.x', 'not_writable'],
    ['work', 'not_a_path'],
    ['other.x', 'not_a_path'],
    ['work..x', 'not_a_path'],
  ])('is not written at %s', (path, reason) => {
    expect(writeBlackboard(emptyBlackboard(), path, 1, ['policy.x', 'other.x'])).toMatchObject({ ok: false, reason })
  })

  test('is not written with what would make it too large', () => {
    expect(writeBlackboard(emptyBlackboard(), 'work.x', 'x'.repeat(300_000))).toMatchObject({ ok: false, reason: 'too_large' })
  })

  test('written at __proto__ keeps it as a field', () => {
    const written = writeBlackboard(emptyBlackboard(), 'work.__proto__.x', 1)
    expect(written.ok && Object.getPrototypeOf(written.blackboard.work)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })
})

describe('a difference', () => {
  const board = (work: JsonFields): Blackboard => ({ ...emptyBlackboard(), work })

  test('names each change at its deepest path', () => {
    expect(diff(board({ a: { b: 1, c: 2 }, gone: 1 }), board({ a: { b: 1, c: 3 }, fresh: null }))).toEqual([
      { path: 'work.a.c', change: 'changed', before: 2, after: 3 },
      { path: 'work.gone', change: 'removed', before: 1, after: null },
      { path: 'work.fresh', change: 'added', before: null, after: null },
    ])
  })

  test('stays above names that cannot stand in a path', () => {
    expect(diff(board({ a: { 'b.c': 1 } }), board({ a: { 'b.c': 2 } }))).toEqual([
      { path: 'work.a', change: 'changed', before: { 'b.c': 1 }, after: { 'b.c': 2 } },
    ])
  })

  test('is at most a hundred long and leaves nothing out', () => {
    const many = (value: number) => Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`n${index}`, value]))
    expect(diff(board({ a: many(1) }), board({ a: many(2) }))).toEqual([
      { path: 'work.a', change: 'changed', before: many(1), after: many(2) },
    ])
    expect(diff(board(many(1)), board(many(2)))).toEqual([{ path: 'work', change: 'changed', before: many(1), after: many(2) }])
  })

  test('is empty between equals, and not between others', () => {
    const fields = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 })) as fc.Arbitrary<JsonFields>
    assertProperty(
      'skills/plan/blackboard',
      fc.property(fields, fields, (left, right) => {
        expect(diff(board(left), board(structuredClone(left)))).toEqual([])
        const differs = JSON.stringify(sorted(left)) !== JSON.stringify(sorted(right))
        expect(diff(board(left), board(right)).length > 0).toBe(differs)
      }),
    )
  })
})

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, inner]) => [name, sorted(inner)])
}
