import { describe, expect, test, vi } from 'vitest'
import {
  DecisionContext,
  all,
  any,
  keywordFilter,
  namedTypes,
  not,
  rateLimitFilter,
  relevant,
  sourceFilter,
  typeFilter,
  type Filter,
} from '../../../src/core/decision-context.ts'
import type { builtInEvents, EventOf } from '../../../src/core/event.ts'
import { buildEvent } from '../../support/build-event.ts'

const context = new DecisionContext({ scope: 'default' })
const event = buildEvent()
const yes: Filter = () => true
const no: Filter = () => false

describe('an event is relevant', () => {
  test('where there is no filter', () => {
    expect(relevant([], event, context)).toBe(true)
  })

  test('where any filter passes it', () => {
    expect(relevant([no, yes], event, context)).toBe(true)
    expect(relevant([no, no], event, context)).toBe(false)
  })

  test('by what the context holds', () => {
    const first: Filter = (_, { events }) => events.length === 0
    expect(relevant([first], event, context)).toBe(true)
    expect(relevant([first], event, new DecisionContext({ scope: 'default', events: [event] }))).toBe(false)
  })
})

test('a filter of any event serves for events of some types too', () => {
  const narrow: Filter<EventOf<(typeof builtInEvents)[number]>>[] = [yes, typeFilter('a'), not(keywordFilter(['b']))]
  expect(relevant(narrow, buildEvent(), new DecisionContext({ scope: 'default' }))).toBe(true)
})

describe('combined filters', () => {
  test.each([
    ['all of yes and yes', true, () => all(yes, yes)],
    ['all of yes and no', false, () => all(yes, no)],
    ['all of none', true, () => all()],
    ['any of no and yes', true, () => any(no, yes)],
    ['any of no and no', false, () => any(no, no)],
    ['any of none', false, () => any()],
    ['not no', true, () => not(no)],
    ['not yes', false, () => not(yes)],
    ['any of all and not', true, () => any(all(yes, no), not(no))],
  ])('%s is %s', (_, passes, combined) => {
    expect(combined()(event, context)).toBe(passes)
  })

  test('all stops at the first that refuses', () => {
    const last = vi.fn<Filter>(() => true)
    all(no, last)(event, context)
    expect(last).not.toHaveBeenCalled()
    all(yes, last)(event, context)
    expect(last).toHaveBeenCalledWith(event, context)
  })
})

test('typeFilter passes the given types', () => {
  expect(typeFilter('timer.tick', 'ws.message')(event, context)).toBe(true)
  expect(typeFilter('timer.tick')(event, context)).toBe(false)
  expect(typeFilter()(event, context)).toBe(false)
})

describe('sourceFilter', () => {
  test.each<[string | RegExp, string, boolean]>([
    ['ws:alice', 'ws:alice', true],
    ['ws:alice', 'ws:alice2', false],
    ['alice', 'ws:alice', false],
    ['ws:*', 'ws:alice', true],
    ['ws:*', 'http:alice', false],
    ['*', 'anything', true],
    ['*:alice:*', 'ws:alice:tab1', true],
    ['ws:**', 'ws:alice', true],
    ['a.c', 'abc', false],
    ['a+(b)[c]{d}^$|?\\', 'a+(b)[c]{d}^$|?\\', true],
    ['ws:*', 'ws:two\nlines', true],
    ['', 'ws:alice', false],
    [/^ws:a/, 'ws:alice', true],
    [/ALICE/i, 'ws:alice', true],
    [/bob/, 'ws:alice', false],
  ])('%s on %s is %s', (pattern, source, passes) => {
    expect(sourceFilter(pattern)(buildEvent({ source }), context)).toBe(passes)
  })

  test.each([/alice/g, /ws:alice/y])('the position that %s remembers does not matter', (pattern) => {
    const filter = sourceFilter(pattern)
    expect([1, 2, 3].map(() => filter(event, context))).toEqual([true, true, true])
  })
})

describe('keywordFilter', () => {
  test.each<[string[], string, boolean]>([
    [['error'], 'an ERROR came', true],
    [['ERROR'], 'an error came', true],
    [['alert', 'error'], 'an error came', true],
    [['alert'], 'an error came', false],
    [[], 'an error came', false],
    [['say "hi"'], 'they Say "Hi" again', true],
    [['C:\\temp'], 'in c:\\TEMP\\x', true],
    [['two\nlines'], 'these two\nlines', true],
    [['größe'], 'GRÖSSE or GRÖßE', true],
    [['日本'], '在日本', true],
    [['a.c'], 'abc', false],
  ])('%j in %j is %s', (keywords, content, passes) => {
    expect(keywordFilter(keywords)(buildEvent({ content }), context)).toBe(passes)
  })

  test('looks into every field, however deep', () => {
    expect(keywordFilter(['needle'])(buildEvent({ body: { rows: [{ note: 'a Needle' }] } }), context)).toBe(true)
  })
})

describe('a combined filter', () => {
  const limited = () => rateLimitFilter({ limit: 1, window_s: 1 })
  const isStateful = (filter: Filter): boolean => 'stateful' in filter && filter.stateful === true

  test('names the types that its parts name', () => {
    expect(namedTypes(typeFilter('a', 'b'))).toEqual(['a', 'b'])
    expect(namedTypes(any(typeFilter('a'), all(yes, typeFilter('b')), not(typeFilter('c'))))).toEqual(['a', 'b', 'c'])
    expect(namedTypes(yes)).toEqual([])
  })

  test('has a state where any part has one', () => {
    expect([limited(), all(yes, limited()), any(limited(), no), not(limited())].map(isStateful)).toEqual([true, true, true, true])
    expect([yes, any(all(yes, no)), not(yes), typeFilter('a')].map(isStateful)).toEqual([false, false, false, false])
  })

  test('passes what its parts say', () => {
    expect([not(no)(event, context), not(yes)(event, context)]).toEqual([true, false])
  })
})

test('a keyword is found in the trace of an event, and not in its sender', () => {
  const trace_id = 'f'.repeat(32)
  const sent = buildEvent({ meta: { trace_id, correlation_id: null, causation_id: null, sender: 'key:ann' } })
  expect(keywordFilter([trace_id])(sent, context)).toBe(true)
  expect(keywordFilter(['key:ann'])(sent, context)).toBe(false)
})

test('a limit without a key counts each scope for itself', () => {
  const filter = rateLimitFilter({ limit: 1, window_s: 10 })
  expect(['a', 'b', 'a'].map((scope) => filter(buildEvent({ scope }), context))).toEqual([true, true, false])
})
