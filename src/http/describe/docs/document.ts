import type { OpenAPIHono } from '@hono/zod-openapi'

export type Document = ReturnType<OpenAPIHono['getOpenAPI31Document']>

const description = `Events come in, a scope's working memory accumulates them, reflexes act at once, and a language model thinks where none fires.

Send a key with each request: \`Authorization: Bearer KEY\`. A key has roles (admin ⊃ operator ⊃ publisher and viewer) and the scopes that it may touch. Lists are paged: pass \`next_cursor\` on
as \`cursor\` until it is null. Errors are \`application/problem+json\` (RFC 9457), and a batch with any bad event is refused whole.`

const tags = [
  { name: 'Events', description: 'Send events through the queue, and search the event log of all scopes.' },
  { name: 'Scopes', description: 'A scope is the unit of memory and of order. Its name is percent-encoded in a path.' },
  { name: 'Live', description: 'Follow a scope in real time, and send to it.' },
  { name: 'Pull loop', description: 'Process events in your own program, in any language: claim them, and settle them by their tokens.' },
  {
    name: 'Traces',
    description: 'See what followed from an event or a call as one tree, export what it was decided from, and decide again.',
  },
  { name: 'Timers', description: 'Ticks at an interval, by a cron expression, or once.' },
  {
    name: 'Reflexes',
    description: 'Small sandboxed programs that act immediately, without a model: register, try, evaluate and monitor them.',
  },
  {
    name: 'Skills',
    description:
      'Plans of tool calls that run only if a gate allows them: register versions, activate them, and see the bulletin that models get.',
  },
  {
    name: 'Control plane',
    description: 'Skills and their policy for other deployments: ask, follow, promote between environments, and report.',
  },
  { name: 'Learning', description: 'Reflexes and skills that a scope learns from its own decisions, and the evidence for them.' },
  { name: 'Agents', description: 'Other agents and their tools: a scope as an A2A agent, and questions over MCP.' },
  { name: 'Approvals', description: 'Runs of skills that wait for a person to decide.' },
  { name: 'Ledger', description: 'Accounts of scopes and keys, and transfers between them: double entry, and no account is overdrawn.' },
  { name: 'SSH guard', description: 'What the agent ssh-guard opened and blocked, and how a block is lifted.' },
  { name: 'Dead letters', description: 'Events that could not be processed: inspect, retry or discard them.' },
  { name: 'Keys', description: 'Roles and scopes of callers.' },
  { name: 'Health', description: 'Liveness, readiness and state.' },
  { name: 'Statistics', description: 'Numbers over time, and the totals for Prometheus.' },
]

export const documentInfo = {
  openapi: '3.1.0',
  info: { title: 'Reflex', version: '1', description },
  servers: [{ url: '/' }],
  tags,
}

/** Default descriptions of parameters that mean the same on every route. */
const parameterMeanings: Readonly<Record<string, string>> = {
  id: 'The id, as returned by a list or on creation.',
  name: 'The name.',
  ref: 'An id, or `ID@VERSION`.',
  limit: 'Maximum number of items per page.',
  cursor: 'The `next_cursor` of the previous page. Omit it for the first page.',
  scope: 'Only items of this scope.',
  type: 'Only events of this type.',
  status: 'Only those with this status.',
  state: 'Only those in this state.',
  owner: 'Only those of this owner.',
}

/** The document as it is served: parameters without a description get the default one. */
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
