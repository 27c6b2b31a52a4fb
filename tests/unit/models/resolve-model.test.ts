import { generateText, Output, streamText } from 'ai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { meter } from '../../../src/models/model-call.ts'
import { OFFLINE_PREFIX } from '../../../src/models/offline-model.ts'
import { resolveModel } from '../../../src/models/resolve-model.ts'
import { startChatServer } from './chat-completions-server.ts'
import { collect, recorder } from './model-fixtures.ts'

const FORMS = ['"offline"', '"workers-ai/MODEL"', '"openai-compatible/MODEL"', 'REFLEX_MODEL', 'wrangler.toml']
const reachable = { OPENAI_COMPATIBLE_BASE_URL: 'https://model.test/v1', OPENAI_COMPATIBLE_API_KEY: 'key' }

describe('resolveModel', () => {
  it.each([
    ['', {}, 'none of the known forms'],
    ['gpt-5', reachable, 'none of the known forms'],
    ['Offline', {}, 'none of the known forms'],
    ['workers-ai/', {}, 'a model of Workers AI has a name such as'],
    ['workers-ai/llama-3', {}, 'a model of Workers AI has a name such as'],
    ['workers-ai/@cf/openai/gpt-oss-20b', {}, 'Add [ai] with binding = "AI" to wrangler.toml'],
    ['openai-compatible/', reachable, 'the model is missing'],
    ['openai-compatible/gpt-5', { OPENAI_COMPATIBLE_API_KEY: 'key' }, 'the variable OPENAI_COMPATIBLE_BASE_URL is missing'],
    ['openai-compatible/gpt-5', { ...reachable, OPENAI_COMPATIBLE_BASE_URL: 'localhost:11434' }, 'is no http or https URL'],
    ['openai-compatible/gpt-5', { ...reachable, OPENAI_COMPATIBLE_BASE_URL: 'model' }, 'is no http or https URL'],
    ['openai-compatible/gpt-5', { ...reachable, OPENAI_COMPATIBLE_API_KEY: '' }, '`wrangler secret put OPENAI_COMPATIBLE_API_KEY`'],
  ])('says of %j with %j what to set where', (name, env, what) => {
    expect(() => resolveModel(name, env)).toThrow(what)
    for (const form of FORMS) expect(() => resolveModel(name, env)).toThrow(form)
    expect(() => resolveModel(name, env)).toThrow(`"${name}"`)
  })

  it('gives the offline model its rules', async () => {
    const model = resolveModel('offline', {}, [{ name: 'all', answer: () => ({ text: 'by rule' }) }])
    expect((await generateText({ model, prompt: 'hello' })).text).toBe(`${OFFLINE_PREFIX} by rule`)
  })

  it('calls Workers AI through the binding, and its cost is known', async () => {
    const calls: unknown[] = []
    const run = async (model: string) => (calls.push(model), { response: 'Hello', usage: { prompt_tokens: 1000, completion_tokens: 500 } })
    const options = recorder()
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the one method of the binding that a chat model calls
    const AI = { run } as unknown as Ai
    const model = meter(resolveModel('workers-ai/@cf/openai/gpt-oss-20b', { AI }), options)
    expect((await generateText({ model, prompt: 'hello' })).text).toBe('Hello')
    expect(calls).toEqual(['@cf/openai/gpt-oss-20b'])
    expect(options.calls).toMatchObject([{ input_tokens: 1000, output_tokens: 500, cost_usd: expect.closeTo(0.00035, 10) }])
  })
})

describe('an OpenAI-compatible model', () => {
  let server: Awaited<ReturnType<typeof startChatServer>>
  beforeAll(async () => {
    server = await startChatServer()
  })
  afterAll(() => server.close())

  const metered = (key = 'key') => {
    const options = recorder()
    const env = { OPENAI_COMPATIBLE_BASE_URL: server.url, OPENAI_COMPATIBLE_API_KEY: key }
    return { options, model: meter(resolveModel('openai-compatible/gpt-4o-mini', env), options) }
  }
  const counted = { model: 'gpt-4o-mini', status: 'ok', input_tokens: 1000, output_tokens: 500, cost_usd: expect.closeTo(0.00045, 10) }

  it('is asked with the key, and its tokens and cost are counted', async () => {
    const { model, options } = metered()
    expect((await generateText({ model, prompt: 'hello' })).text).toBe('Hello there')
    expect(server.requests.at(-1)).toMatchObject({
      path: '/v1/chat/completions',
      authorization: 'Bearer key',
      body: { model: 'gpt-4o-mini' },
    })
    expect(options.calls).toMatchObject([{ ...counted, content: [{ type: 'text', text: 'Hello there' }], finish_reason: 'stop' }])
  })

  it('is counted when it streams, too', async () => {
    const { model, options } = metered()
    const deltas = await collect(streamText({ model, prompt: 'hello' }).textStream)
    expect(deltas).toEqual(['Hello ', 'there'])
    expect(options.calls).toMatchObject([{ ...counted, content: [{ type: 'text', text: 'Hello there' }], finish_reason: 'stop' }])
  })

  it('is sent the schema of structured output', async () => {
    const { model } = metered()
    const { output } = await generateText({ model, prompt: 'judge', output: Output.object({ schema: z.object({ severity: z.number() }) }) })
    expect(output).toEqual({ severity: 3 })
    expect(server.requests.at(-1)?.body.response_format).toMatchObject({ type: 'json_schema' })
  })

  it('is recorded as failed when it refuses the key', async () => {
    const { model, options } = metered('wrong')
    await expect(generateText({ model, prompt: 'hello' })).rejects.toThrow('Incorrect API key provided')
    expect(options.calls).toMatchObject([{ status: 'failed', error: 'Incorrect API key provided', cost_usd: 0 }])
  })
})
