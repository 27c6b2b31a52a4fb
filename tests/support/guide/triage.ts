import { all, defineAgent, defineTool, eventType, typeFilter } from 'reflex-agents'
import { z } from 'zod'

declare module 'reflex-agents' {
  interface Env {
    ISSUES_URL?: string
  }
}

export const githubIssue = eventType('github.issue', { action: z.string(), title: z.string() })

export const triage = defineAgent({
  name: 'triage',
  scopes: ['github/*'],
  events: [githubIssue],
  filters: [all(typeFilter('github.issue'), (event) => event.action === 'opened')],
  tools: {
    label: defineTool({
      description: 'Labels an issue',
      input: z.object({ id: z.string(), label: z.string() }),
      idempotence_key: ({ id, label }) => `${id}:${label}`,
      async execute({ id, label }, { env, fetch, signal }) {
        if (!env.ISSUES_URL) throw new Error('ISSUES_URL is not set')
        const body = JSON.stringify({ label })
        const answer = await fetch(`${env.ISSUES_URL}/${id}`, { method: 'POST', body, signal })
        return { labelled: answer.ok }
      },
    }),
  },
  async trigger(context, deps) {
    const urgent = context.ofType('github.issue').filter(({ title }) => /down|leak/i.test(title))
    if (urgent.length === 0) return null
    for (const { id } of urgent) await deps.call('label', { id, label: 'urgent' })
    return { urgent: urgent.length }
  },
})
