import { env } from 'cloudflare:workers'
import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { seal, type Recording } from '../../../src/features/replay/recording.ts'
import { deliverLicence, sealVersion } from '../../../src/features/market/store/ownership.ts'
import { answerOf, call, fetchRaw, keyFor, message, scopePath } from '../../support/http.ts'
import { askModern } from '../../support/mcp.ts'
import { createVersion } from '../../support/reflexes.ts'
import { logOf, note, sendAndSettle, stubOf } from '../../support/scopes.ts'
import { putVersion } from '../../support/skills.ts'
import { behaviours } from '../../support/test-agents.ts'

/** In each content of the other tenant, and in what it answers. */
const SECRET = 'zq-of-theirs'
const [MINE, THEIRS, BUYERS] = ['writer/mine/x', 'writer/theirs/x', 'writer/shop/x']
const code = `function reflex(context) { return { action_type: 'reply', content: '${SECRET}' } }`
const bound = { description: 'd', 'plan.steps.0.args': { text: SECRET } }

type Target = { kind: 'reflex' | 'skill'; id: string; version: string }
const targets: Target[] = []
const keys = { foreign: '', own: '' }
let mine: { trace_id: string; id: string; files: Recording[] }

beforeAll(async () => {
  keys.foreign = await keyFor(['admin'], ['writer/mine/*'])
  keys.own = await keyFor(['admin'], ['writer/theirs/*', 'writer/mine/*'])
  const by = { owner: 'theirs', owner_id: 'key-of-theirs', scopes: ['writer/theirs/*'] }
  const learned = { owner: `scope:${THEIRS}`, owner_id: `scope:${THEIRS}`, scopes: [THEIRS] }
  const provenance = { by: 'writer', scope: THEIRS, template: null, origin: null, run: 'run-1' }
  const made = [
    await createVersion({ ...by, id: 'zq-plain', code }),
    await createVersion({ ...learned, id: 'zq-learned', code, state: 'shadow', provenance }),
    await createVersion({ ...by, id: 'zq-listed', code, sharing: 'org' }),
    await createVersion({ ...by, id: 'zq-licensed', code }),
  ]
  for (const { id } of made) targets.push({ kind: 'reflex', id, version: '1' })
  for (const id of ['zq-listed', 'zq-licensed']) await sealVersion(env.DB, { kind: 'reflex', id, version: '1' })
  const licensed = { kind: 'reflex', id: 'zq-licensed', version: '1' } as const
  const right = { pattern: BUYERS, hash: made[3]?.hash ?? '', expires_at: null, fires: null, metered: false, in_use: true, ended_at: null }
  await deliverLicence(env.DB, licensed, [{ deal_id: 'zq-deal', ...licensed, ...right }])
  for (const [id, sharing] of [
    ['zq.plain', 'project'],
    ['zq.listed', 'org'],
  ] as const) {
    const { version } = await putVersion({ ...by, changes: { ...bound, id, scope: sharing } })
    targets.push({ kind: 'skill', id, version })
  }
  await sealVersion(env.DB, { kind: 'skill', id: 'zq.listed', version: targets.at(-1)?.version ?? '' })
  mine = await traceOf(MINE)
})

/** An event of one's own, and the file of its trace: as it is, and renamed to a licensed scope. */
async function traceOf(scope: string) {
  behaviours.set(scope, async () => null)
  const { body } = await call(scopePath(scope, '/events?wait=outcome'), { json: message({ scope }), key: keys.foreign })
  const [{ id, trace_id }] = body.events as [{ id: string; trace_id: string }]
  const { text } = await call(`/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`, { key: keys.foreign })
  const { sha256: _sha256, ...renamed } = JSON.parse(text.replaceAll(scope, BUYERS)) as Recording
  return { id, trace_id, files: [JSON.parse(text) as Recording, await seal(renamed)] }
}

type Schema = {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  $ref?: string
}

/** Values of fields by their names: with them, a call is about the target. */
const valuesFor = ({ kind, id, version }: Target) => ({
  id,
  ref: `${id}@${version}`,
  skill_id: id,
  reflex_id: id,
  reflex_artifact_id: id,
  version: kind === 'reflex' ? Number(version) : version,
  artifact: `${kind}:${id}@${version}`,
  service: `${kind}:${id}`,
  scope: MINE,
  trace_id: mine.trace_id,
  event_id: mine.id,
  q: 'zq',
  why: 'act',
  inputs: {},
  context: { event: { type: 'ws.message', content: 'x' } },
  window: '1h',
  since: new Date(Date.now() - 3_600_000).toISOString(),
  mode: 'what_if',
  changes: { reflexes: [{ id, version: Number(version) || 1 }] },
  reflexes: [{ id, version: Number(version) || 1 }],
  copied_from: { id, version: Number(version) || 1 },
  code: 'function reflex(context) { return null }',
  tools: 'any',
})

/** Objects that fit a schema: each of its alternatives, with all fields that have a value here. */
function bodiesOf(schema: Schema, values: Record<string, unknown>, find: (ref: string) => Schema): Record<string, unknown>[] {
  if (schema.$ref !== undefined) return bodiesOf(find(schema.$ref), values, find)
  const { properties = {}, required = [] } = schema
  const variants = schema.anyOf ?? schema.oneOf ?? schema.allOf
  if (variants) return variants.flatMap((one) => bodiesOf({ ...one, properties: { ...properties, ...one.properties } }, values, find))
  const known = Object.entries(properties).flatMap(([name, one]) => {
    if (Object.hasOwn(values, name)) return [[name, values[name]] as const]
    return required.includes(name) ? [[name, plainOf(one)] as const] : []
  })
  return [Object.fromEntries(known)]
}

function plainOf({ type, enum: words, const: only, default: standard }: Schema): unknown {
  if (only !== undefined || words !== undefined || standard !== undefined) return only ?? words?.[0] ?? standard
  if (type === 'array') return []
  if (type === 'object') return {}
  if (type === 'boolean') return false
  return type === 'integer' || type === 'number' ? 1 : 'x'
}

type Operation = { operationId: string; requestBody?: { content: { 'application/json'?: { schema: Schema; example?: object } } } }

/** Every operation of the document about each target, or those at some paths. */
async function* everyRoute(key: string, at_paths = /./): AsyncGenerator<[what: string, text: string]> {
  const { body: document } = await call('/v1/openapi.json', { key: null })
  const asked = new Set<string>()
  const find = (ref: string): Schema => document.components.schemas[ref.split('/').at(-1) ?? '']
  for (const [path, methods] of Object.entries(document.paths as Record<string, Record<string, Operation>>)) {
    if (!at_paths.test(path)) continue
    for (const [method, operation] of Object.entries(methods)) {
      for (const target of targets) {
        const values = valuesFor(target)
        const inPath: Record<string, string> = { ...target, ref: values.ref, scope: MINE, trace_id: mine.trace_id }
        const at = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(inPath[name] ?? 'x'))
        const json = operation.requestBody?.content['application/json']
        const bodies = json
          ? [json.example, ...bodiesOf(json.schema, values, find)].map((one) => ({ ...json.example, ...one }))
          : [undefined]
        for (const body of bodies) {
          const request = JSON.stringify([method, at, body])
          if (asked.has(request)) continue
          asked.add(request)
          yield [`${method} ${decodeURIComponent(at)}`, await textOf(at, { method: method.toUpperCase(), key, body })]
        }
      }
    }
  }
}

/** A stream is not read: what it would show is in the log. */
async function textOf(path: string, { method, key, body }: { method: string; key: string; body: object | undefined }): Promise<string> {
  const response = await fetchRaw(path, { method, key, ...(body && { json: body }) })
  if (/event-stream|ndjson/.test(response.headers.get('Content-Type') ?? '') || response.webSocket) {
    await response.body?.cancel()
    return ''
  }
  const { status, text } = await answerOf(response)
  expect(status, `${method} ${path}: ${text}`).toBeLessThan(500)
  return text
}

const leaks = async (asked: AsyncIterable<[string, string]>): Promise<string[]> => {
  const found: string[] = []
  for await (const [what, text] of asked) if (text.includes(SECRET)) found.push(what)
  return found
}
const leaksAny = async (asked: AsyncIterable<[string, string]>): Promise<boolean> => {
  for await (const [, text] of asked) if (text.includes(SECRET)) return true
  return false
}

test('no operation of the API shows or runs what another tenant has', { timeout: 120_000 }, async () => {
  expect(await leaks(everyRoute(keys.foreign))).toEqual([])
  const shown = await leaks(everyRoute(keys.own, /^\/v1\/(?:reflexes|skills)\/\{ref\}/))
  expect(shown).toEqual(
    expect.arrayContaining([
      'get /v1/reflexes/zq-plain@1',
      'post /v1/reflexes/zq-learned@1/run',
      expect.stringContaining('get /v1/skills/zq.listed@'),
    ]),
  )
})

async function* everyInspection(key: string): AsyncGenerator<[string, string]> {
  const ask = (method: string, params: Record<string, unknown>) => askModern('', method, params, { path: '/v1/mcp/inspect', key })
  const { tools } = (await ask('tools/list', {})).body.result as { tools: { name: string; inputSchema: Schema }[] }
  for (const { name, inputSchema } of tools) {
    for (const target of targets) {
      for (const given of bodiesOf(inputSchema, valuesFor(target), () => ({})))
        yield [`${name} ${JSON.stringify(given)}`, (await ask('tools/call', { name, arguments: given })).text]
    }
  }
}

test('no tool of the MCP server that inspects does', async () => {
  expect(await leaks(everyInspection(keys.foreign))).toEqual([])
  expect(await leaksAny(everyInspection(keys.own))).toBe(true)
})

/** The answers of each tool of a scope's agent, about each target. */
async function* everyTool(scope: string): AsyncGenerator<[string, string]> {
  await stubOf(scope).configure({ market: {}, tools: null, reflexes: null }, 'ops')
  const used: string[] = []
  behaviours.set(scope, async (_, deps) => {
    for (const [name, { inputSchema }] of Object.entries(deps.tools)) {
      const schema = z.toJSONSchema(inputSchema as z.ZodType, { io: 'input', unrepresentable: 'any' }) as Schema
      for (const target of targets) {
        for (const given of bodiesOf(schema, valuesFor(target), () => ({}))) {
          const { execute } = deps.tools[name] as { execute: (value: unknown) => Promise<unknown> }
          used.push(await execute(given).then((output) => `${name} ${JSON.stringify(output)}`, String))
        }
      }
    }
    return null
  })
  await sendAndSettle(stubOf(scope), note(scope, 'use them all'))
  for (const text of used) yield [text, text]
}

test('no tool of an agent does', { timeout: 60_000 }, async () => {
  expect(await leaks(everyTool(MINE))).toEqual([])
  expect(JSON.stringify(await logOf(stubOf(MINE)))).not.toContain(SECRET)
  expect((await leaks(everyTool(THEIRS))).map((one) => one.split(' ', 1)[0])).toContain('read_reflex')
})

test('a chain does not run it, nor does a what-if or the replay of a file, whatever scope the file names', async () => {
  const reflexes = targets.flatMap(({ kind, id }) => (kind === 'reflex' ? [{ id, version: 1 }] : []))
  await stubOf(MINE).configure({ reflexes }, 'ops')
  behaviours.set(MINE, async () => null)
  await sendAndSettle(stubOf(MINE), note(MINE, 'hello'))
  expect(JSON.stringify(await logOf(stubOf(MINE)))).not.toContain(SECRET)
  for (const reference of reflexes) {
    const changes = { reflexes: [reference] }
    for (const recording of mine.files) {
      const ask = (key: string) => call('/v1/replay', { json: { recording, mode: 'what_if', changes }, key })
      const foreign = await ask(keys.foreign)
      expect(foreign).toMatchObject({ status: 200, body: { unknown: [{ reason: expect.stringContaining('its code is not known') }] } })
      expect(foreign.text).not.toContain(SECRET)
    }
  }
  const own = {
    json: { recording: mine.files[0], mode: 'what_if', changes: { reflexes: [{ id: 'zq-plain', version: 1 }] } },
    key: keys.own,
  }
  expect((await call('/v1/replay', own)).text).toContain(SECRET)
})
