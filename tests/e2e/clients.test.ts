import { spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { sseParser } from '../../cli/lib/sse.ts'
import { packageFolder } from '../../cli/lib/package.ts'
import { connectScope, inPath, type LogEntry } from '../../client/index.ts'
import { createClient } from '../../client/routes.ts'
import { ADMIN_KEY, call, eventually, openIn, scopePath, stateOf, temporaryState, wholeLog } from './api.ts'
import { lineTo } from './line.ts'

const SOON_MS = 40_000

const state = await temporaryState()
let server: LocalServer

const start = (port?: number): Promise<LocalServer> =>
  startServer({
    persist_to: state.directory,
    migrated: true,
    vars: { REFLEX_ADMIN_KEY: ADMIN_KEY },
    ...(port === undefined ? {} : { port }),
  })

beforeAll(async () => {
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await state.remove()
})

const message = (content: string) => ({ id: randomUUID(), type: 'ws.message', connection_id: 'e2e', content })

const nothingIsOpen = async (scope: string): Promise<boolean> => (await openIn(server.url, scope)) === 0

/** The number of times that each event has ended, by the log, and the entry of its end. */
function endsOf(log: Record<string, unknown>[]): Map<string, Record<string, unknown>[]> {
  const ends = log
    .filter(({ kind }) => kind === 'event-ended')
    .flatMap((entry) => (entry['event_ids'] as string[]).map((id) => ({ id, entry })))
  return new Map(
    Array.from(
      Map.groupBy(ends, ({ id }) => id),
      ([id, group]) => [id, group.map(({ entry }) => entry)],
    ),
  )
}

type Loop = { child: ChildProcess; printed: () => string; exited: Promise<number | null> }

function ownLoop(url: string, scope: string, ...args: string[]): Loop {
  const child = spawn(process.execPath, [join(packageFolder, 'examples/own-loop.ts'), ...args], {
    env: { ...process.env, REFLEX_URL: url, REFLEX_SCOPE: scope, REFLEX_KEY: ADMIN_KEY },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (piece: string) => (printed += piece))
  const { promise: exited, resolve } = Promise.withResolvers<number | null>()
  child.once('exit', resolve)
  return { child, printed: () => printed, exited }
}

/** Forwards requests with leases of `lease_s`; drops the response to acknowledgement `mute_ack`. */
async function desk({
  lease_s,
  mute_ack,
}: {
  lease_s: number
  mute_ack: number
}): Promise<{ url: string; muted: Promise<void>; server: Server }> {
  const { promise: muted, resolve } = Promise.withResolvers<void>()
  let acks = 0
  const pass = async (method: string, path: string, body: string): Promise<{ status: number; text: string } | null> => {
    const sent = path.endsWith('/claim') ? JSON.stringify({ ...(JSON.parse(body) as object), lease_s }) : body
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }
    const answer = await fetch(`${server.url}${path}`, { method, headers, body: sent })
    const read = { status: answer.status, text: await answer.text() }
    if (path.endsWith('/ack')) acks += 1
    if (acks < mute_ack) return read
    resolve()
    return null
  }
  const listener = createServer((incoming, outgoing) => {
    void text(incoming)
      .then((body) => pass(incoming.method ?? 'GET', incoming.url ?? '/', body))
      .then((answer) => answer && outgoing.writeHead(answer.status).end(answer.text))
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return { url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`, muted, server: listener }
}

test('a loop of its own is killed among its events: their leases run out, a second one finishes, each event has one outcome', async () => {
  const scope = 'own/loop'
  const between = await desk({ lease_s: 3, mute_ack: 4 })
  const first = ownLoop(between.url, scope)
  await eventually(async () => first.printed().startsWith(`Claiming the events of ${scope}`), 'the first loop has begun', SOON_MS)
  const events = [...Array.from({ length: 24 }, (_, index) => message(`message ${index}`)), message('fail')]
  expect((await call(server.url, `${scopePath(scope)}/events`, { body: events }))?.status).toBe(202)

  await between.muted
  first.child.kill('SIGKILL')
  await first.exited
  between.server.closeAllConnections()
  between.server.close()
  const second = ownLoop(server.url, scope)
  await eventually(() => nothingIsOpen(scope), 'every event has its outcome', SOON_MS)
  second.child.kill('SIGTERM')
  expect(await second.exited, `it printed ${second.printed()}`).toBe(0)

  const log = await wholeLog(server.url, scope)
  const ends = endsOf(log)
  expect(events.map(({ id }) => ends.get(id)?.length)).toEqual(events.map(() => 1))
  const ended = events.map(({ id }) => ends.get(id)?.[0])
  expect(ended.map((entry) => entry?.['status'])).toEqual([...Array.from({ length: 24 }, () => 'completed'), 'dead_lettered'])
  // Ten were claimed, four acknowledged, the fourth without the loop hearing of it: six came again.
  expect(ended.map((entry) => entry?.['attempts'])).toEqual([
    ...Array.from({ length: 4 }, () => 1),
    ...Array.from({ length: 6 }, () => 2),
    ...Array.from({ length: 14 }, () => 1),
    3,
  ])
  const retried = log.filter(({ kind }) => kind === 'event-retried')
  expect(retried.filter(({ error }) => String(error).includes('lease ran out'))).toHaveLength(6)
  expect(retried.filter(({ error }) => String(error).includes('asked to fail'))).toHaveLength(2)
  expect(second.printed()).toContain('given back at attempt 3, Error: this event asked to fail')
})

test('a loop of its own that is asked to run once settles what waits, and says so where the server refuses it', async () => {
  const scope = 'own/once'
  await call(server.url, scopePath(scope), { method: 'PATCH', body: { consumer: 'pull' } })
  await call(server.url, `${scopePath(scope)}/events`, { body: Array.from({ length: 12 }, () => message('hello')) })
  const loop = ownLoop(server.url, scope, '--once')
  expect(await loop.exited, `it printed ${loop.printed()}`).toBe(0)
  expect(loop.printed().match(/acted on 3 events/g)).toHaveLength(4)
  expect(await nothingIsOpen(scope)).toBe(true)

  const refused = ownLoop(server.url, 'not a scope', '--once')
  expect(await refused.exited).toBe(1)
  expect(refused.printed()).toContain('PATCH settings was answered 400')
})

test('the client resumes over kill -9 and a restart: no entry is missed or repeated, and what was not acknowledged is sent again', async () => {
  const scope = 'clients/resume'
  const line = await lineTo(server.port)
  const client = createClient(server.url, ADMIN_KEY)
  const entries: LogEntry[] = []
  let opened = 0
  const connection = connectScope({
    base_url: line.url,
    scope,
    key: ADMIN_KEY,
    after: 0,
    onEntry: (entry) => entries.push(entry),
    onOpen: () => (opened += 1),
  })
  const say = (count: number) => Promise.all(Array.from({ length: count }, (_, index) => connection.send(message(`message ${index}`))))
  const statuses = (acks: { status: string }[]) => Array.from(new Set(acks.map(({ status }) => status)))
  expect(statuses(await say(10))).toEqual(['accepted'])

  await server.kill9()
  const waiting = say(10)
  server = await start(server.port)
  expect(statuses(await waiting)).toEqual(['accepted'])
  expect(opened).toBeGreaterThan(1)

  line.fault('answers lost')
  const unheard = say(10)
  await eventually(async () => {
    const answer = await client.v1.scopes[':scope'].$get({ param: { scope: inPath(scope) } })
    return answer.ok && (await answer.json()).counters.accepted === 30
  }, 'the scope has accepted what the client does not know of')
  await server.kill9()
  line.fault(null)
  server = await start(server.port)
  expect(statuses(await unheard)).toEqual(['duplicate'])
  expect(statuses(await say(1))).toEqual(['accepted'])

  await eventually(() => nothingIsOpen(scope), 'every event has its outcome', SOON_MS)
  const log = await wholeLog(server.url, scope)
  await eventually(async () => connection.last_seq === log.at(-1)?.['seq'], 'the client has heard everything', SOON_MS)
  connection.close()
  line.stop()
  expect(entries.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1))
  expect(entries).toEqual(log)
  const ends = endsOf(log)
  expect(ends.size).toBe(31)
  expect(Array.from(ends.values(), (ended) => ended.length)).toEqual(Array.from({ length: 31 }, () => 1))
})

test('the client gives up where its key is refused, and says why', async () => {
  const faults: Error[] = []
  const connection = connectScope({ base_url: server.url, scope: 'clients/wrong', key: 'wrong', onError: (error) => faults.push(error) })
  await expect(connection.send({ content: 'hello' })).rejects.toThrow(/^no ticket for clients\/wrong: /)
})

/** Reads a scope's stream into `seen`, until it breaks or `signal` aborts. */
async function follow(scope: string, seen: { id: string | null; data: string }[], last: string | null, signal: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, ...(last === null ? {} : { 'last-event-id': last }) }
  const response = await fetch(`${server.url}${scopePath(scope)}/stream${last === null ? '?after=0' : ''}`, { headers, signal })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  const parse = sseParser()
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) seen.push(...parse(decoder.decode(bytes, { stream: true })))
}

test('server-sent events resume after Last-Event-ID after kill -9 and a restart, with none missed and none repeated', async () => {
  const scope = 'clients/stream'
  const seen: { id: string | null; data: string }[] = []
  const stop = new AbortController()
  const send = () =>
    call(server.url, `${scopePath(scope)}/events?wait=outcome`, { body: Array.from({ length: 20 }, () => message('hello')) })
  const all = async () => seen.at(-1)?.id === String((await stateOf(server.url, scope)).last_seq)
  expect((await send())?.status).toBe(200)
  const broken = follow(scope, seen, null, stop.signal).catch(() => {})
  await eventually(all, 'the stream has caught up', SOON_MS)
  expect((await send())?.status).toBe(200)
  await eventually(all, 'the stream follows', SOON_MS)
  await server.kill9()
  await broken
  server = await start(server.port)
  expect((await send())?.status).toBe(200)
  const resumed = follow(scope, seen, seen.at(-1)?.id ?? null, stop.signal).catch(() => {})
  await eventually(all, 'the stream has resumed', SOON_MS)
  stop.abort()
  await resumed
  const log = await wholeLog(server.url, scope)
  expect(seen.map(({ id }) => Number(id))).toEqual(log.map(({ seq }) => seq))
  expect(seen.map(({ data }) => JSON.parse(data) as unknown)).toEqual(log)
})
