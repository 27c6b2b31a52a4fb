import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { seededRandom } from '../../support/random.ts'
import { call, fetchRaw } from '../../support/http.ts'
import { seedsOf } from '../../support/property.ts'
import { freshScope } from '../../support/scopes.ts'

type Schema = { $ref?: string; [keyword: string]: unknown }
type Media = { schema?: Schema; example?: unknown }
type Parameter = { name: string; in: string; required?: boolean; schema: Schema }
type Operation = {
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { content?: Record<string, Media> }>
}
type Document = { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } }

/** Another seed finds other requests. A longer run sets the times. */
const SEEDS = seedsOf(20261123)
const { VITE_PROPERTY_TIMES = '1' } = import.meta.env
const EACH = 3 * Number(VITE_PROPERTY_TIMES)
const DEEPEST = 4

let document: Document
beforeAll(async () => {
  document = (await call('/v1/openapi.json', { key: null })).body as Document
})

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

/** Values for a schema, most of them valid: patterns and formats are met by well-known texts. */
class Values {
  readonly #random: () => number
  readonly #schemas: Record<string, Schema>

  constructor(seed: number, schemas: Record<string, Schema>) {
    this.#random = seededRandom(seed)
    this.#schemas = schemas
  }

  chance = (share: number): boolean => this.#random() < share
  pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(this.#random() * items.length)]

  of(given: Schema, depth = 0): unknown {
    const schema = this.#resolved(given)
    const one = this.pick((schema['anyOf'] ?? schema['oneOf'] ?? []) as Schema[])
    if (one) return this.of(one, depth)
    if ('const' in schema) return schema['const']
    if (Array.isArray(schema['enum'])) return this.pick(schema['enum'] as unknown[])
    const type = Array.isArray(schema['type']) ? this.pick(schema['type'] as string[]) : schema['type']
    if (type === 'object') return this.#object(schema, depth)
    if (type === 'array') {
      const items = fieldsOf(schema['items'])
      const least = Number(schema['minItems'] ?? 0)
      return depth > DEEPEST ? [] : Array.from({ length: least + (this.chance(0.5) ? 1 : 0) }, () => this.of(items, depth + 1))
    }
    if (type === 'string') return this.#text(schema)
    if (type === 'integer' || type === 'number') return this.#number(schema, type)
    if (type === 'boolean') return this.chance(0.5)
    return type === 'null' ? null : this.pick([null, 1, 'x', {}, []])
  }

  /** A valid value with one thing wrong. */
  nearly(schema: Schema): unknown {
    const value = this.of(schema)
    const fields = Object.keys(fieldsOf(value))
    const name = this.pick(fields)
    const odd = this.pick([null, '', -1, 1e21, 'x'.repeat(2000), [], {}, '\u0000', true, '😀', '{{x}}', { ['__proto__']: 1 }])
    if (name === undefined || this.chance(0.15)) return odd
    if (this.chance(0.3)) return Object.fromEntries(Object.entries(fieldsOf(value)).filter(([field]) => field !== name))
    return this.chance(0.2) ? { ...fieldsOf(value), unheard_of: odd } : { ...fieldsOf(value), [name]: odd }
  }

  #resolved(schema: Schema): Schema {
    const name = schema.$ref?.split('/').at(-1)
    if (name !== undefined) return this.#resolved(this.#schemas[name] ?? {})
    const all = (schema['allOf'] ?? []) as Schema[]
    return Object.assign({}, schema, ...all.map((part) => this.#resolved(part))) as Schema
  }

  #object(schema: Schema, depth: number): unknown {
    const required = new Set((schema['required'] ?? []) as string[])
    const wanted = Object.entries(fieldsOf(schema['properties'])).filter(
      ([name]) => required.has(name) || (depth < DEEPEST && this.chance(0.4)),
    )
    return Object.fromEntries(wanted.map(([name, inner]) => [name, this.of(inner as Schema, depth + 1)]))
  }

  #text({ format, pattern, minLength = 0 }: Schema): string {
    const known = { 'date-time': '2026-11-23T10:00:00.000Z', uuid: '2f1e2b1a-0c7e-4c1e-9d7a-5a3a1a2b3c4d', uri: 'https://example.com/a' }
    const formatted = known[String(format) as keyof typeof known]
    if (formatted !== undefined) return formatted
    const texts = [
      'a',
      'test',
      'abc.def',
      '1.0.0',
      'fuzz/a',
      'reflex:a@1',
      'http.a',
      'ab'.repeat(16),
      '12',
      `x${Math.floor(this.#random() * 1000)}`,
    ]
    const fits = texts.filter(
      (text) => text.length >= Number(minLength) && (typeof pattern !== 'string' || new RegExp(pattern, 'u').test(text)),
    )
    return this.pick(fits) ?? 'a'
  }

  #number({ minimum, maximum, exclusiveMinimum }: Schema, type: 'integer' | 'number'): number {
    const least = Number(minimum ?? exclusiveMinimum ?? 0)
    const most = Math.min(Number(maximum ?? least + 100), least + 1000)
    const value = least + this.#random() * (most - least)
    return type === 'integer' ? Math.ceil(value) : value
  }
}

/** Waiting and following are tested elsewhere: here each request has to be answered soon. */
const UNUSED = /^(?:wait|after$|traceparent)/

type Sent = { at: string; path: string; method: string; body?: string; type?: string }

function requestOf(at: string, operation: Operation, { values, scope, valid }: { values: Values; scope: string; valid: boolean }): Sent {
  const [method = '', template = ''] = at.split(' ')
  const textOf = (schema: Schema): string => {
    const value = valid ? values.of(schema) : values.chance(0.7) ? values.of(schema) : values.nearly(schema)
    return typeof value === 'string' ? value.slice(0, 200) : JSON.stringify(value)
  }
  const given = operation.parameters ?? []
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(name === 'scope' ? scope : textOf(given.find((one) => one.in === 'path' && one.name === name)?.schema ?? {}) || 'x'),
  )
  const query = given.filter((one) => one.in === 'query' && !UNUSED.test(one.name) && (one.required === true || values.chance(0.3)))
  const search = new URLSearchParams(query.map(({ name, schema }) => [name, name === 'scope' ? scope : textOf(schema)])).toString()
  const sent = { at, method: method.toUpperCase(), path: search === '' ? path : `${path}?${search}` }
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  if (type === undefined || media === undefined) return sent
  const whole = valid && media.example !== undefined && values.chance(0.5) ? media.example : undefined
  const value = whole ?? (valid ? values.of(media.schema ?? {}) : values.nearly(media.schema ?? {}))
  return { ...sent, type, body: typeof value === 'string' && !type.includes('json') ? value : JSON.stringify(value) }
}

const checks = new Map<Schema, z.ZodType>()

/** The check of a schema of the document, whose references name its components. */
function checkOf(schema: Schema): z.ZodType {
  const known = checks.get(schema)
  if (known) return known
  const local = (value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll('#/components/schemas/', '#/$defs/'))
  const made = z.fromJSONSchema(local({ ...schema, $defs: document.components.schemas }) as Parameters<typeof z.fromJSONSchema>[0])
  checks.set(schema, made)
  return made
}

/** The flaw of an answer, or null. */
async function flawOf({ path, method, body, type }: Sent, { responses }: Operation): Promise<string | null> {
  const response = await fetchRaw(path, { method, ...(body !== undefined && { body }), ...(type !== undefined && { type }) })
  const { status } = response
  response.webSocket?.accept()
  response.webSocket?.close()
  const said = response.headers.get('Content-Type')?.split(';')[0] ?? ''
  const declared = responses[String(status)]
  if (status >= 500 && status !== 503) return `${status}: ${await response.text()}`
  if (!declared) return `${status} is not declared: ${await response.text()}`
  if (!/\/(?:problem\+)?json$/.test(said)) {
    await response.body?.cancel()
    return null
  }
  const schema = declared.content?.[said]?.schema
  const text = await response.text()
  if (text === '' && method === 'HEAD') return null
  if (!schema) return text === '' ? null : `${status} with ${said} is not declared: ${text}`
  const checked = checkOf(schema).safeParse(JSON.parse(text))
  return checked.success ? null : `${status} does not fit its schema: ${z.prettifyError(checked.error)} in ${text.slice(0, 500)}`
}

test.each(SEEDS)('each operation answers generated requests as it declares, with seed %d', { timeout: 60_000 * EACH }, async (seed) => {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ at: `${method} ${path}`, operation })),
  )
  expect(operations.length).toBeGreaterThan(100)
  const flaws: string[] = []
  for (const [index, { at, operation }] of operations.entries()) {
    const values = new Values(seed + index, document.components.schemas)
    const scope = freshScope()
    for (let number = 0; number < EACH; number += 1) {
      const sent = requestOf(at, operation, { values, scope, valid: number % 2 === 0 })
      const flaw = await flawOf(sent, operation)
      if (flaw !== null) flaws.push(`${sent.method} ${sent.path} ${sent.body ?? ''}: ${flaw}`.slice(0, 1500))
    }
  }
  expect(flaws).toEqual([])
})
