import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { buildRegistry } from '../../../src/agent/registry.ts'
import { chat } from '../../../examples/agents/chat/agent.ts'
import { defineAgent } from '../../../src/agent/define-agent.ts'
import { deploy } from '../../../examples/agents/deploy/agent.ts'
import { prompted } from '../../../src/agent/prompted.ts'
import { sshGuard } from '../../../examples/agents/ssh-guard/agent.ts'
import { team } from '../../../examples/agents/team/agent.ts'
import { eventType } from '../../../src/core/event.ts'
import { all, any, not, typeFilter } from '../../../src/core/decision-context.ts'
import { event } from '../agents/agent-fixtures.ts'

// The test does not use src/index.ts, which a deployment changes as it likes.
const { agents, agentOf, eventSchema, eventTypes } = buildRegistry([sshGuard, chat, team, deploy, prompted])

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

it('a scope may name another agent; an unknown name is ignored', () => {
  expect(agentOf('default', 'chat').name).toBe('chat')
  expect(agentOf('ssh/web-1', 'prompted').name).toBe('prompted')
  expect(agentOf('ssh/web-1', 'nobody').name).toBe('ssh-guard')
})

it('the catch-all comes last', () => {
  expect(agents.at(-1)?.scopes).toEqual(['*'])
})

it('every agent’s event types are known', () => {
  const builtIn = ['ws.message', 'http.request', 'file.change', 'timer.tick', 'decision.asked', 'approval.ended', 'model.asked']
  expect(eventTypes).toEqual([...builtIn, 'log.line', 'team.task'])
  expect(eventSchema.safeParse(event({ type: 'log.line', host: 'web-1', line: 'hello' })).success).toBe(true)
  expect(eventSchema.safeParse(event({ type: 'log.line', host: 'web-1' })).success).toBe(false)
})

const ping = eventType('ping', { count: z.int() })

describe('the built-in agent', () => {
  const own = defineAgent({ name: 'own', scopes: ['own/*'] })

  it('serves what no other does even if it is not listed, and can be named then', () => {
    const registry = buildRegistry([own])
    expect(registry.agents.map(({ name }) => name)).toEqual(['own', 'prompted'])
    expect(registry.agentOf('misc').name).toBe('prompted')
    expect(registry.agentOf('own/1', 'prompted').name).toBe('prompted')
  })

  it('leaves their scopes to agents that are listed behind it', () => {
    expect(buildRegistry([prompted, own]).agentOf('own/1').name).toBe('own')
  })
})

describe('agents that cannot stand beside each other are refused with a message that says what to do', () => {
  it('two of one name', () => {
    const [first, second] = ['a/*', 'b/*'].map((pattern) => defineAgent({ name: 'twin', scopes: [pattern] }))
    if (!first || !second) throw new Error('there are two')
    expect(() => buildRegistry([first, chat, second])).toThrow(
      'Two agents are called "twin": one serves a/*, the other b/*. Give one of them another name.',
    )
    expect(() => buildRegistry([defineAgent({ name: 'prompted', scopes: ['a/*'] })])).toThrow('It is the name of the built-in agent.')
  })

  it('two schemas for one event type; the same schema in two agents is shared', () => {
    const [one, two] = [ping, ping].map((schema, index) => defineAgent({ name: `agent-${index}`, scopes: ['x'], events: [schema] }))
    const other = defineAgent({ name: 'other', scopes: ['x'], events: [eventType('ping', { text: z.string() })] })
    if (!one || !two) throw new Error('there are two')
    expect(buildRegistry([one, two]).eventTypes.filter((type) => type === 'ping')).toEqual(['ping'])
    expect(() => buildRegistry([one, other])).toThrow('Event type ping is in `events` of two agents, "agent-0" and "other"')
  })

  it('an event type that is built in', () => {
    const agent = defineAgent({ name: 'own', scopes: ['x'], events: [eventType('timer.tick', { text: z.string() })] })
    expect(() => buildRegistry([agent])).toThrow('Agent "own" defines the event type timer.tick, which is built in.')
  })

  it.each([
    ['alone', typeFilter('pnig')],
    ['behind others', all(typeFilter('ping'), any(not(typeFilter('ws.message', 'pnig'))))],
  ])('a type filter with a typing error, %s', (_, filter) => {
    const agent = defineAgent({ name: 'own', scopes: ['x'], events: [ping], filters: [filter] })
    expect(() => buildRegistry([agent])).toThrow(/^Agent "own" has a typeFilter for the event type pnig.* There are: ws\.message, .*ping\./)
  })
})

it('behind a type filter, a filter knows the fields of that type', () => {
  const agent = defineAgent({
    name: 'own',
    scopes: ['x'],
    events: [ping],
    filters: [all(typeFilter('ping'), (given) => given.count > 1)],
  })
  const verdicts = [1, 2].map((count) => agent.filters[0]?.(event({ type: 'ping', count }), {} as never))
  expect(verdicts).toEqual([false, true])
})
