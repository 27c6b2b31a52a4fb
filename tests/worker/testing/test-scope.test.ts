import { generateText, isStepCount } from 'ai'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { all, defineAgent, defineTool, eventType, typeFilter } from 'reflex-agents'
import { missingExports, testScope } from 'reflex-agents/testing'
import * as deployment from '../../../src/index.ts'

const { default: guide }: { default: string } = await import('../../../docs/testing.md?raw')
const { default: example }: { default: string } = await import('./guide.test.ts?raw')
const { default: setUp }: { default: string } = await import('./set-up.test.ts?raw')

const bell = eventType('door.bell', { who: z.string() })
let opened: string[] = []

const doorman = defineAgent({
  name: 'tested-doorman',
  scopes: ['doors/*'],
  events: [bell],
  filters: [all(typeFilter('door.bell'), ({ who }) => who !== 'the wind')],
  tools: {
    open: defineTool({
      description: 'Opens the door',
      input: z.object({ who: z.string() }),
      idempotence_key: ({ who }) => who,
      execute: async ({ who }, { env }) => {
        opened.push(who)
        return { opened: who, at: env.HOUSE ?? null }
      },
    }),
  },
  async trigger(context, deps) {
    const { text } = await generateText({
      model: deps.model,
      prompt: context.summarize(),
      tools: deps.tools,
      stopWhen: isStepCount(4),
      maxRetries: 0,
    })
    deps.reply(text)
    return { text }
  },
})

declare module 'reflex-agents' {
  interface Env {
    HOUSE?: string
  }
}

const ring = (who: string) => ({ type: 'door.bell', who })

test('a scope decides by the script of its model, calls tools with its variables, and replies', async () => {
  const scope = await testScope(doorman, { model: [{ tool: 'open', input: { who: 'Ada' } }, 'Come in, Ada.'], env: { HOUSE: '7' } })
  expect(await scope.send(ring('Ada'))).toMatchObject({ status: 'completed', outcome: { by: 'turn', result: { text: 'Come in, Ada.' } } })
  expect(await scope.calls()).toMatchObject([{ tool: 'open', input: { who: 'Ada' }, status: 'ok', output: { opened: 'Ada', at: '7' } }])
  expect(await scope.replies()).toEqual(['Come in, Ada.'])
  expect(scope.model.requests[0]?.text).toContain('Ada')
  expect(scope.model.left).toBe(0)
})

test('an event that no filter passes is ignored, and asks no model', async () => {
  const scope = await testScope(doorman)
  expect(await scope.send(ring('the wind'))).toMatchObject({ status: 'ignored', outcome: { by: 'filter' } })
  expect(scope.model.requests).toEqual([])
})

test('an event that does not fit its type is refused with the reason', async () => {
  const scope = await testScope(doorman)
  await expect(scope.post({ type: 'door.bell' })).rejects.toThrow(/the event is invalid: who: /)
  await expect(scope.post({ type: 'door.knock' })).rejects.toThrow('unknown type "door.knock"')
})

test('a setting that does not exist is refused with its name', async () => {
  const misspelt: object = { retention_day: 3 }
  await expect(testScope(doorman, { settings: misspelt })).rejects.toThrow(/the settings are invalid: .*retention_day/)
})

test('a killed scope continues: the event gets its outcome, and the tool ran once', async () => {
  opened = []
  let killed = false
  const porter = defineAgent({
    ...doorman,
    name: 'tested-porter',
    async trigger(_, deps) {
      await deps.call('open', { who: 'Bob' })
      if (!killed) await new Promise(() => {})
      return { opened: 'Bob' }
    },
  })
  const scope = await testScope(porter)
  const id = await scope.post(ring('Bob'))
  await vi.waitFor(async () => expect(await scope.calls()).toHaveLength(1), { timeout: 20_000 })
  killed = true
  await scope.kill()
  expect(await scope.outcome(id)).toMatchObject({ status: 'completed', outcome: { by: 'turn', result: { opened: 'Bob' } } })
  expect(opened).toEqual(['Bob'])
  expect(await scope.calls()).toMatchObject([{ status: 'ok' }, { status: 'reused' }])
})

test('a model that fails is asked again when the clock has moved on', async () => {
  const scope = await testScope(doorman, {
    model: [new Error('the model broke'), 'Who is it?'],
    settings: { retry: { backoff_ms: 3_600_000, max_backoff_ms: 3_600_000 } },
  })
  const id = await scope.post(ring('Cy'))
  const before = Date.now()
  await scope.advance(2 * 3_600_000)
  expect(Date.now() - before).toBeGreaterThanOrEqual(2 * 3_600_000)
  expect(await scope.outcome(id)).toMatchObject({ status: 'completed', attempts: 2 })
  expect(await scope.log('event-retried')).toHaveLength(1)
})

test('a model without an answer left fails the turn, which says so', async () => {
  const scope = await testScope(doorman, { settings: { retry: { max_attempts: 1 } } })
  const ended = await scope.send(ring('Dee'))
  expect(ended).toMatchObject({ status: 'dead_lettered', error: expect.stringContaining('no scripted answer left') })
})

test('the guide shows the example as it is', () => {
  for (const one of [example, setUp]) {
    const shown = one.replace('../../support/guide/greeter.ts', '../src/agents/greeter.ts')
    expect(guide).toContain(`\`\`\`ts\n${shown}\`\`\``)
  }
})

test('a scope of a list is served by the agent whose pattern matches, as in the deployment', async () => {
  const janitor = defineAgent({
    name: 'tested-janitor',
    scopes: ['cellar/*'],
    events: [bell],
    async trigger(_, deps) {
      deps.reply('Nobody enters.')
      return null
    },
  })
  const scope = await testScope([doorman, janitor], { scope: 'cellar/1' })
  await scope.send(ring('Ada'))
  expect(await scope.replies()).toEqual(['Nobody enters.'])
  await expect(testScope([doorman, janitor])).rejects.toThrow('needs the name of a scope')
  expect(deployment.Scope.agents.map(({ name }) => name)).toContain('ssh-guard')
})

test('a module shows what it lacks of what wrangler.toml binds', () => {
  expect(missingExports(deployment)).toEqual([])
  const { Ledger: _, ...others } = deployment
  expect(missingExports({ ...others, default: { fetch: () => null } })).toEqual(['Ledger', 'default.queue', 'default.scheduled'])
})

test('shows the model of the built-in agent each event of a burst, in turns that its prompt can show', async () => {
  const settings = { agent: 'prompted', instructions: 'Say done.' }
  const scope = await testScope([doorman], { scope: 'burst/1', settings, model: [() => 'Done.'] })
  const texts = Array.from({ length: 120 }, (_, index) => `${index}: ${'x'.repeat(index % 2 === 0 ? 100 : 900)}`)
  await Promise.all(texts.map((content) => scope.send({ type: 'ws.message', connection_id: 'ada', content })))
  const prompts = scope.model.requests.map(({ text }) => text)
  expect(texts.filter((text) => !prompts.some((prompt) => prompt.includes(text)))).toEqual([])
  expect(prompts.length).toBeLessThan(30)
})
