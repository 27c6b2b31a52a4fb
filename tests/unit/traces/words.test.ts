import { expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { inWords } from '../../../src/features/traces/http/words.ts'

const entry = (body: object) =>
  ({ seq: 1, at: '2026-11-26T00:00:00.000Z', trace_id: 'a', event_ids: ['e'], ...body }) as unknown as LogEntry
const effect = (tool: string, input: unknown, status = 'ok', id = tool) => [
  entry({ kind: 'effect-started', effect_id: id, tool, input }),
  entry({ kind: 'effect-ended', effect_id: id, tool, status, output: null }),
]
const ended = (outcome: object) => entry({ kind: 'event-ended', status: 'completed', outcome })
const cost = (cost_usd: number | null) =>
  entry({ kind: 'model-called', usage: { input_tokens: 1, output_tokens: 1, model_calls: 1, cost_usd } })

test('the name of a tool that begins with a verb becomes a sentence in the past', () => {
  const said = (tool: string, input: unknown) => inWords(effect(tool, input), '').words
  expect(said('http.block', { address: '203.0.113.9' })).toBe('blocked 203.0.113.9')
  expect(said('notify', { text: 'fire' })).toBe('notified fire')
  expect(said('ban_user', { reason: '', id: 7 })).toBe('banned user 7')
  expect(said('cancel-order', {})).toBe('canceled order')
  expect(said('send_mail', 'ann')).toBe('sent mail ann')
  expect(said('weather', { city: 'Lisbon' })).toBe('called weather Lisbon')
})

test('what failed, what was asked and what a model cost is said', () => {
  const entries = [
    ...effect('refund', { order: 1 }, 'failed'),
    cost(0.25),
    cost(0.5),
    ended({ by: 'turn', turn_id: 't', log_seq: 1, result: null }),
  ]
  expect(inWords(entries, '')).toEqual({ words: 'refunded 1 (failed)', decided_by: { by: 'turn', name: null }, cost_usd: 0.75 })
  expect(inWords([cost(1), cost(null)], 'a call')).toEqual({ words: 'a call', decided_by: null, cost_usd: null })
  expect(inWords([entry({ kind: 'approval-requested', skill_id: 'net.block' })], '').words).toBe('asked a person about net.block')
  expect(inWords([ended({ by: 'failure', reason: 'division by zero' })], '').words).toBe('failed: division by zero')
})

test('of many acts, the words have the first three', () => {
  const acts = [1, 2, 3, 4, 5].flatMap((n) => effect('block', { n }, 'ok', String(n)))
  expect(inWords(acts, '').words).toBe('blocked 1, blocked 2, blocked 3, 2 more')
})
