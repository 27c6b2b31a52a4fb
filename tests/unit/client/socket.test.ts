import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TicketRefused } from '../../../client/index.ts'
import { FakeSocket } from './fake-socket.ts'
import { connectScope, type Connection, type ConnectOptions } from '../../../client/socket.ts'

const refusal = (status: number, detail: string) => Response.json({ detail }, { status })
let tickets = 0
const server = vi.fn<typeof fetch>()
let connection: Connection | undefined

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.stubGlobal('fetch', server)
  tickets = 0
  server.mockReset().mockImplementation(async () => Response.json({ ticket: `t${(tickets += 1)}` }, { status: 201 }))
  FakeSocket.all.length = 0
})
afterEach(() => {
  connection?.close()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function connect(options: Partial<ConnectOptions> = {}): Connection {
  connection = connectScope({ base_url: 'http://reflex.test/', scope: 'team-a/x', key: 'secret', ...options })
  connection.send({ content: 'unheard' }).catch(() => undefined)
  return connection
}

/** The next socket that the client makes, once its pause is over. */
async function nextSocket(): Promise<FakeSocket> {
  const known = FakeSocket.all.length
  for (let waited = 0; FakeSocket.all.length === known && waited < 60_000; waited += 100) await vi.advanceTimersByTimeAsync(100)
  const socket = FakeSocket.all[known]
  if (!socket) throw new Error('the client made no connection')
  return socket
}

const entry = (seq: number) => ({ type: 'log', entries: [{ seq }] })
const ids = (socket: FakeSocket): string[] => socket.sent.map((text): string => JSON.parse(text).id)

test('each connection is opened with its own ticket, and resumes after the last entry', async () => {
  const seen: number[] = []
  const { last_seq } = connect({ after: 3, connection_id: 'bob', onEntry: ({ seq }) => seen.push(seq) })
  expect(last_seq).toBe(3)
  const first = (await nextSocket()).open(3)
  expect(first.url.href).toBe('ws://reflex.test/v1/scopes/team-a%2Fx/ws?ticket=t1&connection_id=bob&after=3&frames=units')
  expect(server.mock.calls[0]).toMatchObject([
    'http://reflex.test/v1/scopes/team-a%2Fx/tickets',
    { method: 'POST', headers: { Authorization: 'Bearer secret' } },
  ])
  first.receive(entry(4))
  first.receive(entry(5))
  first.drop()
  const second = (await nextSocket()).open(5)
  expect(second.url.search).toBe('?ticket=t2&connection_id=bob&after=5&frames=units')
  second.receive(entry(5))
  second.receive(entry(6))
  expect(seen).toEqual([4, 5, 6])
  expect(connection?.last_seq).toBe(6)
})

test('a connection that breaks before its first entry resumes where it was opened', async () => {
  connect()
  const first = (await nextSocket()).open(7)
  expect(connection?.last_seq).toBe(7)
  first.drop()
  const second = (await nextSocket()).open(7)
  expect(second.url.search).toBe('?ticket=t2&after=7&frames=units')
  second.receive(entry(8))
  second.drop()
  expect((await nextSocket()).open(8).url.search).toBe('?ticket=t3&after=8&frames=units')
})

test('nothing is sent or reported as open before the position in the log is known', async () => {
  const onOpen = vi.fn<() => void>()
  const { send } = connect({ onOpen })
  const first = await nextSocket()
  first.connected()
  send({ content: 'early', id: 'a' }).catch(() => undefined)
  expect(first.sent).toEqual([])
  expect(onOpen).not.toHaveBeenCalled()
  first.receive({ type: 'open', seq: 7 })
  expect(ids(first)).toEqual([expect.any(String), 'a'])
  expect(onOpen).toHaveBeenCalledOnce()
  first.drop()
  const second = await nextSocket()
  second.connected()
  send({ content: 'late', id: 'b' }).catch(() => undefined)
  expect(second.sent).toEqual([])
  second.receive({ type: 'open', seq: 7 })
  expect(ids(second)).toEqual([expect.any(String), 'a', 'b'])
})

test('a ticket provider stands in for a key', async () => {
  connection = connectScope({ base_url: 'https://reflex.test', scope: 's', ticket: async () => 'given' })
  expect((await nextSocket()).url.href).toBe('wss://reflex.test/v1/scopes/s/ws?ticket=given&frames=units')
  expect(server).not.toHaveBeenCalled()
})

test('an event is sent until it is acknowledged, always under one id', async () => {
  const { send } = connect()
  const early = send({ content: 'early', id: 'a' })
  const first = (await nextSocket()).open()
  expect(ids(first)).toEqual([expect.any(String), 'a'])
  first.receive({ type: 'ack', id: ids(first)[0], status: 'accepted' })
  const late = send({ type: 'ws.message', connection_id: 'c', content: 'late', id: 'b' })
  expect(ids(first).at(-1)).toBe('b')
  first.drop()
  const offline = send({ content: 'offline', id: 'c' })
  const second = (await nextSocket()).open()
  expect(ids(second)).toEqual(['a', 'b', 'c'])
  second.receive({ type: 'ack', id: 'a', status: 'duplicate' })
  second.receive({ type: 'ack', id: 'b', status: 'accepted' })
  second.receive({ type: 'ack', id: 'c', status: 'accepted' })
  expect(await Promise.all([early, late, offline])).toEqual([
    { id: 'a', status: 'duplicate' },
    { id: 'b', status: 'accepted' },
    { id: 'c', status: 'accepted' },
  ])
})

test('an event that the scope rejects is reported to its sender', async () => {
  const onError = vi.fn<(error: Error) => void>()
  connection = connectScope({ base_url: 'http://reflex.test', scope: 's', key: 'k', onError })
  const socket = (await nextSocket()).open()
  const bad = connection.send({ type: 'no.such' })
  const good = connection.send({ content: 'hello', id: 'good' })
  socket.receive({ type: 'error', errors: [{ path: 'type', message: 'unknown type' }] })
  socket.receive({ type: 'ack', id: 'good', status: 'accepted' })
  await expect(bad).rejects.toThrow('type: unknown type')
  expect(await good).toMatchObject({ id: 'good' })
  expect(onError).not.toHaveBeenCalled()
  socket.receive({ type: 'error', errors: [{ path: '', message: 'out of the blue' }] })
  expect(onError).toHaveBeenCalledWith(new Error('out of the blue'))
})

test('a mark is sent back as it came, behind what came before it', async () => {
  const sent: number[] = []
  connect({ onEntry: () => sent.push(socket.sent.length) })
  const socket: FakeSocket = (await nextSocket()).open()
  socket.receive(entry(1))
  socket.receive({ type: 'mark', sent: 65_000 })
  expect(socket.sent.slice(sent[0])).toEqual(['{"type":"mark","sent":65000}'])
})

test('a socket that was closed because too much was unread is opened again where it was', async () => {
  connect()
  const first = (await nextSocket()).open()
  first.receive(entry(7))
  first.drop(4008, 'too much is unread')
  expect((await nextSocket()).url.searchParams.get('after')).toBe('7')
})

test('parts of a response are reported as they arrive', async () => {
  const deltas: string[] = []
  connect({ onDelta: ({ content }) => deltas.push(content) })
  const socket = (await nextSocket()).open()
  socket.receive({ type: 'delta', turn_id: 't', content: 'Hel' })
  socket.receive({ type: 'delta', turn_id: 't', content: 'lo' })
  expect(deltas).toEqual(['Hel', 'lo'])
})

test('a key that is refused ends it, a server that is away does not', async () => {
  const onError = vi.fn<(error: Error) => void>()
  server.mockResolvedValueOnce(refusal(503, 'away')).mockRejectedValueOnce(new Error('fetch failed'))
  connect({ onError })
  const socket = (await nextSocket()).open()
  expect(onError.mock.calls.map(([{ message }]) => message)).toEqual(['no ticket for team-a/x: away', 'fetch failed'])
  const pending = connection?.send({ content: 'hello' })
  const failed = pending?.catch((error: Error) => error.message)
  server.mockResolvedValue(refusal(403, 'it does not cover the scope'))
  socket.drop()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await failed).toContain('does not cover')

  expect(server).toHaveBeenCalledTimes(4)
})

test('a key that was deleted ends it, and says so', async () => {
  const onError = vi.fn<(error: Error) => void>()
  connect({ onError })
  const failed = connection?.send({ content: 'hello' }).catch((error: Error) => error.message)
  const socket = (await nextSocket()).open()
  socket.drop(4401, 'the key that opened this socket was deleted')
  expect(await failed).toBe('the connection to team-a/x was ended: the key that opened this socket was deleted')
  expect(onError.mock.calls).toEqual([[expect.objectContaining({ message: await failed })]])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(server).toHaveBeenCalledTimes(1)
  expect(FakeSocket.all).toHaveLength(1)
})

test('a ticket provider is asked again when its key was deleted, until it ends it', async () => {
  const ticket = vi.fn<() => Promise<string>>().mockResolvedValueOnce('old').mockResolvedValueOnce('new')
  connection = connectScope({ base_url: 'http://reflex.test', scope: 's', ticket })
  ;(await nextSocket()).open().drop(4401, 'the key that opened this socket was deleted')
  const second = (await nextSocket()).open()
  expect(second.url.searchParams.get('ticket')).toBe('new')
  ticket.mockRejectedValue(new TicketRefused('signed out'))
  second.drop(4401, 'the key that opened this socket was deleted')
  await vi.advanceTimersByTimeAsync(60_000)
  await expect(connection.send({ content: 'hello' })).rejects.toThrow('signed out')
  expect(ticket).toHaveBeenCalledTimes(3)
})

test('a connection that answers no ping is left for a new one', async () => {
  connect()
  const socket = (await nextSocket()).open()
  await vi.advanceTimersByTimeAsync(20_000)
  expect(socket.sent.at(-1)).toBe('ping')
  socket.dispatchEvent(new MessageEvent('message', { data: 'pong' }))
  await vi.advanceTimersByTimeAsync(20_000)
  expect(FakeSocket.all).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(20_100)
  expect(FakeSocket.all).toHaveLength(2)
})

test('a connection that is not open in time is left for a new one', async () => {
  const onError = vi.fn<(error: Error) => void>()
  connect({ onError })
  const silent = await nextSocket()
  silent.connected()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(silent.readyState).toBe(3)
  expect(onError.mock.calls).toEqual([[new Error('the connection took too long to open')]])
  expect((await nextSocket()).open().url.searchParams.get('ticket')).toBe('t2')
})

test('closing ends it, and what was not acknowledged fails', async () => {
  const { send, close } = connect()
  const socket = (await nextSocket()).open()
  const failed = send({ content: 'hello' }).catch((error: Error) => error.message)
  close()
  expect(await failed).toContain('closed')

  expect(socket.readyState).toBe(3)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(FakeSocket.all).toHaveLength(1)
  await expect(send({ content: 'too late' })).rejects.toThrow('closed')
})

test('a connection that is closed while it opens is closed once it is open, and reports nothing', async () => {
  const onEntry = vi.fn<() => void>()
  const { close } = connect({ onEntry })
  const socket = await nextSocket()
  close()
  expect(socket.readyState).toBe(0)
  socket.open().receive(entry(1))
  expect(socket.readyState).toBe(3)
  expect(onEntry).not.toHaveBeenCalled()
})

test('the same event, sent again before its answer, goes out once', async () => {
  const { send } = connect()
  const socket = (await nextSocket()).open()
  const both = Promise.all([send({ content: 'hello', id: 'a' }), send({ content: 'hello', id: 'a' })])
  expect(ids(socket).filter((id) => id === 'a')).toHaveLength(1)
  socket.receive({ type: 'ack', id: 'a', status: 'accepted' })
  expect(await both).toEqual([
    { id: 'a', status: 'accepted' },
    { id: 'a', status: 'accepted' },
  ])
})
