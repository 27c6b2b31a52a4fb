import { holds } from './condition.ts'
import { defineAgent, type AgentDeps } from './define-agent.ts'
import { remember, remembered } from './conversation/memory.ts'
import { streamAnswer } from './conversation/stream-answer.ts'
import { generateText } from 'ai'
import { z } from 'zod'
import type { DecisionContext } from '../core/decision-context.ts'
import { mayDirect } from '../tools/origins/origin-of.ts'
import { jsonValue } from '../base/json.ts'
import type { OfflineRule } from '../models/offline-model.ts'
import { shownName } from '../tools/define-tool.ts'

const PREFIX = 'offline:'

const slot = z.strictObject({ after: z.string().min(1) })
const line = z.strictObject({
  contains: z.string().min(1),
  call: z.string().min(1),
  input: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null(), slot])).default({}),
})

/**
 * Follows the lines of the instructions that are meant for the offline model, such as `offline:
 * {"contains": "Failed password", "call": "http.block", "input": {"address": {"after": "from "}}}`.
 * The first line whose text is in the latest event calls its tool once, and nothing is said;
 * `after` stands for the word after a text. A real model reads such lines as rules.
 */
export const offlineInstructions: OfflineRule = {
  name: 'lines of the instructions that begin with offline:',
  answer({ system, text, last_tool_result }) {
    const lines = system.split('\n').filter((one) => one.startsWith(PREFIX))
    if (lines.length === 0) return null
    const latest = text.split('\n').at(-1) ?? ''
    const fitting = last_tool_result ? undefined : lines.map(parsed).find(({ contains }) => latest.includes(contains))
    if (!fitting) return { text: '' }
    const input = Object.entries(fitting.input).map(([name, value]) => [name, isSlot(value) ? wordAfter(latest, value.after) : value])
    // Models know a tool whose name has a dot under another name.
    return { tool: { name: shownName(fitting.call), input: Object.fromEntries(input) } }
  },
}

const isSlot = (value: unknown): value is z.infer<typeof slot> => typeof value === 'object' && value !== null

function parsed(text: string): z.infer<typeof line> {
  const found = line.safeParse(jsonValue(text.slice(PREFIX.length)))
  if (!found.success)
    throw new Error(`This line of the instructions is not a rule for the offline model: ${text}\n${z.prettifyError(found.error)}`)
  return found.data
}

/** The latest event is JSON, so a word also ends at a quote. */
function wordAfter(text: string, mark: string): string | null {
  const at = text.indexOf(mark)
  return at < 0 ? null : (/^[^\s"\\,]+/.exec(text.slice(at + mark.length))?.[0] ?? null)
}

const named = z.array(z.string())

/** The first list in a text. A pattern would begin again at each bracket. */
function listIn(text: string): string {
  const from = text.indexOf('[')
  return from < 0 ? '' : text.slice(from, text.indexOf(']', from) + 1)
}

/**
 * The tools that the task needs, by the words of trusted senders alone: no text of a stranger has a
 * say. An answer that is not a list names none.
 */
async function neededTools({ events }: DecisionContext, { settings, model, tools, signal }: AgentDeps): Promise<string[]> {
  const words = events.filter((event) => mayDirect(event, settings)).map(({ meta: _meta, ...event }) => JSON.stringify(event))
  if (words.length === 0) return []
  const offered = Object.entries(tools).map(([name, { description }]) => `- ${name}: ${String(description)}`)
  const ask = 'Before you read anything, name the tools that this task needs, as a JSON list of their names. Answer with the list alone.'
  const { text } = await generateText({
    model,
    system: `${settings.instructions}\n\n${ask}\n${offered.join('\n')}`,
    prompt: words.join('\n'),
    abortSignal: signal,
    maxRetries: 0,
  })
  return named.safeParse(jsonValue(listIn(text))).data ?? []
}

/** The most that a prompt shows. A turn takes no more, beside one event that is larger. */
const PROMPT = { events: 50, bytes: 20_000 }

/**
 * The agent that settings alone drive: `instructions`, `when` and `tools`. Without instructions it
 * never calls a model.
 */
export const prompted = defineAgent({
  name: 'prompted',
  scopes: ['*'],
  settings: { turn_limit: PROMPT },
  offline: [offlineInstructions],
  unserved: ({ instructions }) =>
    instructions ? null : 'no agent of this deployment serves the scope, and its settings have no instructions',
  idle: ({ when }) => (when ? 'the condition `when` of its settings does not hold' : null),
  async trigger(context, deps) {
    const { instructions, when } = deps.settings
    if (!instructions) return null
    if (when && !holds(when, context)) return null
    const past = remembered(context.scratch, deps.settings.memory).flatMap(({ prompt, reply }) => [
      { role: 'user' as const, content: prompt },
      { role: 'assistant' as const, content: reply },
    ])
    if (deps.settings.plan_first) deps.needs(await neededTools(context, deps))
    const { events, bytes } = deps.settings.turn_limit ?? PROMPT
    const prompt = context.summarize({ max_events: events, max_chars: bytes })
    const messages = [...past, { role: 'user' as const, content: prompt }]
    const { last: text } = await streamAnswer(deps, { instructions, messages, events: Math.min(context.events.length, events) })
    // A model that spent all its steps on tools has not answered.
    if (text !== '') {
      deps.reply(text)
      remember(context, text, deps.settings)
    }
    return { text }
  },
})
