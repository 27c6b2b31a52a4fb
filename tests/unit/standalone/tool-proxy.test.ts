import { tool, type ToolSet } from 'ai'
import { describe, expect, test } from 'vitest'
import { circle } from '../../support/circular-value.ts'
import { z } from 'zod'
import { CutOff } from '../../../src/standalone/index.ts'
import { memoryStorage } from '../../../src/standalone/storage.ts'
import { ToolCaller, type ToolPolicy } from '../../../src/standalone/tools/tool-caller.ts'
import { callForPlan, proxyTools, type ReflexToolOptions } from '../../../src/standalone/tools/tool-proxy.ts'
import { world } from './fixtures.ts'

type Execute = (input: { to: string; card?: string }, options: ReflexToolOptions) => unknown

/** A tool behind a proxy; waiting takes no time, and is noted. */
function proxied(execute: Execute, policy: ToolPolicy = {}) {
  const log: Record<string, unknown>[] = []
  const waits: number[] = []
  let time = 0
  const caller = new ToolCaller({
    now: () => (time += 5),
    // A limit in time is over only where nothing else happens.
    wait: (ms, signal) =>
      new Promise((resolve, reject) => {
        waits.push(ms)
        const timer = setTimeout(resolve, ms >= 1000 ? 20 : 0)
        signal.addEventListener('abort', () => {
          clearTimeout(timer)
          reject(new Error('stopped'))
        })
      }),
    log: (ended) => void log.push(ended),
    outputs: memoryStorage().outputs,
    redaction: { fields: ['card'], salt: 'pepper' },
  })
  const tools: ToolSet = {
    send: tool({ inputSchema: z.object({ to: z.string(), card: z.string().optional() }), execute: execute as never }),
  }
  const wrapped = proxyTools(tools, { callerFor: () => caller, policies: { send: policy } })
  const call = (input: unknown, abortSignal?: AbortSignal): Promise<unknown> =>
    Promise.resolve(
      wrapped['send']?.execute?.(input, { toolCallId: 'call-1', messages: [], context: {}, ...(abortSignal ? { abortSignal } : {}) }),
    )
  return { call, log, waits, caller, tool: tools['send'] }
}

const failing = (times: number, error: unknown): Execute => {
  let left = times
  return () => {
    if (left-- > 0) throw error
    return 'sent'
  }
}

describe('a proxied tool', () => {
  test('gives what the tool gives, and logs the call', async () => {
    const { call, log } = proxied(async ({ to }) => ({ sent: to, cost_usd: 0.5 }))
    expect(await call({ to: 'ann' })).toEqual({ sent: 'ann', cost_usd: 0.5 })
    const told = { tool: 'send', call_id: 'call-1', status: 'ok', attempts: 1, duration_ms: 5, cost_usd: 0.5 }
    expect(log).toEqual([{ ...told, input: { to: 'ann' }, output: { sent: 'ann', cost_usd: 0.5 }, error: null, idempotence_key: null }])
  })

  test('takes the last piece of an output that comes in pieces', async () => {
    const { call } = proxied(async function* () {
      yield 'a'
      yield 'b'
    })
    expect(await call({ to: 'ann' })).toBe('b')
  })

  test('is stopped when its time is up, and not called again, for it may have happened', async () => {
    let stopped = false
    const { call, log } = proxied(
      (_, { abortSignal }) => new Promise(() => abortSignal?.addEventListener('abort', () => (stopped = true))),
      { timeout_ms: 1000, retry: { max_attempts: 3, backoff_ms: 1 } },
    )
    await expect(call({ to: 'ann' })).rejects.toThrow('send took longer than 1000 ms')
    expect(stopped).toBe(true)
    expect(log[0]).toMatchObject({ status: 'failed', attempts: 1 })
  })

  test('is called again under its key when its time was up', async () => {
    const keys: unknown[] = []
    const { call } = proxied(
      (_, { idempotence_key }) => {
        keys.push(idempotence_key)
        return keys.length === 1 ? new Promise(() => {}) : 'sent'
      },
      { timeout_ms: 1000, retry: { max_attempts: 3, backoff_ms: 1 }, idempotence_key: () => 'key-1' },
    )
    expect(await call({ to: 'ann' })).toBe('sent')
    expect(keys).toEqual(['key-1', 'key-1'])
  })

  test('is tried again where that may help, waiting twice as long each time', async () => {
    const { call, waits, log } = proxied(failing(2, { status: 503 }), { retry: { max_attempts: 3, backoff_ms: 10 }, timeout_ms: 1000 })
    expect(await call({ to: 'ann' })).toBe('sent')
    expect(waits.filter((ms) => ms < 1000)).toEqual([10, 20])
    expect(log[0]).toMatchObject({ status: 'ok', attempts: 3 })
  })

  test.each([
    ['says that it is final', { status: 503, isRetryable: false }],
    ['is none of the passing kinds', new Error('no such person')],
    ['may have happened', { status: 500 }],
    ['says that it may have happened', new CutOff('it may have happened')],
  ])('is not tried again where the error %s', async (_, error) => {
    const { call, log } = proxied(failing(1, error), { retry: { max_attempts: 3, backoff_ms: 1 } })
    await expect(call({ to: 'ann' })).rejects.toBe(error)
    expect(log[0]).toMatchObject({ status: error instanceof CutOff ? 'unknown' : 'failed', attempts: 1 })
  })

  test('is tried again under its key where it may have happened', async () => {
    const retry = { max_attempts: 3, backoff_ms: 1 }
    const { call, log } = proxied(failing(1, new CutOff('it may have happened')), { retry, idempotence_key: () => 'key-1' })
    expect(await call({ to: 'ann' })).toBe('sent')
    expect(log[0]).toMatchObject({ status: 'ok', attempts: 2 })
  })

  test('is not tried more often than allowed', async () => {
    const { call, log } = proxied(failing(9, { status: 429 }), { retry: { max_attempts: 2, backoff_ms: 0 } })
    await expect(call({ to: 'ann' })).rejects.toEqual({ status: 429 })
    expect(log[0]).toMatchObject({ attempts: 2 })
  })

  test('leaves hashes of named values in the log, also where an error repeats them', async () => {
    const { call, log } = proxied(() => Promise.reject(new Error('card 4000-1234 is refused')))
    await expect(call({ to: 'ann', card: '4000-1234', token: 'x' })).rejects.toThrow('4000-1234')
    expect(JSON.stringify(log)).not.toContain('4000-1234')
    expect(log[0]).toMatchObject({ input: { to: 'ann', card: expect.stringMatching(/^sha256:[\da-f]{64}$/), token: '[redacted]' } })
    expect(log[0]).toMatchObject({ error: 'card [redacted] is refused' })
    const again = proxied(async () => ({ card: '4000-1234' }))
    await again.call({ to: 'bob', card: '4000-1234' })
    const cards = [log, again.log].map(([entry]) => entry?.['input'] as { card: string }).map(({ card }) => card)
    expect(new Set(cards).size).toBe(1)
  })

  test('answers a repeated key with the last good output, and runs once where calls come together', async () => {
    let runs = 0
    const { call, log } = proxied(async ({ to }) => `${to} ${++runs}`, { idempotence_key: (input) => (input as { to: string }).to })
    expect(await Promise.all([call({ to: 'ann' }), call({ to: 'ann' }), call({ to: 'bob' })])).toEqual(['ann 1', 'ann 1', 'bob 2'])
    expect(await call({ to: 'ann' })).toBe('ann 1')
    expect(log.map(({ status }) => status)).toEqual(['ok', 'ok', 'reused', 'reused'])
  })

  test.each([
    ['a function', () => 1],
    ['a bigint', 1n],
    ['a circle', circle],
  ])('has its effect once under a key though it gives %s, which cannot be kept', async (_, output) => {
    let runs = 0
    const { call } = proxied(
      () => {
        runs += 1
        return output
      },
      { idempotence_key: () => 'key' },
    )
    expect(await call({ to: 'ann' })).toBe(output)
    expect(await call({ to: 'ann' })).toEqual(expect.anything())
    expect(runs).toBe(1)
  })

  test('runs once under a key where calls of two turns come together', async () => {
    let runs = 0
    const send = tool({ inputSchema: z.object({}), execute: async () => ++runs })
    const { reflex } = world({ tool_policies: { send: { idempotence_key: () => 'key' } } })
    const turns = [reflex.wrapTools({ send }), reflex.wrapTools({ send })]
    const calls = turns.map(async ({ send: wrapped }) => wrapped.execute?.({}, { toolCallId: 'c', messages: [], context: {} }))
    expect(await Promise.all(calls)).toEqual([1, 1])
  })

  test('runs again under a key whose call failed', async () => {
    const { call } = proxied(failing(1, new Error('no')), { idempotence_key: () => 'key' })
    const [first, second] = await Promise.allSettled([call({ to: 'ann' }), call({ to: 'ann' })])
    expect(first).toMatchObject({ status: 'rejected' })
    expect(second).toEqual({ status: 'fulfilled', value: 'sent' })
  })

  test('hears the abort, and says why it was stopped', async () => {
    const stop = new AbortController()
    const { call } = proxied(() => new Promise(() => {}))
    const called = call({ to: 'ann' }, stop.signal)
    stop.abort(new Error('the user left'))
    await expect(called).rejects.toThrow('the user left')
  })
})

describe('a tool as a plan calls it', () => {
  const plan = { signal: new AbortController().signal, call_id: 'c', idempotence_key: 'key:run:save' }

  test('gets the key, and arguments that fit', async () => {
    const here = proxied(async ({ to }, { idempotence_key }) => `${to} ${idempotence_key}`)
    const call = (input: unknown) => callForPlan(here.caller, { name: 'send', tool: here.tool, policy: {}, input }, plan)
    expect(await call({ to: 'ann' })).toEqual({ output: 'ann key:run:save', cost_usd: 0, reused: false })
    await expect(call({ to: 7 })).rejects.toThrow('the arguments do not fit send')
    await expect(callForPlan(here.caller, { name: 'x', tool: undefined, policy: {}, input: {} }, plan)).rejects.toThrow(
      'a plan cannot call x: the tool does not exist',
    )
  })

  test('is not called where it asks for an approval of its own', async () => {
    const here = proxied(async () => 'sent')
    const guarded = { ...here.tool, needsApproval: true } as ToolSet[string]
    const called = callForPlan(here.caller, { name: 'send', tool: guarded, policy: {}, input: { to: 'ann' } }, plan)
    await expect(called).rejects.toThrow('needs an approval of its own')
  })
})
