import { generateText, isStepCount, Output, streamText, tool } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { OFFLINE_PREFIX, OfflineModel, type OfflineRequest, type OfflineRule } from '../../../src/models/offline-model.ts'
import { collect } from './model-fixtures.ts'

const greet: OfflineRule = { name: 'greet', answer: ({ text }) => (text.includes('hello') ? { text: 'Hello to you.' } : null) }
const lookUp: OfflineRule = {
  name: 'look-up',
  answer: ({ last_tool_result }) =>
    last_tool_result ? { text: `Found ${JSON.stringify(last_tool_result.output)}` } : { tool: { name: 'look', input: { at: 'sky' } } },
}
const look = tool({ inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => ({ seen: at }) })

describe('OfflineModel', () => {
  it('answers by the first rule that has an answer', async () => {
    const never: OfflineRule = { name: 'never', answer: () => null }
    const late: OfflineRule = { name: 'late', answer: () => ({ text: 'too late' }) }
    const { text } = await generateText({ model: new OfflineModel([never, greet, late]), prompt: 'hello' })
    expect(text).toBe(`${OFFLINE_PREFIX} Hello to you.`)
  })

  it('shows a rule the system prompt, the last user text and the tools', async () => {
    const seen: OfflineRequest[] = []
    const spy: OfflineRule = { name: 'spy', answer: (request) => (seen.push(request), { text: 'ok' }) }
    await generateText({
      model: new OfflineModel([spy]),
      instructions: 'Be brief.',
      messages: [
        { role: 'user', content: 'first' },
        { role: 'assistant', content: 'yes' },
        { role: 'user', content: 'second' },
      ],
      tools: { look },
    })
    expect(seen).toMatchObject([{ system: 'Be brief.', text: 'second', tools: ['look'] }])
    expect(seen[0]).not.toHaveProperty('last_tool_result')
    expect(seen[0]?.messages.map((message) => message.role)).toEqual(['system', 'user', 'assistant', 'user'])
  })

  it('calls a tool and answers from its result, with the same ids each time', async () => {
    const run = () => generateText({ model: new OfflineModel([lookUp]), prompt: 'look', tools: { look }, stopWhen: isStepCount(3) })
    const [one, two] = [await run(), await run()]
    expect(one.text).toBe(`${OFFLINE_PREFIX} Found {"seen":"sky"}`)
    expect(one.steps[0]?.toolCalls).toMatchObject([{ toolName: 'look', input: { at: 'sky' } }])
    expect(two.steps.map((step) => [step.response.id, step.content])).toEqual(one.steps.map((step) => [step.response.id, step.content]))
  })

  it('gives each step of a conversation a tool call id of its own', async () => {
    const again: OfflineRule = { name: 'again', answer: () => ({ tool: { name: 'look', input: { at: 'sky' } } }) }
    const { steps } = await generateText({ model: new OfflineModel([again]), prompt: 'look', tools: { look }, stopWhen: isStepCount(3) })
    expect(new Set(steps.flatMap((step) => step.toolCalls.map((call) => call.toolCallId))).size).toBe(3)
  })

  it('forgets a tool result once the user has spoken again', async () => {
    const first = await generateText({ model: new OfflineModel([lookUp]), prompt: 'look', tools: { look }, stopWhen: isStepCount(3) })
    const messages = [...first.responseMessages, { role: 'user' as const, content: 'again' }]
    const second = await generateText({ model: new OfflineModel([lookUp]), messages, tools: { look } })
    expect(second.finishReason).toBe('tool-calls')
  })

  it('streams text in several deltas that add up to what it generates', async () => {
    const model = new OfflineModel([greet])
    const streamed = streamText({ model, prompt: 'hello' })
    const deltas = await collect(streamed.textStream)
    const generated = await generateText({ model, prompt: 'hello' })
    expect(deltas.length).toBeGreaterThan(2)
    expect(deltas.join('')).toBe(generated.text)
    expect(await streamed.totalUsage).toEqual(generated.totalUsage)
  })

  it('streams tool calls', async () => {
    const result = streamText({ model: new OfflineModel([lookUp]), prompt: 'look', tools: { look }, stopWhen: isStepCount(3) })
    expect(await result.text).toBe(`${OFFLINE_PREFIX} Found {"seen":"sky"}`)
  })

  it('estimates its tokens', async () => {
    const { usage } = await generateText({ model: new OfflineModel(), prompt: 'one two three four five six seven eight' })
    expect(usage.inputTokens).toBeGreaterThan(5)
    expect(usage.outputTokens).toBeGreaterThan(5)
  })

  it('stops when it is aborted', async () => {
    const model = new OfflineModel([greet])
    await expect(generateText({ model, prompt: 'hello', abortSignal: AbortSignal.abort() })).rejects.toThrow(/abort/i)
    const controller = new AbortController()
    const { stream } = await model.doStream({
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }],
      abortSignal: controller.signal,
    })
    const reader = stream.getReader()
    await reader.read()
    controller.abort()
    const drain = async () => {
      while (!(await reader.read()).done);
    }
    await expect(drain()).rejects.toThrow(/abort/i)
  })

  it('names the rule that calls a tool which the call does not offer', async () => {
    await expect(generateText({ model: new OfflineModel([lookUp]), prompt: 'look' })).rejects.toThrow(
      'Offline rule "look-up" calls the tool "look", which this call doesn\'t offer (offered: none).',
    )
  })
})

describe('the offline model without a fitting rule', () => {
  const extractOf = async (prompt: string) => (await generateText({ model: new OfflineModel([greet]), prompt })).text

  it('sums up the lines and counts of the message', async () => {
    expect(await extractOf('ssh watch\nssh.failed: 12\n- ssh.accepted = 3\n\nWhat now?')).toBe(
      `${OFFLINE_PREFIX} The message has 4 lines. It counts ssh.failed 12, ssh.accepted 3. The first reads "ssh watch", the last "What now?".`,
    )
  })

  it('quotes a message of one line, cut short', async () => {
    expect(await extractOf('x'.repeat(500))).toBe(`${OFFLINE_PREFIX} The message reads "${'x'.repeat(120)}…".`)
  })

  it('quotes what an event says, not the ids and times that it begins with', async () => {
    const event = { type: 'ws.message', id: 'e'.repeat(128), source: 'chat', timestamp: '2026-11-26T20:00:00Z', connection_id: 'me' }
    expect(await extractOf(`1 event\n${JSON.stringify({ ...event, content: 'I am Ada', attempt: 2 })}`)).toBe(
      `${OFFLINE_PREFIX} The last event reads "ws.message: I am Ada, 2".`,
    )
  })

  it('says that the message is empty', async () => {
    expect(await extractOf(' ')).toBe(`${OFFLINE_PREFIX} The message is empty.`)
  })

  it('tells what the tool answered, errors included', async () => {
    const once: OfflineRule = {
      name: 'once',
      answer: ({ last_tool_result }) => (last_tool_result ? null : { tool: { name: 'fail', input: {} } }),
    }
    const fail = tool({
      inputSchema: z.object({}),
      execute: async (): Promise<string> => {
        throw new Error('no such host')
      },
    })
    const { text } = await generateText({ model: new OfflineModel([once]), prompt: 'go', tools: { fail }, stopWhen: isStepCount(2) })
    expect(text).toContain(`${OFFLINE_PREFIX} The tool fail answered`)
    expect(text).toContain('no such host')
  })
})

describe('structured output from the offline model', () => {
  const output = Output.object({ schema: z.object({ severity: z.number() }) })
  const judge: OfflineRule = { name: 'judge', answer: () => ({ text: '{"severity": 3}' }) }

  it('is the JSON object of the first rule that gives one', async () => {
    const result = await generateText({ model: new OfflineModel([greet, judge]), prompt: 'hello', output })
    expect(result.output).toEqual({ severity: 3 })
    expect(await streamText({ model: new OfflineModel([greet, judge]), prompt: 'hello', output }).output).toEqual({ severity: 3 })
  })

  it('may come after a tool call', async () => {
    const steps: OfflineRule = {
      name: 'steps',
      answer: ({ last_tool_result }) =>
        last_tool_result ? { text: '{"severity": 1}' } : { text: 'Let me look.', tool: { name: 'look', input: { at: 'log' } } },
    }
    const result = await generateText({ model: new OfflineModel([steps]), prompt: 'go', output, tools: { look }, stopWhen: isStepCount(3) })
    expect(result.output).toEqual({ severity: 1 })
  })

  it.each(['hello', 'anything else'])('is refused with a plain error when no rule has it (%s)', async (prompt) => {
    await expect(generateText({ model: new OfflineModel([greet]), prompt, output })).rejects.toThrow(
      "The offline model can't produce structured output without a rule",
    )
  })
})
