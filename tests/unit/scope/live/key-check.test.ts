import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { KeyCheck } from '../../../../src/engine/live/sockets.ts'

const MINUTE_MS = 60_000
let now = 0
const valid = vi.fn<(keys: string[]) => Promise<Set<string>>>()
const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)

beforeEach(() => {
  now = Date.now()
  valid.mockReset()
  warn.mockClear()
})
afterEach(() => vi.useRealTimers())

function checkOf(...keys: string[]) {
  const ended: string[] = []
  const connections = { keys, end: (deleted: ReadonlySet<string>) => void ended.push(...deleted) }
  const check = new KeyCheck({ scope: 's', valid, now: () => now })
  check.watch(connections)
  const used = async (at: number) => {
    now = at
    check.used()
    await Promise.resolve()
  }
  return { keys, ended, used }
}

test('keys are asked for once a minute at most, each once, and those that are gone end', async () => {
  valid.mockResolvedValue(new Set(['a']))
  const start = now
  const { used, ended } = checkOf('a', 'b', 'a', 'admin')
  await used(start)
  await used(start + MINUTE_MS - 1)
  expect(valid.mock.calls).toEqual([[['a', 'b']]])
  await vi.waitFor(() => expect(ended).toEqual(['b']), { timeout: 20_000 })
  await used(start + MINUTE_MS)
  expect(valid).toHaveBeenCalledTimes(2)
})

test('keys are asked for again if the clock was set back since', async () => {
  valid.mockResolvedValue(new Set(['a']))
  const start = now
  const { used } = checkOf('a')
  await used(start)
  await used(start - 24 * 60 * MINUTE_MS)
  expect(valid).toHaveBeenCalledTimes(2)
})

test('of the bootstrap key alone nothing is asked', async () => {
  const { used, ended } = checkOf('admin', 'admin')
  await used(now)
  expect(valid).not.toHaveBeenCalled()
  expect(ended).toEqual([])
})

test('a database that fails or stalls ends nothing, and is asked again a minute later', async () => {
  vi.useFakeTimers({ now })
  const start = now
  valid.mockRejectedValueOnce(new Error('away')).mockReturnValueOnce(new Promise(() => {}))
  valid.mockResolvedValueOnce(new Set())
  const { used, ended } = checkOf('a')
  await used(start)
  await used(start + MINUTE_MS)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(warn).toHaveBeenCalledTimes(2)
  expect(ended).toEqual([])
  await used(start + 2 * MINUTE_MS)
  await vi.advanceTimersByTimeAsync(0)
  expect(ended).toEqual(['a'])
})

test('a connection that is opened while the database answers stays', async () => {
  const { promise, resolve } = Promise.withResolvers<Set<string>>()
  valid.mockReturnValue(promise)
  const { keys, used, ended } = checkOf('a')
  await used(now)
  keys.push('new')
  resolve(new Set())
  await vi.waitFor(() => expect(ended).toEqual(['a']), { timeout: 20_000 })
})
