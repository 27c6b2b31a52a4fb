import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { MockLanguageModelV4 } from 'ai/test'
import { expect, test } from 'vitest'
import { withEarlierActs } from '../../../src/agent/earlier-acts.ts'
import type { EarlierAct } from '../../../src/contract/log-entry.ts'

const user = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] })
const tool = (name: string) => ({ type: 'function' as const, name, inputSchema: {} })
const acts: EarlierAct[] = [
  { tool: 'open', input: { of: 'a' }, output: { id: 7 } },
  { said: 'I opened it.' },
  { tool: 'http.assign', input: { id: 7 }, output: null },
  { sent: { type: 'opened', id: 7 } },
  { ran: 'tell', inputs: { who: 'b' }, outputs: { ok: true } },
]

/** The prompt that the model gets. */
async function shownTo(
  given: LanguageModelV4Prompt,
  tools: LanguageModelV4CallOptions['tools'],
  done = acts,
): Promise<LanguageModelV4Prompt> {
  const model = new MockLanguageModelV4({
    doGenerate: { content: [], finishReason: { unified: 'stop', raw: 'stop' }, usage: {} as never, warnings: [] },
  })
  await withEarlierActs(model, done).doGenerate({ prompt: given, ...(tools && { tools }) })
  return model.doGenerateCalls[0]?.prompt ?? []
}

test('acts that were done are calls of the model where it has the tool, and a note beside the events where not', async () => {
  const given: LanguageModelV4Prompt = [{ role: 'system', content: 'Be brief.' }, user('Open a.')]
  const [system, asked, called, returned, ...more] = await shownTo(given, [tool('open'), tool('http_assign')])
  expect(system).toEqual(given[0])
  expect(JSON.stringify(asked)).toContain('Open a.')
  const noted = (asked as { content: { text: string }[] }).content.at(-1)?.text.split('\n').slice(1)
  expect(noted).toEqual([
    '- said "I opened it."',
    '- sent the event {"type":"opened","id":7}',
    '- ran the skill tell with {"who":"b"}, which returned {"ok":true}',
  ])
  expect(called).toMatchObject({ role: 'assistant', content: [{ toolName: 'open' }, { toolName: 'http_assign' }] })
  expect(returned).toMatchObject({ role: 'tool', content: [{ output: { value: { id: 7 } } }, { output: { value: null } }] })
  expect(more).toEqual([])
})

test('a call of the model without tools has no calls in its prompt, and does not end with an answer', async () => {
  const shown = await shownTo([user('Open a.')], undefined)
  expect(shown.map(({ role }) => role)).toEqual(['user'])
  expect(JSON.stringify(shown)).toContain('called open with')
})

test('a later step of a model keeps them where they were, and a prompt without events has them at its end', async () => {
  const step: LanguageModelV4Prompt = [user('Open a.'), { role: 'assistant', content: [{ type: 'text', text: 'I look.' }] }]
  expect((await shownTo(step, [tool('open')])).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  const alone = await shownTo([{ role: 'system', content: 'Be brief.' }], [])
  expect(alone.map(({ role }) => role)).toEqual(['system', 'user'])
})
