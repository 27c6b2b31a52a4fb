import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { withBeats } from '../../../src/base/beats.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('there is a beat for each time in which nothing came, and no item is lost', async () => {
  async function* items() {
    yield 'at once'
    await after(3500)
    yield 'late'
  }
  const seen: (string | null)[] = []
  const all = (async () => {
    for await (const item of withBeats(items(), 1000)) seen.push(item)
  })()
  await vi.advanceTimersByTimeAsync(10_000)
  await all
  expect(seen).toEqual(['at once', null, null, null, 'late'])
  expect(vi.getTimerCount()).toBe(0)
})

test('an error comes after the beats, and who leaves stops the items', async () => {
  const ended = vi.fn<() => void>()
  async function* items() {
    try {
      yield 'first'
      await after(1500)
      throw new Error('broken')
    } finally {
      ended()
    }
  }
  const failing = withBeats(items(), 1000)
  expect(await failing.next()).toEqual({ done: false, value: 'first' })
  const beat = failing.next()
  await vi.advanceTimersByTimeAsync(1000)
  expect(await beat).toEqual({ done: false, value: null })
  const broken = failing.next().catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(1000)
  expect(await broken).toEqual(new Error('broken'))
  ended.mockClear()
  const left = withBeats(items(), 1000)
  await left.next()
  await left.return()
  expect(ended).toHaveBeenCalledOnce()
})
