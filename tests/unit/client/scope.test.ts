import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Reflex, Scope } from '../../../client/index.ts'
import { storeOf } from '../../../client/react/scope-store.ts'
import { FakeSocket } from './fake-socket.ts'

type Answers = Record<string, (url: URL, init: RequestInit | undefined) => object>
let answers: Answers = {}
const asked: string[] = []

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.stubGlobal('fetch', async (input: string, init?: RequestInit) => {
    const url = new URL(input)
    asked.push(`${init?.method ?? 'GET'} ${decodeURIComponent(url.pathname)}${url.search}`)
    if (url.pathname.endsWith('/tickets')) return Response.json({ ticket: 't' }, { status: 201 })
    const answer = Object.entries(answers).find(([ending]) => url.pathname.endsWith(ending))
    if (!answer) return Response.json({ detail: 'not found', status: 404 }, { status: 404 })
    return Response.json(answer[1](url, init))
  })
  answers = {}
  asked.length = 0
  FakeSocket.all.length = 0
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const scope = () => new Scope({ base_url: 'http://reflex.test', scope: 'team-a/x', key: 'k' })
const settled = () => vi.advanceTimersByTimeAsync(500)
async function socketAt(index: number): Promise<FakeSocket> {
  await settled()
  const socket = FakeSocket.all[index]
  if (!socket) throw new Error('the client made no connection')
  return socket
}
const entry = (seq: number, more: object = {}) => ({ type: 'log', entries: [{ seq, kind: 'event-accepted', event_ids: [], ...more }] })
const ended = (seq: number, id: string, more: object = {}) =>
  entry(seq, { kind: 'event-ended', event_ids: [id], status: 'completed', attempts: 1, error: null, outcome: { by: 'filter' }, ...more })
const logPage = (seqs: number[], next_cursor: string | null = null) => ({ items: seqs.flatMap((seq) => entry(seq).entries), next_cursor })

test('all subscribers share one socket, which closes after the last of them', async () => {
  const shared = scope()
  const [first, second]: [number[], number[]] = [[], []]
  const statuses: string[] = []
  const endFirst = shared.subscribe({ onEntry: ({ seq }) => first.push(seq), onStatus: (status) => statuses.push(status) })
  const endSecond = shared.subscribe({ onEntry: ({ seq }) => second.push(seq) })
  const socket = (await socketAt(0)).open(4)
  socket.receive(entry(5))
  expect([first, second, shared.status, shared.last_seq]).toEqual([[5], [5], 'live', 5])
  endFirst()
  socket.receive(entry(6))
  expect([first, second]).toEqual([[5], [5, 6]])
  endSecond()
  await vi.advanceTimersByTimeAsync(10_000)
  expect([socket.readyState, shared.status, FakeSocket.all.length]).toEqual([3, 'idle', 1])
  expect(statuses).toEqual(['live'])
})

test('a listener that leaves and returns at once keeps the socket', async () => {
  const shared = scope()
  shared.subscribe({})()
  const end = shared.subscribe({})
  ;(await socketAt(0)).open(0)
  await vi.advanceTimersByTimeAsync(10_000)
  expect([FakeSocket.all.length, shared.status]).toEqual([1, 'live'])
  end()
})

test('a later subscriber reads the earlier entries first, without a gap or a duplicate', async () => {
  const shared = scope()
  const end = shared.subscribe({})
  const socket = (await socketAt(0)).open(3)
  socket.receive(entry(4))
  answers = {
    '/log': (url) => {
      // Written while the pages are read.
      socket.receive(entry(5))
      return url.searchParams.get('after') === '1' ? logPage([2, 3], '3') : logPage([4, 5])
    },
  }
  const seen: number[] = []
  const endLate = shared.subscribe({ after: 1, onEntry: ({ seq }) => seen.push(seq) })
  await settled()
  socket.receive(entry(6))
  expect(seen).toEqual([2, 3, 4, 5, 6])
  expect(FakeSocket.all).toHaveLength(1)
  end()
  endLate()
})

test('subscribers hear the entries of a log that replaced the one that they had', async () => {
  const shared = scope()
  const seen: number[] = []
  shared.subscribe({ after: 7, onEntry: ({ seq }) => seen.push(seq) })
  const socket = (await socketAt(0)).open(7)
  socket.receive(entry(8))
  socket.drop()
  const again = (await socketAt(1)).open(2)
  again.receive(entry(3))
  again.receive(entry(4))
  expect([seen, shared.last_seq]).toEqual([[8, 3, 4], 4])
  shared.close()
})

test('an outcome is found whether the event ends before or after it is asked for', async () => {
  const shared = scope()
  answers = { '/events/early': () => ({ status: 'ignored', attempts: 0, error: null, outcome: { by: 'filter' } }) }
  const early = shared.outcome('early')
  const late = shared.outcome('late')
  const socket = (await socketAt(0)).open(0)
  expect(await early).toEqual({ id: 'early', status: 'ignored', attempts: 0, error: null, outcome: { by: 'filter' } })
  socket.receive(ended(1, 'other'))
  socket.receive(ended(2, 'late', { status: 'dead_lettered', error: 'broken' }))
  expect(await late).toMatchObject({ id: 'late', status: 'dead_lettered', error: 'broken' })
})

test('an outcome has the result of its turn, also if it ends after it is asked for', async () => {
  const shared = scope()
  const outcome = shared.outcome('a')
  const socket = (await socketAt(0)).open(0)
  await settled()
  const end = { status: 'completed', attempts: 1, error: null, outcome: { by: 'turn', turn_id: 't', log_seq: 1, result: { text: 'hi' } } }
  answers = { '/events/a': () => end }
  socket.receive(ended(2, 'a', { outcome: { by: 'turn', turn_id: 't', log_seq: 1 } }))
  expect(await outcome).toEqual({ id: 'a', ...end })
})

test('an outcome that ended while the connection was lost is found after it', async () => {
  const shared = scope()
  const outcome = shared.outcome('a')
  const first = (await socketAt(0)).open(0)
  answers = { '/events/a': () => ({ status: 'completed', attempts: 2, error: null, outcome: null }) }
  first.drop()
  ;(await socketAt(1)).open(0)
  expect(await outcome).toMatchObject({ status: 'completed', attempts: 2 })
})

test('waiting for an outcome can be given up, and fails where the key is refused', async () => {
  const shared = scope()
  const controller = new AbortController()
  const abandoned = shared.outcome('a', { signal: controller.signal }).catch(String)
  const refused = shared.outcome('b').catch(String)
  const socket = (await socketAt(0)).open(0)
  controller.abort(new Error('enough'))
  expect(await abandoned).toBe('Error: enough')
  socket.drop(4401, 'the key that opened this socket was deleted')
  expect(await refused).toContain('the key that opened this socket was deleted')
  expect(shared.status).toBe('closed')
})

test('problems are data', async () => {
  await expect(scope().event('none')).rejects.toMatchObject({ name: 'ReflexError', status: 404, problem: { detail: 'not found' } })
})

test('a deployment has one object for each scope, and its lists', async () => {
  const reflex = new Reflex({ base_url: 'http://reflex.test/', key: 'k' })
  expect(reflex.scope('a')).toBe(reflex.scope('a'))
  answers = {
    '/approvals': () => ({ items: [], next_cursor: null }),
    '/approve': () => ({ id: 'p' }),
    '/cancel': () => ({ cancelled: true }),
  }
  await reflex.approvals({ status: 'pending' })
  await reflex.respond('p', 'approve', 'checked')
  await reflex.scope('a/b').cancel()
  expect(asked).toEqual(['GET /v1/approvals?status=pending', 'POST /v1/approvals/p/approve', 'POST /v1/scopes/a/b/cancel'])
})

test('the store of a component reads the content of events that others sent, once D1 has it, and then no more', async () => {
  let rows: object[] = []
  const empty = { items: [], next_cursor: null }
  answers = {
    'team-a%2Fx': () => ({}),
    '/log': () => empty,
    '/approvals': () => empty,
    '/events': () => ({ items: rows, next_cursor: null }),
  }
  const store = storeOf(scope())
  const end = store.subscribe(() => {})
  const socket = (await socketAt(0)).open(0)
  await settled()
  socket.receive(entry(1, { event_ids: ['a'], event_type: 'ws.message', source: 'bob', at: '' }))
  await vi.advanceTimersByTimeAsync(2500)
  expect(store.view().events).toMatchObject([{ id: 'a', source: 'bob', event: null }])
  rows = [{ id: 'a', event: { id: 'a', type: 'ws.message', content: 'hello' } }]
  await vi.advanceTimersByTimeAsync(2500)
  expect(store.view().events).toMatchObject([{ id: 'a', event: { content: 'hello' } }])
  const reads = asked.filter((one) => one === 'GET /v1/events?limit=200&scope=team-a%2Fx').length
  expect(reads).toBeGreaterThan(1)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(asked.filter((one) => one.startsWith('GET /v1/events?'))).toHaveLength(reads)
  end()
})

test('a request that the client has no method for is sent as the reference names it', async () => {
  const sent: unknown[] = []
  answers['/audit'] = () => ({ items: [], next_cursor: null })
  answers['/state'] = (_, init) => {
    sent.push(init?.body)
    return { changed: true }
  }
  const reflex = new Reflex({ base_url: 'http://reflex.test', key: 'k' })
  await reflex.ask('get /v1/audit', { scope: 'shop/*', key: undefined })
  await reflex.ask('post /v1/reflexes/{ref}/state', { ref: 'a/b@1', state: 'active' })
  await expect(reflex.ask('delete /v1/keys/{id}', { id: 'none' })).rejects.toThrow('not found')
  expect(asked).toEqual(['GET /v1/audit?scope=shop%2F*', 'POST /v1/reflexes/a/b@1/state', 'DELETE /v1/keys/none'])
  expect(sent).toEqual(['{"state":"active"}'])
})
