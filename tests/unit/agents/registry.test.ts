import { expect, it } from 'vitest'
import { agents } from '../../../src/agents/index.ts'
import { agentOf, eventSchema, eventTypes } from '../../../src/agents/registry.ts'
import { event } from './agent-fixtures.ts'

it.each([
  ['ssh/web-1', 'ssh-guard'],
  ['chat/lobby', 'chat'],
  ['team/red', 'team'],
  ['default', 'prompted'],
  ['ssh', 'prompted'],
  ['my/ssh/web-1', 'prompted'],
])('%s is served by %s', (scope, name) => {
  expect(agentOf(scope).name).toBe(name)
})

it('a scope may name another agent; one that there is not is as good as none', () => {
  expect(agentOf('default', 'chat').name).toBe('chat')
  expect(agentOf('ssh/web-1', 'prompted').name).toBe('prompted')
  expect(agentOf('ssh/web-1', 'nobody').name).toBe('ssh-guard')
})

it('the catch-all comes last', () => {
  expect(agents.at(-1)?.scopes).toEqual(['*'])
})

it('every agent’s event types are known', () => {
  expect(eventTypes).toEqual(['ws.message', 'http.request', 'file.change', 'timer.tick', 'log.line', 'team.task'])
  expect(eventSchema.safeParse(event({ type: 'log.line', host: 'web-1', line: 'hello' })).success).toBe(true)
  expect(eventSchema.safeParse(event({ type: 'log.line', host: 'web-1' })).success).toBe(false)
})
