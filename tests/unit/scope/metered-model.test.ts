import { Deferred } from '../../../src/kernel/unit.ts'
import { generateText, streamText } from 'ai'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { TooLate } from '../../../src/base/deadline.ts'
import { newSpanId, newTraceId } from '../../../src/core/event.ts'
import { Masks } from '../../../src/engine/log/log.ts'
import { type CountedParts, countedModel } from '../../../src/engine/turns/metered-model.ts'

const head = { trace_id: newTraceId(), span_id: newSpanId(), parent_id: null, event_ids: [], duration_ms: null }
const answer = {
  id: '1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}

afterEach(() => vi.restoreAllMocks())

type Logged = { kind: string; span_id: string; parent_id: string; status: string }

/** A model, with what its calls logged and told about its provider. */
function counted(signal = new AbortController().signal) {
  const logged: Logged[] = []
  const told: string[] = []
  const unit = { log: (entry: Logged) => logged.push(entry), count: () => {} }
  const parts = {
    env: {
      REFLEX_MODEL: 'openai-compatible/m',
      OPENAI_COMPATIBLE_BASE_URL: 'https://models.example.com/v1',
      OPENAI_COMPATIBLE_API_KEY: 'key',
    },
    agent: () => ({ offline: [] }),
    budget: { allow: () => ({ ok: true }), spend: () => {}, money: () => undefined },
    outage: { allow: () => ({ ok: true }) },
    model_calls: { answered: () => told.push('answered'), failed: (_unit: unknown, error: string) => told.push(error) },
    hide: (value: unknown) => value,
    log: { clean: (value: unknown) => value, masks: new Masks() },
    log_parts: { put: () => 'hash' },
    deferred: new Deferred(),
    trace_marks: { of: () => ({}) },
    unit: (work: (open: typeof unit) => void) => work(unit),
    now: Date.now,
    settings: () => ({}),
  } as unknown as CountedParts
  return { model: countedModel(parts, { turn_id: 't', head, signal }), logged, told }
}

test('each request to a model carries the span of its call in the log, below the turn', async () => {
  const headers: Headers[] = []
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    headers.push(new Headers(init?.headers))
    return Response.json({ ...answer, choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'fine' } }] })
  })
  const { model, logged, told } = counted()
  await Promise.all([generateText({ model, prompt: 'one' }), generateText({ model, prompt: 'two' })])
  expect(told).toEqual(['answered', 'answered'])
  expect(logged).toMatchObject([
    { kind: 'model-called', parent_id: head.span_id },
    { kind: 'model-called', parent_id: head.span_id },
  ])
  const spans = logged.map(({ span_id }) => `00-${head.trace_id}-${span_id}-01`)
  expect(new Set(headers.map((sent) => sent.get('traceparent')))).toEqual(new Set(spans))
  expect(new Set(spans).size).toBe(2)
})

describe('what failed counts against the provider of the model', () => {
  const piece = { id: '1', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const chunk = `data: ${JSON.stringify({ ...piece, choices: [{ index: 0, delta: { content: 'fi' } }] })}\n\n`
  const streamOf = (...texts: string[]) => new Response(new Blob(texts).stream(), { headers: { 'content-type': 'text/event-stream' } })
  const silent = () => new Promise<Response>(() => {})
  const endless = () =>
    new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(chunk)) }), {
      headers: { 'content-type': 'text/event-stream' },
    })
  const late = new TooLate('the turn took longer than 60000 ms')
  const quiet = { maxRetries: 0, onError: () => {} }

  test.each([
    ['its stream breaks off', [chunk]],
    ['its stream is not JSON', [chunk, 'data: {"id": \n\n']],
    ['it sends an error in the stream', [chunk, `data: ${JSON.stringify({ error: { message: 'overloaded' } })}\n\n`]],
  ])('if %s', async (_, texts) => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => streamOf(...texts))
    const { model, logged, told } = counted()
    await streamText({ model, prompt: 'one', ...quiet }).consumeStream()
    expect(logged).toMatchObject([{ kind: 'model-called', status: 'failed' }])
    expect(told).toEqual([expect.stringMatching(/./)])
    expect(told).not.toEqual(['answered'])
  })

  test('if what it answers is no completion', async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response('<html>'))
    const { model, told } = counted()
    await expect(generateText({ model, prompt: 'one', ...quiet })).rejects.toThrow('JSON')
    expect(told).toEqual([expect.stringContaining('JSON')])
  })

  test.each([
    ['does not answer', silent, late, [late.message]],
    ['does not end its stream', endless, late, [late.message]],
    ['does not answer, but nobody waits for it any more', silent, new Error('the turn was interrupted: events arrived'), []],
    ['does not end its stream, but nobody waits for it any more', endless, new Error('the turn was cancelled: by ops'), []],
  ])('if it %s until the turn ends', async (_, provider, reason, failures) => {
    const asked = Promise.withResolvers<void>()
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
      asked.resolve()
      return provider()
    })
    const turn = new AbortController()
    const { model, logged, told } = counted(turn.signal)
    const reading = streamText({ model, prompt: 'one', ...quiet }).consumeStream()
    await asked.promise
    turn.abort(reason)
    await reading
    expect(logged).toMatchObject([{ kind: 'model-called', status: 'failed' }])
    expect(told).toEqual(failures)
  })

  test.each([
    ['not if its reader has read enough', new Error('enough'), []],
    ['if its reader has waited for as long as it would', new DOMException('too slow', 'TimeoutError'), ['too slow']],
  ])('%s', async (_, reason, failures) => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => endless())
    const { model, told } = counted()
    const reader = new AbortController()
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'one' }] }]
    const { stream } = await model.doStream({ prompt, abortSignal: reader.signal })
    reader.abort(reason)
    expect(told).toEqual(failures)
    await stream.cancel()
    expect(told).toEqual(failures)
  })

  test('not if its reader cancels the stream', async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => endless())
    const { model, logged, told } = counted()
    const { stream } = await model.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'one' }] }] })
    await stream.cancel()
    expect(logged).toMatchObject([{ kind: 'model-called', status: 'failed' }])
    expect(told).toEqual([])
  })
})
