import { describe, expect, test } from 'vitest'
import { limits } from '../../../../src/base/limits.ts'
import { framesOf } from '../../../support/socket-frames.ts'
import type { Connect } from '../../../../src/contract/scope-api.ts'
import { evict, freshScope, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { acting } from '../../../support/reflex-chain.ts'
import { behaviours } from '../../../support/test-agents.ts'

type Frame = {
  type: string
  seq?: number
  id?: string
  status?: string
  errors?: { message: string }[]
  entry?: { seq: number; kind: string }
  content?: string
}

async function connect(scope: string, connect: Partial<Connect> = {}, { returns_marks = true } = {}) {
  const headers = {
    upgrade: 'websocket',
    'x-reflex-connect': JSON.stringify({
      connection_id: 'alice',
      key_id: 'admin',
      source: 'alice',
      may_send: true,
      decides_as: null,
      after: null,
      ...connect,
    }),
  }
  const { webSocket: socket, status } = await stubOf(scope).fetch('https://scope/ws', { headers })
  expect(status).toBe(101)
  if (!socket) throw new Error('no socket')
  return { socket, ...framesOf<Frame>(socket, { returns_marks }) }
}

describe('a WebSocket', () => {
  test('acknowledges an event once it is accepted, and shows what the log records', async () => {
    const scope = freshScope()
    const { socket, frame, frames } = await connect(scope)
    socket.send(JSON.stringify({ content: 'hello' }))
    const ack = await frame('ack')
    expect(ack).toMatchObject({ status: 'accepted' })
    await frame('log', ({ entry }) => entry?.kind === 'turn-ended')
    expect(await stubOf(scope).event(ack.id!)).toMatchObject({
      event: { type: 'ws.message', connection_id: 'alice', source: 'ws:alice', content: 'hello' },
    })
    expect(frames.filter(({ type }) => type === 'log').map(({ entry }) => entry?.seq)).toEqual([1, 2, 3, 4])
    const event = note(scope, 'full')
    socket.send(JSON.stringify(event))
    socket.send(JSON.stringify(event))
    expect(await frame('ack', ({ id, status }) => id === event.id && status === 'duplicate')).toBeTruthy()
  })

  test.each([
    ['garbage', 'not json'],
    ['null', 'null'],
    ['an array', '[]'],
    ['an unknown type', '{"type":"what.ever"}'],
    ['a missing field', '{"type":"ws.message","connection_id":"a"}'],
    ['another scope', '{"type":"ws.message","connection_id":"a","content":"x","scope":"other"}'],
    ['2 MB', JSON.stringify({ content: 'x'.repeat(2_000_000) })],
    ['an event of 200 kB', JSON.stringify({ content: 'x'.repeat(200_000) })],
    ['binary', new Uint8Array([1, 2, 3])],
  ])('answers %s with an error, stays open and accepts nothing', async (_, data) => {
    const scope = freshScope()
    const { socket, frame } = await connect(scope)
    socket.send(data)
    expect((await frame('error')).errors?.[0]?.message).toBeTruthy()
    socket.send(JSON.stringify({ content: 'still here' }))
    expect(await frame('ack')).toMatchObject({ status: 'accepted' })
    expect((await stubOf(scope).state()).counters.accepted).toBe(1)
  })

  test('of a viewer only receives', async () => {
    const scope = freshScope()
    const { socket, frame } = await connect(scope, { may_send: false })
    socket.send(JSON.stringify({ content: 'hello' }))
    expect((await frame('error')).errors?.[0]?.message).toContain('publisher')
    await send(stubOf(scope), note(scope, 'from another'))
    await frame('log')
  })

  test('gets an error when the inbox is full', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ consumer: 'pull', inbox_limit: 1 }, 'test')
    const { socket, frame } = await connect(scope)
    socket.send(JSON.stringify({ content: 'a' }))
    await frame('ack')
    socket.send(JSON.stringify({ content: 'b' }))
    expect((await frame('error')).errors?.[0]?.message).toContain('inbox is full')
  })

  test('resumes after a sequence number without gap or repetition, also over many pages', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    for (let batch = 0; batch < 5; batch += 1)
      await sendAndSettle(stub, ...Array.from({ length: 200 }, (_, index) => note(scope, `noise ${index}`)))
    const { last_seq } = await stub.state()
    const { frames } = await connect(scope, { after: 10 })
    await sendAndSettle(stub, note(scope, 'meanwhile'))
    const end = (await stub.state()).last_seq
    await until(async () => frames.at(-1)?.entry?.seq === end, 'the end of the log')
    expect(end).toBeGreaterThan(last_seq)
    expect(frames[0]).toEqual({ type: 'open', seq: 10 })
    expect(frames.slice(1).map(({ entry }) => entry?.seq)).toEqual(Array.from({ length: end - 10 }, (_, index) => index + 11))
  })

  test('catches up with megabytes at the pace of its marks, also when it was evicted amid that', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await acting('return null', {}, scope)
    for (let batch = 0; batch < 4; batch += 1)
      await sendAndSettle(stub, ...Array.from({ length: 10 }, () => note(scope, 'x'.repeat(30_000))))
    const { last_seq } = await stub.state()
    const { frames } = await connect(scope, { after: 0 })
    await until(async () => frames.length > 5, 'it has begun')
    await evict(stub)
    await until(async () => frames.at(-1)?.entry?.seq === last_seq, 'the end of the log')
    expect(new Set(frames.slice(1).map(({ entry }) => entry?.seq)).size).toBe(last_seq)
  })

  test('of a client that only reads hears megabytes, and what comes after them', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await acting('return null', {}, scope)
    for (let batch = 0; batch < 3; batch += 1)
      await sendAndSettle(stub, ...Array.from({ length: 10 }, () => note(scope, 'x'.repeat(30_000))))
    const { frames } = await connect(scope, { after: 0 }, { returns_marks: false })
    const before = (await stub.state()).last_seq
    await until(async () => frames.findLast(({ entry }) => entry)?.entry?.seq === before, 'the end of the log')
    await sendAndSettle(stub, note(scope, 'after'))
    const { last_seq } = await stub.state()
    await until(async () => frames.findLast(({ entry }) => entry)?.entry?.seq === last_seq, 'the newest entry')
    const seqs = frames.flatMap(({ entry }) => (entry ? [entry.seq] : []))
    expect(seqs).toEqual(Array.from({ length: last_seq }, (_, index) => index + 1))
  })

  test('is answered for each of many messages in their order, and they are taken together', async () => {
    const scope = freshScope()
    const { socket, frames } = await connect(scope)
    const ids = Array.from({ length: 50 }, (_, index) => `m${index}`)
    for (const id of ids) socket.send(id === 'm25' ? 'not json' : JSON.stringify({ id, content: 'x' }))
    await until(async () => frames.filter(({ type }) => type === 'ack' || type === 'error').length === ids.length, 'all answers')
    const answers = frames.filter(({ type }) => type === 'ack' || type === 'error')
    expect(answers.map(({ id }) => id ?? 'm25')).toEqual(ids)
    expect((await stubOf(scope).state()).counters.accepted).toBe(49)
  })

  test('a key has only so many connections to one scope', async () => {
    const scope = freshScope()
    const sockets = []
    for (let count = 0; count < limits.connections_per_key; count += 1) sockets.push((await connect(scope, { key_id: 'one' })).socket)
    const headers = {
      upgrade: 'websocket',
      'x-reflex-connect': JSON.stringify({ connection_id: 'a', key_id: 'one', source: 'a', may_send: true, decides_as: null, after: null }),
    }
    expect((await stubOf(scope).fetch('https://scope/ws', { headers })).status).toBe(429)
    expect(
      (await stubOf(scope).fetch('https://scope/stream', { headers: { 'x-reflex-connect': headers['x-reflex-connect'] } })).status,
    ).toBe(429)
    await connect(scope, { key_id: 'other' })
    sockets[0]?.close()
    await until(async () => (await stubOf(scope).fetch('https://scope/ws', { headers })).status === 101, 'there is room again')
  })

  test('is first told where the log is, so that it can resume even before its first entry', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    expect(await (await connect(scope)).frame('open')).toEqual({ type: 'open', seq: 0 })
    await sendAndSettle(stub, note(scope, 'before'))
    const { last_seq } = await stub.state()
    const { socket, frames, frame } = await connect(scope)
    const { seq } = await frame('open')
    expect({ seq, frames }).toEqual({ seq: last_seq, frames: [{ type: 'open', seq: last_seq }] })
    socket.close()
    await sendAndSettle(stub, note(scope, 'between'))
    const resumed = await connect(scope, { after: seq ?? null })
    const end = (await stub.state()).last_seq
    await until(async () => resumed.frames.at(-1)?.entry?.seq === end, 'the end of the log')
    expect(resumed.frames[1]?.entry?.seq).toBe(last_seq + 1)
  })

  test('survives hibernation', async () => {
    const scope = freshScope()
    const { socket, frame } = await connect(scope)
    await evict(stubOf(scope))
    socket.send(JSON.stringify({ content: 'awake' }))
    expect(await frame('ack')).toMatchObject({ status: 'accepted' })
    await frame('log', ({ entry }) => entry?.kind === 'event-accepted')
  })

  test('gets an answer as it is made, and whole at the end', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, deps) => {
      for (const delta of ['a', 'b']) deps.stream(delta)
      deps.reply('ab')
      return null
    })
    const { frames, frame } = await connect(scope)
    await send(stubOf(scope), note(scope, 'go'))
    await frame('log', ({ entry }) => entry?.kind === 'reply-sent')
    expect(frames.filter(({ type }) => type === 'delta').map(({ content }) => content)).toEqual(['a', 'b'])
  })

  test('gets no secret of the deployment in an answer as it is made, nor does a stream', async () => {
    const scope = freshScope()
    const held = Promise.withResolvers<void>()
    behaviours.set(scope, async (_, deps) => {
      deps.stream('it is nowhere-secret')
      await held.promise
      return null
    })
    const { frame } = await connect(scope)
    const by = { connection_id: 'v', key_id: 'admin', source: 'v', may_send: false, after: null, parts: true }
    const { body } = await stubOf(scope).fetch('https://scope/stream', { headers: { 'x-reflex-connect': JSON.stringify(by) } })
    const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
    await send(stubOf(scope), note(scope, 'go'))
    expect((await frame('delta')).content).toMatch(/^it is (?!nowhere-secret)/)
    let text = ''
    while (!text.includes('event: part\n')) text += (await reader.read()).value ?? ''
    expect(text).not.toContain('nowhere-secret')
    const late = await connect(scope)
    expect((await late.frame('delta')).content).toMatch(/^it is (?!nowhere-secret)/)
    held.resolve()
    await reader.cancel()
  })

  test('that opens during a turn gets the answer so far, and the rest as it is made', async () => {
    const scope = freshScope()
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async (_, deps) => {
      for (const delta of ['a', 'b']) deps.stream(delta)
      await gate.promise
      deps.stream('c')
      deps.reply('abc')
      return null
    })
    const early = await connect(scope)
    await send(stubOf(scope), note(scope, 'go'))
    await early.frame('delta', ({ content }) => content === 'b')
    const late = await connect(scope, { after: 0 })
    gate.resolve()
    await late.frame('log', ({ entry }) => entry?.kind === 'reply-sent')
    const deltas = late.frames.filter(({ type }) => type === 'delta')
    expect(deltas).toEqual([
      { type: 'delta', turn_id: expect.any(String), content: 'ab', from: 0 },
      { type: 'delta', turn_id: expect.any(String), content: 'c' },
    ])
    await until(async () => (await stubOf(scope).state()).turn === null, 'the turn has ended')
    const after = await connect(scope, { after: 0 })
    await after.frame('log', ({ entry }) => entry?.kind === 'turn-ended')
    expect(after.frames.filter(({ type }) => type === 'delta')).toEqual([])
  })

  test('that opens during a turn gets no part of an answer whose beginning is no longer kept whole', async () => {
    const scope = freshScope()
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async (_, deps) => {
      deps.stream('x'.repeat(70_000))
      await gate.promise
      deps.stream('c')
      deps.reply('long')
      return null
    })
    const early = await connect(scope)
    await send(stubOf(scope), note(scope, 'go'))
    await early.frame('delta')
    const late = await connect(scope, { after: 0 })
    gate.resolve()
    await late.frame('log', ({ entry }) => entry?.kind === 'reply-sent')
    expect(late.frames.filter(({ type }) => type === 'delta')).toEqual([{ type: 'delta', turn_id: expect.any(String), content: 'c' }])
  })

  test.each([
    ['of its sender', {}, true],
    ['of another key', { key_id: 'other' }, false],
    ['of the dashboard', { connection_id: 'reflex-dashboard' }, false],
  ])('%s has somebody hear the answer to an event of any type that was sent another way', async (_, by, expected) => {
    const scope = freshScope()
    await connect(scope, by)
    const { meta, ...event } = note(scope, 'a')
    const sent = { ...event, meta: { ...meta, sender: 'key:admin' } }
    await stubOf(scope).accept([sent], 'http')
    expect((await stubOf(scope).event(event.id))?.event.meta.heard === true).toBe(expected)
  })

  test('gets a reflex’s answer behind the acknowledgement and ahead of the log', async () => {
    const { scope } = await acting(`return { action_type: 'reply', content: 'heard ' + context.event.content }`)
    const { socket, frames, frame } = await connect(scope)
    socket.send(JSON.stringify({ id: 'one', content: 'a' }))
    await frame('log', ({ entry }) => entry?.kind === 'reply-sent')
    expect(frames.slice(1, 3)).toEqual([
      { type: 'ack', id: 'one', status: 'accepted' },
      { type: 'delta', turn_id: null, event_id: 'one', content: 'heard a' },
    ])
  })

  test.each<[string, [code?: number, reason?: string], { code: number; reason: string }]>([
    ['with a code and a reason', [4001, 'bye'], { code: 4001, reason: 'bye' }],
    ['without a code', [], { code: 1000, reason: '' }],
  ])('that its client closes %s is closed by the scope, too', async (_, given, seen) => {
    const { socket } = await connect(freshScope())
    const { promise: closed, resolve } = Promise.withResolvers<CloseEvent>()
    socket.addEventListener('close', resolve)
    socket.close(...given)
    expect(await closed).toMatchObject({ ...seen, wasClean: true })
  })

  test('that is gone does not hold the scope up', async () => {
    const scope = freshScope()
    const { socket } = await connect(scope)
    socket.close(1000, 'bye')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ status: 'completed' }])
    await until(async () => (await stubOf(scope).state()).sockets === 0, 'it is forgotten')
  })
})

test('a client that knows a longer log than there is hears from the end of this one on, and where that is', async () => {
  const scope = freshScope()
  await sendAndSettle(stubOf(scope), note(scope, 'a'))
  const { last_seq } = await stubOf(scope).state()
  const { frame } = await connect(scope, { after: 1_000_000 })
  expect(await frame('open')).toMatchObject({ seq: last_seq })
  const headers = {
    'x-reflex-connect': JSON.stringify({ connection_id: 'v', key_id: 'admin', source: 'v', may_send: false, after: 1_000_000 }),
  }
  const { body } = await stubOf(scope).fetch('https://scope/stream', { headers })
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
  await sendAndSettle(stubOf(scope), note(scope, 'b'))
  expect((await frame('log')).entry).toMatchObject({ seq: last_seq + 1 })
  let text = ''
  while (!text.includes(`id: ${last_seq + 1}\n`)) text += (await reader.read()).value ?? ''
  await reader.cancel()
})

describe('server-sent events', () => {
  async function stream(scope: string, after: number | null) {
    const headers = { 'x-reflex-connect': JSON.stringify({ connection_id: 'v', key_id: 'admin', source: 'v', may_send: false, after }) }
    const response = await stubOf(scope).fetch('https://scope/stream', { headers })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    // The first id belongs to no entry: an EventSource resumes from it before any entry.
    const ids = async (count: number) => {
      while ((text.match(/^id: /gm) ?? []).length < count) text += (await reader.read()).value ?? ''
      return [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))
    }
    return { ids, cancel: () => reader.cancel() }
  }

  test('follow the log, and resume after the last id', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const live = await stream(scope, null)
    await sendAndSettle(stub, note(scope, 'a'))
    expect(await live.ids(5)).toEqual([0, 1, 2, 3, 4])
    await live.cancel()
    await sendAndSettle(stub, note(scope, 'noise'))
    const resumed = await stream(scope, 2)
    expect(await resumed.ids(5)).toEqual([2, 3, 4, 5, 6])
    await resumed.cancel()
  })

  test('a reader that does not read does not hold the scope up', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stream(scope, 0)
    await sendAndSettle(stub, ...Array.from({ length: 500 }, (_, index) => note(scope, `noise ${index}`)))
    expect((await stub.state()).counters.ignored).toBe(500)
  })
})
