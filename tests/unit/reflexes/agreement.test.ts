import { describe, expect, test } from 'vitest'
import { toolCallOf, type Action } from '../../../src/contract/action.ts'
import type { Event } from '../../../src/core/event.ts'
import { type Act, type KeyOf, skillAct } from '../../../src/contract/reflex.ts'
import { agreedIn, agreement, ownersOfActs, recordedKeys } from '../../../src/reflexes/agreement.ts'
import { callKeys, type ToolDefinition } from '../../../src/tools/define-tool.ts'
import { z } from 'zod'
import { actsOf } from '../../../src/skills/session/context.ts'

/** `once` carries a key, its argument `of`; `free` has none; there is no other tool. */
const keyOf: KeyOf = (tool, args) => {
  const { of } = args as { of?: string }
  if (tool === 'genesis_escrow.accept') return { idempotence_key: `accept:${(args as { deal_id: string }).deal_id}`, arguments_hash: '' }
  if (!['once', 'free', 'write_reflex'].includes(tool)) return null
  return { idempotence_key: tool === 'once' ? `once:${of}` : null, arguments_hash: JSON.stringify(args) }
}
const asked = (tool: string, args: Record<string, unknown>): Action => ({ action_type: 'call_tool', tool, args })
const called = (tool: string, arguments_hash: string, idempotence_key: string | null = null): Act => ({
  act: 'call_tool',
  tool,
  arguments_hash,
  idempotence_key,
})
const keysOf = (action: Action) => {
  const call = toolCallOf(action)
  return call && keyOf(call.tool, call.args)
}
const accepts = (deal: string): Action => ({
  action_type: 'invoke_artifact',
  artifact_id: 'genesis_escrow',
  method: 'accept',
  args: [deal],
})
const writes = (code: string): Action => ({ action_type: 'write_artifact', artifact_id: 'a', artifact_type: 'reflex', content: code })
const agrees = (action: Action, ...acts: Act[]) => agreement(action, { by: 'turn', acts }, keysOf(action))
const reply = (content: string): Action => ({ action_type: 'reply', content })
const replied = (content: string): Act => ({ act: 'reply', content })
const runs = (skill_id: string, inputs: Record<string, unknown>): Action => ({ action_type: 'run_skill', skill_id, inputs })
const noted = (key: string, value: unknown): Act => ({ act: 'set_scratch', key, value })

const comparable: [what: string, action: Action, decided: Act, agrees: boolean][] = [
  ['the same call', asked('free', { a: 1 }), called('free', '{"a":1}'), true],
  ['a call with other arguments', asked('free', { a: 1 }), called('free', '{"a":2}'), false],
  ['a call of another tool', asked('free', { a: 1 }), called('once', '{"a":1}'), false],
  ['a call under the same key', asked('once', { of: 'x', why: 'other' }), called('once', '{"of":"x"}', 'once:x'), true],
  ['a call under another key', asked('once', { of: 'x' }), called('once', '{"of":"x"}', 'once:y'), false],
  ['the same call, recorded without its key', asked('once', { of: 'x' }), called('once', '{"of":"x"}'), true],
  ['a call without a key, recorded with one', asked('free', { a: 1 }), called('free', '{"a":1}', 'once:x'), true],
  ['a call of a tool that is not there', asked('none', {}), called('none', '{}'), false],
  ['an invocation as the call that it is', accepts('d1'), called('genesis_escrow.accept', '', 'accept:d1'), true],
  ['an invocation for another deal', accepts('d1'), called('genesis_escrow.accept', '', 'accept:d2'), false],
  ['another method of the artifact', accepts('d1'), called('genesis_escrow.reject', '', 'reject:d1'), false],
  ['an artifact that is written', writes('c'), called('write_reflex', '{"id":"a","code":"c"}'), true],
  ['an artifact that is written otherwise', writes('c'), called('write_reflex', '{"id":"a","code":"d"}'), false],
  ['the same reply', reply('Hello'), replied('Hello'), true],
  ['a reply that is spaced and capitalised differently', reply('  hello\n there '), replied('Hello there'), true],
  ['a reply with other punctuation', reply('Hello, Alice'), replied('hello Alice!'), true],
  ['a reply with emphasis', reply('**Done**: see `a.ts`.'), replied('Done: see a.ts'), true],
  ['a reply with other quotes', reply('I said “no” …'), replied('I said "no".'), true],
  ['a reply with other dashes', reply('Yes — now'), replied('yes - now'), true],
  ['a reply in composed characters', reply('caf\u0065\u0301'), replied('café'), true],
  ['a question instead of an answer', reply('Blocked?'), replied('Blocked.'), false],
  ['another number', reply('It is -5.5'), replied('It is 5.5'), false],
  ['another address', reply('blocked 10.0.0.1'), replied('blocked 10.0.01'), false],
  ['a percentage instead of a number', reply('5 %'), replied('5'), false],
  ['another reply', reply('hello'), replied('hello you'), false],
  [
    'an event of the same type',
    { action_type: 'emit_event', event: { type: 'a.b', n: 1 } },
    { act: 'emit_event', event_type: 'a.b' },
    true,
  ],
  ['an event of another type', { action_type: 'emit_event', event: { type: 'a.b' } }, { act: 'emit_event', event_type: 'a.c' }, false],
  ['the same note', { action_type: 'set_scratch', key: 'k', value: { a: [1], b: null } }, noted('k', { b: null, a: [1] }), true],
  ['another value', { action_type: 'set_scratch', key: 'k', value: { a: [1, 2] } }, noted('k', { a: [2, 1] }), false],
  ['a note under another key', { action_type: 'set_scratch', key: 'k', value: 1 }, noted('l', 1), false],
  ['the same skill', runs('a', { x: 1, y: 2 }), skillAct('a', { y: 2, x: 1 }), true],
  ['a named version of the same skill', runs('a', {}), skillAct('a@1.0.0', {}), true],
  ['another version of the skill', runs('a@1.1.0', {}), skillAct('a@1.0.0', {}), false],
  ['another skill', runs('a', {}), skillAct('ab', {}), false],
  ['the skill with other inputs', runs('a', { x: 1 }), skillAct('a', { x: 2 }), false],
  ['an act of another kind', reply('hello'), noted('hello', 'hello'), false],
]

describe('an action and a decision', () => {
  test.each(comparable)('%s', (_what, action, decided, expected) => {
    expect(agrees(action, decided)).toBe(expected)
    expect(agrees(action, { act: 'other', action_type: 'escalate' }, decided)).toBe(expected)
    expect(agrees(action)).toBe(false)
  })

  test('are compared in good time, whatever signs a reply is made of', { tags: ['timed'] }, () => {
    const started = performance.now()
    const signs = (count: number) => `(x${'"'.repeat(count)}y)`
    expect(agrees(reply(signs(200_000)), replied(`${signs(200_000)}.`))).toBe(true)
    expect(agrees(reply(signs(200_000)), replied(signs(199_999)))).toBe(false)
    expect(performance.now() - started).toBeLessThan(2000)
  })

  test('agree to ignore an event only if nothing was done', () => {
    const action: Action = { action_type: 'ignore', reason: 'x' }
    expect(agrees(action)).toBe(true)
    expect(agrees(action, { act: 'other', action_type: 'escalate' })).toBe(false)
  })

  test.each<Action>([
    { action_type: 'escalate', reason: 'x' },
    { action_type: 'cancel_turn', reason: 'x' },
    { action_type: 'write_artifact', artifact_id: 'a', artifact_type: 'text', content: '' },
    { action_type: 'invoke_artifact', artifact_id: 'a', method: 'm', args: [] },
  ])('cannot be compared where the action is $action_type', (action) => {
    expect(agrees(action, { act: 'other', action_type: action.action_type })).toBeNull()
    expect(agrees(action)).toBeNull()
  })
})

test.each([
  ['ok', 1],
  ['needs_approval', 1],
  ['partial_failure', 1],
  ['failed', 1],
  ['unknown', 1],
  ['refused', 0],
  ['clarify', 0],
] as const)('a proposal that ended as %s is %i acts: a run is one, however it ended', (status, count) => {
  const acts = actsOf({ skill_id: 'deploy', inputs: { to: 'prod' }, why: '' }, { status })
  expect(acts).toHaveLength(count)
  expect(agrees(runs('deploy', { to: 'prod' }), ...acts)).toBe(count === 1)
  expect(agrees({ action_type: 'ignore', reason: 'nothing to do' }, ...acts)).toBe(count === 0)
})

describe('a turn on several events', () => {
  const order = (id: string, more: object = {}): Event =>
    ({
      id,
      type: 'shop.order',
      scope: 's',
      timestamp: '',
      meta: { trace_id: '', ...('heard' in more && { heard: true }) },
      ...more,
    }) as never
  const refund = called('free', 'hash')
  const events = [
    order('a', { order: 'A-1001', total: 40 }),
    order('b', { order: 'B-2002', total: 5 }),
    order('c', { order: 'C-3003', total: 5 }),
  ]
  const about = (inputs: Record<number, unknown>, acts: Act[] = [refund], seen = events) =>
    ownersOf(inputs, acts, seen).map((owner) => owner === 'others')
  const ownersOf = (inputs: Record<number, unknown>, acts: Act[] = [refund], seen = events) =>
    seen.map(({ id }) => ownersOfActs({ by: 'turn', acts }, { events: seen, inputs })(id))

  test('is about each event that holds anything that an act names, whatever decoys hold', () => {
    const seen = [order('e', { address: '203.0.113.9' }), order('f', { address: '203.0.113.9', why: 'ten failed logins' }), order('g')]
    const block = { address: '203.0.113.9', reason: 'ten failed logins' }
    expect(about({ 0: block }, [refund], seen)).toEqual([false, false, true])
    const apart = [order('e', { address: '203.0.113.9' }), order('f', { why: 'ten failed logins' })]
    expect(about({ 0: block }, [refund], apart)).toEqual([false, false])
  })

  test('did nothing for those that do not hold what its acts name', () => {
    expect(about({ 0: { order: 'B-2002' } })).toEqual([true, false, true])
    expect(about({ 0: { order: 'B-2002' }, 1: { note: 'C-3003' } }, [refund, refund])).toEqual([true, false, false])
  })

  test('may have done anything for each of them, if its acts name what none or all of them hold', () => {
    expect(about({ 0: { order: 'D-4004' } })).toEqual([false, false, false])
    // Small numbers are held by chance.
    expect(about({ 0: { total: 5 } })).toEqual([false, false, false])
    expect(about({})).toEqual([false, false, false])
  })

  test('says words beside its acts about all, and to whom somebody hears', () => {
    expect(about({ 0: { order: 'A-1001' } }, [refund, replied('Done.')])).toEqual([false, true, true])
    const heard = [order('a', { order: 'A-1001', heard: true }), order('b', { order: 'B-2002' })]
    expect(about({ 0: { order: 'A-1001' } }, [refund, replied('Done.')], heard)).toEqual([false, false])
    expect(about({}, [replied('Done.')])).toEqual([false, false, false])
  })

  test('said words to none of them in particular, unless they name what it holds', () => {
    expect(ownersOf({}, [replied('We open at nine.')])).toEqual(['words', 'words', 'words'])
    expect(ownersOf({}, [replied('B-2002 is on its way.')])).toEqual(['words', 'own', 'words'])
    expect(ownersOf({}, [refund, replied('We open at nine.')])).toEqual(['own', 'own', 'own'])
    expect(ownersOf({}, [replied('We open at nine.')], events.slice(0, 1))).toEqual(['own'])
    const heard = [order('a', { order: 'A-1001', heard: true }), order('b', { order: 'B-2002' })]
    expect(ownersOf({ 0: { order: 'A-1001' } }, [refund, replied('Done.')], heard)).toEqual(['own', 'words'])
  })

  test('is no comparison for an event that was ignored, where its words may be about another', () => {
    const compared = { version: { id: 'quiet', version: 1 }, action: { action_type: 'ignore' as const, reason: 'noise' }, seen: new Map() }
    const decision = { by: 'turn' as const, acts: [replied('We open at nine.')] }
    expect(agreedIn({ ...compared, decision }, keyOf).agreed).toBe(false)
    expect(agreedIn({ ...compared, decision, unclear: true }, keyOf).agreed).toBeNull()
  })

  test('that did nothing is about no other', () => {
    expect(about({}, [])).toEqual([false, false, false])
  })
})

describe('a call whose key names less than its effect depends on', () => {
  const refund = {
    input: z.object({ order: z.string(), cents: z.int(), currency: z.string(), reason: z.string() }),
    idempotence_key: ({ order }: { order: string }) => `refund:${order}`,
  } as unknown as ToolDefinition
  const made = { order: 'A-17', cents: 1290, currency: 'EUR', reason: 'it came late' }
  const keys = (args: object) => callKeys(refund, args, 'shop') ?? expect.fail('it is not valid')
  const act = (args: object): Act => ({ act: 'call_tool', tool: 'refund', ...keys(args) })
  const agrees = (args: object, decided: Act) =>
    agreement({ action_type: 'call_tool', tool: 'refund', args: args as never }, { by: 'turn', acts: [decided] }, keys(args))

  test.each([
    ['the same values, in other words', { ...made, reason: 'two days over' }, true],
    ['another amount', { ...made, cents: 129_000 }, false],
    ['another amount among words', { ...made, reason: 'it came 3 days late' }, false],
    ['another currency', { ...made, currency: 'USD' }, false],
    ['another key', { ...made, order: 'A-18' }, false],
  ])('is compared: %s', (_, args, isSame) => {
    expect(agrees(args, act(made))).toBe(isSame)
  })

  test('is compared by its key alone in a recording whose values are masked', () => {
    const masked = { ...made, currency: '[redacted]' }
    const own = recordedKeys(keys(masked), masked)
    expect(own).not.toHaveProperty('values_hash')
    expect(recordedKeys(keys(made), made)).toEqual(keys(made))
    expect(agreement({ action_type: 'call_tool', tool: 'refund', args: masked }, { by: 'turn', acts: [act(made)] }, own)).toBe(true)
  })

  test('is compared by its key alone where an earlier version recorded no values', () => {
    const { values_hash: _, ...earlier } = keys(made)
    expect(agrees({ ...made, cents: 5 }, { act: 'call_tool', tool: 'refund', ...earlier })).toBe(true)
  })
})
