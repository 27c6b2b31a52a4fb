import { z } from 'zod'

type Schema = { $ref?: string; pattern?: string; [key: string]: unknown }
type Media = { schema?: Schema; example?: unknown }
type Operation = {
  operationId?: string
  summary?: string
  security?: unknown[]
  parameters?: { name: string; description?: string }[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { description?: string; content?: Record<string, Media> }>
}
export type Description = { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } }

/** Flaws that a linter or client generator would report, each as a sentence. */
export function descriptionFlaws(description: Description): string[] {
  const operations = Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  )
  const ids = operations.map(({ operation }) => operation.operationId)
  return [
    ...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `operationId ${id} is there twice`),
    ...operations.flatMap(({ name, operation }) => operationFlaws(operation, description).map((flaw) => `${name}: ${flaw}`)),
    ...patternsIn(description)
      .filter(isBroken)
      .map((pattern) => `pattern ${pattern} is invalid`),
  ]
}

function operationFlaws({ operationId, summary, security, parameters = [], requestBody, responses }: Operation, description: Description) {
  const medias = Object.entries(requestBody?.content ?? {})
  return [
    /^[a-z][A-Za-z]+$/.test(operationId ?? '') ? '' : 'it has no operationId',
    summary ? '' : 'it has no summary',
    security === undefined ? 'it does not say whether it needs a key' : '',
    ...parameters.map((parameter) => (parameter.description ? '' : `parameter ${parameter.name} has no description`)),
    ...Object.entries(responses).map(([status, answer]) => (answer.description ? '' : `answer ${status} has no description`)),
    ...medias.map(([type, media]) => exampleFlaw(type, media, description)),
  ].filter((flaw) => flaw !== '')
}

/** The example of each JSON body is valid by the schema beside it. */
function exampleFlaw(type: string, { schema, example }: Media, description: Description): string {
  if (!type.includes('json') || type.includes('ndjson') || schema === undefined) return ''
  if (example === undefined) return `${type} has no example`
  const judged = z.fromJSONSchema(inlined(schema, description)).safeParse(example)
  return judged.success ? '' : `the example of ${type} is not valid: ${z.prettifyError(judged.error)}`
}

function inlined(schema: Schema, description: Description): Schema {
  const text = JSON.stringify(schema, (_, value: unknown) => {
    const name = typeof value === 'object' && value !== null && '$ref' in value ? String(value.$ref).split('/').at(-1) : undefined
    return name === undefined ? value : description.components.schemas[name]
  })
  return JSON.parse(text)
}

function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => (key === 'pattern' && typeof inner === 'string' ? [inner] : patternsIn(inner)))
}

/** A flag that was printed along makes one that compiles and matches nothing: `^a$/u`. */
function isBroken(pattern: string): boolean {
  try {
    return /(?<!\\)\/[a-z]*$/.test(pattern) || !new RegExp(pattern, 'u')
  } catch {
    return true
  }
}
