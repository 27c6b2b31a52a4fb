import { inflateRawSync } from 'node:zlib'
import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ARCHIVED, puts } from '../../support/archive-bucket.ts'
import { call, fetchRaw, message, scopePath } from '../../support/http.ts'
import { outside } from '../../support/mock-fetch.ts'
import { createVersion } from '../../support/reflexes.ts'
import { EXPORTED, HOST } from '../../support/scope-with-remote-tools.ts'
import { age, freshScope, inObject, note, stubOf, until } from '../../support/scopes.ts'
import { ask, behaviours } from '../../support/test-agents.ts'
import { propose, skill } from '../../support/two-step-skill.ts'
import worker from '../../support/worker.ts'

/** A secret of the deployment, and the value of a field that is secret by its name. */
const DEPLOYED = 'nowhere-secret'
const FIELD = 'orchid+fielded/93'
/** Known by its form. */
const KEY = `rfx_0123456789abcdef_${'k'.repeat(43)}`
const texts = `${DEPLOYED} ${FIELD} ${KEY}`
const url = `https://user:${FIELD}@example.com/${DEPLOYED}?token=${encodeURIComponent(FIELD)}&basic=${btoa(DEPLOYED)}`

const printed: string[] = []
for (const name of ['log', 'info', 'warn', 'error'] as const)
  vi.spyOn(console, name).mockImplementation((...args: unknown[]) => void printed.push(args.map(String).join(' ')))
afterEach(() => {
  printed.length = 0
})

/** Each form in which a place would show one of them. */
const forms = [KEY, ...[DEPLOYED, FIELD].flatMap((value) => [value, encodeURIComponent(value), btoa(value).replaceAll('=', '')])]
const shownIn = (text: string): string[] => forms.filter((form) => text.includes(form))

const REFLEX = `function reflex({ event }) {
  return event.text === 'quote' ? { action_type: 'reply', content: 'it is ' + event.login.password } : null
}`

/** Every place holds the values. */
async function planted(kind?: string) {
  const scope = freshScope(kind)
  const stub = stubOf(scope)
  const { id: reflex_id } = await createVersion({ code: REFLEX })
  await stub.configure({ retry: { max_attempts: 1 }, reflexes: [{ id: reflex_id }] }, 'a test')
  behaviours.set(scope, async (context, deps) => {
    const { text } = context.events.at(-1) as { text?: string }
    context.scratch['note'] = `${DEPLOYED} ${btoa(DEPLOYED)}`
    context.scratch['login'] = { password: FIELD }
    const answer = await ask(deps, `${texts} ${url} ${JSON.stringify(context.events, null, 2)}`)
    const output = await deps.call('act', { text: `${texts} ${answer}` })
    await deps.call('act', { text: 'throw', password: FIELD }).catch(() => null)
    deps.reply(`the password is ${FIELD}`)
    if (text === 'fail') throw new Error(`no access to ${url} as ${texts}`)
    return { answer, output, url }
  })
  const fields = {
    login: { password: FIELD, deep: [{ token: FIELD, said: DEPLOYED }] },
    headers: { authorization: `Bearer ${FIELD}`, 'x-key': DEPLOYED },
    url: `https://example.com/?basic=${btoa(DEPLOYED)}`,
    said: `${DEPLOYED} ${KEY}`,
  }
  const events = ['turn', 'quote', 'fail'].map((text) => note(scope, text, fields))
  const headers = { 'X-Key': DEPLOYED, 'User-Agent': DEPLOYED }
  for (const event of events) await call(scopePath(scope, '/events?wait=outcome'), { json: event, headers })
  await propose(scope, await skill({}), { inputs: { what: 'x' }, why: 'do it twice' })
  await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has everything')
  return { scope, stub, reflex_id, ids: events.map(({ id }) => id), traces: events.map(({ meta }) => meta.trace_id) }
}
type Planted = Awaited<ReturnType<typeof planted>>

/** Every address that the description has for reading, with each of the values that are known. */
async function addresses({ scope, reflex_id, ids, traces }: Planted): Promise<string[]> {
  const { body } = await call('/v1/openapi.json', { key: null })
  const letters = (await call(`/v1/dlq?scope=${encodeURIComponent(scope)}`)).body as { items: { id: string }[] }
  const known: Record<string, string[]> = {
    scope: [encodeURIComponent(scope)],
    id: [...ids, ...letters.items.map(({ id }) => id)],
    trace_id: traces,
    ref: [reflex_id],
    name: ['none'],
  }
  type Described = { get?: { parameters?: { name: string; in: string }[] } }
  const paths = Object.entries(body.paths as Record<string, Described>).flatMap(([path, { get }]) => (get ? [{ path, ...get }] : []))
  return paths.flatMap(({ path, parameters = [] }) => {
    const name = /\{(id|trace_id|ref|name)\}/.exec(path)?.[1]
    const of = path.replace('{scope}', known['scope']![0]!)
    const taken = new Set(parameters.flatMap((one) => (one.in === 'query' ? [one.name] : [])))
    const query = [taken.has('scope') && `scope=${known['scope']![0]}`, taken.has('limit') && path.includes('{scope}') && 'limit=1000']
      .filter(Boolean)
      .join('&')
    return (name === undefined ? [''] : known[name]!).map((value) => `${of.replace(/\{\w+\}/, value)}?${query}`)
  })
}

async function readAll(place: Planted) {
  const found: Record<string, { status: number; text: string }> = {}
  for (const address of await addresses(place)) if (!/\/(?:ws|stream)\?/.test(address)) found[address] = await call(address)
  return found
}
const leaksOf = (answers: Awaited<ReturnType<typeof readAll>>): string[] =>
  Object.entries(answers).flatMap(([address, { text }]) => shownIn(text).map((form) => `${form} in ${address}`))

async function rowsOf(database: D1Database): Promise<string> {
  const { results } = await database
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'`)
    .all()
  const tables = await Promise.all(results.map(({ name }) => database.prepare(`SELECT * FROM ${String(name)}`).all()))
  return JSON.stringify(tables.map((table) => table.results))
}

const GZIP_HEADER = 10

/** The bytes of a file, and what its compressed parts hold: Parquet compresses each column. */
function bytesOf(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes)
  let text = buffer.toString('latin1')
  for (let at = buffer.indexOf('1f8b08', 0, 'hex'); at !== -1; at = buffer.indexOf('1f8b08', at + 1, 'hex'))
    text += inflateRawSync(buffer.subarray(at + GZIP_HEADER)).toString()
  return text
}

describe('a secret that is planted in every place', () => {
  test('is in no answer of the API, no row of D1, no archive and no line of the Worker', async () => {
    const place = await planted(ARCHIVED)
    const answers = await readAll(place)
    const read = Object.values(answers).filter(({ status }) => status === 200)
    expect(read.length).toBeGreaterThan(25)
    expect(JSON.stringify(read)).toContain('sha256:')
    expect(JSON.stringify(read)).toContain('[secret]')
    expect(leaksOf(answers)).toEqual([])
    expect(shownIn(await rowsOf(env.DB))).toEqual([])
    const kept = await inObject(place.stub, ({ storage }) =>
      JSON.stringify(['events', 'state', 'effects', 'jobs', 'timers'].map((table) => storage.sql.exec(`SELECT * FROM ${table}`).toArray())),
    )
    expect(kept).not.toContain(DEPLOYED)
    await age(place.stub, 20)
    const own = await until(async () => {
      const files = puts.filter(({ scope }) => scope === place.scope)
      return files.some(({ path }) => path.startsWith('log/')) && files.some(({ path }) => path.startsWith('events/')) && files
    }, 'events and log are archived')
    expect(own.map(({ path }) => path.split('.').at(-1))).toEqual(expect.arrayContaining(['gz', 'parquet']))
    for (const { path, bytes } of own) {
      // A chain has hashes of entries, and no text that is masked.
      expect([path, bytesOf(bytes).includes('sha256:')]).toEqual([path, !path.endsWith('.chain.json')])
      expect([path, shownIn(bytesOf(bytes))]).toEqual([path, []])
    }
    expect(leaksOf(await readAll(place))).toEqual([])
    expect(printed.join('\n')).toContain('no access to')
    expect(shownIn(printed.join('\n'))).toEqual([])
  })

  test('is in no span that is exported, and in no entry that a stream sends', async () => {
    const world = outside(HOST, () => Response.json({}))
    const { scope, stub, ids } = await planted(EXPORTED)
    const { spans } = await until(async () => {
      const state = await stub.state()
      return state.spans?.waiting === 0 && state
    }, 'the spans are exported')
    expect(spans?.exported).toBeGreaterThan(ids.length)
    const sent = world.requests.map(({ url: to, body }) => `${to} ${body}`).join('\n')
    world.restore()
    expect(sent).toContain('no access to')
    expect(shownIn(sent)).toEqual([])
    const response = await fetchRaw(scopePath(scope, '/stream?after=0'))
    let text = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) if ((text += chunk).includes('skill-')) break
    expect(text).toContain('sha256:')
    expect(shownIn(text)).toEqual([])
  })

  test('is in no answer that refuses it', async () => {
    const scope = freshScope()
    const refused = [
      await call('/v1/reflexes', { json: { id: 'r', code: `// ${DEPLOYED}` } }),
      await call(scopePath(scope), { method: 'PATCH', json: { settings: { goal_labels: [DEPLOYED] } } }),
      await call('/v1/events', { json: message({ id: DEPLOYED }) }),
      await call(`/v1/events?cursor=${DEPLOYED}&scope=${DEPLOYED}`, { headers: { traceparent: DEPLOYED } }),
    ]
    expect(refused.slice(0, 3).map(({ status }) => status)).toEqual([400, 400, 400])
    expect(refused.flatMap(({ text }) => shownIn(text))).toEqual([])
  })
})

describe('an event is searched for secrets where it enters', () => {
  const text = `it is ${DEPLOYED}`
  const EMITTING = `function reflex({ event }) {
    return event.text === 'emit' ? { action_type: 'emit_event', event: { type: 'test.note', text: 'it is ' + ['nowhere', 'secret'].join('-') } } : null
  }`
  /** The event that enters last, as the scope stores it. */
  const stored = (stub: Planted['stub'], count: number) =>
    until(async () => {
      const rows = await inObject(stub, ({ storage }) => storage.sql.exec('SELECT payload FROM events ORDER BY seq').toArray())
      return rows.length === count && (rows.at(-1)?.['payload'] as string)
    }, 'it is stored')

  test('in a message that another Worker wrote to the queue', async () => {
    const scope = freshScope()
    const body = { scope, events: [note(scope, text)] }
    const batch = createMessageBatch('reflex-events', [{ id: crypto.randomUUID(), timestamp: new Date(), attempts: 1, body }])
    await worker.queue(batch, env)
    expect((await getQueueResult(batch, createExecutionContext())).explicitAcks).toHaveLength(1)
    expect(await stored(stubOf(scope), 1)).toContain('"it is [secret]"')
  })

  test('of a socket, and of a request to one scope', async () => {
    const scope = freshScope()
    expect(await call(scopePath(scope, '/events'), { json: note(scope, text) })).toMatchObject({ status: 202 })
    expect(await stored(stubOf(scope), 1)).toContain('"it is [secret]"')
    const { webSocket } = await fetchRaw(scopePath(scope, '/ws'), { headers: { Upgrade: 'websocket' } })
    webSocket?.accept()
    webSocket?.send(JSON.stringify(note(scope, text)))
    expect(await stored(stubOf(scope), 2)).toContain('"it is [secret]"')
    webSocket?.close()
  })

  test('that a trigger publishes, here or elsewhere, and that a reflex emits', async () => {
    const [scope, other] = [freshScope(), freshScope()]
    const { id } = await createVersion({ code: EMITTING })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
    behaviours.set(scope, async (context, deps) => {
      if ((context.events.at(-1) as { text?: string }).text !== 'publish') return false
      await deps.store.publish(note(other, text))
      await deps.store.publish(note(scope, text))
      return true
    })
    await call(scopePath(scope, '/events'), { json: note(scope, 'publish') })
    expect(await stored(stubOf(scope), 2)).toContain('"it is [secret]"')
    expect(await stored(stubOf(other), 1)).toContain('"it is [secret]"')
    await call(scopePath(scope, '/events'), { json: note(scope, 'emit') })
    expect(await stored(stubOf(scope), 4)).toContain('"it is [secret]"')
  })
})
