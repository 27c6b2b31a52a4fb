import { generateText } from 'ai'
import { z } from 'zod'
import { defineAgent, type Agent, type AgentDeps } from '../../src/agent/define-agent.ts'
import { defineTool } from '../../src/tools/define-tool.ts'
import type { OfflineRule } from '../../src/models/offline-model.ts'
import { eventType } from '../../src/core/event.ts'
import type { DecisionContext } from '../../src/core/decision-context.ts'

export const note = eventType('test.note', { text: z.string() })

type Behaviour = (context: DecisionContext, deps: AgentDeps) => Promise<unknown>

/** The behaviour of a scope's trigger, set by each test for its own scope. */
export const behaviours = new Map<string, Behaviour>()
/** Variables of the deployment for single scopes, from their next waking. */
export const variables = new Map<string, Partial<Cloudflare.Env>>()
/** Every effect that really ran, in order. */
export const effects: { scope: string; text: string; key: string | null; started: number; ended: number }[] = []
/** By scope, or by scope and text. */
export const effectGates = new Map<string, Promise<void>>()

/** The answers of the model's provider, by prompt: an error fails the call. */
export const providers = new Map<string, () => Error | null>()

const input = z.object({ text: z.string() })
const perform = async (
  { text }: { text: string },
  { scope, idempotence_key, signal }: { scope: string; idempotence_key: string | null; signal: AbortSignal },
) => {
  const record = { scope, text, key: idempotence_key, started: performance.now(), ended: 0 }
  effects.push(record)
  if (text === 'lose connection') throw new Error('Network connection lost.')
  if (text === 'throw') throw new Error('the tool failed')
  if (text === 'throw by name') throw new TypeError('the tool failed')
  if (text === 'throw like a name') throw new Error('Timeout: the tool failed')
  if (text === 'busy once' && timesOf(scope, text) === 1) throw Object.assign(new Error('busy'), { retryable: true })
  if (text === 'hang, then throw' && timesOf(scope, text) > 1) throw new Error('the tool failed')
  if (text.startsWith('hang') && (text !== 'hang once' || timesOf(scope, text) === 1))
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
  if (text === 'deaf') await scheduler.wait(300)
  await (effectGates.get(scope) ?? effectGates.get(`${scope} ${text}`))
  await scheduler.wait(5)
  record.ended = performance.now()
  if (text === 'bigint') return { did: text, exact: 1n }
  if (text === 'large') return { did: 'x'.repeat(3_000_000) }
  if (text === 'counted') return { did: text, times: String(timesOf(scope, text)) }
  return text === 'dear' ? { did: text, cost_usd: 2 } : { did: text }
}
/** The number of calls of the tool that only reads, by scope. */
export const looks = new Map<string, number>()
const timesOf = (scope: string, text: string): number => effects.filter((effect) => effect.scope === scope && effect.text === text).length

/** Serves `test/*`: notes with «noise» are filtered out, «bad filter» breaks the filter. */
/** A bound that seventy decisions prove. */
const SOON = { learning: { min_agreement: 0.95 } } as const

export const testAgent: Agent = defineAgent({
  name: 'test-agent',
  scopes: ['test/*'],
  events: [note],
  filters: [
    (event) => {
      if (event.type === 'test.note' && event.text.includes('bad filter')) throw new Error('the filter broke')
      return event.type !== 'test.note' || !event.text.includes('noise')
    },
  ],
  trigger: (context, deps) => (behaviours.get(deps.scope) ?? (async () => null))(context as never, deps as never) as Promise<null>,
  tools: {
    act: defineTool({ description: 'does it', input, execute: perform }),
    act_once: defineTool({ description: 'does it once', input, idempotence_key: ({ text }) => `once:${text}`, execute: perform }),
    act_global: defineTool({ description: 'does it once', input, idempotence_key: ({ text }) => `global:${text}`, execute: perform }),
    undo_global: defineTool({ description: 'undoes it', input, undoes: { tool: 'act_global', match: ['text'] }, execute: perform }),
    act_deaf: defineTool({ description: 'does not listen', input, timeout_ms: 50, execute: perform }),
    act_quickly: defineTool({ description: 'does it within 50 ms', input, timeout_ms: 50, execute: perform }),
  },
  settings: { ...SOON, turn_timeout_ms: 5000 },
  offline: [
    {
      name: 'by the prompt',
      answer({ text, tools, last_tool_result }) {
        const failure = providers.get(text)?.()
        if (failure) throw failure
        if (text === 'fail') throw new Error('the model is down')
        if (text === 'call a tool') return { tool: { name: 'act', input: { text: 'secret plan' } } }
        if (text.startsWith('Extract one value')) return { text: JSON.stringify({ what: /\bsaid (\w+)/.exec(text)?.[1] ?? null }) }
        if (last_tool_result?.tool === 'propose_skill') return { text: `it was done: ${JSON.stringify(last_tool_result.output)}` }
        if (text.includes('<SKILL_RESULT>')) return { text: 'it was done' }
        const [verb, skill_id] = text.split(' ')
        if (verb === 'propose' && tools.includes('propose_skill')) return { tool: { name: 'propose_skill', input: proposed(skill_id) } }
        if (verb === 'propose') return { text: proposal(proposed(skill_id)) }
        return { text: `you said ${text}` }
      },
    },
  ],
})

/** Like the agent of `test/*`, with a tool that only reads. */
export const lookingAgent: Agent = defineAgent({
  ...testAgent,
  name: 'looker',
  trigger: (context, deps) => (behaviours.get(deps.scope) ?? (async () => null))(context as never, deps as never) as Promise<null>,
  scopes: ['look/*'],
  tools: {
    ...testAgent.tools,
    look: defineTool({
      description: 'counts how often it was done',
      input,
      repeatable: true,
      execute: async ({ text }, { scope }) => {
        looks.set(scope, (looks.get(scope) ?? 0) + 1)
        if (text === 'gone' || (text === 'gone once' && looks.get(scope) === 1)) throw new Error('look: 404 Not Found')
        if (text === 'down') throw new Error('look: 503 Service Unavailable')
        return { times: timesOf(scope, text) }
      },
    }),
  },
})

const proposed = (skill_id: string | undefined) => ({ skill_id, why: 'as instructed', inputs: { what: 'm' } })
const proposal = (content: object): string => `I will. <SKILL_PROPOSE>${JSON.stringify(content)}</SKILL_PROPOSE>`

/** Acts like the model of the README's greeter: opens the door once per turn, then says so. */
export const doorkeeper: OfflineRule = {
  name: 'doorkeeper',
  answer: ({ last_tool_result }) =>
    last_tool_result ? { text: 'The front door is open.' } : { tool: { name: 'open_door', input: { door: 'front' } } },
}

/** Its tool has no key of its own, and can be undone. */
export const undoingAgent: Agent = defineAgent({
  name: 'undoer',
  scopes: ['plain/*'],
  events: [note],
  tools: {
    act: defineTool({ description: 'does it', input, execute: perform }),
    act_plain: defineTool({ description: 'does it', input, execute: perform }),
    undo_plain: defineTool({ description: 'undoes it', input, undoes: { tool: 'act_plain', match: ['text'] }, execute: perform }),
  },
  settings: { ...SOON, turn_timeout_ms: 5000 },
})

export const perceivingAgent: Agent = defineAgent({ name: 'perceiver', scopes: ['perceive/*'] })

/** Has all tools that a scope can give to its agent. */
export const writingAgent: Agent = defineAgent({
  name: 'writer',
  scopes: ['writer/*'],
  events: [note],
  settings: SOON,
  writes_reflexes: true,
  trigger: (context, deps) => (behaviours.get(deps.scope) ?? (async () => null))(context as never, deps as never) as Promise<null>,
})

/** Brings its chain along: no operator sets one. */
export const chainedAgent: Agent = defineAgent({
  name: 'chained',
  scopes: ['chained/*'],
  trigger: async () => null,
  settings: { reflexes: [{ id: 'brought-along' }] },
})

export const ask = async (deps: AgentDeps, prompt: string): Promise<string> =>
  (await generateText({ model: deps.model, prompt, abortSignal: deps.signal, maxRetries: 0 })).text

/** The scripted model of agents outside: one call for a city, then its weather in words. */
const forecaster: OfflineRule = {
  name: 'the weather of a city',
  verbatim: true,
  answer({ text, tools, last_tool_result }) {
    if (text.includes('break down')) throw new Error('the script broke down')
    if (last_tool_result) return { text: `Now: ${said(last_tool_result.output)}` }
    const [, city] = /weather in (\w+)/.exec(text) ?? []
    if (city !== undefined && tools.includes('get_weather')) return { tool: { name: 'get_weather', input: { city } } }
    const [, to] = /write to (\S+)/.exec(text) ?? []
    if (to !== undefined) return { text: 'I write.', tool: { name: 'send_mail', input: { to, subject: 'hello' } } }
    if (text.includes('as JSON')) return { text: '{"city":"Bern"}' }
    return { text: `You said: ${text}` }
  },
}
const said = (output: unknown): string => (typeof output === 'string' ? output : JSON.stringify(output))

/** It starts no turns: requests to its model are answered all the same. */
export const answeringAgent: Agent = defineAgent({
  name: 'answering',
  scopes: ['answered/*', 'user/*'],
  offline: [forecaster],
  settings: SOON,
})
