import { createHash } from 'node:crypto'
import { APICallError, type LanguageModelV4Prompt, type LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { generateText, simulateReadableStream, streamText } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, it } from 'vitest'
import { meter } from '../../../src/models/model-call.ts'
import { answer, collect, recorder, streamedAnswer, usage } from './model-fixtures.ts'

const prompt: LanguageModelV4Prompt = [{ role: 'user', content: [{ type: 'text', text: 'What is up in the sky?' }] }]
const hash = createHash('sha256').update(JSON.stringify(prompt)).digest('hex')

describe('meter, generating', () => {
  it('records what a call cost, how long it took and what it answered', async () => {
    const options = recorder()
    const model = meter(new MockLanguageModelV4({ modelId: 'gpt-4o-mini', doGenerate: answer() }), options)
    expect((await generateText({ model, prompt: 'What is up in the sky?' })).text).toBe('Hello there')
    expect(options.calls).toEqual([
      {
        model: 'gpt-4o-mini',
        status: 'ok',
        input_tokens: 1_000_000,
        output_tokens: 2_000_000,
        cost_usd: expect.closeTo(1.35),
        duration_ms: 5,
        prompt_hash: hash,
        finish_reason: 'stop',
        content: [{ type: 'text', text: 'Hello there' }],
        error: null,
      },
    ])
  })

  it('records under a given name, and a null cost when the price is unknown', async () => {
    const options = recorder({ name: 'openai-compatible/home-made' })
    await meter(new MockLanguageModelV4({ doGenerate: answer() }), options).doGenerate({ prompt })
    expect(options.calls).toMatchObject([{ model: 'openai-compatible/home-made', cost_usd: null }])
  })

  it('keeps text, reasoning and tool calls as answered', async () => {
    const toolCall = { type: 'tool-call' as const, toolCallId: 'c1', toolName: 'look', input: '{"at":"sky"}' }
    const content = [{ type: 'reasoning' as const, text: 'hm' }, { type: 'text' as const, text: 'Looking.' }, toolCall]
    const options = recorder()
    const doGenerate = answer({ content, finishReason: { unified: 'tool-calls', raw: 'tool_calls' } })
    await meter(new MockLanguageModelV4({ doGenerate }), options).doGenerate({ prompt })
    expect(options.calls).toMatchObject([{ content, finish_reason: 'tool-calls' }])
  })

  it.each([undefined, 0, -1, 0.5, 1e20, Infinity])('estimates the tokens of a provider that reports %s', async (tokens) => {
    const options = recorder()
    await meter(new MockLanguageModelV4({ doGenerate: answer({ usage: usage(tokens, tokens) }) }), options).doGenerate({ prompt })
    expect(options.calls[0]?.input_tokens).toBeGreaterThan(3)
    expect(options.calls[0]?.output_tokens).toBeGreaterThan(1)
    expect(options.calls[0]!.input_tokens + options.calls[0]!.output_tokens).toBeLessThan(1000)
  })

  it('records a failed call once, without tokens, and passes its error on', async () => {
    const options = recorder()
    const failure = new Error('the provider is on fire')
    const doGenerate = async () => Promise.reject(failure)
    await expect(meter(new MockLanguageModelV4({ modelId: 'o3', doGenerate }), options).doGenerate({ prompt })).rejects.toBe(failure)
    expect(options.calls).toEqual([
      expect.objectContaining({
        status: 'failed',
        error: 'the provider is on fire',
        input_tokens: 0,
        output_tokens: 0,
        cost_usd: 0,
        finish_reason: null,
        content: [],
        prompt_hash: hash,
        duration_ms: 5,
      }),
    ])
  })

  it('counts the prompt of a call that was aborted, which the provider charges for', async () => {
    const options = recorder()
    const abortSignal = AbortSignal.abort(new Error('the turn was cancelled'))
    const doGenerate = async () => Promise.reject(new Error('the turn was cancelled'))
    await expect(meter(new MockLanguageModelV4({ doGenerate }), options).doGenerate({ prompt, abortSignal })).rejects.toThrow('cancelled')
    expect(options.calls).toMatchObject([{ status: 'failed', error: 'the turn was cancelled' }])
    expect(options.calls[0]?.input_tokens).toBeGreaterThan(3)
  })

  it('records each attempt of a call that the AI SDK retries', async () => {
    const options = recorder()
    const overloaded = new APICallError({
      message: 'overloaded',
      url: 'https://model.test',
      requestBodyValues: {},
      statusCode: 529,
      isRetryable: true,
      responseHeaders: { 'retry-after-ms': '1' },
    })
    let attempts = 0
    const doGenerate = async () => (attempts++ === 0 ? Promise.reject(overloaded) : answer())
    await generateText({ model: meter(new MockLanguageModelV4({ doGenerate }), options), prompt: 'hello' })
    expect(options.calls.map((call) => call.status)).toEqual(['failed', 'ok'])
  })

  it('counts a call that ended in an error as failed', async () => {
    const options = recorder()
    const doGenerate = answer({ finishReason: { unified: 'error', raw: 'internal' } })
    await meter(new MockLanguageModelV4({ doGenerate }), options).doGenerate({ prompt })
    expect(options.calls).toMatchObject([{ status: 'failed', finish_reason: 'error', input_tokens: 1_000_000 }])
  })
})

describe('meter, streaming', () => {
  const streaming = (chunks: LanguageModelV4StreamPart[]) =>
    new MockLanguageModelV4({ modelId: 'gpt-4o', doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) })

  it('passes every part on and puts the answer together', async () => {
    const options = recorder()
    const { stream } = await meter(streaming(streamedAnswer), options).doStream({ prompt })
    expect(options.calls).toEqual([])
    expect(await collect(stream)).toEqual(streamedAnswer)
    expect(options.calls).toEqual([
      {
        model: 'gpt-4o',
        status: 'ok',
        input_tokens: 7,
        output_tokens: 3,
        cost_usd: expect.closeTo(0.0000475, 10),
        duration_ms: 5,
        prompt_hash: hash,
        finish_reason: 'tool-calls',
        content: [
          { type: 'text', text: 'Hello there' },
          { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"at":"sky"}' },
        ],
        error: null,
      },
    ])
  })

  it('keeps interleaved texts apart', async () => {
    const options = recorder()
    const delta = (id: string, text: string): LanguageModelV4StreamPart => ({ type: 'text-delta', id, delta: text })
    const { stream } = await meter(
      streaming([
        { type: 'text-start', id: 'a' },
        { type: 'text-start', id: 'b' },
        delta('b', 'two'),
        delta('a', 'one'),
        ...streamedAnswer.slice(-1),
      ]),
      options,
    ).doStream({ prompt })
    await collect(stream)
    expect(options.calls[0]?.content).toEqual([
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ])
  })

  it('keeps reasoning, and counts its tokens when the stream ends early', async () => {
    const options = recorder()
    const { stream } = await meter(
      streaming([
        { type: 'reasoning-start', id: '0' },
        { type: 'reasoning-delta', id: '0', delta: 'the sky is where the birds are' },
        { type: 'text-start', id: '0' },
        { type: 'text-delta', id: '0', delta: 'Birds' },
      ]),
      options,
    ).doStream({ prompt })
    await collect(stream)
    expect(options.calls[0]?.content).toEqual([
      { type: 'reasoning', text: 'the sky is where the birds are' },
      { type: 'text', text: 'Birds' },
    ])
    expect(options.calls[0]?.output_tokens).toBeGreaterThan(5)
  })

  it('records a stream that the reader cancels, with what had been answered', async () => {
    const options = recorder()
    let cancelled: unknown
    const source = new ReadableStream<LanguageModelV4StreamPart>({
      start: (controller) => streamedAnswer.slice(0, 2).forEach((part) => controller.enqueue(part)),
      cancel: (reason) => void (cancelled = reason),
    })
    const { stream } = await meter(new MockLanguageModelV4({ doStream: { stream: source } }), options).doStream({ prompt })
    const reader = stream.getReader()
    await reader.read()
    await reader.read()
    await reader.cancel(new Error('seen enough'))
    expect(cancelled).toEqual(new Error('seen enough'))
    expect(options.calls).toMatchObject([{ status: 'failed', error: 'seen enough', content: [{ text: 'Hello ' }], finish_reason: null }])
    expect(options.calls[0]?.input_tokens).toBeGreaterThan(3)
    expect(options.calls[0]?.output_tokens).toBeGreaterThan(0)
  })

  it('records an abort at once, though nobody reads on', async () => {
    const options = recorder()
    const controller = new AbortController()
    const { stream } = await meter(streaming(streamedAnswer), options).doStream({ prompt, abortSignal: controller.signal })
    await stream.getReader().read()
    controller.abort(new Error('newer events came'))
    expect(options.calls).toMatchObject([{ status: 'failed', error: 'newer events came' }])
  })

  it('records a streamText that is aborted in the middle, once', async () => {
    const options = recorder()
    const controller = new AbortController()
    const model = meter(
      new MockLanguageModelV4({
        doStream: async () => ({ stream: simulateReadableStream({ chunks: streamedAnswer, chunkDelayInMs: 1 }) }),
      }),
      options,
    )
    const { textStream } = streamText({ model, prompt: 'hello', abortSignal: controller.signal })
    for await (const _ of textStream) controller.abort(new Error('stop'))
    expect(options.calls).toMatchObject([{ status: 'failed', error: 'stop', content: [{ text: 'Hello ' }] }])
  })

  it('records a stream that breaks', async () => {
    const options = recorder()
    const source = new ReadableStream<LanguageModelV4StreamPart>({ pull: (controller) => controller.error(new Error('connection lost')) })
    const { stream } = await meter(new MockLanguageModelV4({ doStream: { stream: source } }), options).doStream({ prompt })
    await expect(collect(stream)).rejects.toThrow('connection lost')
    expect(options.calls).toMatchObject([{ status: 'failed', error: 'connection lost' }])
  })

  it('records the error that a stream carries', async () => {
    const options = recorder()
    const { stream } = await meter(streaming([{ type: 'error', error: { code: 'overloaded' } }, ...streamedAnswer]), options).doStream({
      prompt,
    })
    await collect(stream)
    expect(options.calls).toMatchObject([{ status: 'failed', error: '{"code":"overloaded"}', input_tokens: 7 }])
  })

  it('counts a stream without an end as failed', async () => {
    const options = recorder()
    const { stream } = await meter(streaming(streamedAnswer.slice(0, -1)), options).doStream({ prompt })
    await collect(stream)
    expect(options.calls).toMatchObject([{ status: 'failed', error: 'the stream ended without a finish part', finish_reason: null }])
  })

  it('counts a whole answer as ok though the reader cancels after it', async () => {
    const options = recorder()
    const { stream } = await meter(streaming(streamedAnswer), options).doStream({ prompt })
    const reader = stream.getReader()
    for (const _ of streamedAnswer) await reader.read()
    await reader.cancel()
    expect(options.calls.map((call) => call.status)).toEqual(['ok'])
  })

  it('records a stream that never opened', async () => {
    const options = recorder()
    const doStream = async () => Promise.reject(new Error('no route'))
    await expect(meter(new MockLanguageModelV4({ doStream }), options).doStream({ prompt })).rejects.toThrow('no route')
    expect(options.calls).toMatchObject([{ status: 'failed', error: 'no route', input_tokens: 0 }])
  })
})
