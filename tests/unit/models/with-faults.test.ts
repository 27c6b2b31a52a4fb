import { APICallError, type LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { generateText, simulateReadableStream, streamText } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test } from 'vitest'
import { withFaults } from '../../../src/models/resolve-model.ts'
import { collect } from './model-fixtures.ts'

const options = { now: () => 0, hide: (text: string) => text.replaceAll('sk-123', '[secret]') }
const busy = new APICallError({
  message: 'overloaded; your key is sk-123',
  url: 'https://model.test',
  requestBodyValues: {},
  statusCode: 503,
})
const thrown = { name: 'ModelFailed', message: expect.stringContaining('HTTP 503'), fault: { fault: 'unavailable', status: 503 } }

function failing(error: unknown) {
  const fail = async () => {
    throw error
  }
  const mock = new MockLanguageModelV4({ doGenerate: fail, doStream: fail })
  return { mock, model: withFaults(mock, options) }
}

describe('a model whose provider fails', () => {
  test('is called once, whatever retries the AI SDK is configured with', async () => {
    const { mock, model } = failing(busy)
    await expect(generateText({ model, prompt: 'hello' })).rejects.toMatchObject(thrown)
    await expect(generateText({ model, prompt: 'hello', maxRetries: 5 })).rejects.toMatchObject(thrown)
    expect(mock.doGenerateCalls).toHaveLength(2)
  })

  test('tells no secret of the deployment', async () => {
    await expect(generateText({ model: failing(busy).model, prompt: 'hello' })).rejects.toThrow('your key is [secret]')
  })

  test('says so to the reader of a stream, too', async () => {
    const parts = await collect(streamText({ model: failing(busy).model, prompt: 'hello', onError: () => {} }).stream)
    expect(parts.find(({ type }) => type === 'error')).toMatchObject({ error: thrown })
  })

  test('in the middle of an answer, by a part or by breaking off', async () => {
    const chunks: LanguageModelV4StreamPart[] = [
      { type: 'text-start', id: 'a' },
      { type: 'text-delta', id: 'a', delta: 'Hel' },
      { type: 'error', error: { message: 'overloaded', code: 503 } },
    ]
    const spoken = withFaults(new MockLanguageModelV4({ doStream: { stream: simulateReadableStream({ chunks }) } }), options)
    const parts = await collect(streamText({ model: spoken, prompt: 'hello', onError: () => {} }).stream)
    expect(parts.find(({ type }) => type === 'error')).toMatchObject({ error: thrown })

    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      pull: (controller) => controller.error(new Error('Network connection lost.')),
    })
    const broken = withFaults(new MockLanguageModelV4({ doStream: { stream } }), options)
    const ended = collect(streamText({ model: broken, prompt: 'hello', onError: () => {} }).stream)
    await expect(ended).rejects.toMatchObject({ name: 'ModelFailed', fault: { fault: 'unavailable', status: null } })
  })

  test('by what is no fault of the provider fails as it is', async () => {
    const own = new Error('no such rule')
    await expect(failing(own).model.doGenerate({ prompt: [] })).rejects.toBe(own)
  })

  test('because of an abort fails with the reason of the abort', async () => {
    const reason = new DOMException('the turn took too long', 'TimeoutError')
    await expect(failing(reason).model.doGenerate({ prompt: [], abortSignal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })
})
