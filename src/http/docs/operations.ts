import type { Document } from './document.ts'
import type { Schema } from './schema-text.ts'

export type Media = { schema?: Schema; example?: unknown }
export type Parameter = { name: string; in: string; required?: boolean; description?: string; schema?: Schema; example?: unknown }
export type Answer = { status: string; description: string; content?: Record<string, Media> }
export type Operation = {
  anchor: string
  method: string
  path: string
  summary: string
  description: string | undefined
  /** It needs no key. */
  open: boolean
  roles: readonly string[]
  parameters: readonly Parameter[]
  body: { description?: string; content: Record<string, Media> } | undefined
  answers: readonly Answer[]
  streams: boolean
}
export type Group = { name: string; description: string | undefined; operations: Operation[] }

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const

type Described = {
  tags?: string[]
  summary?: string
  description?: string
  security?: unknown[]
  'x-reflex-roles'?: string[]
  parameters?: Parameter[]
  requestBody?: Operation['body']
  responses?: Record<string, Omit<Answer, 'status'>>
}

type Paths = Record<string, Partial<Record<string, Described>>>

/** The document's operations in the order of its tags, as the page shows them. */
export function operationGroups(document: Document): Group[] {
  // As it is served: the generator's own types leave every part open to be a reference.
  const paths: Paths = JSON.parse(JSON.stringify(document.paths ?? {}))
  const all = Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const described = item[method]
      return described ? [{ tag: described.tags?.[0], operation: operationOf(method, path, described) }] : []
    }),
  )
  return (document.tags ?? []).map(({ name, description }) => ({
    name,
    description,
    operations: all.filter(({ tag }) => tag === name).map(({ operation }) => operation),
  }))
}

function operationOf(method: string, path: string, described: Described): Operation {
  const answers = Object.entries(described.responses ?? {}).map(([status, answer]) => Object.assign({ status }, answer))
  const types = new Set(answers.flatMap(({ content = {} }) => Object.keys(content)))
  return {
    anchor: `${method}${path}`.replaceAll(/[^a-z0-9]+/gi, '-').replace(/-$/, ''),
    method,
    path,
    summary: described.summary ?? path,
    description: described.description,
    open: described.security?.length === 0,
    roles: described['x-reflex-roles'] ?? [],
    parameters: described.parameters ?? [],
    body: described.requestBody,
    answers,
    streams: types.has('text/event-stream') || types.has('application/x-ndjson'),
  }
}
