import { describe, expect, it } from 'vitest'
import { conditionError, holds } from '../../../src/agent/condition.ts'
import { DecisionContext } from '../../../src/core/decision-context.ts'
import type { Event } from '../../../src/core/event.ts'
import { event, NOW } from '../agents/agent-fixtures.ts'

const at = (age_s: number, source: string, type = 'ws.message') =>
  event({ type, source, timestamp: new Date(NOW - age_s * 1000).toISOString() })
const contextOf = (events: Event[]) => new DecisionContext<Event>({ scope: 'test/1', events, now: () => NOW })
const context = contextOf([
  at(3600, 'old'),
  at(300, 'alice'),
  at(30, 'alice'),
  at(5, 'alice', 'timer.tick'),
  at(1, 'constructor'),
  at(1, '__proto__'),
])

describe('a condition', () => {
  it('that is wrong is shown with the place', () => {
    expect(conditionError('last_1m.totl >= 3')).toMatch(/No such key: totl\n\n>    1 \| last_1m\.totl >= 3\n +\^$/)
    expect(conditionError('total >= = 3')).toMatch(/\n>    1 \| total >= = 3\n +\^$/)
    expect(() => holds('total / (total - 6) > 1', context)).toThrow(/could not be evaluated: .*division by zero\n\n> /)
  })

  it.each([
    ['total == 6', true],
    ['total > 6', false],
    ['by_type["ws.message"] == 5', true],
    ['by_type["timer.tick"] >= 1 && by_source.alice == 3', true],
    ['by_source["constructor"] == 1 && by_source["__proto__"] == 1', true],
    ['last_10s.total == 3', true],
    ['last_1m.total == 4', true],
    ['last_10m.total == 5', true],
    ['last_1m.by_source["alice"] == 2', true],
    ['last_10m.total - last_1m.total == 1', true],
    ['by_source.exists(name, by_source[name] >= 3)', true],
    ['by_source.exists(name, by_source[name] >= 4)', false],
    ['by_source.filter(name, name.startsWith("al")).size() == 1', true],
    ['by_source.all(name, name in ["old", "alice"])', false],
    ['total in [5, 6] ? true : false', true],
    ['double(total) / 4.0 > 1.4', true],
  ])('%s', (expression, expected) => {
    expect(conditionError(expression)).toBeNull()
    expect(holds(expression, context)).toBe(expected)
  })

  it.each(['by_type["log.line"] > 0', 'by_type.nothing > 0', 'by_source["bob"] > 3', 'last_10s.by_source["bob"] != 0'])(
    'is false, not an error, of what has not come yet: %s',
    (expression) => {
      expect(holds(expression, context)).toBe(false)
      expect(holds(expression, contextOf([]))).toBe(false)
    },
  )
})

describe('a condition that is wrong', () => {
  it.each([
    ['', 'Unexpected'],
    ['total >', 'Unexpected'],
    ['total', 'must be true or false; its type is'],
    ['"yes"', 'must be true or false; its type is'],
    ['by_source["a"]', 'must be true or false; its type is'],
    ['totl > 3', 'totl'],
    ['last_1m.totl > 3', 'totl'],
    ['total > "three"', 'no such overload'],
    ['"bob" in by_source', 'write by_source["name"] > 0'],
    ['has(by_type.foo)', 'function has'],
  ])('says why: %s', (expression, reason) => {
    expect(conditionError(expression)).toContain(reason)
    expect(() => holds(expression, context)).toThrow(`the condition "${expression}" is wrong: `)
  })

  it('fails where it cannot be evaluated', () => {
    expect(conditionError('total / by_source["bob"] > 1')).toBeNull()
    expect(() => holds('total / by_source["bob"] > 1', context)).toThrow(
      'the condition "total / by_source["bob"] > 1" could not be evaluated: EvaluationError: division by zero',
    )
  })
})

describe('a condition that would take ages is refused', () => {
  const list = '[1,2,3,4,5,6,7,8,9,10]'
  const nested = Array.from({ length: 40 }, (_, index) => `${list}.all(v${index}, `).join('')
  it.each([
    ['iterations within iterations', `${nested}true${')'.repeat(40)}`],
    ['one iteration within another', 'by_source.exists(a, by_source.exists(b, a == b))'],
    ['one hidden in an operand', 'by_source.exists(a, true && (total > 1 || [1].all(b, true)))'],
    ['one hidden in an argument', 'by_source.exists(a, a.contains(string([1].exists(b, true))))'],
    ['doubling by bind', 'cel.bind(a, "xxxx", cel.bind(b, a + a, cel.bind(c, b + b, size(c) > 0)))'],
    ['doubling by map', '[[1]].map(x, x + x).map(x, x + x).size() > 0'],
    ['a regular expression that comes from the context', '"a".matches(by_source.map(a, a)[0])'],
    ['too many operators', `total > 0${' && total > 0'.repeat(100)}`],
    ['too deep a nesting', `${'('.repeat(500)}true${')'.repeat(500)}`],
    ['a chain of negations', `${'!'.repeat(1000)}true`],
    ['a long list', `size([${'1,'.repeat(200)}1]) > 0`],
  ])('%s', (_, expression) => {
    expect(conditionError(expression)).not.toBeNull()
    expect(() => holds(expression, context)).toThrow('is wrong')
  })

  it('and what is allowed counts over the most frequent names only', () => {
    const many = contextOf(Array.from({ length: 4000 }, (_, index) => at(1, index < 10 ? 'often' : `source-${index}`)))
    expect(holds('by_source.size() == 200 && by_source.often == 10', many)).toBe(true)
    expect(holds(`by_source.exists(name, ${'size(by_source) > 200 || '.repeat(12)}by_source == last_10m.by_source && false)`, many)).toBe(
      false,
    )
  })
})
