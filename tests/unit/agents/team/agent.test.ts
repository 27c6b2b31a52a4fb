import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, it } from 'vitest'
import { team } from '../../../../examples/agents/team/agent.ts'
import { OFFLINE_PREFIX } from '../../../../src/models/offline-model.ts'
import { answer } from '../../models/model-fixtures.ts'
import { event, part, scopeOf } from '../agent-fixtures.ts'

const schema = team.events?.[0]
const task = (pattern: string | undefined, text = 'Plan the party') =>
  part<ReturnType<typeof event>>(
    schema?.parse(event({ type: 'team.task', id: `${pattern} ${text.slice(0, 20)}`, task: text, ...(pattern && { pattern }) })) ?? {},
  )
const said = (role: string, given: string) => `${OFFLINE_PREFIX} The ${role} was given ${JSON.stringify(given)}.`

async function offline(pattern: string | undefined, text?: string): Promise<string> {
  const scope = scopeOf(team)
  await scope.turn(task(pattern, text))
  expect(scope.replies).toHaveLength(1)
  return scope.replies[0] ?? ''
}

describe('the team, offline', () => {
  it.each(['sequential', undefined])('works in sequence (%s)', async (pattern) => {
    expect(await offline(pattern)).toContain('The writer was given "[offline model: no model was asked] The analyst was given')
  })

  it('works in parallel', async () => {
    expect(await offline('parallel')).toBe(`Analysis: ${said('analyst', 'Plan the party')}\nRisks: ${said('critic', 'Plan the party')}`)
  })

  it('takes the first to complete', async () => {
    expect(await offline('first')).toBe(said('sprinter', 'Plan the party'))
  })

  it('has a supervisor', async () => {
    expect(await offline('supervisor')).toContain(`The writer was given "Part 1: ${OFFLINE_PREFIX} The worker was given`)
  })

  it.each(['retry', 'routing'])('answers by %s', async (pattern) => {
    expect(await offline(pattern)).toBe(said('sprinter', 'Plan the party'))
  })

  it('routes a long task to those who are thorough', async () => {
    expect(await offline('routing', 'x'.repeat(201))).toContain('The writer was given')
  })

  it('is in time', async () => {
    expect(await offline('timeout')).toContain('The writer was given')
  })

  it('does every task that waits, each once', async () => {
    const scope = scopeOf(team)
    const tasks = [task('first', 'one'), task('retry', 'two')]
    expect(await scope.turn(...tasks)).toEqual({
      answers: [
        { id: 'first one', pattern: 'first', answer: said('sprinter', 'one') },
        { id: 'retry two', pattern: 'retry', answer: said('sprinter', 'two') },
      ],
    })
    expect(await scope.turn(...tasks)).toBeNull()
  })
})

/** Answers by the role that the instructions give. */
function roles(answers: Record<string, (signal: AbortSignal | undefined) => Promise<string>>) {
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt, abortSignal }: LanguageModelV4CallOptions) => {
      const [system] = prompt
      const role = Object.keys(answers).find((name) => system?.role === 'system' && system.content.includes(name)) ?? ''
      const text = await answers[role]?.(abortSignal)
      return answer({ content: [{ type: 'text', text: text ?? `unexpected: ${JSON.stringify(prompt)}` }] })
    },
  })
}

describe('the team and a model', () => {
  it('stops the slower member once the quicker has answered', async () => {
    const stopped: unknown[] = []
    const model = roles({
      'answer at once': async () => 'quick',
      'are an analyst': (signal) =>
        new Promise((_, reject) =>
          signal?.addEventListener('abort', () => {
            stopped.push(signal.reason)
            reject(signal.reason)
          }),
        ),
    })
    const scope = scopeOf(team, { model })
    expect(await scope.turn(task('first'))).toMatchObject({ answers: [{ answer: 'quick' }] })
    expect(stopped).toHaveLength(1)
  })

  it('tries again where it is worth it', async () => {
    let calls = 0
    const model = roles({
      'answer at once': async () => {
        if ((calls += 1) === 1) throw new Error('overloaded')
        return `call ${calls}`
      },
    })
    expect(await scopeOf(team, { model }).turn(task('retry'))).toMatchObject({ answers: [{ answer: 'call 2' }] })
  })

  it('falls back to the quick answer', async () => {
    const model = roles({
      'are an analyst': async () => {
        throw new Error('overloaded')
      },
      'answer at once': async () => 'quick',
    })
    expect(await scopeOf(team, { model }).turn(task('timeout'))).toMatchObject({ answers: [{ answer: 'quick' }] })
  })

  it('has each part of a plan worked on', async () => {
    const parts: string[] = []
    const model = new MockLanguageModelV4({
      doGenerate: async ({ prompt, responseFormat }) => {
        const text = JSON.stringify(prompt)
        if (responseFormat?.type === 'json') return answer({ content: [{ type: 'text', text: '{"parts": ["cake", "music"]}' }] })
        if (text.includes('one part of a larger task')) parts.push(text.includes('cake') ? 'cake' : 'music')
        return answer({ content: [{ type: 'text', text: 'done' }] })
      },
    })
    expect(await scopeOf(team, { model }).turn(task('supervisor'))).toMatchObject({ answers: [{ answer: 'done' }] })
    expect(parts.sort()).toEqual(['cake', 'music'])
  })

  it('fails where a pattern has no way out', async () => {
    const model = roles({
      'are an analyst': async () => {
        throw new Error('overloaded')
      },
    })
    const scope = scopeOf(team, { model })
    await expect(scope.turn(task('sequential'))).rejects.toThrow('overloaded')
    expect(scope.replies).toEqual([])
  })
})

it.each([{ task: ' ' }, { task: 'x'.repeat(4001) }, {}, { task: 'x', pattern: 'swarm' }])('%j is no task', (fields) => {
  expect(schema?.safeParse(event({ type: 'team.task', ...fields })).success).toBe(false)
})
