import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conditionError, holds } from '../../../src/agent/condition.ts'
import { DecisionContext } from '../../../src/core/decision-context.ts'
import { CONVERTED } from '../../../src/expressions/charges.ts'
import { contains } from '../../../src/expressions/compile.ts'
import { DECISION_WORK, EVALUATION_WORK, onAccount } from '../../../src/expressions/environment.ts'
import { evaluate, probeSession } from '../../../src/skills/cel/expression.ts'
import { event, NOW } from '../agents/agent-fixtures.ts'
import { assertProperty } from '../../support/property.ts'

const text = 'a'.repeat(20_000)
const items = Array.from({ length: 1000 }, (_, index) => `x${index}`)
const record = Object.fromEntries(items.map((name, index) => [name, index]))
const sum = (count: number, name = 'inputs.text') => `(${Array(count).fill(name).join(' + ')})`
/** No search can skip much of a text of `a` for one of these. */
const awkward = (length: number) => `${'a'.repeat(length / 2 - 1)}b${'a'.repeat(length / 2)}`

function workOf(source: string, inputs: unknown) {
  const session = probeSession({ probes: { echo: (value) => value } })
  const result = evaluate(source, { inputs }, session)
  return { result, spent: DECISION_WORK - session.work.left }
}
const overBudget = { ok: false, reason: 'over_budget', detail: expect.stringContaining(`more than the ${EVALUATION_WORK} units of work`) }

describe('an expression with ordinary inputs is evaluated', () => {
  const letter = 'It is a truth universally acknowledged, that a single man in possession of a good fortune. '.repeat(200)
  test.each<[string, string, unknown]>([
    [
      'none of 90 words stands in a long text',
      '!inputs.words.exists(w, inputs.text.contains(w))',
      { text: letter, words: items.slice(0, 90) },
    ],
    ['each of 1000 items has a name', 'inputs.words.all(w, w.size() > 1 && w.startsWith("x"))', { words: items }],
    ['each of 100 items is in a list', 'inputs.few.all(x, x in inputs.words)', { few: items.slice(0, 100), words: items }],
    ['a list is another', 'inputs.a == inputs.b', { a: items, b: [...items] }],
    ['100 items that lack a field', 'inputs.list.all(x, x.gone == 1 || true)', { list: Array.from({ length: 100 }, () => ({ there: 1 })) }],
    ['a duration', 'duration("1h30m") > duration(inputs.text)', { text: '80m' }],
    ['a long text in lower case', 'inputs.text.lowerAscii().trim().contains("fortune")', { text: letter }],
  ])('%s', (_, source, inputs) => {
    expect(workOf(source, inputs).result).toEqual({ ok: true, value: true })
  })
})

describe('an expression that would take long is refused, with its budget', () => {
  test.each<[string, string, unknown]>([
    ['a search that goes back', 'inputs.text.contains(inputs.part)', { text, part: awkward(10_000) }],
    ['a search in a sum', `${sum(40)}.contains(inputs.part)`, { text, part: awkward(20_000) }],
    ['searches in an iteration', `inputs.list.all(x, !${sum(40)}.contains(inputs.part))`, { list: items, text, part: 'b' + text.slice(1) }],
    ['copies in an iteration', `inputs.list.all(x, ${sum(20)}.size() > 0)`, { list: items, text }],
    ['comparisons of texts', 'inputs.list.all(x, inputs.text + x == inputs.other + x)', { list: items, text, other: text }],
    ['comparisons of lists', 'inputs.list.all(x, inputs.list == inputs.other)', { list: items, other: [...items] }],
    ['comparisons of maps', 'inputs.list.all(x, inputs.map == inputs.other)', { list: items, map: record, other: { ...record } }],
    ['lists that are put together', `inputs.list.all(x, ${sum(40, 'inputs.list')}.size() > 0)`, { list: items }],
    ['members of long lists', `inputs.list.all(x, !(x + "y" in ${sum(30, 'inputs.list')}))`, { list: items }],
    ['errors that are swallowed', 'inputs.list.exists(x, x.a || x.b || x.c)', { list: items }],
    ['errors that a way around leads by', 'inputs.list.exists(x, x.a || x.b || x.c) || true', { list: items }],
    ['a pattern that would go back', 'inputs.text.matches("(a*)*b")', { text }],
    [
      'a pattern in an iteration',
      'inputs.list.all(x, !(x + inputs.text).matches("[a-z]{1,50}!"))',
      { list: items, text: text.slice(0, 100) },
    ],
    ['digits of a duration', 'duration(inputs.text) > duration("1s")', { text: '1'.repeat(20_000) }],
    ['a probe with large arguments', 'inputs.list.all(x, echo(inputs.text) != "")', { list: items, text }],
  ])('%s', (_, source, inputs) => {
    expect(workOf(source, inputs).result).toEqual(overBudget)
  })

  test('and what is read must not be too much in all', () => {
    const words = Array(480).fill(awkward(2000))
    const { result } = workOf('!inputs.words.exists(w, inputs.text.contains(w))', { text, words })
    expect(result).toEqual({ ok: false, reason: 'too_large', detail: expect.stringContaining('more than 65536 characters of text') })
  })

  test('and so is the rest of a decision whose expressions take too much together', () => {
    const session = probeSession()
    const inputs = { list: items, text }
    const results = Array.from({ length: 96 }, () => evaluate('inputs.list.all(x, x + x != inputs.text)', { inputs }, session))
    const [first, last] = [results[0], results.at(-1)]
    expect(first).toEqual({ ok: true, value: true })
    expect(last).toMatchObject({ ok: false, reason: 'over_budget', detail: expect.stringContaining('of one decision') })
  })

  test('and a condition fails, and says why', () => {
    const events = Array.from({ length: 200 }, (_, index) => event({ type: 'ws.message', source: `${'s'.repeat(100)}${index}` }))
    const context = new DecisionContext({ scope: 'test/1', events, now: () => NOW })
    const condition = `by_source.exists(x, ${Array(8).fill('by_source == last_1m.by_source').join(' && ')} && false)`
    expect(conditionError(condition)).toBeNull()
    expect(() => holds(condition, context)).toThrow('units of work')
  })
})

describe('work', () => {
  test.each([
    'inputs.text + "b" == "c"',
    'inputs.text == inputs.other',
    'inputs.text < inputs.other',
    'inputs.text.contains("b")',
    'inputs.text.contains("baa")',
    'inputs.text.startsWith(inputs.other)',
    'inputs.text.endsWith(inputs.other)',
    'inputs.text.size() == 1',
    'inputs.text.lowerAscii() == "b"',
    'inputs.text.upperAscii() == "b"',
    'inputs.text.trim() == "b"',
    'inputs.text.matches("b")',
    'size(inputs.text) == 1',
    'string(inputs.text) == "b"',
    'double(inputs.text) == 1.0 || true',
    'int(inputs.text) == 1 || true',
    'bool(inputs.text) || true',
    'timestamp(inputs.text) == timestamp(inputs.text) || true',
    'inputs.text in {"b": 1}',
    '{"b": 1}[inputs.text] == 1 || true',
    '[inputs.text] == [inputs.other]',
    'inputs.text in [inputs.other]',
    'echo(inputs.text) == "b"',
  ])('grows with the text that is looked at: %s', (source) => {
    const [short, long] = [10, 10_000].map((length) => workOf(source, { text: 'a'.repeat(length), other: 'a'.repeat(length) }).spent)
    expect((long ?? 0) - (short ?? 0)).toBeGreaterThanOrEqual(9_990)
  })

  test('is the same each time, and never exceeds its limit, for any expression', () => {
    const part = fc.constantFrom(
      'inputs.text',
      'inputs.other',
      'x',
      'inputs.text + x',
      'inputs.other + inputs.text',
      'string(inputs.n)',
      '"ab"',
    )
    const list = fc.constantFrom('inputs.list', 'inputs.list + inputs.list', '[x, inputs.text]', 'inputs.map')
    const clause = fc.oneof(
      fc.tuple(part, fc.constantFrom('==', '!=', '<', '>='), part).map((parts) => `(${parts.join(' ')})`),
      fc.tuple(part, fc.constantFrom('contains', 'startsWith', 'endsWith'), part).map(([a, method, b]) => `(${a}).${method}(${b})`),
      fc.tuple(part, fc.constantFrom('trim', 'lowerAscii', 'upperAscii'), part).map(([a, method, b]) => `(${a}).${method}() == ${b}`),
      fc.tuple(part, list).map(([a, b]) => `(${a} in (${b}))`),
      fc.tuple(list, list).map(([a, b]) => `((${a}) == (${b}))`),
      fc.tuple(fc.constantFrom('size', 'int', 'double', 'duration', 'echo'), part).map(([name, a]) => `${name}(${a}) == 1`),
    )
    const source = fc
      .tuple(
        fc.constantFrom('all', 'exists', 'exists_one'),
        fc.array(clause, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(' && ', ' || '),
      )
      .map(([kind, clauses, join]) => `inputs.list.${kind}(x, ${clauses.join(join)})`)
    const inputs = fc
      .record({ long: fc.nat(20_000), other: fc.nat(20_000), count: fc.nat(1000), letter: fc.constantFrom('a', '1', 'ab', '漢', '1h') })
      .map(({ long, other, count, letter }) => ({
        text: letter.repeat(long).slice(0, long),
        other: letter.repeat(other).slice(0, other),
        n: long,
        list: items.slice(0, count),
        map: Object.fromEntries(items.slice(0, count).map((name) => [name, 1])),
      }))
    assertProperty(
      'expressions/work: any expression',
      fc.property(source, inputs, (source, inputs) => {
        const { result, spent } = workOf(source, inputs)
        expect(workOf(source, inputs)).toEqual({ result, spent })
        const most = EVALUATION_WORK + 5000 * CONVERTED
        const isOver = !result.ok && result.reason === 'over_budget'
        expect(isOver || spent <= most).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})

describe('contains', () => {
  const letters = fc.array(fc.constantFrom('a', 'b', 'ƀ', '漢'), { maxLength: 40 }).map((list) => list.join(''))

  test('finds what String.includes finds', () => {
    assertProperty(
      'expressions/work: split',
      fc.property(letters, fc.array(fc.constantFrom('a', 'b', 'ƀ'), { maxLength: 4 }), (text, part) => {
        const found = onAccount({ left: EVALUATION_WORK }, () => contains(text, part.join('')))
        expect(found).toBe(text.includes(part.join('')))
      }),
    )
  })
})
