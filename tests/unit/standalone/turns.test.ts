import { generateText, isStepCount, streamText, tool, ToolLoopAgent, type ToolSet, wrapLanguageModel } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { collect, count, partsOf, promptsOf, proposal, resultOf, saveNoteWith, scripted, streamOf, world } from './fixtures.ts'

const user = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] })
const asked = { prompt: [user('Save a note')] }

describe('a turn', () => {
  test('has a session of its own: each prompt that ends with a user begins one', async () => {
    const { reflex } = world()
    const model = scripted('One.', 'Two.')
    const wrapped = reflex.wrapModel(model)
    await wrapped.doGenerate(asked)
    await wrapped.doGenerate({
      prompt: [...asked.prompt, { role: 'assistant', content: [{ type: 'text', text: 'One.' }] }, user('Another note')],
    })
    expect(promptsOf(model).map((prompt) => count(prompt, '<SKILL_BULLETIN>'))).toEqual([1, 1])
  })

  test('whose first call fails gets the bulletin when it is retried', async () => {
    const { reflex, saved } = world()
    const answers = [resultOf(proposal('milk')), resultOf('Done.')]
    let calls = 0
    const model = new MockLanguageModelV4({
      doGenerate: async () => {
        calls += 1
        const answer = calls === 1 ? undefined : answers.shift()
        if (!answer) throw Object.assign(new Error('busy'), { isRetryable: true })
        return answer
      },
    })
    const wrapped = reflex.wrapModel(model)
    await expect(wrapped.doGenerate(asked)).rejects.toThrow('busy')
    await wrapped.doGenerate(asked)
    expect(promptsOf(model).map((prompt) => count(prompt, '<SKILL_BULLETIN>'))).toEqual([1, 1, 0])
    expect(saved).toEqual(['milk'])
  })

  test('whose call fails after a skill has run continues with its result and does not run it again', async () => {
    const { reflex, saved } = world()
    const script = [() => resultOf(proposal('milk')), () => Promise.reject(new Error('busy')), () => resultOf('Done.')]
    const model = new MockLanguageModelV4({ doGenerate: async () => (script.shift() ?? (() => resultOf('?')))() })
    const wrapped = reflex.wrapModel(model)
    await expect(wrapped.doGenerate(asked)).rejects.toThrow('busy')
    const { content } = await wrapped.doGenerate(asked)
    expect(content).toEqual([{ type: 'text', text: 'Done.' }])
    expect(saved).toEqual(['milk'])
    expect(count(promptsOf(model)[2] ?? '', '<SKILL_RESULT>')).toBe(1)
  })

  test('is not shared with another one that begins with the same words at the same time', async () => {
    const { reflex, saved } = world()
    const model = new MockLanguageModelV4({
      doGenerate: async ({ prompt }) => resultOf(prompt.length === 1 || prompt[0]?.role === 'system' ? proposal('milk') : 'Done.'),
    })
    const wrapped = reflex.wrapModel(model)
    await Promise.all([wrapped.doGenerate(asked), wrapped.doGenerate(asked)])
    expect(saved).toEqual(['milk', 'milk'])
    expect(promptsOf(model).filter((prompt) => prompt.includes('<SKILL_BULLETIN>'))).toHaveLength(2)
  })

  test('continues with its own result, though another one began with the same words in between', async () => {
    const { reflex } = world()
    const calling = (id: string, title: string) => ({
      ...resultOf({ text: proposal(title), calls: [] }),
      content: [
        { type: 'text' as const, text: proposal(title) },
        { type: 'tool-call' as const, toolCallId: id, toolName: 'look', input: '{}' },
      ],
    })
    const model = new MockLanguageModelV4({
      doGenerate: [calling('a', 'milk'), calling('b', 'bread'), resultOf('Done.'), resultOf('Done.')],
    })
    const wrapped = reflex.wrapModel(model)
    for (let turns = 0; turns < 2; turns++) await wrapped.doGenerate(asked)
    for (const toolCallId of ['a', 'b']) {
      const call = { toolCallId, toolName: 'look' }
      const output = { type: 'text' as const, value: 'seen' }
      await wrapped.doGenerate({
        prompt: [
          ...asked.prompt,
          { role: 'assistant', content: [{ type: 'tool-call', ...call, input: {} }] },
          { role: 'tool', content: [{ type: 'tool-result', ...call, output }] },
        ],
      })
    }
    const [, , first = '', second = ''] = promptsOf(model)
    expect([first, second].map((prompt) => ['milk', 'bread'].filter((title) => prompt.includes(`id of ${title}`)))).toEqual([
      ['milk'],
      ['bread'],
    ])
  })

  test('that failed a while ago is not gone on with by whoever says the same words', async () => {
    let now = 0
    const { reflex, saved } = world({ now: () => now })
    const answers = [resultOf(proposal('milk')), null, resultOf('Done.')]
    const prompts: string[] = []
    const model = new MockLanguageModelV4({
      doGenerate: async ({ prompt }) => {
        prompts.push(JSON.stringify(prompt))
        const answer = answers.shift()
        if (!answer) throw new Error('busy')
        return answer
      },
    })
    const wrapped = reflex.wrapModel(model)
    await expect(wrapped.doGenerate(asked)).rejects.toThrow('busy')
    now = 60_000
    await wrapped.doGenerate(asked)
    expect(saved).toEqual(['milk'])
    expect(prompts.at(-1)).not.toContain('SKILL_RESULT>')
  })

  test('whose stream tells of an error runs nothing', async () => {
    const { reflex, saved } = world()
    const [start, ...rest] = partsOf(resultOf(`Saving. ${proposal('milk')}`))
    const parts = [...(start ? [start] : []), { type: 'error' as const, error: new Error('overloaded') }, ...rest]
    const model = new MockLanguageModelV4({ doStream: [{ stream: streamOf(parts) }] })
    const seen = await collect((await reflex.wrapModel(model).doStream(asked)).stream)
    expect(saved).toEqual([])
    expect(seen.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'error' } })
  })

  test('has at most eight proposals', async () => {
    const { reflex, saved } = world({ max_rounds: 20 })
    const model = scripted(...Array.from({ length: 9 }, (_, index) => proposal(String(index))), 'Done.')
    await reflex.wrapModel(model).doGenerate(asked)
    expect(saved).toHaveLength(8)
    expect(promptsOf(model).at(-1)).toContain('a turn has at most 8 proposals')
  })

  test('is aborted: the running skill is stopped and the model is not called again', async () => {
    const stop = new AbortController()
    const wait = tool({
      inputSchema: z.object({ title: z.string() }),
      execute: (_, { abortSignal }) =>
        new Promise((_resolve, reject) => {
          abortSignal?.addEventListener('abort', () => reject(new Error('stopped')))
          stop.abort(new Error('the user left'))
        }),
    })
    const { reflex } = world({ tools: { 'notes.save': wait } })
    const model = scripted(proposal('milk'), 'Done.')
    const { stream } = await reflex.wrapModel(model).doStream({ ...asked, abortSignal: stop.signal })
    await expect(collect(stream)).rejects.toThrow('the user left')
    expect(model.doStreamCalls).toHaveLength(1)
    expect(reflex.log.entries().find(({ kind }) => kind === 'skill-applied')).toMatchObject({
      status: 'partial_failure',
      reason: 'cancelled',
    })
  })

  test('whose reader leaves stops calling the model', async () => {
    const { reflex, saved } = world()
    const model = scripted(`Now. ${proposal('milk')}`, 'Done.')
    const { stream } = await reflex.wrapModel(model).doStream(asked)
    const reader = stream.getReader()
    await reader.read()
    await reader.cancel('bye')
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(model.doStreamCalls).toHaveLength(1)
    expect(saved).toEqual([])
    expect(model.doStreamCalls[0]?.abortSignal?.aborted).toBe(true)
  })

  test('streams what comes before a block at once', async () => {
    const { reflex } = world()
    const parts = partsOf(resultOf(`Before. ${proposal('milk')}`), [8])
    let hold: () => void = () => undefined
    const held = new ReadableStream({
      start(controller) {
        for (const part of parts.slice(0, 3)) controller.enqueue(part)
        hold = () => {
          for (const part of parts.slice(3)) controller.enqueue(part)
          controller.close()
        }
      },
    })
    const model = new MockLanguageModelV4({ doStream: [{ stream: held }, { stream: streamOf(partsOf(resultOf('Done.'), [])) }] })
    const { stream } = await reflex.wrapModel(model).doStream(asked)
    const reader = stream.getReader()
    const types = [(await reader.read()).value, (await reader.read()).value, (await reader.read()).value]
    expect(types.at(-1)).toMatchObject({ type: 'text-delta', delta: 'Before. ' })
    hold()
    reader.releaseLock()
    const rest = await collect(stream)
    expect(rest.map(({ type }) => type)).toEqual(['text-end', 'text-start', 'text-delta', 'text-end', 'finish'])
    expect(rest[2]).toMatchObject({ id: '2:text-0', delta: 'Done.' })
  })
})

test('a turn that asks its model several things keeps what happened over one of them out of the others', async () => {
  const { reflex, saved } = world()
  const model = scripted(proposal('milk'), 'Saved.', 'No risks.', 'As I said, it is saved.')
  const wrapped = reflex.wrapModel(model, { session: reflex.session() })
  await wrapped.doGenerate(asked)
  await wrapped.doGenerate({ prompt: [user('What are the risks of a note?')] })
  await wrapped.doGenerate({
    prompt: [...asked.prompt, { role: 'assistant', content: [{ type: 'text', text: 'Saved.' }] }, user('Is it?')],
  })
  expect(saved).toEqual(['milk'])
  expect(model.doGenerateCalls.map(({ prompt }) => prompt.filter(({ role }) => role !== 'system').map(({ role }) => role))).toEqual([
    ['user'],
    ['user', 'assistant', 'user'],
    ['user'],
    ['user', 'assistant', 'user', 'assistant', 'user'],
  ])
})

describe('an agent', () => {
  const look = tool({ inputSchema: z.object({}), execute: async () => 'saw nothing' })

  test('has the same interface, and a session for each of its calls', async () => {
    const { reflex, saved } = world()
    const model = scripted(proposal('one'), 'Done.', { calls: [{ name: 'look', input: {} }] }, proposal('two'), 'Done again.')
    const agent = new ToolLoopAgent({ id: 'helper', model, tools: { look }, instructions: 'You help.' })
    const wrapped = reflex.wrap({ agent })
    expect(wrapped.id).toBe('helper')
    expect(Object.keys(wrapped.tools)).toEqual(['look'])
    expect((await wrapped.generate({ prompt: 'A note' })).text).toBe('Done.')
    expect((await wrapped.generate({ prompt: 'A note' })).text).toBe('Done again.')
    expect(saved).toEqual(['one', 'two'])
    const prompts = promptsOf(model)
    expect(prompts.map((prompt) => count(prompt, '<SKILL_BULLETIN>'))).toEqual([1, 0, 1, 0, 0])
    expect(prompts[0]).toMatch(/^You help\.\n\n<SKILL_BULLETIN>/)
    expect(reflex.log.entries().filter(({ kind, tool: name }) => kind === 'effect-ended' && name === 'look')).toHaveLength(1)
  })

  test('streams', async () => {
    const { reflex, saved } = world()
    const agent = new ToolLoopAgent({ model: scripted(`Saving. ${proposal('one')}`, 'Done.') })
    const { textStream } = await reflex.wrap({ agent }).stream({ prompt: 'A note' })
    expect((await collect(textStream)).join('')).toBe('Saving. Done.')
    expect(saved).toEqual(['one'])
  })

  test('may choose its model for a call and for a step', async () => {
    const { reflex, saved } = world()
    const chosen = scripted({ calls: [{ name: 'look', input: {} }] })
    const next = scripted(proposal('one'), 'Done.')
    const agent = new ToolLoopAgent({
      model: scripted(),
      tools: { look },
      prepareCall: (call) => ({ ...call, model: chosen }),
      prepareStep: ({ stepNumber }) => (stepNumber === 0 ? {} : { model: next }),
    })
    expect((await reflex.wrap({ agent }).generate({ prompt: 'A note' })).text).toBe('Done.')
    expect(saved).toEqual(['one'])
    expect([...promptsOf(chosen), ...promptsOf(next)].map((prompt) => count(prompt, '<SKILL_BULLETIN>'))).toEqual([1, 0, 0])
  })

  test('whose plan calls a tool that starts a turn of its own does not come back to the same skill', async () => {
    const inner = scripted(proposal('again'), 'I may not.')
    const { reflex } = world({ tools: {} })
    const helper = reflex.wrap({ agent: new ToolLoopAgent({ model: inner }) })
    const save = tool({
      inputSchema: z.object({ title: z.string() }),
      execute: async () => ({ id: (await helper.generate({ prompt: 'A note' })).text }),
    })
    const outer = scripted(proposal('milk'), 'Done.')
    await reflex.wrap({ agent: new ToolLoopAgent({ model: outer }), tools: { 'notes.save': save } }).generate({ prompt: 'A note' })
    expect(promptsOf(inner)[1]).toContain('note.save must not run within itself')
    expect(promptsOf(outer)[1]).toContain('"saved":"I may not."')
  })
})

test("an agent's tools that a person has to allow are not for plans", async () => {
  const { reflex } = world({ tools: {} })
  const save = tool({ inputSchema: z.object({ title: z.string() }), execute: async () => ({ id: 'x' }) })
  const model = scripted(proposal('milk'), 'I may not.')
  const agent = new ToolLoopAgent({ model, tools: { 'notes.save': save }, toolApproval: { 'notes.save': 'user-approval' } })
  await reflex.wrap({ agent }).generate({ prompt: 'A note' })
  expect(promptsOf(model)[1]).toContain('the tool notes.save must be available')
})

test('the gate refuses a skill whose plan names a tool that no plan can call, before any step is run', async () => {
  const inputSchema = z.object({ title: z.string() })
  const asks = tool({ inputSchema, needsApproval: true, execute: async () => ({ id: 'x' }) })
  const cases: [ToolSet, string][] = [
    [{ 'notes.save': asks }, 'needs an approval of its own'],
    [{ 'notes.save': tool({ inputSchema }) as ToolSet[string] }, 'a plan cannot call notes.save: the tool does not exist'],
  ]
  for (const [tools, why] of cases) {
    const { reflex } = world({ tools })
    const request = { from: 'model', roles: ['writer'], text: 'a note' } as const
    const result = await reflex.session().propose({ skill_id: 'note.save', inputs: { title: 'milk' }, why: '' }, request)
    expect(result).toMatchObject({ status: 'refused', run_id: null, decision: { to_pass: [expect.stringContaining(why)] } })
  }
})

test('a tool call of a plan leaves no value of a secret input in the log', async () => {
  const signature = { inputs: [{ name: 'title', type: 'string', required: true, secret: true }], outputs: [] }
  const plan = { budget: { max_cost_usd: 1, max_latency_ms: 5000 }, steps: [{ tool: 'notes.save', args: { title: 'it is {{title}}' } }] }
  const { reflex, saved } = world({ skills: [saveNoteWith({ signature, plan, effects: {} })] })
  const request = { from: 'caller', roles: ['writer'], text: 'a note' } as const
  const result = await reflex.session().propose({ skill_id: 'note.save', inputs: { title: 'hunter2-hunter2' }, why: '' }, request)
  expect(result).toMatchObject({ status: 'ok' })
  expect(saved).toEqual(['it is hunter2-hunter2'])
  expect(JSON.stringify(reflex.log.entries())).not.toContain('hunter2')
})

describe('wrapping twice', () => {
  const { reflex } = world()

  test('is refused, of models, tools and agents', () => {
    const { model, tools } = reflex.wrap({
      model: scripted('Hello'),
      tools: { look: tool({ inputSchema: z.object({}), execute: async () => 1 }) },
    })
    expect(() => reflex.wrapModel(model)).toThrow('the model is wrapped by Reflex already: wrap it once')
    expect(() => reflex.wrapTools(tools)).toThrow('the tool look is wrapped by Reflex already')
    expect(() => reflex.wrap({ agent: new ToolLoopAgent({ model }) })).toThrow("the agent's model is wrapped by Reflex already")
    const agent = reflex.wrap({ agent: new ToolLoopAgent({ model: scripted('Hello') }) })
    expect(() => reflex.wrap({ agent })).toThrow('the agent is wrapped by Reflex already')
  })

  test('is noticed behind another wrapper, too', async () => {
    const once = wrapLanguageModel({ model: reflex.wrapModel(scripted('Hello')), middleware: {} })
    await expect(reflex.wrapModel(once).doGenerate(asked)).rejects.toThrow('the model is wrapped twice')
  })

  test('and an agent of another kind is refused', () => {
    expect(() => reflex.wrap({ agent: { version: 'agent-v1' } as unknown as ToolLoopAgent })).toThrow('takes a ToolLoopAgent')
  })
})

describe('a run that spends its budget', () => {
  test('is stopped and compensated, and the model gets the error', async () => {
    const undone: string[] = []
    const dear = tool({ inputSchema: z.object({ title: z.string() }), execute: async () => ({ id: 'x', cost_usd: 5 }) })
    const undo = tool({ inputSchema: z.object({ title: z.string() }), execute: async ({ title }) => void undone.push(title) })
    const steps = ['one', 'two'].map((name) => ({ name, tool: 'notes.save', args: { title: '{{title}}' } }))
    const plan = {
      budget: { max_cost_usd: 1, max_latency_ms: 1000 },
      steps,
      compensation: [{ when: 'partial_failure', tool: 'notes.undo', args: { title: '{{title}}' }, step: 'one' }],
      result_map: { saved: '{{work.steps.two.id}}' },
    }
    const { reflex } = world({ skills: [saveNoteWith({ plan })], tools: { 'notes.save': dear, 'notes.undo': undo } })
    const model = scripted(proposal('milk'), 'It was too dear.')
    await generateText({ ...reflex.wrap({ model }), prompt: 'A note' })
    expect(undone).toEqual(['milk'])
    expect(promptsOf(model)[1]).toContain('"status":"partial_failure","reason":"5 of 1 USD are spent"')
  })
})

test('a streamed turn with tools continues after them', async () => {
  const { reflex, saved } = world()
  const look = tool({ inputSchema: z.object({}), execute: async () => 'saw nothing' })
  const model = scripted({ text: proposal('one'), calls: [{ name: 'look', input: {} }] }, 'Done.')
  const result = streamText({ ...reflex.wrap({ model, tools: { look } }), prompt: 'A note', stopWhen: isStepCount(3) })
  expect(await result.text).toBe('Done.')
  expect(saved).toEqual(['one'])
})
