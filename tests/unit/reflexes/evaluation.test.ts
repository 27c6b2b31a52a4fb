import { describe, expect, test } from 'vitest'
import type { Act, ReflexRecording, ReflexRun } from '../../../src/contract/reflex.ts'
import { Evaluation } from '../../../src/reflexes/evaluation.ts'

const hello: Act = { act: 'reply', content: 'hello' }
let recorded = 0
const recording = (acts: Act[] | null, fields: Partial<ReflexRecording> = {}): ReflexRecording => ({
  seq: (recorded += 1),
  event_id: `event-${recorded}`,
  at: '2026-11-21T05:00:00.000Z',
  source: 'recorded',
  context: {},
  decision: acts && { by: 'turn', acts },
  ...fields,
})
const base = { error: null, fuel: 100, duration_us: 5 }
const passed: ReflexRun = { ...base, action: null, reason: 'null' }
const failed = (reason: 'error' | 'limit' | 'invalid_action', error: string): ReflexRun => ({ ...base, action: null, reason, error })
const fired = (content: string): ReflexRun => ({ ...base, action: { action_type: 'reply', content }, reason: 'fired' })
const evaluate = (...pairs: [ReflexRecording, ReflexRun][]) => {
  const evaluation = new Evaluation()
  for (const [recording, run] of pairs) evaluation.add(recording, run, null)
  return evaluation.report()
}

describe('an evaluation', () => {
  test('of nothing says so', () => {
    expect(evaluate()).toEqual({
      contexts: { recorded: 0, rebuilt: 0, undecided: 0 },
      fires: 0,
      passes: { null: 0, error: 0, limit: 0, invalid_action: 0 },
      agreement: { agreed: 0, disagreed: 0, not_compared: 0, rate: null },
      missed: 0,
      errors: [],
      fuel: { p50: 0, p90: 0, p99: 0, max: 0 },
      disagreements: [],
    })
  })

  test('counts contexts by where they came from, and those whose decision is open', () => {
    const report = evaluate([recording([]), passed], [recording(null), passed], [recording([], { source: 'rebuilt' }), passed])
    expect(report).toMatchObject({ contexts: { recorded: 2, rebuilt: 1, undecided: 1 }, passes: { null: 3 }, fuel: { p50: 100, max: 100 } })
  })

  test('compares what fires with what was decided', () => {
    const wrong = recording([hello])
    const report = evaluate([recording([hello]), fired('Hello')], [wrong, fired('bye')], [recording([]), fired('hello')])
    expect(report).toMatchObject({ fires: 3, agreement: { agreed: 1, disagreed: 2, not_compared: 0, rate: 1 / 3 } })
    expect(report.disagreements[0]).toEqual({ event_id: wrong.event_id, action: fired('bye').action, decided: [hello] })
  })

  test('leaves out of the rate what cannot be compared', () => {
    const escalated: ReflexRun = { ...base, action: { action_type: 'escalate', reason: 'x' }, reason: 'fired' }
    const report = evaluate([recording(null), fired('hello')], [recording([hello]), escalated], [recording([hello]), fired('hello')])
    expect(report).toMatchObject({ fires: 3, agreement: { agreed: 1, disagreed: 0, not_compared: 2, rate: 1 }, disagreements: [] })
  })

  test('counts as missed what was decided where it passed', () => {
    const report = evaluate(
      [recording([hello]), passed],
      [recording([]), passed],
      [recording(null), passed],
      [recording([hello]), failed('error', 'TypeError: x')],
    )
    expect(report).toMatchObject({ missed: 1, fires: 0 })
  })

  test('tells the first five errors and disagreements', () => {
    const errors = (['error', 'limit', 'invalid_action'] as const).flatMap((reason) => [
      failed(reason, `${reason} 1`),
      failed(reason, `${reason} 2`),
    ])
    const report = evaluate(
      ...errors.map((run): [ReflexRecording, ReflexRun] => [recording([]), run]),
      ...Array.from({ length: 6 }, (): [ReflexRecording, ReflexRun] => [recording([hello]), fired('bye')]),
    )
    expect(report.passes).toEqual({ null: 0, error: 2, limit: 2, invalid_action: 2 })
    expect(report.errors.map(({ message }) => message)).toEqual(['error 1', 'error 2', 'limit 1', 'limit 2', 'invalid_action 1'])
    expect(report.agreement.disagreed).toBe(6)
    expect(report.disagreements).toHaveLength(5)
  })
})
