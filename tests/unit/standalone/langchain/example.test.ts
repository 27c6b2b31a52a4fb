import { readFileSync } from 'node:fs'
import path from 'node:path'
import { HumanMessage } from '@langchain/core/messages'
import { afterEach, expect, test } from 'vitest'
import { noteAgent, noteChain, saved } from '../../../../examples/langchain/notes.ts'
import { proposal } from '../fixtures.ts'
import { ScriptedChatModel } from './scripted.ts'

const read = (file: string) => readFileSync(path.join(import.meta.dirname, '../../../..', file), 'utf8')

afterEach(() => void saved.splice(0))

test('the guide shows the example as it is', () => {
  expect(read('docs/langchain.md')).toContain(`\`\`\`ts\n${read('examples/langchain/notes.ts')}\`\`\``)
})

test("the example's chain saves a note once and continues with the result", async () => {
  const model = new ScriptedChatModel([proposal('milk'), 'It is saved.'])
  expect(await noteChain(model).invoke({ title: 'milk' })).toBe('It is saved.')
  expect(saved).toEqual(['milk'])
})

test("the example's agent saves a note once and continues with the result", async () => {
  const model = new ScriptedChatModel([proposal('milk'), 'It is saved.'])
  const { messages } = await noteAgent(model).invoke({ messages: [new HumanMessage('Save a note: milk')] })
  expect(messages.map(({ text }) => text)).toEqual(['Save a note: milk', 'It is saved.'])
  expect(saved).toEqual(['milk'])
})
