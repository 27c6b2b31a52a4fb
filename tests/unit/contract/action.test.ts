import { describe, expect, test } from 'vitest'
import { parseAction } from '../../../src/contract/action.ts'

const valid = [
  { action_type: 'call_tool', tool: 'block_address', args: { address: '203.0.113.1' } },
  { action_type: 'emit_event', event: { type: 'alarm.raised', level: 3 } },
  { action_type: 'reply', content: 'hello' },
  { action_type: 'run_skill', skill_id: 'deploy@1', inputs: {} },
  { action_type: 'write_artifact', artifact_id: 'alice_reflex', artifact_type: 'reflex', content: 'function reflex(context) {}' },
  { action_type: 'invoke_artifact', artifact_id: 'genesis_escrow', method: 'accept', args: ['deal-1'] },
  { action_type: 'set_scratch', key: 'blocked', value: ['a'] },
  { action_type: 'ignore', reason: 'a health check' },
  { action_type: 'cancel_turn', reason: 'it is over' },
  { action_type: 'escalate', reason: 'I have not seen this before' },
]
const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])

describe('an action', () => {
  test.each(valid)('$action_type is taken as it is, with or without its options', (action) => {
    expect(parseAction(action)).toEqual({ ok: true, action })
    const options = { consume: true, preempt: false, idempotence_key: 'once' }
    expect(parseAction({ ...action, ...options })).toEqual({ ok: true, action: { ...action, ...options } })
  })

  test.each([
    ['no object', 'reply', /expected object|Invalid/],
    ['no type', {}, /action_type/],
    ['an unknown type', { action_type: 'launch' }, /action_type/],
    ['a field too many', { action_type: 'reply', content: 'a', to: 'b' }, /Unrecognized key: "to"/],
    ['a field too few', { action_type: 'call_tool', tool: 'a' }, /^args: /],
    ['an option of another type', { action_type: 'reply', content: 'a', consume: 'yes' }, /^consume: /],
    ['a name that is empty', { action_type: 'call_tool', tool: '', args: {} }, /^tool: /],
    ['an event without a type', { action_type: 'emit_event', event: { level: 3 } }, /^event.type: /],
    ['a text that is too long', { action_type: 'reply', content: 'x'.repeat(20_000) }, /^content: /],
    ['a value that is nested too deeply', { action_type: 'set_scratch', key: 'a', value: deep(5000) }, /nested deeper than 64/],
    ['a reserved name', JSON.parse('{"action_type": "call_tool", "tool": "a", "args": {"__proto__": {}}}'), /reserved name/],
    ['half of a surrogate pair', { action_type: 'reply', content: '\uD800' }, /surrogate/],
  ])('with %s is refused', (_, action, error) => {
    expect(parseAction(action)).toEqual({ ok: false, error: expect.stringMatching(error) })
  })
})
