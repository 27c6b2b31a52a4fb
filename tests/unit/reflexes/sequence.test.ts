import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  parseAction,
  type Action,
  type SequenceBranch,
  type OutputCondition,
  type Sequence,
  type SequenceAct,
} from '../../../src/contract/action.ts'
import { actNameOf } from '../../../src/contract/act-name.ts'
import { choosesWords } from '../../../src/contract/words.ts'
import { type Act, actsOf, type KeyOf, type ComparisonTerms } from '../../../src/contract/reflex.ts'
import type { Json } from '../../../src/base/json.ts'
import { agreedIn } from '../../../src/reflexes/agreement.ts'
import { actsOnPath, failureIn, failureOf, resolveAct } from '../../../src/reflexes/sequence.ts'
import { assertProperty } from '../../support/property.ts'

const called = (args: Record<string, unknown>, uses?: { at: string; output: number; path: string }[]): SequenceAct => ({
  action_type: 'call_tool',
  tool: 'open',
  args,
  ...(uses && { uses }),
})
const replied = (content: string): SequenceAct => ({ action_type: 'reply', content })
const sequence = (...acts: SequenceAct[]): Sequence => ({ action_type: 'sequence', acts })
const argsOf = (act: SequenceAct, outputs: (Json | undefined)[]) => {
  const resolved = resolveAct(act, outputs)
  return resolved.ok ? (resolved.action as { args: unknown }).args : resolved
}

describe('an act that uses an output', () => {
  const id = [{ at: '/args/id', output: 0, path: '/ticket/id' }]

  test('gets it at the place that is named beside the arguments', () => {
    expect(argsOf(called({ id: null, of: 'a' }, id), [{ ticket: { id: 7 } }])).toEqual({ id: 7, of: 'a' })
    expect(argsOf(called({ deep: [{ x: 1 }] }, [{ at: '/args/deep/0/x', output: 1, path: '' }]), [null, { all: 1 }])).toEqual({
      deep: [{ x: { all: 1 } }],
    })
  })

  test('gets it out of a text that is JSON, as tools of MCP return it', () => {
    const of = (path: string) => called({ id: null }, [{ at: '/args/id', output: 0, path }])
    const output = { content: [{ type: 'text', text: ' {"ticket": {"ids": [7, 8]}}' }] }
    expect(argsOf(of('/content/0/text/ticket/ids/1'), [output])).toEqual({ id: 8 })
    expect(argsOf(of('/content/0/text'), [output])).toEqual({ id: ' {"ticket": {"ids": [7, 8]}}' })
    for (const path of ['/content/0/text/ticket/ids/length', '/content/0/text/none', '/content/0/type/0'])
      expect(argsOf(of(path), [output])).toMatchObject({ reason: 'missing' })
    for (const text of ['{"ticket": ', '7', '"{}"', 'null']) expect(argsOf(of('/ticket'), [text])).toMatchObject({ reason: 'missing' })
  })

  test('is resolved into a copy', () => {
    const act = called({ id: null }, id)
    resolveAct(act, [{ ticket: { id: 7 } }])
    expect(act).toEqual(called({ id: null }, id))
  })

  test.each<[string, SequenceAct, (Json | undefined)[], object]>([
    ['an output that is not known', called({}, id), [undefined], { reason: 'unknown' }],
    ['an act that is not earlier', called({}, id), [], { reason: 'missing' }],
    ['a path that has nothing', called({}, id), [{ ticket: {} }], { reason: 'missing' }],
    ['a field that every object has', called({}, [{ at: '/args/x', output: 0, path: '/constructor' }]), [{}], { reason: 'missing' }],
    ['the length of a list', called({}, [{ at: '/args/x', output: 0, path: '/length' }]), [[1]], { reason: 'missing' }],
    ['a place that is not there', called({}, [{ at: '/args/a/b', output: 0, path: '' }]), [1], { reason: 'missing' }],
    ['a place in every object', called({}, [{ at: '/args/__proto__', output: 0, path: '' }]), [{}], { reason: 'missing' }],
    ['a place in the prototype', called({}, [{ at: '/args/__proto__/x', output: 0, path: '' }]), [1], { reason: 'missing' }],
  ])('lacks %s', (_, act, outputs, lacks) => expect(argsOf(act, outputs)).toMatchObject({ ok: false, ...lacks }))

  test.each(['/tool', '/uses/0/path', '/args', '/action_type', 'args/id', ''])('cannot be written at %s', (at) => {
    expect(parseAction(sequence(called({}, [{ at, output: 0, path: '' }]))).ok).toBe(false)
  })

  test('says texts and numbers, and no other values', () => {
    const said = (path: string): SequenceAct => ({ action_type: 'reply', parts: ['Ticket ', { output: 0, path }, '.'] })
    expect(resolveAct(said('/id'), [{ id: 7 }])).toMatchObject({ ok: true, action: { action_type: 'reply', content: 'Ticket 7.' } })
    expect(resolveAct(said('/id'), [{ id: { x: 1 } }])).toMatchObject({ ok: false, reason: 'missing' })
  })

  test('leaves values alone that a stranger wrote, whatever they look like', () =>
    assertProperty(
      'reflexes/sequence: values',
      fc.property(fc.jsonValue(), fc.jsonValue(), (theirs, output) => {
        const marked = { uses: [{ at: '/args/x', output: 0, path: '' }], theirs, text: '{{0/}} {"output":0,"path":""}' } as Record<
          string,
          unknown
        >
        expect(argsOf(called(marked), [output as Json])).toEqual(marked)
        expect(argsOf(called({ ...marked, mine: null }, [{ at: '/args/mine', output: 0, path: '' }]), [output as Json])).toEqual({
          ...marked,
          mine: output,
        })
      }),
    ))
})

describe('a sequence with branches', () => {
  const branch = (acts: SequenceAct[], ...when: OutputCondition[]): SequenceBranch => ({ when, acts })
  const free = (tests: Partial<OutputCondition>): OutputCondition => ({ output: 0, path: '/free', ...tests })
  const taken = (output: Json | undefined, ...when: OutputCondition[]) =>
    actsOnPath({ acts: [called({})], branches: [branch([called({ b: 1 })], ...when)] }, [output]) !== null

  test.each<[Partial<OutputCondition>, Json | undefined, boolean]>([
    [{ at_least: 5 }, { free: 5 }, true],
    [{ at_least: 5 }, { free: 4 }, false],
    [{ at_least: 5 }, { free: '9' }, false],
    [{ at_least: 0 }, {}, false],
    [{ above: 5 }, { free: 5 }, false],
    [{ above: 5 }, { free: 6 }, true],
    [{ at_most: 5 }, { free: 5 }, true],
    [{ at_most: 5 }, { free: null }, false],
    [{ below: 5 }, { free: 5 }, false],
    [{ below: 5 }, { free: 4 }, true],
    [{ at_least: 1, below: 5 }, { free: 7 }, false],
    [{ one_of: ['a', true, null] }, { free: null }, true],
    [{ one_of: ['a', true, null] }, {}, false],
    [{ one_of: [1] }, { free: '1' }, false],
    [{ none_of: ['a'] }, {}, true],
    [{ none_of: ['a'] }, { free: 'a' }, false],
    [{ present: true }, { free: null }, true],
    [{ present: false }, {}, true],
    [{ present: false }, { free: 0 }, false],
    [{ present: true, one_of: ['a'] }, { free: 'b' }, false],
    [{ present: false }, null, true],
    [{ says: ['sold out'] }, { free: 'Sold OUT!' }, true],
    [{ says: ['sold'] }, { free: 'unsold' }, false],
    [{ says_none: ['sold'] }, { free: 'unsold' }, true],
    [{ says_none: ['sold'] }, {}, false],
    [{ says_none: ['sold'] }, { free: 7 }, false],
    [{ empty: true }, { free: [] }, true],
    [{ empty: true }, { free: [0] }, false],
    [{ empty: false }, { free: [0] }, true],
    [{ empty: false }, {}, false],
    [{ only: ['a', 'b'] }, { free: { a: 1 } }, true],
    [{ only: ['a'] }, { free: { a: 1, b: null } }, false],
    [{ only: ['a'] }, { free: '{"b":1}' }, false],
    [{ only: ['a'] }, { free: [{ b: 1 }] }, true],
    [{ only: ['a'] }, {}, true],
  ])('that asks %j of %j: %s', (tests, output, holds) => expect(taken(output, free(tests))).toBe(holds))

  test('takes the first branch all of whose conditions hold, and none else', () => {
    const [one, other, rest] = [called({ b: 1 }), called({ b: 2 }), called({ b: 3 })]
    const branches = [branch([one], free({ at_least: 5 }), free({ below: 9 })), branch([other], free({ at_least: 5 })), branch([rest])]
    const actsFor = (value: number) => actsOnPath({ acts: [called({})], branches }, [{ free: value }])?.slice(1)
    expect([7, 9, 4].map(actsFor)).toEqual([[one], [other], [rest]])
    expect(actsOnPath({ acts: [called({})], branches: branches.slice(0, 2) }, [{ free: 4 }])).toBeNull()
  })

  test.each<[Partial<OutputCondition>, boolean]>([
    [{ path: '/@failed', one_of: ['404'] }, true],
    [{ path: '/@failed', one_of: ['503'] }, false],
    [{ path: '/@failed', present: false }, false],
    [{ path: '/free', present: false }, false],
    [{ path: '/free', none_of: ['a'] }, false],
    [{ path: '', only: ['@failed'] }, false],
  ])('is for a look-up that failed only where it asks how: %j', (tests, holds) => {
    const output = failureOf('stock.get: 404 Not Found {"error":"none"}')
    expect(taken(output, { output: 0, path: '', ...tests })).toBe(holds)
    expect(taken(output)).toBe(false)
  })

  test.each([
    ['stock.get: 404 Not Found {"sku":"k7"}', '404'],
    ['HttpToolError: stock.get: 404 Not Found {"sku":"k7"}', '404'],
    ['HttpToolError: stock.get: 503', '503'],
    ['stock.get took longer than 15000 ms', 'stock get took longer than #### ms'],
    ['No order 4711', 'no order ####'],
  ])('knows a failure by its status, or its words: %s', (error, kind) => expect(failureIn(failureOf(error))).toBe(kind))

  test('keeps its branch when an act of it returns something else', () => {
    const branches = [branch([called({ b: 1 })], free({ at_least: 5 })), branch([called({ b: 2 })])]
    expect(actsOnPath({ acts: [called({})], branches }, [{ free: 7 }, { free: 1 }])?.[1]).toEqual(called({ b: 1 }))
  })

  test('has no branch before its acts are done, and never one by an output that is not earlier', () => {
    const branches = [branch([], { output: 1, path: '', present: true }), branch([called({ b: 2 })])]
    expect(actsOnPath({ acts: [called({})], branches }, [])).toEqual([called({})])
    expect(actsOnPath({ acts: [called({})], branches }, [1, 2])).toHaveLength(2)
  })

  test.each<[string, unknown]>([
    ['no branches', []],
    ['a branch without conditions', [{ acts: [] }]],
    ['a test of a number by a text', [{ when: [{ output: 0, path: '', at_least: '5' }], acts: [] }]],
    ['a test that there is not', [{ when: [{ output: 0, path: '', about: 5 }], acts: [] }]],
    ['an action that is no act of a sequence', [{ when: [], acts: [{ action_type: 'escalate', reason: 'x' }] }]],
  ])('is refused with %s', (_, branches) => expect(parseAction({ ...sequence(called({})), branches }).ok).toBe(false))
})

describe('a sequence with branches, as one decision', () => {
  const branching: Sequence = {
    ...sequence(replied('Looking.')),
    branches: [[called({ b: 1 })], [called({ b: 2 })], []].map((acts) => ({ when: [], acts })),
  }

  test('has each way to continue in its name once', () => expect(actNameOf(branching)).toBe('reply + nothing or open'))
  test('says words beside an act of a branch', () => expect(choosesWords(branching, 'by_person')).toBe(true))
  test('chooses its words only where its code says so, or the setting', () => {
    const chosen = (any_words?: boolean) =>
      (['heard', 'exact', 'ignore'] as const).filter((replies) =>
        choosesWords({ ...branching, ...(any_words !== undefined && { any_words }) }, replies),
      )
    expect([chosen(), chosen(false), chosen(true)]).toEqual([[], [], ['heard']])
    const words: SequenceAct = { action_type: 'reply', content: 'Done.' }
    expect(choosesWords({ action_type: 'sequence', acts: [words, words], any_words: true }, 'heard')).toBe(false)
  })
  test('is known to others as its first acts, and something that may follow', () =>
    expect(actsOf(branching, () => null)).toEqual([
      { act: 'reply', content: 'Looking.' },
      { act: 'other', action_type: 'sequence' },
    ]))
})

describe('a sequence and a decision', () => {
  const keyOf: KeyOf = (tool, args) => (tool === 'open' ? { idempotence_key: null, arguments_hash: JSON.stringify(args) } : null)
  const made = (args: object): Act => ({ act: 'call_tool', tool: 'open', idempotence_key: null, arguments_hash: JSON.stringify(args) })
  const said = (content: string): Act => ({ act: 'reply', content })
  const agreed = (action: Action, acts: Act[], terms: ComparisonTerms = { alone: true }) =>
    agreedIn({ version: { id: 'r', version: 1 }, action, decision: { by: 'turn', acts }, seen: new Map(), ...terms }, keyOf).agreed
  const both = sequence(called({ a: 1 }), replied('Done.'))
  const later = sequence(called({ a: 1 }), called({ id: null }, [{ at: '/args/id', output: 0, path: '/id' }]))
  const tells = sequence(called({ a: 1 }), { action_type: 'reply', parts: ['It is ', { output: 0, path: '/state' }] })
  const branching: Sequence = {
    ...sequence(called({ a: 1 })),
    branches: [
      {
        when: [{ output: 0, path: '/n', at_least: 5 }],
        acts: [called({ b: null }, [{ at: '/args/b', output: 0, path: '/n' }]), replied('Yes.')],
      },
      { when: [{ output: 0, path: '/n', below: 3 }], acts: [] },
    ],
  }
  const greeting: Sequence = { ...sequence(replied('Hello.')), branches: [{ when: [], acts: [] }] }
  const any: Sequence = { ...sequence(called({ a: 1 }), called({ b: 2 }), called({ a: 1 })), any_order: true }
  const returned = (n: number): ComparisonTerms => ({ alone: true, outputs: { 0: { n } } })

  test.each<[string, Action, Act[], ComparisonTerms, boolean | null]>([
    ['the same acts', both, [made({ a: 1 }), said('done')], { alone: true }, true],
    ['another call', both, [made({ a: 2 }), said('Done.')], { alone: true }, false],
    ['other words', both, [made({ a: 1 }), said('I could not.')], { alone: true }, false],
    ['other words that nobody hears', both, [made({ a: 1 }), said('I could not.')], { alone: true, words: 'none' }, true],
    ['no words where any would do', both, [made({ a: 1 })], { alone: true, words: 'said' }, true],
    ['any words before it', both, [said('I see.'), made({ a: 1 })], { alone: true, words: 'said' }, true],
    ['another call where any words will do', both, [made({ a: 2 }), said('It is.')], { alone: true, words: 'said' }, false],
    ['words alone where any will do', both, [said('It is.')], { alone: true, words: 'said' }, false],
    ['nothing where any words will do', both, [], { alone: true, words: 'said' }, false],
    ['its call twice in silence', both, [made({ a: 1 }), made({ a: 1 })], { alone: true, words: 'said' }, false],
    ['other words where any will do', both, [made({ a: 1 }), said('It is.')], { alone: true, words: 'said' }, true],
    [
      'words where any will do, with an output that it lacks',
      tells,
      [made({ a: 1 }), said('It is.')],
      { ...returned(7), words: 'said' },
      false,
    ],
    ['another order', both, [said('Done.'), made({ a: 1 })], { alone: true }, false],
    ['an act more', both, [made({ a: 1 }), said('Done.'), made({ a: 3 })], { alone: true }, false],
    ['an act less', both, [made({ a: 1 })], { alone: true }, false],
    ['acts of other events beside its own', both, [made({ a: 9 }), made({ a: 1 }), said('Done.')], {}, true],
    ['words about several events', both, [made({ a: 1 }), made({ a: 2 }), said('Both.')], {}, null],
    ['the output that the turn got', later, [made({ a: 1 }), made({ id: 5 })], { alone: true, outputs: { 0: { id: 5 } } }, true],
    ['another output than the turn used', later, [made({ a: 1 }), made({ id: 5 })], { alone: true, outputs: { 0: { id: 6 } } }, false],
    ['an output that nobody knows', later, [made({ a: 1 }), made({ id: 5 })], { alone: true }, null],
    ['the acts of the branch of its output', branching, [made({ a: 1 }), made({ b: 7 }), said('Yes.')], returned(7), true],
    ['nothing more, as the branch of its output', branching, [made({ a: 1 })], returned(1), true],
    ['the acts of another branch', branching, [made({ a: 1 }), made({ b: 1 }), said('Yes.')], returned(1), false],
    ['nothing more, where a branch has acts', branching, [made({ a: 1 })], returned(7), false],
    ['an output that is for no branch', branching, [made({ a: 1 }), made({ b: 4 })], returned(4), null],
    ['other words before a branch', { ...both, branches: [{ when: [], acts: [] }] }, [made({ a: 1 })], {}, null],
    ['a call in place of words alone', greeting, [made({ a: 1 })], { alone: true, words: 'said' }, false],
    ['other words in place of words alone', greeting, [said('Hi.')], { alone: true, words: 'said' }, true],
    ['an output that nobody knows, for branches', branching, [made({ a: 1 }), made({ b: 7 }), said('Yes.')], { alone: true }, null],
    ['another first call, for branches', branching, [made({ a: 2 }), made({ b: 7 }), said('Yes.')], returned(7), false],
    ['no call, for branches', branching, [], returned(7), false],
    [
      'other words of a branch that nobody hears',
      branching,
      [made({ a: 1 }), made({ b: 7 }), said('Ok')],
      { ...returned(7), words: 'none' },
      true,
    ],
    [
      'acts of other events beside those of its branch',
      branching,
      [made({ a: 9 }), made({ a: 1 }), made({ b: 7 }), said('Yes.')],
      { outputs: { 1: { n: 7 } } },
      true,
    ],
    ['its acts in any order', any, [made({ b: 2 }), made({ a: 1 }), made({ a: 1 })], { alone: true }, true],
    ['an act that it has twice made once', any, [made({ b: 2 }), made({ a: 1 }), made({ b: 2 })], { alone: true }, false],
    ['an act less, in any order', any, [made({ b: 2 }), made({ a: 1 })], { alone: true }, false],
    ['its acts in any order after those of others', any, [made({ a: 9 }), made({ a: 1 }), made({ a: 1 }), made({ b: 2 })], {}, true],
    ['another first call, with an unknown output', later, [made({ a: 2 }), made({ id: 5 })], { alone: true }, false],
  ])('with %s', (_, action, acts, terms, expected) => expect(agreed(action, acts, terms)).toBe(expected))

  test('one decision confirms it once', () => {
    const seen = new Map<string, number>()
    const decision = { by: 'turn' as const, acts: [made({ a: 1 }), said('Done.')] }
    const judge = () => agreedIn({ version: { id: 'r', version: 1 }, action: both, decision, seen }, keyOf).agreed
    expect([judge(), judge()]).toEqual([true, null])
  })
})
