import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { connect, type Api } from '../../../cli/lib/api.ts'
import { followLog } from '../../../cli/lib/follow-log.ts'
import type { LogEntry } from '../../../src/contract/log-entry.ts'

let close: () => void = () => {}
afterEach(() => close())

/** A server that answers the n-th request by the n-th answer. */
async function serving(
  ...answers: ((response: ServerResponse, request: IncomingMessage) => void)[]
): Promise<Api & { asked: IncomingMessage[] }> {
  const asked: IncomingMessage[] = []
  const server = createServer((request, response) => {
    asked.push(request)
    answers[asked.length - 1]?.(response, request)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  close = () => {
    server.closeAllConnections()
    server.close()
  }
  const { port } = server.address() as AddressInfo
  return { ...connect(`http://127.0.0.1:${port}`, 'key'), asked }
}

const entry = (seq: number) => `id: ${seq}\nevent: log\ndata: {"seq":${seq}}\n\n`
const stream = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' })

test('a log is followed across broken connections, each entry once', async () => {
  const api = await serving(
    (response) => stream(response).write(`retry: 1000\n\n${entry(1)}${entry(2)}`, () => response.destroy()),
    (response) => response.writeHead(503).end(),
    (response) => stream(response).write(entry(2) + entry(3)),
  )
  const stop = new AbortController()
  const seen: number[] = []
  const onEntry = ({ seq }: LogEntry) => {
    seen.push(seq)
    if (seq === 3) stop.abort()
  }
  await followLog(api, { scope: 'ssh/a', signal: stop.signal, onEntry })
  expect(seen).toEqual([1, 2, 3])
  expect(api.asked.map(({ headers }) => headers['last-event-id'])).toEqual(['0', '2', '2'])
  expect(api.asked[0]).toMatchObject({ url: '/v1/scopes/ssh%2Fa/stream?after=0', headers: { authorization: 'Bearer key' } })
})

test('a log that may not be read is no connection to try again', async () => {
  const api = await serving((response) => response.writeHead(403).end('no'))
  const following = followLog(api, { scope: 'a', signal: new AbortController().signal, onEntry: () => {} })
  await expect(following).rejects.toThrow('was answered 403: no')
})

test('a busy server is asked again, when it said', async () => {
  const api = await serving(
    (response) => response.writeHead(429, { 'retry-after': '0' }).end('{}'),
    (response) => response.end('{"ok":true}'),
  )
  await expect(api.json('/v1/events', { method: 'POST', body: [1] })).resolves.toEqual({ ok: true })
  expect(api.asked).toHaveLength(2)
})

test('a refusal shows the detail of the problem', async () => {
  const api = await serving((response) => response.writeHead(400).end('{"title":"Invalid","detail":"event 3 has no line"}'))
  await expect(api.json('/v1/events')).rejects.toThrow('GET /v1/events was answered 400: event 3 has no line')
})

test('an aborted request fails with the reason of the abort', async () => {
  const api = await serving(() => {})
  const signal = AbortSignal.abort(new Error('stopped'))
  await expect(api.json('/v1/scopes', { signal })).rejects.toThrow('stopped')
})

test('a refusal lists the further errors and says what to do about the key', async () => {
  const errors = [
    { path: 'a', message: 'is wrong' },
    { index: 2, path: 'b', message: 'is missing' },
  ]
  const api = await serving(
    (response) => response.writeHead(400).end(JSON.stringify({ detail: 'a: is wrong', errors })),
    (response) => response.writeHead(401).end('{"title":"Not authenticated"}'),
  )
  await expect(api.json('/v1/events')).rejects.toThrow('was answered 400: a: is wrong\n  event 2, b: is missing')
  await expect(api.json('/v1/events')).rejects.toMatchObject({ status: 401, hint: expect.stringContaining('reflex login') })
})

test('a response without a body is null, and an unreachable server is named with a hint', async () => {
  const api = await serving((response) => response.writeHead(204).end())
  await expect(api.json('/v1/keys/a', { method: 'DELETE' })).resolves.toBeNull()
  await expect(connect('http://127.0.0.1:1', 'key', 'Start it.').json('/health')).rejects.toMatchObject({ hint: 'Start it.' })
})

test('a log is followed from a given entry', async () => {
  const api = await serving((response) => stream(response).write(entry(5) + entry(6)))
  const stop = new AbortController()
  const seen: number[] = []
  const onEntry = ({ seq }: LogEntry) => {
    seen.push(seq)
    stop.abort()
  }
  await followLog(api, { scope: 'a', after: 5, signal: stop.signal, onEntry })
  expect(seen).toEqual([6])
  expect(api.asked[0]).toMatchObject({ url: '/v1/scopes/a/stream?after=5' })
})
