import type { LanguageModelV4Content } from '@ai-sdk/provider'
import { MockLanguageModelV4 } from 'ai/test'
import { expect, test } from 'vitest'
import { answerRequest } from '../../../src/agent/answer-request.ts'

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** The arguments that a caller gets of a call, and those that were judged. */
async function handed(input: string) {
  const model = new MockLanguageModelV4({
    doGenerate: {
      content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'pay', input }],
      finishReason: { unified: 'tool-calls', raw: undefined },
      usage,
      warnings: [],
    },
  })
  const left: string[] = []
  const judged: unknown[] = []
  const call = async (_tool: string, args: unknown) => void judged.push(args)
  const deps = { model, signal: new AbortController().signal, reply: () => {}, call } as never
  await answerRequest({ prompt: [], tools: [], options: {} }, deps, {
    streams: false,
    said: () => {},
    called: (one) => left.push(one.input),
  })
  return { left: left[0] ?? '', judged: judged[0] }
}

test.each([
  ['a name twice', '{"to": "ann", "to": "eve"}', '{"to":"eve"}'],
  ['a number with too many digits', '{"amount":9007199254740993}', '{"amount":9007199254740992}'],
  ['a name that nothing may have', '{"__proto__":{"to":"eve"},"to":"ann"}', '{"to":"ann"}'],
  ['no arguments', '', '{}'],
])('a caller gets the arguments that were judged, of %s', async (_, input, expected) => {
  expect((await handed(input)).left).toBe(expected)
})

test.each(['{"to": "ann, or \\"eve\\"  ",\n "of": [1, 2]}', '{}', '{ }'])('a caller gets %s as the model wrote it', async (input) => {
  const { left, judged } = await handed(input)
  expect(left).toBe(input)
  expect(judged).toEqual(JSON.parse(input))
})

test('what a model says before and after a refused call is one answer of two paragraphs', async () => {
  const generated = (content: LanguageModelV4Content[]) => ({
    content,
    finishReason: { unified: 'stop' as const, raw: undefined },
    usage,
    warnings: [],
  })
  const doGenerate = [
    generated([
      { type: 'text', text: 'I pay ' },
      { type: 'text', text: 'now.' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'pay', input: '{}' },
    ]),
    generated([{ type: 'text', text: 'I may not.' }]),
  ]
  const call = async () => {
    throw new Error('pay is not allowed')
  }
  const deps = { model: new MockLanguageModelV4({ doGenerate }), signal: new AbortController().signal, reply: () => {}, call } as never
  let said = ''
  const sink = { streams: false, said: (text: string) => void (said += text), called: () => {} }
  await answerRequest({ prompt: [], tools: [], options: {} }, deps, sink)
  expect(said).toBe('I pay now.\n\nI may not.')
})

test('the model hears that a call was refused also where its arguments are too deep to be repeated', async () => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  const generated = (content: LanguageModelV4Content[]) => ({
    content,
    finishReason: { unified: 'stop' as const, raw: undefined },
    usage,
    warnings: [],
  })
  const call = (toolCallId: string, input: string) => ({ type: 'tool-call' as const, toolCallId, toolName: 'pay', input })
  const model = new MockLanguageModelV4({
    doGenerate: [generated([call('a', deep), call('b', '{"to":"ann"}')]), generated([{ type: 'text', text: 'I may not.' }])],
  })
  const refuse = () => Promise.reject(new Error('pay is not allowed'))
  const deps = { model, signal: new AbortController().signal, reply: () => {}, call: refuse } as never
  expect(await answerRequest({ prompt: [], tools: [], options: {} }, deps)).toEqual({ finish: 'stop', calls: 0 })
  expect(model.doGenerateCalls[1]?.prompt).toMatchObject([
    {
      role: 'assistant',
      content: [
        { toolCallId: 'a', input: {} },
        { toolCallId: 'b', input: { to: 'ann' } },
      ],
    },
    { role: 'tool', content: [{ toolCallId: 'a' }, { toolCallId: 'b' }] },
  ])
})
