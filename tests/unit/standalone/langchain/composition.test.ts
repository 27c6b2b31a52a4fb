import { InMemoryCache } from '@langchain/core/caches'
import { BaseCallbackHandler } from '@langchain/core/callbacks/base'
import type { BaseMessage } from '@langchain/core/messages'
import { AIMessageChunk } from '@langchain/core/messages'
import type { LLMResult } from '@langchain/core/outputs'
import { StringOutputParser } from '@langchain/core/output_parsers'
import { ChatPromptTemplate } from '@langchain/core/prompts'
import { RunnableLambda, RunnablePassthrough, RunnableSequence } from '@langchain/core/runnables'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import type { SkillChatModel } from '../../../../src/standalone/langchain/index.ts'
import { collect, count, proposal } from '../fixtures.ts'
import { calling, chained } from './scripted.ts'

const answers = () => [`Saving. ${proposal('milk')}`, 'Done.']
const prompt = ChatPromptTemplate.fromMessages<{ what: string }>([['human', 'A note: {what}']])
const parser = new StringOutputParser()
const what = { what: 'milk' }

type Composition = [name: string, run: (model: SkillChatModel) => Promise<string>]

const compositions: Composition[] = [
  ['prompt.pipe(model)', async (model) => (await prompt.pipe(model).invoke(what)).text],
  ['prompt.pipe(model).pipe(parser)', (model) => prompt.pipe(model).pipe(parser).invoke(what)],
  ['RunnableSequence.from', (model) => RunnableSequence.from([prompt, model, parser]).invoke(what)],
  [
    'RunnablePassthrough.assign',
    async (model) => (await RunnablePassthrough.assign({ said: prompt.pipe(model).pipe(parser) }).invoke(what)).said,
  ],
  ['a map', async (model) => (await prompt.pipe({ said: model }).invoke(what)).said.text],
  ['a lambda that calls it', (model) => RunnableLambda.from(async (text: string) => (await model.invoke(text)).text).invoke('A note')],
  ['a lambda that gives it', async (model) => ((await RunnableLambda.from(() => model).invoke('A note')) as unknown as BaseMessage).text],
  ['stream', async (model) => (await collect(await model.stream('A note'))).map(({ text }) => text).join('')],
  ['stream through a parser', async (model) => (await collect(await prompt.pipe(model).pipe(parser).stream(what))).join('')],
  ['streamEvents', async (model) => (await model.streamEvents('A note')).text],
  ['streamEvents of a chain', async (model) => streamedText(await collect(prompt.pipe(model).streamEvents(what, { version: 'v2' })))],
  ['batch', async (model) => (await model.batch(['A note']))[0]?.text ?? ''],
  ['generate', async (model) => (await model.generate([[['human', 'A note']]])).generations[0]?.[0]?.text ?? ''],
  ['withConfig', async (model) => (await model.withConfig({ tags: ['mine'] }).invoke('A note')).text],
  ['withRetry', async (model) => (await model.withRetry().invoke('A note')).text],
  ['withFallbacks', async (model) => (await model.withFallbacks([model]).invoke('A note')).text],
  ['bindTools', async (model) => (await model.bindTools([{ name: 'look' }]).invoke('A note')).text],
  [
    'bindTools in a chain',
    (model) =>
      prompt
        .pipe(model.bindTools([{ name: 'look' }]))
        .pipe(parser)
        .invoke(what),
  ],
]

function streamedText(events: { event: string; data: { chunk?: unknown } }[]): string {
  const streamed = events.filter(({ event }) => event === 'on_chat_model_stream')
  return streamed.map(({ data }) => (data.chunk as BaseMessage).text).join('')
}

describe('composed as LangChain composes, a skill runs once', () => {
  test.each(compositions)('%s', async (_, run) => {
    const { wrapped, model, saved } = chained(answers())
    expect(await run(wrapped)).toBe('Saving. Done.')
    expect(saved).toEqual(['milk'])
    expect(model.calls).toHaveLength(2)
    expect(model.prompts.map((text) => count(text, '<SKILL_BULLETIN>'))).toEqual([1, 0])
  })

  test('each call of a batch is a turn of its own, also where they say the same', async () => {
    const { wrapped, saved } = chained([proposal('a'), proposal('b'), 'Done.', 'Done.'])
    const replies = await wrapped.batch(['A note', 'A note'])
    expect(replies.map(({ text }) => text)).toEqual(['Done.', 'Done.'])
    expect(saved.toSorted()).toEqual(['a', 'b'])
  })
})

describe('a call that is repeated', () => {
  afterEach(() => void vi.useRealTimers())

  /** LangChain waits a second or more before it repeats a call. */
  function withoutWaiting() {
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    return { onFailedAttempt: () => void setImmediate(() => void vi.runAllTimersAsync()) }
  }
  const failing = [proposal('milk'), new Error('overloaded'), 'Done.']

  test.each<Composition>([
    ['withRetry', async (model) => (await model.withRetry(withoutWaiting()).invoke('A note')).text],
    ['withRetry in a chain', (model) => prompt.pipe(model).pipe(parser).withRetry(withoutWaiting()).invoke(what)],
    ['withFallbacks', async (model) => (await model.withFallbacks([model]).invoke('A note')).text],
  ])('by %s after a skill has run continues with its result, and does not run it again', async (_, run) => {
    const { wrapped, model, saved } = chained(failing)
    expect(await run(wrapped)).toBe('Done.')
    expect(saved).toEqual(['milk'])
    expect(model.prompts[2]).toMatch(/<SKILL_RESULT>.*"status":"ok"/)
  })

  test('before any output sends the bulletin again', async () => {
    const { wrapped, model, saved } = chained([new Error('overloaded'), ...answers()])
    expect((await wrapped.withRetry(withoutWaiting()).invoke('A note')).text).toBe('Saving. Done.')
    expect(saved).toEqual(['milk'])
    expect(model.prompts.map((text) => count(text, '<SKILL_BULLETIN>'))).toEqual([1, 1, 0])
  })

  test('after a broken stream continues with the result', async () => {
    const { wrapped, saved, model } = chained(failing)
    await expect(wrapped.stream('A note').then(collect)).rejects.toThrow('overloaded')
    expect((await collect(await wrapped.stream('A note'))).map(({ text }) => text).join('')).toBe('Done.')
    expect(saved).toEqual(['milk'])
    expect(count(model.prompts[2] ?? '', '<SKILL_RESULT>')).toBe(1)
  })
})

describe('structured output', () => {
  const schema = z.object({ title: z.string() })
  const call = { name: 'extract', args: { title: 'milk' }, id: 'c-1', type: 'tool_call' as const }
  // LangChain's own parser takes no other class.
  const extract = new AIMessageChunk({ content: '', tool_calls: [call] })

  test('by a tool runs what was proposed before it once', async () => {
    const { wrapped, saved } = chained([proposal('milk'), extract])
    expect(await wrapped.withStructuredOutput(schema).invoke('A note')).toEqual({ title: 'milk' })
    expect(saved).toEqual(['milk'])
  })

  test('with the raw message beside it', async () => {
    const { wrapped, saved } = chained([proposal('milk'), extract])
    const { raw, parsed } = await wrapped.withStructuredOutput(schema, { includeRaw: true }).invoke('A note')
    expect(parsed).toEqual({ title: 'milk' })
    expect(raw.response_metadata['reflex']).toMatchObject({ proposals: [{ status: 'ok' }] })
    expect(saved).toEqual(['milk'])
  })

  test('as a provider does it, by a tool that it binds itself or in JSON', async () => {
    const byTool = chained([proposal('milk'), extract])
    byTool.model.structured = { tools: [{ name: 'extract' }] }
    expect(await byTool.wrapped.withStructuredOutput(schema).invoke('A note')).toMatchObject({ tool_calls: [{ args: { title: 'milk' } }] })
    expect(byTool.saved).toEqual(['milk'])
    const inJson = chained(['{"title":"milk"}'])
    inJson.model.structured = { format: 'json' }
    expect(await inJson.wrapped.withStructuredOutput(schema).invoke('A note')).toMatchObject({ content: '{"title":"milk"}' })
    expect(inJson.model.prompts).toEqual(['A note'])
  })

  test('of a model that has a function of its own for it is refused', () => {
    const { wrapped, model } = chained([])
    Object.assign(model, { withStructuredOutput: () => model })
    expect(() => wrapped.withStructuredOutput(schema)).toThrow(
      'out of reach of skills: call withStructuredOutput of the model without them',
    )
  })

  test.each([
    { response_format: { type: 'json_schema', json_schema: {} } },
    { ls_structured_output_format: { kwargs: { method: 'jsonMode' } } },
  ])('in JSON is data: its model gets no bulletin, and a block in it is ignored', async (config) => {
    const { wrapped, model, saved } = chained([JSON.stringify({ title: proposal('milk') }), `{"title":"x"}`])
    const asked = wrapped.withConfig(config)
    expect((await asked.invoke('A note')).text).toContain('SKILL_PROPOSE')
    expect((await collect(await asked.stream('A note'))).map(({ text }) => text).join('')).toBe('{"title":"x"}')
    expect(model.prompts).toEqual(['A note', 'A note'])
    expect(saved).toEqual([])
  })
})

/** Notes what LangChain tells of each run. */
class Watcher extends BaseCallbackHandler {
  readonly name = 'watcher'
  readonly starts: { tags: string[] | undefined; metadata: Record<string, unknown> | undefined }[] = []
  readonly ends: string[] = []
  tokens = ''

  override handleChatModelStart(...[, , , , , tags, metadata]: Parameters<NonNullable<BaseCallbackHandler['handleChatModelStart']>>): void {
    this.starts.push({ tags, metadata })
  }

  override handleLLMNewToken(token: string): void {
    this.tokens += token
  }

  override handleLLMEnd({ generations }: LLMResult): void {
    this.ends.push(generations[0]?.[0]?.text ?? '')
  }
}

describe('callbacks', () => {
  test.each(['invoke', 'stream'] as const)('of a call see one run, and no part of the protocol, by %s', async (how) => {
    const watcher = new Watcher()
    const { wrapped } = chained(answers())
    const options = { callbacks: [watcher], tags: ['mine'], metadata: { user: 'ann' } }
    if (how === 'invoke') await wrapped.invoke('A note', options)
    else await collect(await wrapped.stream('A note', options))
    expect(watcher.starts).toMatchObject([{ tags: ['mine'], metadata: { user: 'ann' } }])
    expect(watcher.ends).toEqual(['Saving. Done.'])
    expect(watcher.tokens).toBe(how === 'stream' ? 'Saving. Done.' : '')
  })

  test("of the user's own model see each round, with the tags and metadata of the call", async () => {
    const watcher = new Watcher()
    const { wrapped } = chained(answers(), {}, { callbacks: [watcher] })
    await wrapped.invoke('A note', { tags: ['mine'], metadata: { user: 'ann' } })
    expect(watcher.starts).toMatchObject([
      { tags: ['mine'], metadata: { user: 'ann' } },
      { tags: ['mine'], metadata: { user: 'ann' } },
    ])
    expect(watcher.ends).toEqual([`Saving. ${proposal('milk')}`, 'Done.'])
  })
})

test('a cache of the model answers its rounds, and an effect that is asked for again happens again', async () => {
  const { wrapped, model, saved } = chained([...answers(), 'Done again.'], {}, { cache: new InMemoryCache() })
  expect((await wrapped.invoke('A note')).text).toBe('Saving. Done.')
  expect((await wrapped.invoke('A note')).text).toBe('Saving. Done again.')
  expect(model.calls).toHaveLength(3)
  expect(saved).toEqual(['milk', 'milk'])
})

test('tool calls of a composed model are bound and kept', async () => {
  const { wrapped, saved } = chained([proposal('milk'), calling('Looking.', 'look')])
  const reply = await prompt.pipe(wrapped.bindTools([{ name: 'look' }])).invoke(what)
  expect(reply.tool_calls).toMatchObject([{ name: 'look' }])
  expect(saved).toEqual(['milk'])
})
