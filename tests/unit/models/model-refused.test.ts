import { APICallError } from '@ai-sdk/provider'
import { generateText, RetryError, streamText } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, it } from 'vitest'
import { meter } from '../../../src/models/model-call.ts'
import { findModelRefused, isModelRefused, ModelRefused, type ModelRefusal } from '../../../src/models/model-errors.ts'
import { answer, collect, recorder } from './model-fixtures.ts'

const refusal: ModelRefusal = {
  ok: false,
  reason: 'budget',
  until: 1_800_000_000_000,
  detail: 'the scope has spent 1.00 of 1.00 USD today',
}

describe('a refused call', () => {
  it('throws why and until when, reaches no model and is not recorded', async () => {
    const options = recorder({ allow: () => refusal })
    const mock = new MockLanguageModelV4({ doGenerate: answer() })
    const error: unknown = await generateText({ model: meter(mock, options), prompt: 'hello' }).catch((error: unknown) => error)
    expect(findModelRefused(error)).toMatchObject({
      name: 'ModelRefused',
      reason: 'budget',
      until: 1_800_000_000_000,
      detail: refusal.detail,
    })
    expect(mock.doGenerateCalls).toHaveLength(0)
    expect(options.calls).toEqual([])
  })

  it('is asked about once, for the AI SDK does not retry it', async () => {
    let asked = 0
    const options = recorder({ allow: () => (asked++, refusal) })
    await expect(generateText({ model: meter(new MockLanguageModelV4(), options), prompt: 'hello' })).rejects.toThrow(refusal.detail)
    expect(asked).toBe(1)
  })

  it('reaches the reader of a streamText', async () => {
    const errors: unknown[] = []
    const mock = new MockLanguageModelV4()
    const model = meter(mock, recorder({ allow: () => refusal }))
    const result = streamText({ model, prompt: 'hello', onError: ({ error }) => void errors.push(error) })
    const parts = await collect(result.stream)
    expect(errors.map(isModelRefused)).toEqual([true])
    expect(parts.some((part) => part.type === 'error' && isModelRefused(part.error))).toBe(true)
    expect(mock.doStreamCalls).toHaveLength(0)
  })

  it('is found inside the RetryError of a call that failed once before the money ran out', async () => {
    const failed = new APICallError({
      message: 'overloaded',
      url: 'https://model.test',
      requestBodyValues: {},
      isRetryable: true,
      responseHeaders: { 'retry-after-ms': '1' },
    })
    const options = recorder({ allow: () => (options.calls.length === 0 ? { ok: true } : refusal) })
    const model = meter(new MockLanguageModelV4({ doGenerate: async () => Promise.reject(failed) }), options)
    const error: unknown = await generateText({ model, prompt: 'hello' }).catch((error: unknown) => error)
    expect(RetryError.isInstance(error)).toBe(true)
    expect(findModelRefused(error)?.detail).toBe(refusal.detail)
  })
})

describe('isModelRefused', () => {
  const refused = new ModelRefused(refusal)

  it.each([
    ['itself', refused],
    ['what RPC leaves of it', Object.assign(new Error(refused.message), { name: 'ModelRefused', ...refusal })],
    ['a cause of a cause', new Error('turn failed', { cause: new Error('step failed', { cause: refused }) })],
    ['one of several errors', new AggregateError([new Error('other'), refused])],
    ['a last error', Object.assign(new Error('retried'), { lastError: refused })],
  ])('knows it as %s', (_, error) => {
    expect(isModelRefused(error)).toBe(true)
  })

  it.each([
    ['another error', new Error('ModelRefused')],
    ['a string', 'ModelRefused'],
    ['null', null],
    ['undefined', undefined],
  ])('does not take %s for it', (_, error) => {
    expect(isModelRefused(error)).toBe(false)
  })

  it('ends on causes that go in a circle', () => {
    const error = new Error('round')
    error.cause = error
    expect(isModelRefused(error)).toBe(false)
  })
})
