import { expect, test, vi } from 'vitest'
import { limits } from '../../../../src/base/limits.ts'
import type { Log } from '../../../../src/engine/log/log.ts'
import { Streams } from '../../../../src/engine/live/sse.ts'
import { part } from '../../agents/agent-fixtures.ts'

const PATIENCE_MS = 60_000

function streamsOf() {
  const clock = { now: 0 }
  const used = vi.fn<() => void>()
  const log = part<Log>({ last: 0, listen: () => {}, read: (after: number) => (after === 0 ? [{ seq: 1, text: '{}' }] : []) })
  const streams = new Streams({ log, key_check: { used, watch: () => {} }, now: () => clock.now })
  const open = (key_id: string) => streams.open({ after: null, key_id }).body!.getReader()
  return { clock, used, streams, open }
}

test('a reader that takes nothing for a minute is dropped by a timer, so that what was laid out for it is not kept', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const { clock, streams, open } = streamsOf()
  const gone = open('gone')
  clock.now = PATIENCE_MS - 1
  open('second')
  vi.advanceTimersByTime(10_000)
  expect(streams.keys).toEqual(['gone', 'second'])
  clock.now = PATIENCE_MS
  vi.advanceTimersByTime(10_000)
  expect(streams.keys).toEqual(['second'])
  await expect(gone.read()).rejects.toThrow('nothing was read from this stream for a minute')
  vi.useRealTimers()
})

test('a scope has only so many streams', () => {
  const { streams } = streamsOf()
  for (let count = 0; count < limits.streams_per_scope; count += 1) streams.open({ after: null, key_id: 'k' })
  expect(streams.open({ after: null, key_id: 'k' }).status).toBe(503)
})

test('a reader that takes nothing has so much of answers kept, and no more', async () => {
  const { streams } = streamsOf()
  const reader = streams.open({ after: null, key_id: 'slow', parts: true }).body!.getReader()
  const content = 'x'.repeat(10_000)
  for (let count = 0; count < 20; count += 1) streams.part({ turn_id: 't', from: count * content.length, content })
  await reader.read()
  const kept = new TextDecoder().decode((await reader.read()).value)
  expect(kept.match(/event: part/g)).toHaveLength(6)
  await reader.cancel()
})

test('a reader that has taken everything waits as long as there is nothing new', async () => {
  const { clock, used, streams, open } = streamsOf()
  const reader = open('patient')
  await reader.read()
  await reader.read()
  await vi.waitFor(() => expect(used).toHaveBeenCalledTimes(2), { timeout: 20_000 })
  clock.now = 10 * PATIENCE_MS
  open('second')
  expect(streams.keys).toEqual(['patient', 'second'])
  await reader.cancel()
})

test('a silent stream has a comment every 15 s, so that nothing between takes it for dead', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const reader = streamsOf().open('patient')
  const next = async () => new TextDecoder().decode((await reader.read()).value)
  expect(await next()).toContain('id: 0\n')
  expect(await next()).toContain('id: 1\n')
  for (let count = 0; count < 2; count += 1) {
    const comment = next()
    await vi.advanceTimersByTimeAsync(15_000)
    expect(await comment).toBe(': still here\n\n')
  }
  await reader.cancel()
  vi.useRealTimers()
})
