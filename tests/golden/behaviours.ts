import { generateText } from 'ai'
import { withDefaults, type Event } from '../../src/core/event.ts'
import { ask, type behaviours } from '../support/test-agents.ts'

export type Behaviour = Parameters<(typeof behaviours)['set']>[1]

const slow: Behaviour = async (context, deps) => ({ did: await deps.call('act', { text: 'slow' }), events: context.events.length })
const types: Behaviour = async (context) => ({ types: context.countByType() })
/** The event holds the id of the skill that the model proposes. */
const proposing: Behaviour = async (context, deps) => {
  const [event] = context.events as (Event & { text: string })[]
  return { said: await ask(deps, `propose ${event?.text} to do it twice`) }
}

/** The triggers of golden traces: a replay runs them again. Other traces have an idle one. */
const triggers: Record<string, Behaviour> = {
  'turn-result': async (context, deps) => {
    deps.reply(`${context.events.length} notes`)
    context.scratch['last'] = deps.now()
    return { events: context.countByType(), attempt: deps.attempt, age: deps.now() - context.created_at }
  },
  'turn-failed': async () => {
    throw new Error('the trigger broke')
  },
  'turn-tools': async (_context, deps) => ({
    one: await deps.call('act', { text: 'one' }),
    once: await deps.call('act_once', { text: 'two' }),
    done: deps.done('act_once', { text: 'two' }),
  }),
  'turn-tool-failed': async (_context, deps) => ({ failed: await deps.call('act', { text: 'throw' }).catch(String) }),
  'turn-model': async (_context, deps) => ({ said: await ask(deps, 'what do you say?') }),
  'turn-model-tools': async (_context, deps) => {
    const { text } = await generateText({ model: deps.model, prompt: 'call a tool', tools: deps.tools, maxRetries: 0 })
    return { text }
  },
  'turn-model-failed': async (_context, deps) => ({ said: await ask(deps, 'fail').catch(() => 'nothing') }),
  'turn-emitted': async (context, deps) => {
    if (context.events.some(({ source }) => source === 'agent')) return null
    const event = withDefaults({ type: 'test.note', text: 'a child' }, { now: deps.now(), source: 'agent', scope: deps.scope })
    await deps.store.publish(event as Event)
    return { published: 1 }
  },
  'turn-redacted': async (context, deps) => ask(deps, `Extract one value: ${JSON.stringify(context.events)} said all`),
  'turn-mcp': async (_context, deps) => ({ saw: await deps.call('mcp.sky.look', { at: 'the moon' }) }),
  'turn-skill': proposing,
  'turn-skill-tools': proposing,
  'turn-skill-refused': proposing,
  'overlap-dropped': slow,
  'overlap-queued': slow,
  'overlap-interrupted': slow,
  'overlap-debounced': slow,
  timer: types,
  'timer-missed': types,
}

export const triggerOf = (name: string): Behaviour => triggers[name] ?? (async () => null)
