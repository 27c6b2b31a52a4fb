import { describe, expect, expectTypeOf, test } from 'vitest'
import { DecisionContext } from '../../../src/core/decision-context.ts'
import type { builtInEvents, Event, EventOf } from '../../../src/core/event.ts'
import { buildEvent } from '../../support/build-event.ts'

const NOW = Date.parse('2026-11-21T05:00:00.000Z')
const ago = (ms: number) => new Date(NOW - ms).toISOString()

function setUp(events: Event[] = [buildEvent()]) {
  const clock = { now: NOW }
  return { clock, context: new DecisionContext({ scope: 'ops', events, now: () => clock.now }) }
}

test('a new context is empty, made now, and has seen no action', () => {
  const context = new DecisionContext({ scope: 'ops', now: () => NOW })
  expect(JSON.parse(JSON.stringify(context))).toEqual({ scope: 'ops', events: [], scratch: {}, created_at: NOW, last_action_at: null })
  expect(context.sinceLastAction()).toBeNull()
})

test('a context continues from its stored state', () => {
  const kept = { scope: 'ops', events: [buildEvent()], scratch: { step: 2 }, created_at: NOW - 9000, last_action_at: NOW - 5000 }
  const context = new DecisionContext({ ...kept, now: () => NOW })
  expect(context).toMatchObject(kept)
  expect(context.sinceLastAction()).toBe(5000)
  expect(JSON.parse(JSON.stringify(context))).toEqual(kept)
})

test('events stay in the order in which they were added', () => {
  const { context } = setUp([])
  const events = [buildEvent({ timestamp: ago(1) }), buildEvent({ timestamp: ago(9) }), buildEvent({ timestamp: ago(5) })]
  for (const event of events) context.add(event)
  expect(context.events).toEqual(events)
})

describe('window', () => {
  test('has the events of the last seconds, the oldest instant included', () => {
    const { context } = setUp([60_001, 60_000, 59_999, 0].map((ms) => buildEvent({ type: `${ms}`, timestamp: ago(ms) })))
    expect(context.window(60).map(({ type }) => type)).toEqual(['60000', '59999', '0'])
    expect(context.window(0).map(({ type }) => type)).toEqual(['0'])
    expect(context.window(0.5)).toHaveLength(1)
  })

  test('moves with the clock', () => {
    const { context, clock } = setUp([buildEvent({ type: 'a', timestamp: ago(0) })])
    clock.now += 60_001
    expect(context.window(60)).toEqual([])
  })

  test('compares times, not their spelling', () => {
    const { context } = setUp([buildEvent({ type: 'a', timestamp: '2026-11-21T04:59:59Z' })])
    expect(context.window(1)).toHaveLength(1)
  })
})

describe('ofType', () => {
  test('has the events of the given types', () => {
    const { context } = setUp(['a', 'b', 'c', 'a'].map((type) => buildEvent({ type })))
    expect(context.ofType('a', 'c').map(({ type }) => type)).toEqual(['a', 'c', 'a'])
    expect(context.ofType()).toEqual([])
  })

  test('knows the fields of a type', () => {
    const context = new DecisionContext<EventOf<(typeof builtInEvents)[number]>>({ scope: 'ops' })
    context.add(buildEvent({ content: 'hi' }))
    expect(context.ofType('ws.message')[0]?.content).toBe('hi')
    expectTypeOf(context.ofType('timer.tick')).items.toHaveProperty('timer_name')
    // @ts-expect-error a type that the union does not have
    expect(context.ofType('nope')).toEqual([])
  })
})

test('countByType counts, whatever a type is called', () => {
  const { context } = setUp(['a', 'b', 'a', 'constructor', '__proto__'].map((type) => buildEvent({ type })))
  expect(Object.entries(context.countByType())).toEqual([
    ['a', 2],
    ['b', 1],
    ['constructor', 1],
    ['__proto__', 1],
  ])
})

test('an action empties the context and starts the time since it', () => {
  const { context, clock } = setUp()
  context.scratch['step'] = 1
  const before = context.events
  clock.now += 10
  context.clear()
  clock.now += 32
  expect(JSON.parse(JSON.stringify(context))).toEqual({ scope: 'ops', events: [], scratch: {}, created_at: NOW, last_action_at: NOW + 10 })
  expect(context.sinceLastAction()).toBe(32)
  expect(before).toHaveLength(1)
})

describe('summarize', () => {
  test('says counts and span, then the latest events as JSON lines, oldest first', () => {
    const { context } = setUp([
      buildEvent({ type: 'a', timestamp: ago(1000), content: 'one' }),
      buildEvent({ type: 'b', timestamp: ago(3000), content: 'two' }),
      buildEvent({ type: 'a', timestamp: ago(2000), content: 'three' }),
    ])
    const [head, note, ...lines] = context.summarize({ max_events: 2 }).split('\n')
    expect(head).toBe('3 events in scope ops, 2 a, 1 b, 2026-11-21T04:59:57.000Z to 2026-11-21T04:59:59.000Z')
    expect(note).toBe('The latest 2 of 3, oldest first:')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ content: 'two' }, { content: 'three' }])
    expect(Object.keys(JSON.parse(lines[0] ?? ''))).toEqual(['id', 'type', 'source', 'timestamp', 'connection_id', 'content'])
  })

  test('of nothing says so', () => {
    expect(setUp([]).context.summarize()).toBe('0 events in scope ops')
  })

  test('has ten events unless told, or none', () => {
    const { context } = setUp(Array.from({ length: 30 }, () => buildEvent({ type: 'a' })))
    expect(context.summarize().split('\n')).toHaveLength(12)
    expect(context.summarize({ max_events: 0 }).split('\n')).toHaveLength(2)
    expect(context.summarize({ max_events: 99, max_chars: 99_999 }).split('\n')).toHaveLength(32)
  })

  test('leaves whole events out until it fits, and says how many it shows', () => {
    const { context } = setUp(Array.from({ length: 8 }, (_, index) => buildEvent({ type: 'a', content: `${index}`.repeat(300) })))
    const [, note, ...lines] = context.summarize({ max_chars: 1500 }).split('\n')
    expect(note).toBe(`The latest ${lines.length} of 8, oldest first:`)
    expect(lines.length).toBeGreaterThan(1)
    expect(lines.map((line) => String(JSON.parse(line).content)[0])).toEqual(['5', '6', '7'].slice(-lines.length))
  })

  test('cuts the one event that is too long, and says so', () => {
    const { context } = setUp([buildEvent({ type: 'a', content: 'x'.repeat(9000) })])
    const text = context.summarize({ max_chars: 500 })
    expect(text).toHaveLength(500)
    expect(text).toMatch(/x… \(cut from \d{4} characters\)$/)
  })

  test.each([0, 5, 40, 120, 300])('is never longer than %i characters', (max_chars) => {
    const { context } = setUp(Array.from({ length: 20 }, (_, index) => buildEvent({ type: `type-${index}` })))
    expect(context.summarize({ max_chars }).length).toBeLessThanOrEqual(max_chars)
  })
})

test('a summary that just fits is neither shortened nor cut', () => {
  const { context } = setUp([buildEvent({ id: 'a' }), buildEvent({ id: 'b' })])
  const whole = context.summarize()
  expect(context.summarize({ max_chars: whole.length })).toBe(whole)
  expect(context.summarize({ max_chars: whole.length - 1 })).toContain('The latest 1 of 2')
  const last = context.summarize({ max_events: 1 })
  expect(context.summarize({ max_events: 1, max_chars: last.length })).toBe(last)
  expect(context.summarize({ max_events: 1, max_chars: last.length - 1 })).toContain(`(cut from ${last.length} characters)`)
})
