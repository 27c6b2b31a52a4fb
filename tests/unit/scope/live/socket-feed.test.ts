import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { limits } from '../../../../src/base/limits.ts'
import type { Log } from '../../../../src/engine/log/log.ts'
import { SocketFeed } from '../../../../src/engine/live/sockets.ts'
import { part } from '../../agents/agent-fixtures.ts'

const ENTRIES = 300
const text = (seq: number) => JSON.stringify({ seq, x: 'y'.repeat(10_000) })
const entries = Array.from({ length: ENTRIES }, (_, index) => ({ seq: index + 1, text: text(index + 1) }))

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('scheduler', { wait: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)) })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function feedOf() {
  const log = part<Log>({
    last: ENTRIES,
    read: (after: number, limit: number, _before?: number, bytes?: number) => {
      let left = bytes ?? Number.MAX_SAFE_INTEGER
      return entries.slice(after, after + limit).filter((entry) => left > 0 && (left -= entry.text.length) > -Infinity)
    },
  })
  const feed = new SocketFeed({ log, now: Date.now })
  const open = (cursor: number | null, key_id = 'k', units?: true) => {
    const sent: { type: string; sent?: number; entry?: { seq: number }; entries?: { seq: number }[] }[] = []
    const bytes = { sent: 0 }
    const close = vi.fn<(code: number, reason: string) => void>()
    const send = (frame: string) => {
      bytes.sent += frame.length
      sent.push(JSON.parse(frame))
    }
    const socket = part<WebSocket>({ send, close, serializeAttachment: () => {} })
    const connect = { connection_id: 'c', key_id, source: 's', may_send: true, decides_as: null, ...(units && { units }) }
    const counts = { sent: 0, marked: 0, read: 0, closing: false }
    feed.add(socket, { ...connect, ...counts, cursor, live_after: cursor === null ? 0 : ENTRIES })
    feed.follow(socket)
    const echo = () => feed.seen(socket, sent.findLast(({ type }) => type === 'mark')?.sent ?? 0)
    const seqs = () => sent.flatMap(({ entry, entries: unit = [] }) => (entry ? [entry.seq] : unit.map(({ seq }) => seq)))
    return { socket, sent, bytes, close, echo, seqs }
  }
  return { feed, open }
}

test('a socket that asks for units is sent what was written together in one frame, and a mark after at most 64 kB', async () => {
  const { feed, open } = feedOf()
  const { sent, seqs, echo } = open(null, 'k', true)
  feed.push(entries.slice(0, 3))
  feed.push(entries.slice(3, 4))
  expect(sent.map(({ type, entries: unit }) => unit?.length ?? type)).toEqual([3, 1])
  const { sent: caught, seqs: all, echo: echoAll } = open(0, 'k', true)
  for (let round = 0; round < 40; round += 1) {
    await vi.advanceTimersByTimeAsync(100)
    echoAll()
    echo()
  }
  expect(all()).toEqual(entries.map(({ seq }) => seq))
  expect(seqs()).toEqual([1, 2, 3, 4])
  const kinds = caught.map(({ type }) => type)
  expect(kinds.filter((type) => type === 'log').length).toBeLessThan(ENTRIES / 5)
  expect(kinds.join(' ')).not.toContain('log log log')
})

test('a socket that sends its marks back is sent the whole log, and never more ahead than the limit', async () => {
  const { open } = feedOf()
  const { bytes, echo, seqs, close } = open(0)
  let before = 0
  for (let round = 0; round < 40; round += 1) {
    await vi.advanceTimersByTimeAsync(100)
    expect(bytes.sent - before).toBeLessThan(limits.unread_bytes + limits.mark_bytes + 30_000)
    before = bytes.sent
    echo()
  }
  expect(seqs()).toEqual(entries.map(({ seq }) => seq))
  expect(close).not.toHaveBeenCalled()
})

test('a client that only reads is sent the whole log, in order', async () => {
  const { open } = feedOf()
  const { seqs, close } = open(0)
  await vi.advanceTimersByTimeAsync(3000)
  expect(seqs()).toEqual(entries.map(({ seq }) => seq))
  expect(close).not.toHaveBeenCalled()
})

test('a live client that only reads hears what comes after its first megabytes', async () => {
  const { feed, open } = feedOf()
  const { seqs, close } = open(null)
  for (let from = 0; from < ENTRIES; from += 10) {
    feed.push(entries.slice(from, from + 10))
    await vi.advanceTimersByTimeAsync(50)
  }
  await vi.advanceTimersByTimeAsync(3000)
  expect(seqs()).toEqual(entries.map(({ seq }) => seq))
  expect(close).not.toHaveBeenCalled()
})

test('a client that never returns a mark is closed once it could hold too much; it stays counted until it is gone', async () => {
  const { feed, open } = feedOf()
  const { socket, bytes, close } = open(0)
  for (let round = 0; round < 100 && close.mock.calls.length === 0; round += 1) {
    await vi.advanceTimersByTimeAsync(500)
    const attachment = feed.of(socket)
    if (attachment) attachment.cursor = 0
    feed.follow(socket)
  }
  expect(close).toHaveBeenCalledWith(4008, expect.stringContaining('?after=SEQ'))
  const most = limits.unconfirmed_bytes + limits.unread_bytes + limits.assumed_bytes + 30_000
  expect(bytes.sent).toBeLessThan(most)
  feed.push(entries)
  expect(bytes.sent).toBeLessThan(most)
  expect(feed.size).toBe(1)
  feed.forget(socket)
  expect(feed.size).toBe(0)
})

test.each([
  ['of one key', () => 'k', limits.unconfirmed_bytes],
  ['of many keys', (index: number) => `k${index}`, limits.unconfirmed_bytes_per_scope],
])('clients %s that return no mark hold a bounded amount together', async (_, keyOf, most) => {
  const { feed, open } = feedOf()
  const all = Array.from({ length: 40 }, (_one, index) => open(0, keyOf(index)))
  for (let round = 0; round < 40; round += 1) {
    await vi.advanceTimersByTimeAsync(500)
    for (const { socket } of all) {
      const attachment = feed.of(socket)
      if (attachment) attachment.cursor = 0
      feed.follow(socket)
    }
  }
  const open_ones = all.filter(({ close }) => close.mock.calls.length === 0)
  const sent = open_ones.reduce((sum, { bytes }) => sum + bytes.sent, 0)
  expect(sent).toBeLessThan(most + all.length * (limits.assumed_bytes + limits.unread_bytes + 30_000))
  expect(all.some(({ close }) => close.mock.calls.length === 1)).toBe(true)
})

test.each([
  ['of one key', 256, () => 'k', limits.unconfirmed_bytes],
  ['of many keys', 500, (index: number) => `k${index}`, limits.unconfirmed_bytes_per_scope],
])('many sockets %s have little unread together, also after a first mark', async (_, count, keyOf, most) => {
  const { feed, open } = feedOf()
  const all = Array.from({ length: count }, (_one, index) => open(null, keyOf(index)))
  feed.push(entries)
  const sent = () => all.reduce((sum, { bytes }) => sum + bytes.sent, 0)
  expect(sent()).toBeLessThan(most + all.length * 30_000)
  const first = sent()
  for (const { echo } of all) echo()
  await vi.advanceTimersByTimeAsync(100)
  expect(sent() - first).toBeGreaterThan(all.length * 30_000)
  expect(sent() - first).toBeLessThan(most + all.length * 30_000)
  expect(all.some(({ close }) => close.mock.calls.length > 0)).toBe(false)
})

test('other work comes between any two pages of many sockets that catch up', async () => {
  const { open } = feedOf()
  const all = Array.from({ length: 20 }, (_one, index) => open(0, `k${index}`))
  for (const { sent } of all) expect(sent.length).toBeGreaterThan(0)
  await Promise.resolve()
  // They wait one after another: each wait ends before the next begins.
  expect(vi.getTimerCount()).toBe(1)
  for (let round = 0; round < 400; round += 1) {
    await vi.advanceTimersByTimeAsync(100)
    for (const { echo } of all) echo()
  }
  for (const { seqs } of all) expect(seqs()).toEqual(entries.map(({ seq }) => seq))
})

test('a socket has the whole limit again once the others have gone', async () => {
  const { feed, open } = feedOf()
  const others = Array.from({ length: 255 }, () => open(null))
  for (const { socket } of others) feed.forget(socket)
  const { bytes } = open(0)
  await vi.advanceTimersByTimeAsync(100)
  expect(bytes.sent).toBeGreaterThan(limits.unread_bytes)
})

test('a client that takes a second for its first mark is sent no more than the limit meanwhile', async () => {
  const { open } = feedOf()
  const { bytes, echo, seqs, close } = open(0)
  await vi.advanceTimersByTimeAsync(900)
  expect(bytes.sent).toBeLessThan(limits.unread_bytes + 30_000)
  for (let round = 0; round < 40; round += 1) {
    echo()
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(seqs()).toEqual(entries.map(({ seq }) => seq))
  expect(close).not.toHaveBeenCalled()
})

test('a live socket that falls behind catches up from the log, without gap or repetition', async () => {
  const { feed, open } = feedOf()
  const { seqs, echo } = open(null)
  for (let from = 0; from < ENTRIES; from += 10) feed.push(entries.slice(from, from + 10))
  expect(seqs().length).toBeLessThan(ENTRIES / 2)
  for (let round = 0; round < 40; round += 1) {
    await vi.advanceTimersByTimeAsync(100)
    echo()
  }
  expect(seqs()).toEqual(entries.map(({ seq }) => seq))
})

test('a client that says to have read more than it was sent is sent no more for that', async () => {
  const { feed, open } = feedOf()
  const { socket, bytes } = open(0)
  await vi.advanceTimersByTimeAsync(100)
  const before = bytes.sent
  feed.seen(socket, Number.MAX_SAFE_INTEGER)
  await vi.advanceTimersByTimeAsync(100)
  expect(bytes.sent - before).toBeLessThan(limits.unread_bytes + limits.mark_bytes + 30_000)
})

test('a client that was taken to only read, and then returns a mark, is sent no more ahead of it than the limit', async () => {
  const { feed, open } = feedOf()
  const { socket, sent, bytes, seqs, echo } = open(ENTRIES - 60)
  await vi.advanceTimersByTimeAsync(3000)
  expect(seqs()).toHaveLength(60)
  feed.seen(socket, sent.find(({ type }) => type === 'mark')?.sent ?? 0)
  const before = bytes.sent
  feed.push([{ seq: ENTRIES + 1, text: text(ENTRIES + 1) }])
  expect(bytes.sent).toBe(before)
  echo()
  feed.push([{ seq: ENTRIES + 2, text: text(ENTRIES + 2) }])
  expect(seqs().at(-1)).toBe(ENTRIES + 2)
})

test('what a socket read while it caught up is not sent again with the entries that are new', async () => {
  const { feed, open } = feedOf()
  const { socket, seqs } = open(ENTRIES - 5)
  const attachment = feed.of(socket)
  if (attachment) attachment.live_after = ENTRIES - 3
  await vi.advanceTimersByTimeAsync(100)
  feed.push(entries.slice(ENTRIES - 3))
  feed.push([{ seq: ENTRIES + 1, text: text(ENTRIES + 1) }])
  expect(seqs()).toEqual([5, 4, 3, 2, 1, 0].map((back) => ENTRIES + 1 - back))
})

test('a client that has sent marks back gets more time', async () => {
  const { open } = feedOf()
  const { close, echo } = open(0)
  await vi.advanceTimersByTimeAsync(100)
  echo()
  await vi.advanceTimersByTimeAsync(20_000)
  expect(close).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(15_000)
  expect(close).toHaveBeenCalledOnce()
})

test('one that reads nothing is not told what is not in the log either, and answers without end close it', async () => {
  const { feed, open } = feedOf()
  const { socket, bytes, close } = open(0)
  await vi.advanceTimersByTimeAsync(100)
  const before = bytes.sent
  feed.broadcast(JSON.stringify({ type: 'delta' }))
  expect(bytes.sent).toBe(before)
  for (let answers = 0; answers < 10_000; answers += 1) feed.deliver(socket, JSON.stringify({ type: 'ack', id: 'x'.repeat(100) }))
  expect(close).toHaveBeenCalledOnce()
  expect(bytes.sent).toBeLessThan(2 * limits.unread_bytes + 30_000)
})
