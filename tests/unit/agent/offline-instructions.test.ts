import { describe, expect, it } from 'vitest'
import { offlineInstructions } from '../../../src/agent/prompted.ts'
import type { OfflineRequest } from '../../../src/models/offline-model.ts'

const rule = { contains: 'Failed password', call: 'http.block', input: { address: { after: ' from ' }, days: 1 } }
const request = (line: string, more: Partial<OfflineRequest> = {}): OfflineRequest => ({
  system: `Watch the log.\noffline: ${JSON.stringify(rule)}`,
  text: `1 events in scope ssh/a\n${JSON.stringify({ type: 'log.line', line })}`,
  messages: [],
  tools: ['http_block'],
  ...more,
})

describe('a line of the instructions for the offline model', () => {
  it('calls its tool if its text is in the latest event, with the word after a mark', () =>
    expect(offlineInstructions.answer(request('Failed password for root from 192.0.2.1 port 22'))).toEqual({
      tool: { name: 'http_block', input: { address: '192.0.2.1', days: 1 } },
    }))

  it.each([
    ['where its text is not in the latest event', request('Accepted publickey for alice')],
    ['after its tool was called', request('Failed password from 192.0.2.1', { last_tool_result: { tool: 'http_block', output: {} } })],
  ])('says and does nothing %s', (_, asked) => expect(offlineInstructions.answer(asked)).toEqual({ text: '' }))

  it('gives null for a word that is not there', () =>
    expect(offlineInstructions.answer(request('Failed password'))).toMatchObject({ tool: { input: { address: null } } }))

  it('leaves instructions without such a line to other rules', () =>
    expect(offlineInstructions.answer(request('Failed password', { system: 'Watch the log.' }))).toBeNull())

  it.each(['offline: block it', 'offline: {"contains": "x"}', 'offline: {"contains": "", "call": "http.block"}'])(
    'is quoted in the error if it is wrong: %s',
    (line) => expect(() => offlineInstructions.answer(request('x', { system: line }))).toThrow(line),
  )
})
