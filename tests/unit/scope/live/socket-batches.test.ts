import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { limits } from '../../../../src/base/limits.ts'
import { MessageRate, SocketBatches, type Message } from '../../../../src/engine/live/socket-messages.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function turnsOf() {
  const taken: string[][] = []
  const turns = new SocketBatches<string>((messages) => void taken.push(messages.map(({ socket }) => socket)))
  const message = (socket: string, bytes = 10): Message<string> => ({ socket, bytes, kind: 'other', answer: () => {} })
  return { taken, turns, message }
}

test('a message that comes alone is taken at once, and so is the next when its timer has fired', () => {
  const { taken, turns, message } = turnsOf()
  turns.add(message('a'))
  expect(taken).toEqual([['a']])
  vi.advanceTimersByTime(0)
  turns.add(message('a'))
  expect(taken).toEqual([['a'], ['a']])
})

test('messages that waited for another are taken together, and a later single one at once', () => {
  const { taken, turns, message } = turnsOf()
  for (let sent = 0; sent < 32; sent += 1) turns.add(message('a'))
  expect(taken).toEqual([['a'], ['a']])
  vi.advanceTimersByTime(10)
  expect(taken.map(({ length }) => length)).toEqual([1, 1, 30])
  turns.add(message('b'))
  expect(taken.at(-1)).toEqual(['b'])
})

test('a flood is taken in turns that do not wait for a timer, and another socket has its share in the next one', () => {
  const { taken, turns, message } = turnsOf()
  for (let sent = 0; sent < 60; sent += 1) turns.add(message('flood'))
  turns.add(message('quiet'))
  for (let sent = 0; sent < 10_000; sent += 1) turns.add(message('flood'))
  const [, , first] = taken
  expect(first?.indexOf('quiet')).toBeGreaterThan(0)
  expect(first?.indexOf('quiet')).toBeLessThanOrEqual(16)
  expect(Math.max(...taken.map(({ length }) => length))).toBeLessThanOrEqual(80)
  vi.advanceTimersByTime(10)
  expect(taken.flat()).toHaveLength(10_061)
})

test('a socket that sends more ahead than a body may hold is full, and what is gone is forgotten', () => {
  const { taken, turns, message } = turnsOf()
  turns.add(message('a'))
  turns.add(message('a'))
  for (let sent = 0; sent < 11; sent += 1) turns.add(message('a', 100_000))
  expect({ a: turns.full('a'), b: turns.full('b'), bytes: limits.body_bytes }).toMatchObject({ a: true, b: false })
  turns.forget('a')
  vi.advanceTimersByTime(10)
  expect(taken).toEqual([['a'], ['a']])
})

test('a client that waits for each answer is never gathered, though its next message comes before the timer', () => {
  const { taken, turns, message } = turnsOf()
  for (let sent = 0; sent < 100; sent += 1) {
    turns.add(message('a'))
    expect(taken).toHaveLength(sent + 1)
    if (sent % 2 === 1) vi.advanceTimersByTime(0)
  }
})

test('many sockets that each say one thing at once are taken together', () => {
  const { taken, turns, message } = turnsOf()
  for (let socket = 0; socket < 50; socket += 1) turns.add(message(`s${socket}`))
  vi.advanceTimersByTime(0)
  expect(taken.map(({ length }) => length)).toEqual([...Array.from({ length: 8 }, () => 1), 42])
})

test('a rate lets its burst through immediately, and more over time', () => {
  const rate = new MessageRate(100, 0)
  const through = (count: number, now: number) => Array.from({ length: count }, () => rate.take(now)).filter(Boolean).length
  expect([through(1000, 0), through(1000, 500), through(1000, 500), through(1000, 10_000), through(1000, 9000)]).toEqual([
    100, 50, 0, 100, 0,
  ])
})
