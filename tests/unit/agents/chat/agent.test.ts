import { simulateReadableStream } from 'ai'
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, it } from 'vitest'
import { chat } from '../../../../examples/agents/chat/agent.ts'
import { ModelRefused } from '../../../../src/models/model-errors.ts'
import { OFFLINE_PREFIX } from '../../../../src/models/offline-model.ts'
import { usage } from '../../models/model-fixtures.ts'
import { event, scopeOf } from '../agent-fixtures.ts'

const message = (content: string, id = `id-${content}`) => event({ type: 'ws.message', id, connection_id: 'alice', content })

function streams(...deltas: string[]): LanguageModelV4StreamPart[] {
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 'a' },
    ...deltas.map((delta) => ({ type: 'text-delta', id: 'a', delta }) as const),
    { type: 'text-end', id: 'a' },
    { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage: usage(1, 1) },
  ]
}
/** Answers the n-th call by the n-th script. */
function scripted(...scripts: (LanguageModelV4StreamPart[] | Error)[]) {
  const left = [...scripts]
  return new MockLanguageModelV4({
    doStream: async () => {
      const chunks = left.shift()
      if (chunks === undefined || chunks instanceof Error) throw chunks ?? new Error('the script is over')
      return { stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) }
    },
  })
}
const textsOf = (call: LanguageModelV4CallOptions | undefined): unknown[] =>
  (call?.prompt ?? []).map(({ role, content }) => [
    role,
    typeof content === 'string' ? 'instructions' : content.map((one) => ('text' in one ? one.text : one.type)).join(''),
  ])

describe('the chat', () => {
  it('streams its answer, then sends it whole', async () => {
    const scope = scopeOf(chat, { model: scripted(streams('Hello ', 'Alice', '!')) })
    expect(await scope.turn(message('hi'))).toEqual({ replies: ['Hello Alice!'] })
    expect(scope.deltas).toEqual(['Hello ', 'Alice', '!'])
    expect(scope.replies).toEqual(['Hello Alice!'])
  })

  it('keeps what is said before and after a tool apart', async () => {
    const [start, first, one, end] = streams('Let me see.')
    const [, second, two, , finish] = streams('It is blue.')
    const script = [start, first, one, end, second, two, end, finish].flatMap((part) => part ?? [])
    const scope = scopeOf(chat, { model: scripted(script) })
    await scope.turn(message('my colour?'))
    expect(scope.replies).toEqual(['Let me see.\n\nIt is blue.'])
  })

  it('remembers the talk', async () => {
    const model = scripted(streams('Hello!'), streams('Blue.'))
    const scope = scopeOf(chat, { model })
    await scope.turn(message('hi'))
    await scope.turn(message('my colour?'))
    expect(textsOf(model.doStreamCalls[1])).toEqual([
      ['system', 'instructions'],
      ['user', 'hi'],
      ['assistant', 'Hello!'],
      ['user', 'my colour?'],
    ])
  })

  it('bounds what it remembers', async () => {
    const long = 'x'.repeat(5000)
    const scope = scopeOf(chat, {
      model: new MockLanguageModelV4({ doStream: async () => ({ stream: simulateReadableStream({ chunks: streams(long) }) }) }),
    })
    for (let index = 0; index < 120; index += 1) await scope.turn(message(long, `id-${index}`))
    expect(JSON.stringify(scope.context.scratch).length).toBeLessThan(20_000)
    expect(scope.context.scratch['history']).toHaveLength(20)
    expect(scope.context.scratch['answered']).toHaveLength(100)
    expect(scope.replies[0]).toBe(long)
  })

  it('answers each message that waits, in order, knowing the answers before', async () => {
    const model = scripted(streams('one'), streams('two'))
    const scope = scopeOf(chat, { model })
    expect(await scope.turn(message('first'), message('second'))).toEqual({ replies: ['one', 'two'] })
    expect(scope.replies).toEqual(['one', 'two'])
    expect(scope.deltas).toEqual(['one', '\n\n', 'two'])
    expect(textsOf(model.doStreamCalls[1]).slice(1)).toEqual([
      ['user', 'first'],
      ['assistant', 'one'],
      ['user', 'second'],
    ])
  })

  it('says nothing twice: a turn that failed halfway restarts, and an answered message stays answered', async () => {
    const scope = scopeOf(chat, { model: scripted(streams('one'), new Error('the model is down'), streams('one'), streams('two')) })
    await expect(scope.turn(message('first'), message('second'))).rejects.toThrow('the model is down')
    expect(scope.replies).toEqual([])
    expect(await scope.turn()).toEqual({ replies: ['one', 'two'] })
    expect(await scope.turn(message('first'))).toBeNull()
  })

  it.each([
    ['an error in the stream', [{ type: 'error', error: new Error('overloaded') }] satisfies LanguageModelV4StreamPart[], 'overloaded'],
    ['an empty answer', streams(), 'the model answered nothing'],
  ])('fails on %s', async (_, script, reason) => {
    await expect(scopeOf(chat, { model: scripted(script) }).turn(message('hi'))).rejects.toThrow(reason)
  })

  it('passes on that no model may be called', async () => {
    const refused = new ModelRefused({ ok: false, reason: 'budget', until: null, detail: 'spent' })
    await expect(scopeOf(chat, { model: scripted(refused) }).turn(message('hi'))).rejects.toBe(refused)
  })

  it('stops with its signal', async () => {
    const stop = new AbortController()
    const [head, start, delta] = streams('a')
    const endless = new ReadableStream<LanguageModelV4StreamPart>({
      start(controller) {
        for (const one of [head, start, delta]) if (one) controller.enqueue(one)
      },
    })
    const scope = scopeOf(chat, { model: new MockLanguageModelV4({ doStream: async () => ({ stream: endless }) }), signal: stop.signal })
    const turn = scope.turn(message('hi'))
    await expect.poll(() => scope.deltas).toEqual(['a'])
    stop.abort(new Error('cancelled'))
    await expect(turn).rejects.toThrow('cancelled')
    expect(scope.replies).toEqual([])
  })

  it('ignores empty messages and other events', () => {
    const scope = scopeOf(chat)
    const kept = [message('hi'), message(' \n'), event({ type: 'timer.tick', timer_name: 'a' })].map((one) =>
      chat.filters[0]?.(one, scope.context),
    )
    expect(kept).toEqual([true, false, false])
  })

  it('says offline what was asked, and that no model was', async () => {
    const scope = scopeOf(chat)
    await scope.turn(message('What is "CEL"?'))
    await scope.turn(message('And now?'))
    expect(scope.replies[0]).toContain(`${OFFLINE_PREFIX} You wrote "What is \\"CEL\\"?". I cannot`)
    expect(scope.replies[1]).toContain('You wrote "And now?".')
    expect(scope.deltas.length).toBeGreaterThan(4)
    expect(scope.deltas.join('')).toBe(scope.replies.join(''))
  })
})
