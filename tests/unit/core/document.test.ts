import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { tool, ToolLoopAgent } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import {
  builtInEvents,
  DecisionContext,
  eventType,
  eventUnion,
  keywordFilter,
  runAgent,
  runAgentWithLock,
  runAgentWithTimeout,
  ScopedLocks,
  webSocketMessage,
  httpRequest,
  withDefaults,
  type EventOf,
  type EventStore,
  type Filter,
  type ReflexDeps,
  type Trigger,
} from 'reflex-agents/core'
import { SqliteStore } from 'reflex-agents/core/node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'

// The examples of the document on the library, in its order. Only their syntax is another one.

const now = Date.parse('2026-01-05T10:00:00.000Z')
const anEvent = eventUnion(builtInEvents)
type Known = EventOf<typeof anEvent>
const event = (input: Record<string, unknown>): Known => anEvent.parse(withDefaults(input, { now: Date.now(), source: 'test' }))
const says = (content: string): Known => event({ type: 'ws.message', connection_id: 'ann', content })

describe('the event models of the document', () => {
  test.each([
    { type: 'ws.message', connection_id: 'ann', content: 'hello' },
    { type: 'http.request', method: 'POST', path: '/orders', body: { order: 7 } },
    { type: 'file.change', path: 'a.ts', change_type: 'created' },
    { type: 'timer.tick', timer_name: 'daily' },
  ])('fill in what every event has: %j', (own) => {
    const { id, timestamp, meta } = anEvent.parse(withDefaults(own, { now, source: 'test' }))
    expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(timestamp).toBe('2026-01-05T10:00:00.000Z')
    expect(meta).toEqual({ trace_id: expect.stringMatching(/^[0-9a-f]{32}$/), correlation_id: null, causation_id: null })
  })

  test('take the trace id and the time as the document makes them: a UUID of version 4, and UTC without a zone', () => {
    const trace_id = 'a2f1c6de-9b52-4b0c-8a0e-0f6a5d2c7b11'
    const given = { type: 'timer.tick', timer_name: 'daily', timestamp: '2026-01-05T09:30:00', meta: { trace_id } }
    expect(event(given)).toMatchObject({ timestamp: '2026-01-05T09:30:00.000Z', meta: { trace_id: trace_id.replaceAll('-', '') } })
  })

  test('are extended by a type of the user’s own, and the union tells by the type', () => {
    const slackMessage = eventType('slack.message', { channel: z.string(), user: z.string(), text: z.string() })
    const mine = eventUnion([webSocketMessage, httpRequest, slackMessage])
    const given = withDefaults({ type: 'slack.message', channel: 'ops', user: 'ann', text: 'down' }, { now, source: 'slack' })
    expect(mine.parse(given)).toMatchObject({ channel: 'ops', source: 'slack' })
    expect(mine.safeParse({ ...given, text: undefined }).success).toBe(false)
    expect(mine.safeParse({ ...given, type: 'timer.tick' }).success).toBe(false)
  })
})

/** A store in the file `reflex.db` of a folder of its own. */
function openStore(): SqliteStore<Known> {
  const folder = mkdtempSync(path.join(tmpdir(), 'reflex-document-'))
  const store = SqliteStore.open<Known>(path.join(folder, 'reflex.db'), { poll_ms: 60_000, random: () => 0 })
  onTestFinished(() => {
    store.close()
  })
  return store
}

describe('the event store of the document', () => {
  test('has its interface: publish, subscribe by type, ack, nack, replay by time and type', async () => {
    const store: EventStore<Known> = openStore()
    await store.publish(says('one'), event({ type: 'timer.tick', timer_name: 'daily' }))
    for await (const { event: taken, ack_token } of store.subscribe({ types: ['ws.message'] })) {
      expect(taken).toMatchObject({ content: 'one' })
      expect(await store.ack(ack_token)).toBe(true)
      break
    }
    const end = new Date(Date.now() + 1000).toISOString()
    const replayed: string[] = []
    for await (const { type } of store.replay({ start: '2020-01-01T00:00:00Z', end, types: ['ws.message', 'file.change'] }))
      replayed.push(type)
    expect(replayed).toEqual(['ws.message'])
  })

  test('gives an event three attempts, and then leaves it', async () => {
    const clock = { now: Date.now() }
    const store = SqliteStore.open<Known>(':memory:', { poll_ms: 1, now: () => clock.now, random: () => 0 })
    await store.publish(says('broken'))
    const stop = new AbortController()
    const attempts: number[] = []
    for await (const delivery of store.subscribe({ signal: stop.signal })) {
      attempts.push(delivery.attempts)
      await store.nack(delivery.ack_token, 'it is broken')
      clock.now += 60_000
      if (delivery.attempts === 3) setTimeout(() => stop.abort(), 50)
    }
    expect(attempts).toEqual([1, 2, 3])
    store.close()
  })

  test('wakes a subscriber of the same process at once', async () => {
    const store = openStore()
    const taken = (async () => {
      for await (const { event: one } of store.subscribe()) return one
      return null
    })()
    await new Promise((resolve) => setTimeout(resolve, 20))
    await store.publish(says('now')) // the subscriber polls once a minute
    expect(await taken).toMatchObject({ content: 'now' })
  })
})

test('the context of the document: add, window, ofType, scratch, clear', () => {
  const clock = { now }
  const context = new DecisionContext<Known>({ scope: 'main', now: () => clock.now })
  const at = (seconds: number, more: object) => event({ timestamp: new Date(now + seconds * 1000).toISOString(), ...more })
  context.add(at(-90, { type: 'timer.tick', timer_name: 'daily' }))
  context.add(at(-10, { type: 'ws.message', connection_id: 'ann', content: 'hello' }))
  context.scratch['seen'] = 2
  expect(context.window(60).map(({ type }) => type)).toEqual(['ws.message'])
  expect(context.ofType('timer.tick', 'ws.message')).toHaveLength(2)
  expect(context.ofType('ws.message').map(({ content }) => content)).toEqual(['hello'])
  context.clear()
  expect({ events: context.events, scratch: context.scratch, created_at: context.created_at }).toEqual({
    events: [],
    scratch: {},
    created_at: now,
  })
})

test('the keyword filter of the document looks for any of its words in the whole event, in any case', () => {
  const filter: Filter<Known> = keywordFilter(['Error', 'alert'])
  const context = new DecisionContext<Known>({ scope: 'main' })
  expect(['an ERROR', 'Alerts', 'all is well'].map((content) => filter(says(content), context))).toEqual([true, true, false])
})

/** A loop over these events, which ends once all are settled. */
async function runs(
  events: readonly Known[],
  loop: (given: { store: EventStore<Known>; scope: string; signal: AbortSignal }) => Promise<void>,
): Promise<void> {
  const store = openStore()
  const stop = new AbortController()
  await store.publish(...events)
  let left = events.length
  const settled = (yes: boolean): boolean => {
    if (yes && (left -= 1) === 0) stop.abort()
    return yes
  }
  const watched: EventStore<Known> = {
    publish: (...more) => store.publish(...more),
    subscribe: (subscription) => store.subscribe(subscription),
    replay: (span) => store.replay(span),
    ack: async (token) => settled(await store.ack(token)),
    nack: async (token, error) => settled(await store.nack(token, error)),
  }
  await loop({ store: watched, scope: 'default', signal: stop.signal })
}

/** The alert agent of the document: a model, and a tool that sees the context. */
function alertAgent(deps: Pick<ReflexDeps<Known>, 'context'>) {
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }
  const answers = [
    { content: [{ type: 'tool-call' as const, toolCallId: '1', toolName: 'get_event_count', input: '{}' }], reason: 'tool-calls' as const },
    { content: [{ type: 'text' as const, text: 'Restart the shop.' }], reason: 'stop' as const },
  ]
  const model = new MockLanguageModelV4({
    doGenerate: async () => {
      const { content, reason } = answers.shift() ?? { content: [], reason: 'stop' as const }
      return { content, finishReason: { unified: reason, raw: undefined }, usage, warnings: [] }
    },
  })
  const get_event_count = tool({
    description: 'Get the number of events in current context.',
    inputSchema: z.object({}),
    execute: async () => deps.context.events.length,
  })
  const instructions = 'You are an alert agent. Summarize events and recommend actions.'
  return { model, agent: new ToolLoopAgent({ model, instructions, tools: { get_event_count } }) }
}

test('the alert of the document: its agent is asked at the fifth error within a minute, and its tool counts the context', async () => {
  const alerts: string[] = []
  const prompts: string[] = []
  const alertTrigger: Trigger<Known, Pick<ReflexDeps<Known>, 'context' | 'store' | 'scope'>> = async (context, deps) => {
    const errors = context.window(60).filter((one) => JSON.stringify(one).includes('error'))
    if (errors.length < 5) return null
    const { agent, model } = alertAgent(deps)
    const words = errors.slice(0, 10).map((one) => JSON.stringify(one))
    const { text } = await agent.generate({
      prompt: `Summarize these ${errors.length} errors and recommend action: ${words.join('\n')}`,
    })
    prompts.push(...model.doGenerateCalls.map(({ prompt }) => JSON.stringify(prompt)))
    alerts.push(text)
    return text
  }
  const events = ['error 1', 'error 2', 'all is well', 'error 3', 'error 4', 'error 5', 'error 6'].map(says)
  await runs(events, (given) => runAgent({ ...given, deps: {}, filters: [keywordFilter(['error', 'alert'])], trigger: alertTrigger }))
  expect(alerts).toEqual(['Restart the shop.'])
  expect(prompts[0]).toContain('Summarize these 5 errors')
  // The result of the tool: the sixth error came after the context was emptied.
  expect(prompts[1]).toContain('"toolName":"get_event_count","output":{"type":"json","value":5}')
})

test('the loop with a timeout of the document gives back the event whose action takes too long', async () => {
  const nacked: (string | undefined)[] = []
  await runs([says('slow')], ({ store, ...given }) => {
    const watched: EventStore<Known> = { ...store, nack: (token, error) => (nacked.push(error), store.nack(token, error)) }
    return runAgentWithTimeout({ ...given, store: watched, deps: {}, action_timeout_ms: 20, trigger: () => new Promise(() => {}) })
  })
  expect(nacked).toEqual([expect.stringContaining('action timeout')])
})

test('the loops with a lock of the document never act at once for one scope', async () => {
  const locks = new ScopedLocks()
  let acting = 0
  let most = 0
  const trigger = async () => {
    most = Math.max(most, (acting += 1))
    await new Promise((resolve) => setTimeout(resolve, 5))
    acting -= 1
    return { acted: true }
  }
  const events = ['a', 'b', 'c', 'd'].map(says)
  await runs(events, async (given) => {
    const loop = () => runAgentWithLock({ ...given, deps: {}, locks, trigger })
    await Promise.all([loop(), loop()])
  })
  expect(most).toBe(1)
})

test('the dependencies of the document are typed values of the caller, beside what the loop adds', async () => {
  const http = vi.fn<() => Promise<string>>(async () => 'fetched')
  const seen: unknown[] = []
  await runs([says('hello')], (given) =>
    runAgent<Known, { http: typeof http; db: null }>({
      ...given,
      deps: { http, db: null },
      async trigger(_context, { store, http: get, db, scope }) {
        seen.push(await get(), db, scope, typeof store.publish)
        return null
      },
    }),
  )
  expect(seen).toEqual(['fetched', null, 'default', 'function'])
})
