import { createServer } from 'node:http'
import type { LanguageModelV4Content, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { generateText, streamText, tool } from 'ai'
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { modelFaultOf } from '../../../src/base/faults.ts'
import { withLimits } from '../../../src/models/limit-answer.ts'
import { resolveModel } from '../../../src/models/resolve-model.ts'
import { answer, collect, usage } from './model-fixtures.ts'

const asked = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] }] }
const LONG = 'x'.repeat(100_000)
const call = (input: string) => ({ type: 'tool-call' as const, toolCallId: 'a', toolName: 'look', input })
const delta = (type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta') => ({ type, id: 'a', delta: LONG })

/** Reads an answer without an end; returns how many parts its source gave. */
async function readEndless(part: LanguageModelV4StreamPart) {
  const given = { parts: 0, cancelled: false }
  const source = new ReadableStream<LanguageModelV4StreamPart>({
    pull: (controller) => {
      given.parts += 1
      controller.enqueue(part)
    },
    cancel: () => {
      given.cancelled = true
    },
  })
  const { stream } = await withLimits(new MockLanguageModelV4({ doStream: { stream: source } })).doStream(asked)
  const error: unknown = await collect(stream as unknown as AsyncIterable<unknown>).catch((thrown: unknown) => thrown)
  return { ...given, error }
}

describe('an answer of a model', () => {
  test.each([
    ['text', delta('text-delta'), /2000000 characters/],
    ['thoughts', delta('reasoning-delta'), /2000000 characters/],
    ['arguments of a call', delta('tool-input-delta'), /2000000 characters/],
    ['calls', call('{}'), /256 calls/],
  ] as const)('whose %s have no end is broken off, and asked for once', async (_, part, limit) => {
    const { error, parts, cancelled } = await readEndless(part)
    expect(error).toMatchObject({ name: 'AnswerTooLong', message: expect.stringMatching(limit) })
    expect(modelFaultOf(error, { now: 0 })).toMatchObject({ fault: 'refused', detail: expect.stringMatching(limit) })
    expect(parts).toBeLessThan(300)
    expect(cancelled).toBe(true)
  })

  const whole = (content: LanguageModelV4Content[]) =>
    withLimits(new MockLanguageModelV4({ doGenerate: answer({ content }) })).doGenerate(asked)

  test.each<[string, LanguageModelV4Content[]]>([
    ['one call too many', Array.from({ length: 257 }, () => call('{}'))],
    ['too long thoughts', [{ type: 'reasoning', text: LONG.repeat(21) }]],
    ['too long arguments', [call(JSON.stringify(LONG.repeat(20)))]],
  ])('as a whole with %s is refused', async (_, content) => {
    await expect(whole(content)).rejects.toThrow('which is the limit')
  })

  test('as a whole with a long text and 256 calls is taken', async () => {
    const content = [{ type: 'text' as const, text: LONG }, ...Array.from({ length: 256 }, () => call('{}'))]
    await expect(whole(content)).resolves.toMatchObject({ content })
  })
})

describe('a call with arguments that are nested too deep', () => {
  const calls = [call(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`), { ...call('{"a":[]}'), toolCallId: 'b' }]
  const finish = { finishReason: { unified: 'tool-calls' as const, raw: undefined }, usage: usage(1, 1) }
  const looked: unknown[] = []
  const look = tool({ inputSchema: z.object({ a: z.unknown() }), execute: (input) => looked.push(input) })
  const failed = expect.objectContaining({ type: 'tool-error', error: expect.stringContaining('nested more than 64 levels deep') })
  afterEach(() => void looked.splice(0))

  test('fails alone, and says why, in an answer as a whole', async () => {
    const model = withLimits(new MockLanguageModelV4({ doGenerate: answer({ content: calls, ...finish }) }))
    const { content } = await generateText({ model, prompt: 'hello', tools: { look } })
    expect(content).toContainEqual(failed)
    expect(looked).toEqual([{ a: [] }])
  })

  test('fails alone, and says why, in a stream', async () => {
    const stream = convertArrayToReadableStream<LanguageModelV4StreamPart>([...calls, { type: 'finish', ...finish }])
    const model = withLimits(new MockLanguageModelV4({ doStream: { stream } }))
    expect(await streamText({ model, prompt: 'hello', tools: { look } }).content).toContainEqual(failed)
    expect(looked).toEqual([{ a: [] }])
  })
})

describe('a provider', () => {
  let close = () => {}
  afterEach(() => close())

  /** A model whose provider sends the same without an end. */
  async function endless(type: string, piece: string) {
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': type })
      const send = () => {
        while (!response.destroyed && response.write(piece));
      }
      response.on('drain', send)
      send()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    close = () => {
      server.closeAllConnections()
      server.close()
    }
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    return resolveModel('openai-compatible/m', {
      OPENAI_COMPATIBLE_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_COMPATIBLE_API_KEY: 'any',
    })
  }

  test('that sends a body or a line without an end is broken off', async () => {
    const refused = { fault: 'refused', detail: expect.stringContaining('8000000 bytes') }
    const faultOf = (read: Promise<unknown>) =>
      read.then(
        () => null,
        (error: unknown) => modelFaultOf(error, { now: 0 }),
      )
    const body = await endless('application/json', LONG)
    expect(await faultOf(Promise.resolve(body.doGenerate(asked)))).toMatchObject(refused)
    close()
    const line = await endless('text/event-stream', LONG)
    const read = async () => collect((await line.doStream(asked)).stream as unknown as AsyncIterable<unknown>)
    expect(await faultOf(read())).toMatchObject(refused)
  })
})
