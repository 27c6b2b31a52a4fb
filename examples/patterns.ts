import { setTimeout as wait } from 'node:timers/promises'
import { generateText } from 'ai'
import type { AgentDeps, AgentTrigger, Event } from 'reflex-agents'

type Team = 'analyst' | 'writer' | 'critic' | 'sprinter' | 'planner' | 'researcher'

/** A call of the scope's model. The scope repeats a failed turn, so the SDK does not. */
async function ask(deps: AgentDeps, role: Team, prompt: string, abortSignal = deps.signal): Promise<string> {
  const { text } = await generateText({ model: deps.model, instructions: `You are the ${role}.`, prompt, abortSignal, maxRetries: 0 })
  return text
}

/** Sequential: each step gets what the one before it gave. */
export const sequential: AgentTrigger<Event> = async (context, deps) => {
  const analysis = await ask(deps, 'analyst', context.summarize())
  const answer = await ask(deps, 'writer', analysis)
  deps.reply(answer)
  return { answer }
}

/** Parallel: several look at the same events at once. */
export const parallel: AgentTrigger<Event> = async (context, deps) => {
  const events = context.summarize()
  const [analysis, risks] = await Promise.all([ask(deps, 'analyst', events), ask(deps, 'critic', events)])
  return { analysis, risks }
}

/** First to complete: the first good answer wins, and the others are stopped. */
export const firstToComplete: AgentTrigger<Event> = async (context, deps) => {
  const others = new AbortController()
  const signal = AbortSignal.any([deps.signal, others.signal])
  try {
    const answers = (['sprinter', 'analyst'] as const).map((role) => ask(deps, role, context.summarize(), signal))
    return { answer: await Promise.any(answers) }
  } finally {
    others.abort()
  }
}

/** Retry with backoff, within the turn. A turn that throws is retried as a whole by the scope. */
export const retry: AgentTrigger<Event> = async (context, deps) => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return { attempt, answer: await ask(deps, 'analyst', context.summarize()) }
    } catch (error) {
      if (attempt === 3 || deps.signal.aborted) throw error
      await wait(100 * 2 ** attempt, undefined, { signal: deps.signal })
    }
  }
}

/** Timeout: a slow answer is stopped, and a quick one takes its place. */
export const timeout: AgentTrigger<Event> = async (context, deps) => {
  const limit = AbortSignal.timeout(10_000)
  try {
    return { answer: await ask(deps, 'analyst', context.summarize(), AbortSignal.any([deps.signal, limit])) }
  } catch (error) {
    if (!limit.aborted) throw error
    return { answer: await ask(deps, 'sprinter', context.summarize()) }
  }
}

/** Conditional routing: plain conditions decide who is asked, or that nobody is. */
export const routing: AgentTrigger<Event> = async (context, deps) => {
  const errors = context.events.filter(({ type }) => type === 'http.request').length
  if (errors === 0) return null
  return { answer: await ask(deps, errors > 10 ? 'critic' : 'writer', context.summarize()) }
}

/** Pipeline: a list of stages. */
export const pipeline: AgentTrigger<Event> = async (context, deps) => {
  let result = context.summarize()
  for (const role of ['analyst', 'critic', 'writer'] as const) result = await ask(deps, role, result)
  return { result }
}

/** Supervisor and workers: one divides the task, others do the parts, one concludes. */
export const supervisor: AgentTrigger<Event> = async (context, deps) => {
  const plan = await ask(deps, 'planner', `Divide into lines, one part each:\n${context.summarize()}`)
  const parts = plan.split('\n').filter((line) => line.trim() !== '')
  const done = await Promise.all(parts.slice(0, 5).map((part) => ask(deps, 'researcher', part)))
  return { answer: await ask(deps, 'writer', done.join('\n')) }
}
