import { describe, expect, test } from 'vitest'
import { riskIn, type RiskTools } from '../../../src/agent/risk.ts'
import type { Action } from '../../../src/contract/action.ts'
import type { Risk } from '../../../src/contract/risk.ts'

const tools = {
  all: {
    get: { reads: true },
    look: { repeatable: true },
    book: {},
    unbook: { undoes: { tool: 'book', match: ['id'] } },
    pay: {},
  },
  keyOf: (tool: string) => ({ idempotence_key: tool === 'charge' ? 'k' : null, arguments_hash: '' }),
  isFinal: () => false,
} as unknown as RiskTools

const call = (tool: string) => ({ action_type: 'call_tool', tool, args: {} }) as const
const branching = (first: string, ...then: string[]): Action => ({
  action_type: 'sequence',
  acts: [call(first)],
  branches: then.map((tool) => ({ when: [], acts: [call(tool)] })),
})

describe('the risk of an action', () => {
  test.each<[string, Action, Risk]>([
    ['a call that only reads, by its method', call('get'), 'outside'],
    ['a call that only reads, as its owner says', call('look'), 'outside'],
    ['a call that another one undoes', call('book'), 'outside'],
    ['a call with a key', call('charge'), 'outside'],
    ['a call that nothing undoes', call('pay'), 'final'],
    ['a sequence whose branches can all be undone', branching('get', 'book', 'charge'), 'outside'],
    ['a sequence with one branch that cannot be undone', branching('get', 'book', 'pay'), 'final'],
    ['words', { action_type: 'reply', content: 'Yes.' }, 'inside'],
  ])('of %s', (_, action, expected) => expect(riskIn(tools, action)).toBe(expected))
})
