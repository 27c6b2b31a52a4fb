import type { OpenAPIHono } from '@hono/zod-openapi'

export type Document = ReturnType<OpenAPIHono['getOpenAPI31Document']>

const description = `Events come in, a scope's working memory accumulates them, reflexes act at once, and a language model thinks where none fires.

Send a key with each request: \`Authorization: Bearer KEY\`. A key has roles (admin ⊃ operator ⊃ publisher and viewer) and the scopes that it may touch. Lists are paged: pass \`next_cursor\` on
as \`cursor\` until it is null. Errors are \`application/problem+json\` (RFC 9457), and a batch with any bad event is refused whole.`

const tags = [
  { name: 'Events', description: 'Send events by the queue, and search the log of events over all scopes.' },
  { name: 'Scopes', description: 'A scope is the unit of memory and of order. Its name is percent-encoded in a path.' },
  { name: 'Live', description: 'Follow a scope as it works, and speak to it.' },
  { name: 'Pull loop', description: 'Write your own loop, in any language: claim events, settle them by their tokens.' },
  { name: 'Timers', description: 'Ticks by interval, by cron expression, or once.' },
  {
    name: 'Reflexes',
    description: 'Small sandboxed programs that act at once and without a model: register, try, evaluate and watch them.',
  },
  {
    name: 'Skills',
    description:
      'Plans of tool calls that run only where a gate lets them: register versions, activate them, see what a model is told of them.',
  },
  { name: 'Approvals', description: 'Runs of skills that wait for a person to decide.' },
  { name: 'SSH guard', description: 'What the agent ssh-guard opened and blocked, and how a block is lifted.' },
  { name: 'Dead letters', description: 'What nothing could deal with: look at it, retry it, discard it.' },
  { name: 'Keys', description: 'Who may do what, and where.' },
  { name: 'Health', description: 'Whether it is alive, ready and well.' },
]

export const documentInfo = {
  openapi: '3.1.0',
  info: { title: 'Reflex', version: '1', description },
  servers: [{ url: '/' }],
  tags,
}

/** The parameters that mean the same on every route. A route that says more has a description of its own. */
const parameterMeanings: Readonly<Record<string, string>> = {
  id: 'The id, as a list or the answer that created it shows it.',
  name: 'The name.',
  ref: 'An id, or `ID@VERSION`.',
  limit: 'Items in a page, at most.',
  cursor: 'The `next_cursor` of the page before. Leave it out for the first page.',
  scope: 'Only what belongs to this scope.',
  type: 'Only events of this type.',
  status: 'Only those with this status.',
  state: 'Only those in this state.',
  owner: 'Only those of this owner.',
}

/** The document as it is served: parameters that say nothing of themselves get their usual meaning. */
export function completed(document: Document): Document {
  for (const item of Object.values(document.paths ?? {}))
    for (const operation of Object.values(item ?? {}) as { parameters?: { name: string; description?: string }[] }[])
      for (const parameter of operation.parameters ?? []) {
        const meaning = parameterMeanings[parameter.name]
        if (meaning !== undefined) parameter.description ??= meaning
      }
  return document
}

export const bearer = { type: 'http', scheme: 'bearer', description: 'A key, as `Authorization: Bearer KEY`.' } as const
