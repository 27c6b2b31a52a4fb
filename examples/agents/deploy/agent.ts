import { generateText, isStepCount, type ModelMessage } from 'ai'
import { z } from 'zod'
import { defineAgent } from '../../../src/agent/define-agent.ts'

type Window = 'open' | 'closed'

/** Hours in UTC, and days from Sunday (0) to Saturday (6). Unlisted environments are closed. */
const windows: Readonly<Record<string, { days: readonly number[]; from: number; to: number }>> = {
  staging: { days: [0, 1, 2, 3, 4, 5, 6], from: 0, to: 24 },
  production: { days: [1, 2, 3, 4], from: 8, to: 16 },
}

/** True if deployments to the environment are allowed at that time. */
export function deployWindow(environment: unknown, now: Date): Window {
  const window = typeof environment === 'string' && Object.hasOwn(windows, environment) ? windows[environment] : undefined
  if (!window) return 'closed'
  const hour = now.getUTCHours()
  return window.days.includes(now.getUTCDay()) && hour >= window.from && hour < window.to ? 'open' : 'closed'
}

/** `REGISTRY/REPOSITORY:TAG` or `…@sha256:DIGEST`: the last part identifies the version. */
const PINNED = /(?::(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$/

/** An image whose tag can move is a high risk: it cannot be rolled back. */
export function riskScan(args: unknown): 'high' | 'low' {
  const image = typeof args === 'object' && args !== null && 'image_tag' in args ? args.image_tag : null
  const name = typeof image === 'string' ? (image.split('/').at(-1) ?? '') : ''
  return PINNED.test(name) ? 'low' : 'high'
}

/** The history is written to the log on every turn, so it is short. */
const MOST_MESSAGES = 20
const MOST_CHARS = 600
/** Model calls of one turn, for agents whose tools are not only for plans. */
const MOST_STEPS = 10

const instructions = `You deploy software for a team, by the listed skills and by nothing else. Take one step at a time: propose a skill, and wait for its result.
Where a skill needs information that you do not have, ask. When you have built an image, name it in your answer. Say at the end, in one or two sentences, what was done and where it runs.`

const said = z.object({ role: z.enum(['user', 'assistant']), content: z.string() })
const memory = z.object({ history: z.array(said).default([]) })

/**
 * Deploys software on request in `deploy/*`. It acts through registered skills, whose steps are
 * HTTP tools of the scope's settings, and through these tools where models may call them. See
 * examples/deploy/.
 */
export const deploy = defineAgent({
  name: 'deploy',
  scopes: ['deploy/*'],
  filters: [(event) => event.type === 'ws.message' && event.content.trim() !== ''],
  probes: {
    deploy_window: (environment: unknown) => deployWindow(environment, new Date()),
    risk_scan: riskScan,
  },

  async trigger(context, deps) {
    const { history } = memory.parse(context.scratch)
    const asked = context.ofType('ws.message').map(({ content }) => content)
    const question: ModelMessage = { role: 'user', content: asked.join('\n') }
    // Within this one call the model sees the skills, proposes them and receives each result.
    const { text } = await generateText({
      model: deps.model,
      instructions: deps.settings.instructions ?? instructions,
      messages: [...history, question],
      tools: deps.tools,
      stopWhen: isStepCount(MOST_STEPS),
      abortSignal: deps.signal,
      maxRetries: 0,
    })
    deps.reply(text)
    const talk = [...history, { role: 'user', content: asked.join('\n') }, { role: 'assistant', content: text }]
    context.scratch['history'] = talk.slice(-MOST_MESSAGES).map(({ role, content }) => ({ role, content: content.slice(0, MOST_CHARS) }))
    return { text }
  },
})
