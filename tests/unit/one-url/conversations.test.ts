import { describe, expect, test } from 'vitest'
import { anthropicMessages } from '../../../src/features/one-url/http/anthropic-messages.ts'
import { factsOf, newestResults } from '../../../src/features/one-url/http/facts.ts'

const MANY = 30_000
const asked = { role: 'user', content: 'begin' }
const uses = (ids: readonly string[]) => ({
  role: 'assistant',
  content: ids.map((id) => ({ type: 'tool_use', id, name: `of_${id}`, input: { id } })),
})
const results = (ids: readonly string[]) => ({
  role: 'user',
  content: ids.map((tool_use_id) => ({ type: 'tool_result', tool_use_id, content: '1' })),
})
const read = (...messages: object[]) => {
  const { parse, body } = anthropicMessages
  return parse(body.parse({ model: 'm', max_tokens: 1, messages: [asked, ...messages] })).request
}

describe('a conversation', () => {
  test('with many calls and many results is read in good time', { tags: ['timed'] }, () => {
    const ids = Array.from({ length: MANY }, (_, index) => String(index))
    const started = performance.now()
    const request = read(uses(ids), results(ids.map(() => String(MANY - 1))))
    expect(newestResults(request)).toHaveLength(MANY)
    expect(factsOf(request).called[0]).toBe(`of_${MANY - 1}`)
    expect(performance.now() - started).toBeLessThan(3000)
  })

  test('takes as many parts of the assistant as its size allows, in one message or in several', () => {
    const parts = Array.from({ length: 200_000 }, () => ({ type: 'text' }))
    const { prompt } = read({ role: 'assistant', content: 'first' }, { role: 'assistant', content: parts })
    expect(prompt.map(({ role, content }) => [role, content.length])).toEqual([
      ['user', 1],
      ['assistant', 200_001],
    ])
  })

  test('has for each result the newest call with its id, and of one message the first', () => {
    const again = { role: 'assistant', content: ['x', 'y'].map((name) => ({ type: 'tool_use', id: 'a', name, input: { name } })) }
    const request = read(uses(['a', 'b']), results(['a', 'b']), again, results(['a', 'b']))
    expect(newestResults(request).map(({ tool, input }) => [tool, input])).toEqual([
      ['x', { name: 'x' }],
      ['of_b', { id: 'b' }],
    ])
    expect(() => read(results(['c']))).toThrow('the result of the call c follows no message with that call')
  })
})
