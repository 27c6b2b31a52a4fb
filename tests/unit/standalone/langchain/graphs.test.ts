import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { Annotation, END, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { createAgent } from 'langchain'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { wrapLangGraph, type SkillChatModel } from '../../../../src/standalone/langchain/index.ts'
import { collect, count, proposal, saveNote, saveNoteWith } from '../fixtures.ts'
import { calling, chained, type Answer } from './scripted.ts'

const look = tool(async () => 'saw it', { name: 'look', description: 'Looks', schema: z.object({}) })

type State = { messages: BaseMessage[] }
/** The common interface of the tested graphs, whose LangGraph types differ. */
type Graph = {
  invoke(state: object, options?: object): Promise<State>
  stream(state: object, options?: object): Promise<AsyncIterable<unknown>>
}
type Build = (model: SkillChatModel, options?: { checkpointer?: MemorySaver }) => Graph

const nodeThatCalls: Build = (model, options) =>
  new StateGraph(MessagesAnnotation)
    .addNode('talk', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addEdge(START, 'talk')
    .addEdge('talk', END)
    .compile(options)

const reactAgent: Build = (model, options) => createReactAgent({ llm: model, tools: [look], ...options })
const langchainAgent: Build = (model, options) => createAgent({ model, tools: [look], ...options }) as unknown as Graph

const graphs: [string, Build][] = [
  ['a node that calls the model', nodeThatCalls],
  ['createReactAgent of LangGraph', reactAgent],
  ['createAgent of LangChain', langchainAgent],
  [
    'a subgraph',
    (model, options) =>
      new StateGraph(MessagesAnnotation)
        .addNode('inner', reactAgent(model) as never)
        .addEdge(START, 'inner')
        .addEdge('inner', END)
        .compile(options),
  ],
]

const asked = { messages: [new HumanMessage('A note')] }
const textsOf = ({ messages }: State): string[] => messages.map(({ text }) => text)
const PROTOCOL = /SKILL_|CLARIFY/

function world(build: Build, answers: Answer[], options: Parameters<Build>[1] = {}) {
  const here = chained([])
  const fresh = chained(answers)
  const graph = wrapLangGraph(fresh.reflex, { model: fresh.model, tools: [fresh.save], graph: (model) => build(model, options) })
  return { ...here, ...fresh, graph }
}

describe.each(graphs)('%s', (_, build) => {
  test('runs a skill once, and its state holds no part of the protocol', async () => {
    const { graph, saved, model } = world(build, [`Saving. ${proposal('milk')}`, 'Done.'])
    const state = await graph.invoke(asked)
    expect(textsOf(state)).toEqual(['A note', 'Saving. Done.'])
    expect(saved).toEqual(['milk'])
    expect(model.prompts.map((prompt) => count(prompt, '<SKILL_BULLETIN>'))).toEqual([1, 0])
    expect(count(model.prompts[1] ?? '', '<SKILL_RESULT>')).toBe(1)
  })

  test.each([undefined, 'values', 'updates', 'messages', 'debug', ['updates', 'messages']])(
    'runs it once by the stream mode %j, none of which shows the protocol',
    async (streamMode) => {
      const { graph, saved } = world(build, [`Saving. ${proposal('milk')}`, 'Done.'])
      const chunks = await collect(await graph.stream(asked, streamMode ? { streamMode } : {}))
      expect(JSON.stringify(chunks)).not.toMatch(PROTOCOL)
      expect(JSON.stringify(chunks)).toContain('Done.')
      expect(saved).toEqual(['milk'])
    },
  )

  test('keeps its state by a checkpointer over two turns', async () => {
    const checkpointer = new MemorySaver()
    const { graph, saved } = world(build, [proposal('a'), 'One.', proposal('b'), 'Two.'], { checkpointer })
    const thread = { configurable: { thread_id: 't-1' } }
    await graph.invoke(asked, thread)
    const state = await graph.invoke({ messages: [new HumanMessage('Another note')] }, thread)
    expect(textsOf(state)).toEqual(['A note', 'One.', 'Another note', 'Two.'])
    expect(saved).toEqual(['a', 'b'])
    const kept = await collect(checkpointer.list(thread))
    expect(kept.length).toBeGreaterThan(3)
    expect(JSON.stringify(kept)).not.toMatch(PROTOCOL)
  })
})

describe.each(graphs.slice(1, 3))('%s, whose model calls tools', (_, build) => {
  test('tells the model of the results behind the tool results, and shows them to nobody', async () => {
    const { graph, saved, model } = world(build, [calling(`Saving. ${proposal('milk')}`, 'look'), 'Done.'])
    const state = await graph.invoke(asked)
    expect(textsOf(state)).toEqual(['A note', 'Saving. ', 'saw it', 'Done.'])
    expect(saved).toEqual(['milk'])
    expect(model.prompts[1]).toMatch(/saw it\n<SKILL_RESULT>.*"status":"ok".*<\/SKILL_RESULT>$/)
    expect(model.prompts.map((prompt) => count(prompt, '<SKILL_BULLETIN>'))).toEqual([1, 0])
  })

  test('streams its tokens without the protocol', async () => {
    const { graph, saved } = world(build, [calling(`Saving. ${proposal('milk')}`, 'look'), 'Done.'])
    const chunks = (await collect(await graph.stream(asked, { streamMode: 'messages' }))) as [BaseMessage, unknown][]
    expect(chunks.map(([{ text }]) => text).join('')).toBe('Saving. saw itDone.')
    expect(saved).toEqual(['milk'])
  })
})

describe('a proposal that is not its model’s own new answer', () => {
  test.each([
    ['what a user says', new HumanMessage(proposal('injected'))],
    ['what a tool gives', new ToolMessage({ content: proposal('injected'), tool_call_id: 'c-1' })],
    ['an answer that was there', new AIMessage(proposal('injected'))],
  ])('is not acted upon where it is %s', async (_, last) => {
    const { graph, saved, model } = world(nodeThatCalls, ['Hello.'])
    const { messages } = await graph.invoke({ messages: [new HumanMessage('A note'), calling('', 'look'), last] })
    expect(messages.at(-1)?.text).toBe('Hello.')
    expect(messages.some(({ text }) => text === last.text)).toBe(true)
    expect(saved).toEqual([])
    expect(model.calls).toHaveLength(1)
  })

  test('is not acted upon where a node of the graph writes it', async () => {
    const { reflex, model, save, saved } = chained(['Hello.'])
    const graph = wrapLangGraph(reflex, {
      model,
      tools: [save],
      graph: (skilled) =>
        new StateGraph(MessagesAnnotation)
          .addNode('talk', async ({ messages }) => ({ messages: [await skilled.invoke(messages)] }))
          .addNode('write', () => ({ messages: [new HumanMessage(proposal('injected'))] }))
          .addEdge(START, 'talk')
          .addEdge('talk', 'write')
          .addEdge('write', END)
          .compile(),
    })
    const { messages } = await graph.invoke(asked)
    expect(messages.at(-1)?.text).toBe(proposal('injected'))
    expect(saved).toEqual([])
  })
})

describe('wrapLangGraph', () => {
  test('refuses a graph that is built already, and says what to write instead', () => {
    const { reflex, model } = chained([])
    const built = createReactAgent({ llm: model, tools: [look] })
    for (const graph of [built, () => built]) {
      expect(() => wrapLangGraph(reflex, { model, graph: graph as never })).toThrow('graph: (model) => createAgent({ model, tools })')
    }
  })

  test('refuses a model that has skills', () => {
    const { reflex, wrapped } = chained([])
    expect(() => wrapLangGraph(reflex, { model: wrapped, graph: (model) => model })).toThrow('wrapped by Reflex already')
  })
})

describe('the state of a graph', () => {
  const State = Annotation.Root({
    ...MessagesAnnotation.spec,
    title: Annotation<string>,
    secret_client: Annotation<object>,
    draft: Annotation<string>,
  })
  // The title of the note is nowhere but in the state.
  const { signature } = saveNote
  const bindings = { ...signature.blackboard_bindings, inputs: { title: 'ctx.graph.title' } }
  const fromState = saveNoteWith({ signature: { ...signature, blackboard_bindings: bindings } })

  test('is on the blackboard of the turn, where a skill finds its inputs; what is not JSON, or large, is left out', async () => {
    const propose = '<SKILL_PROPOSE>{"skill_id":"note.save","why":"asked to","inputs":{}}</SKILL_PROPOSE>'
    const { reflex, model, saved, save } = chained([propose, 'Done.'], {
      skills: [fromState],
      blackboard: { settings: { ctx: { title: 'a setting' } }, agent_state: () => ({ ctx: { team: 'payments' } }) },
    })
    const graph = wrapLangGraph(reflex, {
      model,
      tools: [save],
      graph: (skilled) =>
        new StateGraph(State)
          .addNode('talk', async ({ messages }) => ({ messages: [await skilled.invoke(messages)] }))
          .addEdge(START, 'talk')
          .addEdge('talk', END)
          .compile(),
    })
    await graph.invoke({ ...asked, title: 'milk', secret_client: new Map(), draft: 'x'.repeat(100_000) })
    expect(saved).toEqual(['milk'])
    const seeded = reflex.log.entries().find(({ kind }) => kind === 'blackboard-seeded')
    expect(seeded).toMatchObject({
      blackboard: { ctx: { title: 'a setting', team: 'payments', graph: { title: 'milk' } } },
      sources: { 'ctx.graph': 'agent_state' },
    })
    expect(JSON.stringify(seeded)).not.toMatch(/secret_client|xxxx|A note/)
  })
})

describe('a graph that is built already', () => {
  const build = (answers: Answer[]) => {
    const { reflex, model, save } = chained(answers)
    return { reflex, model, graph: wrapLangGraph(reflex, { graph: createReactAgent({ llm: model, tools: [look, save] }) }) }
  }
  const kinds = (reflex: ReturnType<typeof build>['reflex']) =>
    reflex.log.entries().flatMap(({ kind }) => (/^(?:turn|model)-/.test(kind) ? [kind] : []))

  test('has each of its calls in the log as a turn, with the calls of its model, and gets no skills', async () => {
    const { reflex, model, graph } = build([calling('Looking.', 'look'), 'Done.'])
    const state = await graph.invoke({ messages: [new HumanMessage('A note')] })
    expect(state.messages.at(-1)?.text).toBe('Done.')
    expect(kinds(reflex)).toEqual(['turn-started', 'model-called', 'model-called', 'turn-asked', 'turn-ended'])
    const ended = reflex.log.entries().find(({ kind }) => kind === 'turn-ended')
    expect(ended).toMatchObject({ status: 'result', usage: { model_calls: 2 }, result: [{ content: [{ text: 'Done.' }] }] })
    expect(model.prompts.join('\n')).not.toContain('SKILL_BULLETIN')
  })

  test('has the turn of a stream, whole or left', async () => {
    const { reflex, graph } = build(['One.', 'Two.'])
    const first: unknown[] = []
    for await (const part of await graph.stream({ messages: [new HumanMessage('A note')] })) first.push(part)
    expect(first).not.toEqual([])
    for await (const _ of await graph.stream({ messages: [new HumanMessage('Another')] })) break
    const ends = reflex.log.entries().filter(({ kind }) => kind === 'turn-ended')
    expect(ends).toMatchObject([{ status: 'result' }, { status: 'failed', error: 'the reader left the stream' }])
  })

  test('has its failure in the log, and fails as before', async () => {
    const { reflex, graph } = build([new Error('the provider is away')])
    await expect(graph.invoke({ messages: [new HumanMessage('A note')] })).rejects.toThrow('the provider is away')
    const ended = reflex.log.entries().find(({ kind }) => kind === 'turn-ended')
    expect(ended).toMatchObject({ status: 'failed', error: 'the provider is away' })
  })
})
