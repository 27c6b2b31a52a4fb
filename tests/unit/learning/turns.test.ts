import { describe, expect, test } from 'vitest'
import type { JsonFields } from '../../../src/base/json.ts'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { EpisodeTurns } from '../../../src/features/learning/episodes/turns.ts'

type Tried = { tool: string; input: JsonFields; status: 'ok' | 'failed' }

/** The acts of a turn that made these calls, as they are read from its log. */
function actsOf(calls: readonly Tried[]): unknown[] {
  const head = { trace_id: 't', span_id: 's', parent_id: null, event_ids: ['e'], at: '2026-11-21T05:00:00.000Z', turn_id: 'turn' }
  const entries: JsonFields[] = [
    { kind: 'turn-started', agent: 'a', considered: [] },
    ...calls.flatMap(({ tool, input, status }, place): JsonFields[] => {
      const effect = { effect_id: `f${place}`, tool, input, cause: { turn_id: 'turn' } }
      return [
        { ...effect, kind: 'effect-started' },
        { ...effect, kind: 'effect-ended', status, output: {} },
      ]
    }),
    {
      kind: 'turn-ended',
      status: 'none',
      usage: { model_calls: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0 },
      acts: calls.flatMap(({ tool, status }) =>
        status === 'ok' ? [{ act: 'call_tool', tool, idempotence_key: null, arguments_hash: '' }] : [],
      ),
    },
  ]
  const turns = new EpisodeTurns()
  const decisions = entries.flatMap((entry, index) => turns.feed({ ...head, seq: index + 1, ...entry } as unknown as LogEntry))
  expect(decisions).toMatchObject([{ unusable: null }])
  return decisions.flatMap(({ acts }) => acts.map(({ act: { name, input, ok } }) => [name, input, ok]))
}

describe('of the calls of a turn', () => {
  test('one that failed and was then made again is decided once', () => {
    const open = { tool: 'open', input: { door: 'n' } }
    const ring = { tool: 'ring', input: {}, status: 'ok' as const }
    expect(actsOf([{ ...open, status: 'failed' }, ring, { ...open, status: 'failed' }, { ...open, status: 'ok' }])).toEqual([
      ['ring', {}, true],
      ['open', { door: 'n' }, true],
    ])
  })

  test('one that failed stays where only another call was made after it', () => {
    const open = (door: string, status: Tried['status']) => ({ tool: 'open', input: { door }, status })
    expect(actsOf([open('n', 'failed'), open('s', 'ok')])).toEqual([
      ['open', { door: 'n' }, false],
      ['open', { door: 's' }, true],
    ])
  })
})
