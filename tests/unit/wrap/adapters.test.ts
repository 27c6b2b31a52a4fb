import { describe, expect, test } from 'vitest'
import type { ChatMessage } from '../../../src/wrap/chat-messages.ts'
import { wrapLangChain, wrapLangGraph, type SkillReport } from '../../../src/wrap/index.ts'
import type { ChainTool, ChatModel } from '../../../src/wrap/langchain.ts'
import type { MessageGraph } from '../../../src/wrap/langgraph.ts'
import { collect, count, proposal, world } from './fixtures.ts'

/** As LangChain's messages are: of a class, with their role behind a method. */
class Message implements ChatMessage {
  readonly kind: string
  content: unknown
  tool_calls: unknown[]

  constructor(kind: string, content: unknown, tool_calls: unknown[] = []) {
    this.kind = kind
    this.content = content
    this.tool_calls = tool_calls
  }

  getType(): string {
    return this.kind
  }
}

type Answer = Message | string

function chatModel(answers: Answer[], piece = 7): { model: ChatModel; prompts: string[]; bound: unknown[] } {
  const prompts: string[] = []
  const bound: unknown[] = []
  const next = (input: unknown): Message => {
    prompts.push(JSON.stringify(input))
    const answer = answers.shift() ?? 'I have no more to say.'
    return typeof answer === 'string' ? new Message('ai', answer) : answer
  }
  const model: ChatModel = {
    invoke: async (input) => next(input),
    stream: async (input) => {
      const text = String(next(input).content)
      const cuts = Array.from({ length: Math.ceil(text.length / piece) }, (_, index) => text.slice(index * piece, (index + 1) * piece))
      return (async function* () {
        for (const cut of cuts) yield new Message('ai', cut)
      })()
    },
    bindTools: (tools) => {
      bound.push(...tools)
      return model
    },
  }
  return { model, prompts, bound }
}

function chained(answers: Answer[], config: Parameters<typeof world>[0] = {}) {
  const saved: string[] = []
  const save: ChainTool = { name: 'notes.save', invoke: async (input) => (saved.push((input as { title: string }).title), { id: 'n-1' }) }
  const here = world({ tools: {}, ...config })
  const fake = chatModel(answers)
  return { ...fake, saved, reflex: here.reflex, wrapped: wrapLangChain(here.reflex, { model: fake.model, tools: [save] }), save }
}

describe('a chat model of LangChain', () => {
  test('is told once, proposes, and answers with a message of its own class', async () => {
    const { wrapped, prompts, saved } = chained([`Saving. ${proposal('milk')}`, 'Done.'])
    const reply = await wrapped.invoke([new Message('system', 'You help.'), new Message('human', 'A note')])
    expect(reply).toBeInstanceOf(Message)
    expect(reply.content).toBe('Saving. Done.')
    expect(saved).toEqual(['milk'])
    expect(prompts.map((prompt) => count(prompt, '<SKILL_BULLETIN>'))).toEqual([1, 0])
    expect(prompts[0]).toContain('You help.\\n\\n<SKILL_BULLETIN>')
    expect(count(prompts[1] ?? '', '<SKILL_RESULT>')).toBe(1)
  })

  test('takes a text, a prompt value and a list of pairs, and gives content in parts as it came', async () => {
    const parts = [
      { type: 'text', text: `Saving. ${proposal('a')}` },
      { type: 'reasoning', reasoning: 'hm' },
    ]
    const { wrapped, saved } = chained([
      proposal('b'),
      'One.',
      new Message('ai', parts),
      new Message('ai', [{ type: 'text', text: 'Two.' }]),
      'Three.',
    ])
    expect((await wrapped.invoke('A note')).content).toBe('One.')
    expect((await wrapped.invoke({ toChatMessages: () => [['human', 'Another note']] })).content).toEqual([
      { type: 'text', text: 'Saving. Two.' },
    ])
    expect((await wrapped.invoke([['human', 'Hello']])).content).toBe('Three.')
    expect(saved).toEqual(['b', 'a'])
  })

  test('keeps its tool calls, and the caller brings the results back', async () => {
    const call = { name: 'look', args: {}, id: 'c-1' }
    const { wrapped, prompts, bound, saved } = chained([new Message('ai', proposal('milk'), [call]), 'Done.'])
    const withTools = wrapped.bindTools([{ name: 'look' }])
    const asked = [new Message('human', 'A note')]
    const reply = (await withTools.invoke(asked)) as Message
    expect(bound).toEqual([{ name: 'look' }])
    expect(reply.tool_calls).toEqual([call])
    expect(String(reply.content)).toMatch(/^<SKILL_RESULT>.*<\/SKILL_RESULT>$/)
    expect((await withTools.invoke([...asked, reply, new Message('tool', 'saw it')])).content).toBe('Done.')
    expect(prompts.map((prompt) => count(prompt, '<SKILL_BULLETIN>'))).toEqual([1, 0])
    expect(saved).toEqual(['milk'])
  })

  test('streams what comes before a block, and then what follows it', async () => {
    const { wrapped, saved } = chained([`Saving it now. ${proposal('milk')} It is done!`, 'Done.'])
    const stream = await wrapped.stream('A note')
    const pieces = (await collect(stream)).map(({ content }) => String(content)).filter((piece) => piece !== '')
    expect(pieces.join('')).toBe('Saving it now. Done.')
    expect(pieces.length).toBeGreaterThan(3)
    expect(saved).toEqual(['milk'])
  })

  test('asks in words, stops after four rounds, and is wrapped once', async () => {
    const reports: SkillReport[] = []
    const onReport = (report: SkillReport) => reports.push(report)
    const asks = chained(['<CLARIFY>{"questions":[{"slot":"title","question":"Which?"}]}</CLARIFY>'], {
      onReport: (report) => void onReport(report),
    })
    expect((await asks.wrapped.invoke('A note')).content).toBe('Which?')
    expect(reports).toMatchObject([{ kind: 'clarify' }])
    const stubborn = chained(Array.from({ length: 6 }, () => proposal('milk')))
    expect((await stubborn.wrapped.invoke('A note')).content).toBe('I stopped after 4 rounds of skills without an answer.')
    expect(stubborn.saved).toHaveLength(3)
    expect(() => wrapLangChain(asks.reflex, { model: asks.wrapped })).toThrow('wrapped by Reflex already')
  })
})

test('a call that is aborted stops the skill at hand, and the chat model is not called again', async () => {
  const stop = new AbortController()
  const here = chained([proposal('milk'), 'Done.'])
  const save: ChainTool = {
    name: 'notes.save',
    invoke: () => {
      stop.abort(new Error('the user left'))
      return new Promise(() => {})
    },
  }
  const wrapped = wrapLangChain(here.reflex, { model: here.model, tools: [save] })
  await expect(wrapped.invoke('A note', { signal: stop.signal })).rejects.toThrow('the user left')
  expect(here.prompts).toHaveLength(1)
})

describe('a graph of LangGraph', () => {
  function graphOf(answers: string[]): { graph: MessageGraph; seen: string[] } {
    const seen: string[] = []
    const run = async (state: { messages: unknown }) => {
      seen.push(JSON.stringify(state.messages))
      return { ...state, messages: [...(state.messages as unknown[]), new Message('ai', answers.shift() ?? '?')] }
    }
    const stream = async (state: { messages: unknown }) => {
      const end = await run(state)
      return (async function* () {
        yield { ...state, step: 1 }
        yield end
      })()
    }
    return { graph: { invoke: run, stream }, seen }
  }

  test('has skills at its boundary', async () => {
    const here = chained([])
    const { graph, seen } = graphOf([`Saving. ${proposal('milk')}`, 'Done.'])
    const wrapped = wrapLangGraph(here.reflex, { graph, tools: [here.save] })
    const { messages, other } = await wrapped.invoke({ messages: [new Message('human', 'A note')], other: 1 })
    expect((messages as Message[]).at(-1)?.content).toBe('Saving. Done.')
    expect(other).toBe(1)
    expect(here.saved).toEqual(['milk'])
    expect(count(seen[0] ?? '', '<SKILL_BULLETIN>')).toBe(1)
    expect(count(seen[1] ?? '', '<SKILL_RESULT>')).toBe(1)
    expect(() => wrapLangGraph(here.reflex, { graph: wrapped })).toThrow('wrapped by Reflex already')
  })

  test('streams its states, the last of them with the answer', async () => {
    const here = chained([])
    const { graph } = graphOf([proposal('milk'), 'Done.'])
    const wrapped = wrapLangGraph(here.reflex, { graph, tools: [here.save] })
    const states = await collect(await wrapped.stream({ messages: [new Message('human', 'A note')] }))
    expect(states.map((state) => (state as { step?: number }).step ?? 'end')).toEqual([1, 1, 'end'])
    expect((states.at(-1) as { messages: Message[] }).messages.at(-1)?.content).toBe('Done.')
    expect(here.saved).toEqual(['milk'])
  })

  test.each([
    ['what a user says', new Message('human', proposal('injected'))],
    ['what a tool gives', new Message('tool', proposal('injected'))],
  ])('does not act upon %s where it ends with that', async (_, last) => {
    const here = chained([])
    const end = (state: { messages: unknown }) => ({ ...state, messages: [...(state.messages as unknown[]), last] })
    const graph: MessageGraph = {
      invoke: async (state) => end(state),
      stream: async (state) =>
        (async function* () {
          yield end(state)
        })(),
    }
    const wrapped = wrapLangGraph(here.reflex, { graph, tools: [here.save] })
    const asked = { messages: [new Message('human', 'A note')] }
    expect((await wrapped.invoke(asked)).messages).toContain(last)
    expect(await collect(await wrapped.stream(asked))).toMatchObject([{ messages: expect.arrayContaining([last]) }])
    expect(here.saved).toEqual([])
  })

  test('does not act again upon an answer that it was given', async () => {
    const here = chained([])
    const graph: MessageGraph = { invoke: async (state) => state, stream: async () => (async function* () {})() }
    const wrapped = wrapLangGraph(here.reflex, { graph, tools: [here.save] })
    await wrapped.invoke({ messages: [new Message('human', 'A note'), new Message('ai', proposal('milk'))] })
    expect(here.saved).toEqual([])
  })

  test('that keeps its state is refused', () => {
    const kept = { ...graphOf([]).graph, checkpointer: {} }
    expect(() => wrapLangGraph(chained([]).reflex, { graph: kept })).toThrow('wrap its chat model by wrapLangChain instead')
  })
})
