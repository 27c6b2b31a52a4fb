import { describe, expect, test, vi } from 'vitest'
import { DecisionContext, all, dedupeFilter, rateLimitFilter, typeFilter } from '../../../src/core/decision-context.ts'
import type { Event } from '../../../src/core/event.ts'
import { buildEvent } from '../../support/build-event.ts'

const context = new DecisionContext({ scope: 'default' })
const at = (second: number, overrides: Partial<Event> = {}): Event => {
  const timestamp = new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString()
  return { ...buildEvent(), timestamp, ...overrides }
}

describe('rateLimitFilter', () => {
  test('passes as many as the limit in any window, by the events’ own time', () => {
    const filter = rateLimitFilter({ limit: 2, window_s: 10 })
    expect([0, 1, 2, 9.999, 10, 10.5, 11].map((second) => filter(at(second), context))).toEqual([
      true,
      true,
      false,
      false,
      true,
      false,
      true,
    ])
  })

  test('counts each key for itself', () => {
    const filter = rateLimitFilter({ limit: 1, window_s: 10, key: (event) => event.source })
    const passes = ['a', 'b', 'a', 'c', 'b'].map((source) => filter(at(0, { source }), context))
    expect(passes).toEqual([true, true, false, true, false])
  })

  test('passes an event again that passed before, for a retry is no news', () => {
    const filter = rateLimitFilter({ limit: 1, window_s: 10 })
    const event = at(0)
    expect([filter(event, context), filter(event, context), filter(at(1), context)]).toEqual([true, true, false])
  })

  test('a refused event uses up nothing', () => {
    const filter = rateLimitFilter({ limit: 1, window_s: 10 })
    expect([0, 6, 10].map((second) => filter(at(second), context))).toEqual([true, false, true])
  })

  test('an event far in the future does not block those of the present', () => {
    const filter = rateLimitFilter({ limit: 2, window_s: 10 })
    expect([1e6, 0, 1, 2].map((second) => filter(at(second), context))).toEqual([true, true, true, false])
  })

  test('an event that comes late counts with those near it in time', () => {
    const filter = rateLimitFilter({ limit: 1, window_s: 10 })
    expect([20, 15, 5].map((second) => filter(at(second), context))).toEqual([true, false, true])
  })

  test('a limit of zero passes nothing', () => {
    const filter = rateLimitFilter({ limit: 0, window_s: 10 })
    expect([filter(at(0), context), filter(at(0), context)]).toEqual([false, false])
  })

  test('put last in all, it counts only what the others pass', () => {
    const filter = all(typeFilter('a'), rateLimitFilter({ limit: 1, window_s: 10 }))
    expect([filter(at(0, { type: 'b' }), context), filter(at(1, { type: 'a' }), context)]).toEqual([false, true])
  })

  test('forgets keys that are idle, so that its memory stays bounded', () => {
    const held = vi.spyOn(Map.prototype, 'set')
    const filter = rateLimitFilter({ limit: 99, window_s: 10, key: (event) => event.source })
    for (let second = 0; second < 2000; second += 1) {
      for (const source of ['busy', 'busier', `${second}`]) filter(at(second, { source }), context)
    }
    // The filter's own map is the one thing that knows how much it holds.
    const maps = new Set(held.mock.contexts.filter((map) => map instanceof Map).filter((map) => map.has('1999')))
    held.mockRestore()
    expect(Array.from(maps, (map) => map.size)).toEqual([12])
  })
})

describe('dedupeFilter', () => {
  test('passes the first of each key within the window', () => {
    const filter = dedupeFilter({ window_s: 60, key: (event) => event.type })
    expect(filter(at(0, { type: 'a' }), context)).toBe(true)
    expect(filter(at(59, { type: 'a' }), context)).toBe(false)
    expect(filter(at(59, { type: 'b' }), context)).toBe(true)
    expect(filter(at(60, { type: 'a' }), context)).toBe(true)
  })

  test('passes the retry of the one that passed', () => {
    const filter = dedupeFilter({ window_s: 60, key: (event) => event.type })
    const event = at(0)
    expect([filter(event, context), filter(event, context)]).toEqual([true, true])
  })
})
