import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileExpression, evaluate, valuesRead, probeSession, type Probes } from '../../../../src/skills/cel/expression.ts'
import { assertProperty } from '../../../support/property.ts'

const scope = {
  ctx: { subscription: 'blue' },
  env: { az: { account: { subscription: 'blue' } }, app_name: 'of env' },
  work: {
    count: 3,
    share: 2.5,
    list: [1, 2],
    deep: { a: { b: 1 } },
    huge: Array(5000).fill(0),
    text: 'x'.repeat(30_000),
    quoted: { 'a.b': 1 },
  },
  policy: {},
  inputs: { app_name: 'pay' },
  args: { app_name: 'pay' },
}
const probes: Probes = {
  deploy_window: (env) => (env === 'staging' ? 'open' : 'closed'),
  three: () => 3,
  later: () => Promise.resolve(true),
  broken: () => {
    throw new Error('no line')
  },
}
const resultOf = (source: string) => evaluate(source, scope, probeSession({ probes }))

describe('an expression', () => {
  test.each([
    ['a bare name of env', 'az.account.subscription == ctx.subscription'],
    ['a whole number against an integer', 'work.count == 3'],
    ['a whole number against a fraction', 'work.count == 3.0'],
    ['sums of both kinds of numbers', 'work.share + 1 == 3.5 && work.count * 1.5 == 4.5 && 1 + 0.5 == 1.5'],
    ['comparisons of both kinds', 'work.count > 2.5 && work.share < 3'],
    ['a probe', "deploy_window('staging') == 'open'"],
    ['a probe that gives a number', 'three() == 3'],
    ['an input by its name, before env', "app_name == 'pay' && inputs.app_name == args.app_name"],
    ['what is there and what is not', 'has(work.deep.a) && !has(work.deep.c) && !has(work.missing)'],
    ['a field beside one that is missing', 'work.deep.a.b == 1 && !has(work.deep.x)'],
    ['a whole and a part of it', 'size(work.deep) == 1 && work.deep.a.b == 1'],
    ['one iteration', 'work.list.all(item, item < work.count)'],
    ['a name in quotes', 'work.quoted["a.b"] == 1'],
    ['a way around what is broken', 'nothing.there == 1 || true'],
  ])('takes %s', (_, source) => {
    expect(resultOf(source)).toEqual({ ok: true, value: true })
  })

  test.each([
    ['what does not parse', 'work.', 'invalid', /Unexpected|Expected/],
    ['a type that is no bool', '1', 'invalid', /must be true or false/],
    ['a type that turns out to be none', 'work.count', 'not_bool', /bigint/],
    ['an unknown name', 'foo.bar == 1', 'failed', /Unknown variable: foo/],
    ['a missing field', 'work.missing == 1', 'failed', /No such key: missing/],
    ['a way to a prototype', 'work.constructor == 1', 'failed', /No such key/],
    ['a name of a prototype', 'toString == 1', 'failed', /Unknown variable/],
    ['a probe that is not there', 'is_up() == 1', 'failed', /no probe called is_up/],
    ['a probe that throws', 'broken() == 1', 'failed', /no line/],
    ['a probe that is asynchronous', 'later() == true', 'failed', /not JSON/],
    ['iterations within each other', 'work.list.all(x, work.list.exists(y, x == y))', 'invalid', /another iteration/],
    ['map', 'work.list.map(x, x) == [1]', 'invalid', /map is not available/],
    ['cel.bind', 'cel.bind(x, "a", x + x == "aa")', 'invalid', /bind is not available/],
    ['a regular expression that is computed', 'work.text.matches(work.text)', 'invalid', /written in the expression/],
    ['one that would need a way back', String.raw`"a".matches(r"(a)\1")`, 'invalid', /\\1 is not available/],
    ['one that looks ahead', '"a".matches("(?=a)")', 'invalid', /there is only/],
    ['one that is too large', '"a".matches("((a{100}){100})")', 'invalid', /more than 500 steps/],
    ['one that is not closed', '"a".matches("(a")', 'invalid', /is not closed/],
    ['a list that is too long', 'work.huge[0] == 0', 'too_large', /more than 1000/],
    ['a text that is too long', 'work.text == ""', 'too_large', /longer than 20000/],
    ['a source that is too long', 'a'.repeat(2001), 'invalid', /2001 characters/],
    ['too many nodes', `1${'+1'.repeat(900)} == 2`, 'invalid', /maxAstNodes/],
    ['deep nesting', `${'['.repeat(900)}${']'.repeat(900)} == []`, 'invalid', /max/],
  ])('never passes for %s', (_, source, reason, detail) => {
    expect(resultOf(source)).toEqual({ ok: false, reason, detail: expect.stringMatching(detail) })
  })

  test('never throws, whatever its text is', () => {
    const piece = fc.constantFrom(
      'work',
      '.',
      'ctx',
      '(',
      ')',
      '[',
      ']',
      '==',
      '&&',
      '!',
      '1',
      '"a"',
      'x',
      ',',
      'has',
      'all',
      '{',
      '}',
      ':',
      '?',
      '-',
      ' in ',
    )
    assertProperty(
      'skills/cel/expression',
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join('')),
        ),
        (source) => {
          expect(evaluate(source, scope)).toHaveProperty('ok')
        },
      ),
      { numRuns: 1000 },
    )
  })

  test('is parsed once', () => {
    expect(compileExpression('work.count == 42')).toBe(compileExpression('work.count == 42'))
  })

  test('tells what it has read', () => {
    expect(valuesRead('az.account.subscription == ctx.subscription || work.missing == work.list[0]', scope)).toEqual([
      { path: 'az.account.subscription', value: 'blue' },
      { path: 'ctx.subscription', value: 'blue' },
      { path: 'work.missing', value: undefined },
      { path: 'work.list', value: [1, 2] },
    ])
  })
})

describe('probes', () => {
  test('are recorded with their arguments and results, failures included', () => {
    const session = probeSession({ probes })
    evaluate("deploy_window('staging') == 'open' && broken(args) == 1", scope, session)
    expect(session.calls).toEqual([
      { probe: 'deploy_window', args: ['staging'], result: 'open' },
      { probe: 'broken', args: [{ app_name: 'pay' }], error: 'no line' },
    ])
  })

  test('are answered from a record without being called', () => {
    const recorded = [
      { probe: 'now', args: [], result: 1 },
      { probe: 'now', args: [], result: 2 },
    ]
    const session = probeSession({ probes: { now: () => 3 }, recorded })
    expect(evaluate('now() == 1', {}, session)).toEqual({ ok: true, value: true })
    expect(evaluate('now() == 2', {}, session)).toEqual({ ok: true, value: true })
    expect(evaluate('now() == 3', {}, session)).toMatchObject({ ok: false, detail: expect.stringContaining('not recorded') })
    expect(session.calls.slice(0, 2)).toEqual(recorded)
  })

  test('cannot change what they are given', () => {
    const inputs = { items: [1] }
    const session = probeSession({ probes: { grow: (numbers) => (numbers as number[]).push(2) } })
    evaluate('grow(items) == 2', { inputs }, session)
    expect(inputs).toEqual({ items: [1] })
    expect(session.calls).toEqual([{ probe: 'grow', args: [[1]], result: 2 }])
  })

  test('may themselves evaluate', () => {
    const inner = probeSession({ probes: { one: () => 1 } })
    const outer = probeSession({ probes: { nested: () => evaluate('one() == 1', {}, inner).ok, two: () => 2 } })
    expect(evaluate('nested() && two() == 2', {}, outer)).toEqual({ ok: true, value: true })
  })

  test('record without what is hidden', () => {
    const session = probeSession({ probes: { scan: (text) => text === 'hush' }, hide: (value) => (value === 'hush' ? '[secret]' : value) })
    expect(evaluate("scan('hush')", {}, session)).toEqual({ ok: true, value: true })
    expect(session.calls).toEqual([{ probe: 'scan', args: ['[secret]'], result: true }])
    const replayed = probeSession({ recorded: session.calls, hide: (value) => (value === 'hush' ? '[secret]' : value) })
    expect(evaluate("scan('hush')", {}, replayed)).toEqual({ ok: true, value: true })
  })
})
