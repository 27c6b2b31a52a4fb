import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { framesOf } from '../../../support/socket-frames.ts'
import { adminKey, call, fetchRaw, scopePath } from '../../../support/http.ts'
import { evict, freshScope, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'

const DELETED = { code: 4401, reason: 'the key that opened this socket was deleted or has expired' }

async function keyOf(name: string): Promise<{ id: string; key: string }> {
  return (await call('/v1/keys', { json: { name, roles: ['publisher', 'viewer'], scopes: ['*'] } })).body
}
const remove = async ({ id }: { id: string }) => expect((await call(`/v1/keys/${id}`, { method: 'DELETE' })).status).toBe(204)

async function connect(scope: string, key: string | null, query = '') {
  const { webSocket: socket, status } = await fetchRaw(scopePath(scope, `/ws${query}`), { key, headers: { Upgrade: 'websocket' } })
  if (!socket) throw new Error(`no socket: ${status}`)
  const ended: { code: number; reason: string }[] = []
  socket.addEventListener('close', ({ code, reason }) => void ended.push({ code, reason }))
  const say = (content: string) => socket.send(JSON.stringify({ id: content, content }))
  const open = framesOf<{ type: string; id?: string }>(socket)
  return { say, ended, ...open, end: () => until(async () => ended[0], 'the socket is closed') }
}

const ticketOf = async (scope: string, key: string): Promise<string> =>
  (await call(scopePath(scope, '/tickets'), { method: 'POST', key })).body.ticket

test('a deleted key’s sockets are closed when the scope has something to tell, those of others stay', async () => {
  const scope = freshScope()
  const [gone, kept] = [await keyOf('gone'), await keyOf('kept')]
  const ended = [await connect(scope, gone.key), await connect(scope, null, `?ticket=${await ticketOf(scope, gone.key)}`)]
  const open = [await connect(scope, kept.key), await connect(scope, adminKey)]
  await remove(gone)
  await sendAndSettle(stubOf(scope), note(scope, 'told'))
  for (const socket of ended) expect(await socket.end()).toEqual(DELETED)
  expect((await stubOf(scope).state()).sockets).toBe(2)
  for (const { say, frame } of open) {
    say('still here')
    await frame('ack', ({ id }) => id === 'still here')
  }
  expect(open.map((socket) => socket.ended)).toEqual([[], []])
})

test('a key that has expired keeps no socket, one that will expire does', async () => {
  const scope = freshScope()
  const [over, valid] = [await keyOf('over'), await keyOf('valid')]
  const [ending, open] = [await connect(scope, over.key), await connect(scope, valid.key)]
  const expires = (at: number, { id }: { id: string }) => env.DB.prepare('UPDATE keys SET expires_at = ? WHERE id = ?').bind(at, id).run()
  await expires(Date.now() - 1, over)
  await expires(Date.now() + 3_600_000, valid)
  await sendAndSettle(stubOf(scope), note(scope, 'told'))
  expect(await ending.end()).toEqual(DELETED)
  open.say('still here')
  await open.frame('ack')
  expect(open.ended).toEqual([])
})

test('a socket whose key was deleted while the scope slept is closed when it speaks', async () => {
  const scope = freshScope()
  const gone = await keyOf('gone')
  const socket = await connect(scope, gone.key)
  socket.say('a')
  await socket.frame('ack')
  await remove(gone)
  await evict(stubOf(scope))
  socket.say('b')
  expect(await socket.end()).toEqual(DELETED)
})

test('while D1 is away no socket is closed', async () => {
  const scope = freshScope()
  const gone = await keyOf('gone')
  const socket = await connect(scope, gone.key)
  await remove(gone)
  await env.DB.exec('ALTER TABLE keys RENAME TO keys_away')
  try {
    socket.say('a')
    await socket.frame('ack')
    await sendAndSettle(stubOf(scope), note(scope, 'told'))
  } finally {
    await env.DB.exec('ALTER TABLE keys_away RENAME TO keys')
  }
  socket.say('b')
  await socket.frame('ack', ({ id }) => id === 'b')
  expect(socket.ended).toEqual([])
  await evict(stubOf(scope))
  socket.say('c')
  expect(await socket.end()).toEqual(DELETED)
})

test('a deleted key’s stream ends with a reason, others continue', async () => {
  const scope = freshScope()
  const read = async (key_id: string) => {
    const headers = { 'x-reflex-connect': JSON.stringify({ connection_id: 'v', key_id, source: 'v', may_send: false, after: null }) }
    const { body } = await stubOf(scope).fetch('https://scope/stream', { headers })
    if (!body) throw new Error('no stream')
    return body.pipeThrough(new TextDecoderStream()).getReader()
  }
  // The requests follow one another: the first use of a connection has the keys checked that there
  // are by then.
  const ending = await read('no-such-key')
  const live = await read('admin')
  let text = ''
  for (let piece = await ending.read(); !piece.done; piece = await ending.read()) text += piece.value
  expect(text).toMatch(/: the key that opened this stream was deleted or has expired\n\n$/)
  await sendAndSettle(stubOf(scope), note(scope, 'told'))
  let seen = ''
  while (!seen.includes('event: log')) seen += (await live.read()).value ?? ''
  await live.cancel()
})

test('a ticket of a deleted key opens nothing', async () => {
  const scope = freshScope()
  const [gone, kept] = [await keyOf('gone'), await keyOf('kept')]
  const tickets = [await ticketOf(scope, gone.key), await ticketOf(scope, kept.key)]
  await remove(gone)
  const opened = tickets.map((ticket) => call(scopePath(scope, `/ws?ticket=${ticket}`), { key: null, headers: { Upgrade: 'websocket' } }))
  expect((await Promise.all(opened)).map(({ status }) => status)).toEqual([401, 101])
})

test('other consumers get what a deleted key has claimed, without an attempt, and no other claim ends', async () => {
  const scope = freshScope()
  const [gone, kept] = [await keyOf('gone'), await keyOf('kept')]
  await stubOf(scope).configure({ consumer: 'pull' }, 'test')
  const claim = async ({ key }: { key: string }, limit = 10): Promise<{ event: { id: string }; ack_token: string; attempts: number }[]> =>
    (await call(scopePath(scope, '/claim'), { key, json: { claim_id: 'same', limit, lease_s: 3600 } })).body.deliveries
  const ids = await send(stubOf(scope), note(scope, 'a'), note(scope, 'b'))
  const [held] = await claim(gone, 1)
  const [other] = await claim(kept, 1)
  expect([held?.event.id, other?.event.id]).toEqual(ids)
  await remove(gone)
  // The look at the keys is at most once a minute in one life of the object.
  await evict(stubOf(scope))
  const taken = await until(
    async () => (await call(scopePath(scope, '/claim'), { json: { lease_s: 3600 } })).body.deliveries[0],
    'it is free',
  )
  expect(taken).toMatchObject({ event: { id: held?.event.id }, attempts: 1 })
  const tokens = [held, other].map((one) => one?.ack_token)
  const acked = await call(scopePath(scope, '/ack'), { key: kept.key, json: { ack_tokens: tokens } })
  expect(acked.body).toEqual({ acked: [other?.ack_token], stale: [held?.ack_token] })
})
