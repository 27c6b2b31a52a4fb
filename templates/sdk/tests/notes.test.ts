import { MockLanguageModelV4 } from 'ai/test'
import { expect, test } from 'vitest'
import { remember } from '../src/notes.ts'

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
const says = (text: string) => ({
  content: [{ type: 'text' as const, text }],
  finishReason: { unified: 'stop' as const, raw: 'stop' },
  usage,
  warnings: [],
})

test('saves a note by the skill that the model proposes', async () => {
  const proposal = '<SKILL_PROPOSE>{"skill_id": "note.save", "inputs": {"title": "milk"}, "why": "Ada asks"}</SKILL_PROPOSE>'
  const model = new MockLanguageModelV4({ doGenerate: [says(proposal), says('It is saved.')] })
  expect(await remember(model, 'Save a note: milk', ':memory:')).toEqual({ text: 'It is saved.', saved: ['milk'] })
})
