import { generateText, Output } from 'ai'
import { z } from 'zod'
import { eventType } from '../../../src/core/event.ts'
import type { OfflineAnswer, OfflineRequest } from '../../../src/models/offline-model.ts'
import { defineAgent, type AgentDeps } from '../../../src/agent/define-agent.ts'
import { firstToComplete, parallel, sequential, supervised, withFallback, withRetry, withTimeout, type Worker } from './patterns.ts'

const patternName = z.enum(['sequential', 'parallel', 'first', 'supervisor', 'timeout', 'retry', 'routing'])
const teamTask = eventType('team.task', { task: z.string().trim().min(1).max(4000), pattern: patternName.default('sequential') })

const memory = z.object({ done: z.array(z.string()).default([]) })
const MOST_DONE = 100
const MOST_PARTS = 5
const QUICK_MS = 10_000
const LONG_TASK = 200

const roles = {
  analyst: 'You are an analyst. Say what the task is really about, and what matters in it, in at most five sentences.',
  writer: 'You are a writer. Turn what you are given into a short, clear answer.',
  critic: 'You are a critic. Name the three greatest risks in what you are given.',
  sprinter: 'You answer at once, in one sentence.',
  planner: `You supervise a team. Divide the task into two to ${MOST_PARTS} parts that can be worked on independently.`,
  worker: 'You work on one part of a larger task. Do it, and say what came out of it, briefly.',
} as const
type Role = keyof typeof roles

/** Several agents work on one `team.task`; its `pattern` selects how they cooperate. */
export const team = defineAgent({
  name: 'team',
  scopes: ['team/*'],
  events: [teamTask],
  filters: [(event) => event.type === 'team.task'],
  // A turn considers all tasks in the context and works on them in order.
  settings: { context_limit: 5, turn_timeout_ms: 300_000 },
  offline: [{ name: 'team', answer: teamOffline }],

  async trigger(context, deps) {
    const { done } = memory.parse(context.scratch)
    const tasks = context.ofType('team.task').filter(({ id }) => !done.includes(id))
    if (tasks.length === 0) return null
    const answers = []
    for (const { id, task, pattern } of tasks) {
      answers.push({ id, pattern, answer: await patterns(deps)[pattern](task, deps.signal) })
    }
    for (const { answer } of answers) deps.reply(answer)
    context.scratch['done'] = [...done, ...tasks.map(({ id }) => id)].slice(-MOST_DONE)
    return { answers }
  },
})

/** The cooperation patterns; a pipeline is `sequential` with more workers. */
function patterns(deps: AgentDeps): Record<z.infer<typeof patternName>, Worker> {
  const ask = (role: Role) => worker(deps, role)
  const together = parallel(ask('analyst'), ask('critic'))
  const thorough = sequential(ask('analyst'), ask('writer'))
  const quick = ask('sprinter')
  return {
    sequential: thorough,
    parallel: async (task, signal) => {
      const [analysis, risks] = await together(task, signal)
      return `Analysis: ${analysis}\nRisks: ${risks}`
    },
    first: firstToComplete(quick, thorough),
    supervisor: supervised({
      plan: planner(deps),
      work: ask('worker'),
      conclude: (parts, signal) => ask('writer')(parts.map((part, index) => `Part ${index + 1}: ${part}`).join('\n'), signal),
    }),
    timeout: withFallback(withTimeout(QUICK_MS, thorough), quick),
    retry: withRetry({ attempts: 3, base_ms: 500 }, quick),
    routing: (task, signal) => (task.length > LONG_TASK ? thorough : quick)(task, signal),
  }
}

/** The SDK's own retries are off: retrying is the pattern's task. */
const worker =
  (deps: AgentDeps, role: Role): Worker =>
  async (prompt, abortSignal) => {
    const { text } = await generateText({ model: deps.model, instructions: roles[role], prompt, abortSignal, maxRetries: 0 })
    return text
  }

const plan = z.object({ parts: z.array(z.string().min(1)).min(1).max(MOST_PARTS) })

const planner =
  (deps: AgentDeps): Worker<string, string[]> =>
  async (prompt, abortSignal) => {
    const output = Output.object({ schema: plan })
    const result = await generateText({ model: deps.model, instructions: roles.planner, prompt, output, abortSignal, maxRetries: 0 })
    return result.output.parts
  }

const MOST_QUOTED = 80

/** Each member states its role and input, so that the pattern can be seen at work. */
function teamOffline({ system, text }: OfflineRequest): OfflineAnswer | null {
  const role = Object.entries(roles).find(([, instructions]) => instructions === system)?.[0]
  const given = JSON.stringify(text.length > MOST_QUOTED ? `${text.slice(0, MOST_QUOTED)}…` : text)
  if (role === 'planner') return { text: JSON.stringify({ parts: [`what is known about ${given}`, `what is still missing for ${given}`] }) }
  return role === undefined ? null : { text: `The ${role} was given ${given}.` }
}
