import { describe, expect, it } from 'vitest'
import { chatOffline } from '../../../../examples/agents/chat/offline.ts'
import { knownOf, reflexNote, REFLEXES } from '../../../../examples/agents/chat/reflexes.ts'
import type { AgentDeps } from '../../../../src/agent/define-agent.ts'
import type { OfflineRequest } from '../../../../src/models/offline-model.ts'
import { defaultSettings } from '../../../../src/contract/settings/settings.ts'
import { part } from '../agent-fixtures.ts'

const known = { prefix: 'chat-12345678-', chain: [{ id: 'greet', cooldown_s: 5 }] }
const asked = (...questions: string[]): OfflineRequest => ({
  system: `You talk.\n${REFLEXES} ${JSON.stringify(known)}`,
  text: questions.at(-1) ?? '',
  tools: ['test_reflex', 'write_reflex', 'update_agent_config'],
  messages: questions.map((text) => ({ role: 'user', content: [{ type: 'text', text }] })),
})
const after = (tool: string, output: unknown): OfflineRequest => ({ ...asked('Why?', 'Why?'), last_tool_result: { tool, output } })
const nameOf = (request: OfflineRequest) => chatOffline(request).tool?.name ?? 'answers'

describe('the chat, offline, and its reflexes', () => {
  it.each([
    ['a question for the first time', asked('Who?', 'Why?'), 'answers'],
    ['the same again', asked('Who?', 'Why?', 'Who?'), 'test_reflex'],
    ['the same, written otherwise', asked('Who are  you?', ' who ARE you?'), 'test_reflex'],
    ['the same, but long', asked('x'.repeat(301), 'x'.repeat(301)), 'answers'],
    ['the same where no reflexes may be written', { ...asked('Why?', 'Why?'), system: 'You talk.' }, 'answers'],
    ['a test that went well', after('test_reflex', { ok: true, runs: [] }), 'write_reflex'],
    ['a test that did not', after('test_reflex', { ok: false, errors: [] }), 'answers'],
    ['a reflex that was written', after('write_reflex', { written: true }), 'update_agent_config'],
    ['a reflex that was refused', after('write_reflex', { written: false, reason: 'no' }), 'answers'],
    ['a chain that was set', after('update_agent_config', { changed: true }), 'answers'],
  ])('%s: %s', (_, request, expected) => {
    expect(nameOf(request)).toBe(expected)
  })

  it('keeps the chain that is there, and names its reflex by scope and question', () => {
    expect(chatOffline(after('write_reflex', { written: true })).tool?.input).toEqual({
      reflexes: [...known.chain, { id: expect.stringMatching(/^chat-12345678-[0-9a-f]{8}$/) }],
    })
  })

  it('answers the same question by the same words', () => {
    expect(chatOffline(asked('Who?', 'Why?')).text).toBe(chatOffline(asked('  Why? ')).text)
  })
})

describe('the facts in the prompt of the chat', () => {
  const deps = (tools: object) => part<AgentDeps>({ tools, scope: 'chat/me', settings: { ...defaultSettings, reflexes: known.chain } })

  it('names the chain, and a prefix that is the scope’s own', () => {
    expect(knownOf(reflexNote(deps({ write_reflex: {} })))).toEqual({
      prefix: expect.stringMatching(/^chat-[0-9a-f]{8}-$/),
      chain: known.chain,
    })
  })

  it('is nothing where it may not write any', () => {
    expect(reflexNote(deps({}))).toBe('')
  })
})
