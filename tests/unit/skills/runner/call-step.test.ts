import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { waitFor } from '../../../../src/base/deadline.ts'
import { callStep, costIn } from '../../../../src/skills/runner/call-step.ts'
import type { RunnerPorts, ToolOptions } from '../../../../src/skills/runner/ports.ts'
import { CutOff } from '../../../../src/tools/may-have-happened.ts'
import { part } from '../../agents/agent-fixtures.ts'
import { Retryable } from '../run-world.ts'

type Call = Parameters<typeof callStep>[0]
type Answer = (attempt: number, options: ToolOptions) => unknown

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

const never = new Promise<never>(() => {})
const failing = (error: Error, cost_usd?: number): never => {
  throw Object.assign(error, cost_usd === undefined ? {} : { cost_usd })
}
const busy = (cost_usd?: number) => () => failing(new Retryable('busy'), cost_usd)

/** Calls a tool that answers so, once unless `changes` says more, and gives the end of the step. */
async function endOf(answer: Answer, changes: Partial<Call> = {}) {
  const calls: ToolOptions[] = []
  const ports = part<RunnerPorts>({
    now: () => Date.now(),
    wait: waitFor,
    callTool: async (_tool, _args, options) => {
      calls.push(options)
      return { cost_usd: 0, ...((await answer(calls.length, options)) as { output: unknown }) }
    },
  })
  const once = { max_attempts: 1, backoff_ms: 10, left_ms: null, left_usd: null, idempotence_key: null }
  const ended = callStep({ ports, tool: 'mail', args: {}, timeout_ms: 100, hide: (value) => value, secrets: [], ...once, ...changes })
  await vi.runAllTimersAsync()
  return { end: await ended, calls }
}

describe('the call of a tool', () => {
  test('tells the tool its time, its key and what to hide, and gives its output', async () => {
    const told = { idempotence_key: 'key', hide: (value: unknown) => value as null, secrets: ['REFLEX_TOOL_X'] }
    const { end, calls } = await endOf(() => ({ output: { a: 1 }, cost_usd: 0.5 }), told)
    expect(end).toEqual({
      status: 'ok',
      reason: null,
      output: { kind: 'json', value: { a: 1 } },
      error: null,
      cost_usd: 0.5,
      attempts: 1,
      duration_ms: 0,
    })
    expect(calls).toEqual([{ ...told, timeout_ms: 100, signal: expect.any(AbortSignal) }])
  })

  test('repeats what may go better as often as it may, after pauses that double', async () => {
    const { end } = await endOf(busy(0.25), { max_attempts: 4 })
    expect(end).toMatchObject({ status: 'failed', reason: 'tool', error: 'busy', attempts: 4, duration_ms: 70, cost_usd: 1 })
    const { end: well } = await endOf((attempt) => (attempt < 3 ? busy(0.25)() : { output: 1, cost_usd: 0.5 }), { max_attempts: 4 })
    expect(well).toMatchObject({ status: 'ok', attempts: 3, cost_usd: 1 })
  })

  test('repeats what may have happened only under a key', async () => {
    const server = () => failing(Object.assign(new Error('HTTP 500'), { status: 500 }))
    const lost = () => failing(new CutOff('the connection was lost'))
    const slow = () => never
    for (const [answer, end] of [
      [server, { status: 'failed', reason: 'tool', error: 'HTTP 500' }],
      [lost, { status: 'timeout', reason: 'timeout', error: 'the connection was lost' }],
      [slow, { status: 'timeout', reason: 'timeout', error: 'mail took longer than 100 ms' }],
    ] as const) {
      const twice = { max_attempts: 2 }
      expect((await endOf(answer, twice)).end).toMatchObject({ ...end, attempts: 1 })
      expect((await endOf(answer, { ...twice, idempotence_key: 'key' })).end).toMatchObject({ ...end, attempts: 2 })
    }
  })

  test('may have happened if any of its attempts may have, unless the last one went well', async () => {
    const keyed = { max_attempts: 3, idempotence_key: 'key' }
    const cut = (last: () => unknown) => endOf((attempt) => (attempt === 1 ? never : attempt === 2 ? busy()() : last()), keyed)
    expect((await cut(busy())).end).toMatchObject({ status: 'timeout', reason: 'tool', attempts: 3 })
    expect((await cut(() => ({ output: 1 }))).end).toMatchObject({ status: 'ok', attempts: 3 })
  })

  test('is not repeated once more was spent than is left', async () => {
    const spends = async (left_usd: number | null) => (await endOf(busy(0.5), { max_attempts: 4, left_usd })).end
    expect(await spends(1)).toMatchObject({ status: 'failed', reason: 'budget_cost', error: 'busy', attempts: 3, cost_usd: 1.5 })
    expect(await spends(null)).toMatchObject({ reason: 'tool', attempts: 4 })
  })

  test('is not repeated if the pause takes the time that is left', async () => {
    const waits = async (left: number) => (await endOf(busy(), { max_attempts: 2, left_ms: () => left })).end
    expect([await waits(10), await waits(11)]).toMatchObject([{ attempts: 1 }, { attempts: 2, duration_ms: 10 }])
  })

  test.each([
    [100, 100, 'timeout', 'mail took longer than 100 ms'],
    [101, 100, 'timeout', 'mail took longer than 100 ms'],
    [99, 99, 'budget_latency', 'mail was stopped: the latency budget is spent'],
    [-5, 0, 'budget_latency', 'mail was stopped: the latency budget is spent'],
  ])('with %i ms left is stopped after %i ms: %s', async (left, after, reason, error) => {
    const { end, calls } = await endOf(() => never, {
      left_ms: () => left,
      max_attempts: 2,
      idempotence_key: reason === 'timeout' ? null : 'key',
    })
    expect(end).toMatchObject({ status: 'timeout', reason, error, attempts: 1, duration_ms: after, output: null, cost_usd: 0 })
    expect(calls.map(({ timeout_ms, signal }) => [timeout_ms, signal.aborted])).toEqual([[after, true]])
  })

  test('is stopped when the run is cancelled, and not repeated', async () => {
    const controller = new AbortController()
    const keyed = { max_attempts: 3, idempotence_key: 'key', signal: controller.signal }
    const cancelled = (_: number, { signal }: ToolOptions) => {
      controller.abort()
      expect(signal.aborted).toBe(true)
      return never
    }
    const error = 'mail was stopped: the run was cancelled'
    expect((await endOf(cancelled, keyed)).end).toMatchObject({ status: 'timeout', reason: 'cancelled', error, attempts: 1 })
  })

  test.each([10, 0])('is not repeated when the run is cancelled in the pause of %i ms before', async (backoff_ms) => {
    const controller = new AbortController()
    const answer = () => {
      queueMicrotask(() => queueMicrotask(() => controller.abort()))
      return failing(new Retryable('busy'))
    }
    const { end, calls } = await endOf(answer, { max_attempts: 3, backoff_ms, signal: controller.signal })
    expect(calls).toHaveLength(1)
    expect(end).toMatchObject({ attempts: 1 })
  })

  const kept = (output: object) => ({ status: 'ok', reason: null, error: null, output })
  const unusable = { status: 'failed', reason: 'output', error: 'what mail gave is not JSON', output: null }
  test.each<[string, unknown, object]>([
    ['nothing', undefined, kept({ kind: 'json', value: null })],
    ['a text of a mebibyte, with its quotes', 'x'.repeat(1024 * 1024 - 2), kept({ kind: 'json', value: expect.any(String) })],
    [
      'a text of one byte more',
      'x'.repeat(1024 * 1024 - 1),
      kept({ kind: 'too_large', sha256: expect.any(String), bytes: 1024 * 1024 + 1 }),
    ],
    ['a text whose letters take two bytes', 'é'.repeat(600_000), kept({ kind: 'too_large', sha256: expect.any(String), bytes: 1_200_002 })],
    ['a value that is not JSON', 1n, unusable],
  ])('keeps %s as JSON, by its hash if it is too large, or fails', async (_, output, end) => {
    const called = await endOf(() => ({ output, cost_usd: 0.5 }), { max_attempts: 2 })
    expect(called.end).toEqual({ ...end, cost_usd: 0.5, attempts: 1, duration_ms: 0 })
  })
})

test('a cost is a positive number of dollars, or nothing', () => {
  const costs = [
    { cost_usd: 0.5 },
    { cost_usd: -1 },
    { cost_usd: NaN },
    { cost_usd: Infinity },
    { cost_usd: '1' },
    {},
    null,
    undefined,
    'x',
    3,
  ]
  expect(costs.map(costIn)).toEqual([0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0])
})
