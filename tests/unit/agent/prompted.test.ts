import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { simulateReadableStream } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, it, vi } from 'vitest'
import type { Settings } from '../../../src/contract/settings/settings.ts'
import { prompted } from '../../../src/agent/prompted.ts'
import { greeter } from '../../support/guide/greeter.ts'
import { answer, usage } from '../models/model-fixtures.ts'
import { event, scopeOf } from '../agents/agent-fixtures.ts'

// The package's entry also has the Worker, which does not load in Node.
vi.mock('reflex-agents', async () => ({
  ...(await import('../../../src/core/index.ts')),
  ...(await import('../../../src/agent/define-agent.ts')),
  ...(await import('../../../src/tools/define-tool.ts')),
}))

const message = (content: string) => event({ type: 'ws.message', connection_id: 'a', content })
const streams = (text: string) =>
  new MockLanguageModelV4({
    doStream: async () => ({
      stream: simulateReadableStream<LanguageModelV4StreamPart>({
        initialDelayInMs: null,
        chunkDelayInMs: null,
        chunks: [
          { type: 'stream-start', warnings: [] },
          ...(text === ''
            ? []
            : ([
                { type: 'text-start', id: 'a' },
                { type: 'text-delta', id: 'a', delta: text },
                { type: 'text-end', id: 'a' },
              ] as const)),
          { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage: usage(1, 1) },
        ],
      }),
    }),
  })
const says = (text: string) => new MockLanguageModelV4({ doGenerate: async () => answer({ content: [{ type: 'text', text }] }) })

describe('the agent that settings drive', () => {
  it('starts no model without instructions', async () => {
    const model = streams('hello')
    expect(await scopeOf(prompted, { model, settings: { when: 'true' } }).turn(message('hi'))).toBeNull()
    expect(model.doStreamCalls).toEqual([])
  })

  it('thinks when its condition holds, about all that it has seen since', async () => {
    const model = streams('three')
    const scope = scopeOf(prompted, { model, settings: { instructions: 'Count.', when: 'total >= 3' } })
    expect(await scope.turn(message('one'))).toBeNull()
    expect(await scope.turn(message('two'))).toBeNull()
    expect(await scope.turn(message('three'))).toEqual({ text: 'three' })
    expect(scope.deltas).toEqual(['three'])
    expect(scope.replies).toEqual(['three'])
    const [call] = model.doStreamCalls
    for (const text of ['Count.', 'one', 'two', 'three']) expect(JSON.stringify(call?.prompt)).toContain(text)
  })

  it('fails plainly on a condition that cannot be evaluated', async () => {
    const scope = scopeOf(prompted, { settings: { instructions: 'Count.', when: 'total / 0 > 1' } })
    await expect(scope.turn(message('one'))).rejects.toThrow(
      'the condition "total / 0 > 1" could not be evaluated: EvaluationError: division by zero',
    )
  })

  it('shows past turns to its model within the limits of the setting, without redacted values', async () => {
    const asked = async (memory: Settings['memory'], contents: string[]) => {
      const model = streams('Noted, 555-0100.')
      const settings = { instructions: 'Remember.', redact: ['phone'], ...(memory && { memory }) }
      const scope = scopeOf(prompted, { model, settings })
      for (const content of contents) await scope.turn(event({ type: 'ws.message', connection_id: 'a', content, phone: '555-0100' }))
      return (
        model.doStreamCalls
          .at(-1)
          ?.prompt.slice(1)
          .map((message) => JSON.stringify(message.content)) ?? []
      )
    }
    expect(await asked(undefined, ['beta', 'gamma'])).toHaveLength(1)
    const [first, reply, second, , third, ...rest] = await asked({ turns: 2, tokens: 2000 }, ['alpha', 'beta', 'gamma', 'delta'])
    expect(rest).toEqual([])
    expect([first, second, third].map((text) => ['alpha', 'beta', 'gamma', 'delta'].filter((word) => text?.includes(word)))).toEqual([
      ['beta'],
      ['gamma'],
      ['delta'],
    ])
    expect(reply).toContain('Noted, ')
    expect([first, reply, second].join()).not.toContain('555-0100')
    expect(third).toContain('555-0100')
    const some = await asked({ turns: 50, tokens: 400 }, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
    expect(some.length).toBeGreaterThan(1)
    expect(some.length).toBeLessThan(15)
    expect(await asked({ turns: 50, tokens: 100 }, ['x'.repeat(3000), 'gamma'])).toHaveLength(1)
  })

  it('first names the tools that it needs, by the words of trusted senders alone, if the settings say so', async () => {
    const named = async (text: string) => {
      const model = streams('done')
      const plan = says(text)
      model.doGenerate = plan.doGenerate
      const scope = scopeOf(prompted, { model, settings: { instructions: 'Help.', plan_first: true, trusted_senders: ['boss'] } })
      await scope.turn(
        event({ type: 'ws.message', connection_id: 'a', content: 'from a stranger' }),
        event({ ...message('from the boss'), source: 'boss' }),
      )
      return { needs: scope.needs, asked: JSON.stringify(plan.doGenerateCalls) }
    }
    const { needs, asked } = await named('["http_mail_send"]')
    expect(needs).toEqual([['http_mail_send']])
    expect(asked).toContain('from the boss')
    expect(asked).not.toContain('from a stranger')
    for (const text of ['I need everything', ']', '['.repeat(300_000)]) expect((await named(text)).needs).toEqual([[]])
    expect((await named('Of [these] I need ["a"]')).needs).toEqual([[]])
    expect((await named('I need ["a", "b"], ["c"]')).needs).toEqual([['a', 'b']])
  })

  it('sends no empty answer', async () => {
    const scope = scopeOf(prompted, { model: streams(''), settings: { instructions: 'Be silent.' } })
    expect(await scope.turn(message('hi'))).toEqual({ text: '' })
    expect(scope.replies).toEqual([])
  })
})

it('the README’s agent sends no empty answer either', async () => {
  const scope = scopeOf(greeter, { model: says('') })
  expect(await scope.turn(message('hi'))).toEqual({ text: '' })
  expect(scope.replies).toEqual([])
})
