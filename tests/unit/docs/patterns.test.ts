import { readFileSync } from 'node:fs'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test } from 'vitest'
import * as patterns from '../../../examples/patterns.ts'
import type { AgentDeps, DecisionContext } from '../../../src/package.ts'
import { blocksOf, documented } from '../../support/documented.ts'

type Answer = (role: string, prompt: string, call: number) => string | Promise<string>

/** A context of this many requests, and dependencies whose model answers by role. */
function given({ requests = 1, answer = (role, prompt) => `${role}(${prompt})` }: { requests?: number; answer?: Answer } = {}) {
  const asked: string[] = []
  const replies: string[] = []
  const model = new MockLanguageModelV4({
    async doGenerate({ prompt }) {
      const [system, user] = prompt
      const role = /the (\w+)/.exec(JSON.stringify(system?.content))?.[1] ?? ''
      const text =
        typeof user?.content === 'string' ? user.content : user?.content.map((part) => ('text' in part ? part.text : '')).join('')
      asked.push(role)
      const usage = {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      }
      const content = [{ type: 'text' as const, text: await answer(role, text ?? '', asked.length) }]
      return { content, finishReason: { unified: 'stop', raw: undefined }, usage, warnings: [] }
    },
  })
  const events = Array.from({ length: requests }, () => ({ type: 'http.request' }))
  const context = { events, summarize: () => 'events' } as unknown as DecisionContext
  const deps = { model, signal: new AbortController().signal, reply: (text: string) => replies.push(text) } as unknown as AgentDeps
  return { context, deps, asked, replies }
}

describe('each documented pattern', () => {
  test('is the code of an example', async () => {
    const source = ['examples/patterns.ts', 'templates/partitions/src/agents/orders.ts']
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n')
    const blocks = (await documented('ts')).filter(({ page }) => page === 'docs/patterns.md')
    expect(blocks).toHaveLength(10)
    for (const { code } of blocks) expect(source).toContain(code.trimEnd())
  })

  test('sequential hands the analysis on', async () => {
    const { context, deps, replies } = given()
    await patterns.sequential(context, deps)
    expect(replies).toEqual(['writer(analyst(events))'])
  })

  test('parallel asks both', async () => {
    const { context, deps } = given()
    expect(await patterns.parallel(context, deps)).toEqual({ analysis: 'analyst(events)', risks: 'critic(events)' })
  })

  test('first to complete takes a good answer although another failed', async () => {
    const answer: Answer = (role) => (role === 'sprinter' ? Promise.reject(new Error('no')) : 'slow and good')
    const { context, deps } = given({ answer })
    expect(await patterns.firstToComplete(context, deps)).toEqual({ answer: 'slow and good' })
  })

  test('retry asks again after a failure, three times at most', async () => {
    const failing =
      (times: number): Answer =>
      (_role, _prompt, call) =>
        call <= times ? Promise.reject(new Error('busy')) : 'done'
    const { context, deps } = given({ answer: failing(2) })
    expect(await patterns.retry(context, deps)).toEqual({ attempt: 3, answer: 'done' })
    const others = given({ answer: failing(3) })
    await expect(patterns.retry(others.context, others.deps)).rejects.toThrow('busy')
  })

  test('timeout returns the thorough answer in time', async () => {
    const { context, deps, asked } = given()
    expect(await patterns.timeout(context, deps)).toEqual({ answer: 'analyst(events)' })
    expect(asked).toEqual(['analyst'])
  })

  test.each([
    [0, null],
    [1, { answer: 'writer(events)' }],
    [11, { answer: 'critic(events)' }],
  ])('routing decides by %i events', async (requests, expected) => {
    const { context, deps } = given({ requests })
    expect(await patterns.routing(context, deps)).toEqual(expected)
  })

  test('pipeline runs its stages in order', async () => {
    const { context, deps } = given()
    expect(await patterns.pipeline(context, deps)).toEqual({ result: 'writer(critic(analyst(events)))' })
  })

  test('supervisor gives each part to a worker', async () => {
    const answer: Answer = (role, prompt) => (role === 'planner' ? 'one\n\ntwo\n' : `${role}(${prompt})`)
    const { context, deps } = given({ answer })
    expect(await patterns.supervisor(context, deps)).toEqual({ answer: 'writer(researcher(one)\nresearcher(two))' })
  })
})

test('the agent of the quickstart is examples/quickstart.ts', async () => {
  const blocks = (await blocksOf('docs/quickstart.md')).map(({ code }) => code)
  expect(blocks).toContain(readFileSync('examples/quickstart.ts', 'utf8'))
})
