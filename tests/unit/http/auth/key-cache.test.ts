import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { KeyRecord, KeyLookup } from '../../../../src/http/auth/middleware.ts'
import { createKeyCache } from '../../../../src/http/auth/key-cache.ts'

const record = (id: string): KeyRecord => ({ id, name: id, roles: ['viewer'], scopes: ['*'], hash: 'h' })
const seconds = 1000

describe('the key cache', () => {
  const stored = new Map<string, KeyRecord>()
  const lookup = vi.fn<KeyLookup>(async (id) => stored.get(id) ?? null)
  const down = () => lookup.mockImplementation(async () => Promise.reject(new Error('D1 is down')))
  const up = () => lookup.mockImplementation(async (id) => stored.get(id) ?? null)
  const cache = () => createKeyCache(lookup, Date.now)
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

  beforeEach(() => {
    vi.useFakeTimers()
    stored.clear()
    stored.set('a', record('a'))
    up()
    lookup.mockClear()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('asks once in 30 s', async () => {
    const keys = cache()
    expect(await keys.find('a')).toEqual(record('a'))
    await pass(30 * seconds - 1)
    await keys.find('a')
    expect(lookup).toHaveBeenCalledTimes(1)
    await pass(1)
    await keys.find('a')
    expect(lookup).toHaveBeenCalledTimes(2)
  })

  test('asks again if the clock was set back since', async () => {
    const keys = cache()
    await keys.find('a')
    await keys.find('b')
    stored.delete('a')
    stored.set('b', record('b'))
    vi.setSystemTime(Date.now() - 86_400 * seconds)
    expect([await keys.find('a'), await keys.find('b')]).toEqual([null, record('b')])
  })

  test('drops a deleted key within 30 s, and immediately on request', async () => {
    const keys = cache()
    await keys.find('a')
    stored.delete('a')
    expect(await keys.find('a')).toEqual(record('a'))
    keys.forget('a')
    expect(await keys.find('a')).toBeNull()
  })

  test('does not serve a deleted key again while the lookup fails', async () => {
    const keys = cache()
    await keys.find('a')
    stored.delete('a')
    await pass(30 * seconds)
    expect(await keys.find('a')).toBeNull()
    await pass(5 * seconds)
    down()
    await expect(keys.find('a')).rejects.toThrow('D1 is down')
  })

  test('asks about a new key at once where its id is to be forgotten', async () => {
    const keys = cache()
    expect(await keys.find('b')).toBeNull()
    stored.set('b', record('b'))
    keys.forget('b')
    expect(await keys.find('b')).toEqual(record('b'))
  })

  test('knows the keys that existed when they were asked for', async () => {
    const keys = cache()
    await Promise.all([keys.find('a'), keys.find('b')])
    expect(['a', 'b', 'c'].map(keys.knows)).toEqual([true, false, false])
    keys.forget('a')
    expect(keys.knows('a')).toBe(false)
  })

  test('asks about an unknown id once in 5 s', async () => {
    const keys = cache()
    expect(await keys.find('b')).toBeNull()
    stored.set('b', record('b'))
    await pass(5 * seconds - 1)
    expect(await keys.find('b')).toBeNull()
    await pass(1)
    expect(await keys.find('b')).toEqual(record('b'))
  })

  test('serves a stale key for 10 minutes while the lookup fails, then no longer', async () => {
    const keys = cache()
    await keys.find('a')
    down()
    await pass(600 * seconds - 1)
    expect(await keys.find('a')).toEqual(record('a'))
    await pass(1)
    await expect(keys.find('a')).rejects.toThrow('D1 is down')
  })

  test('asks again 5 s after a failure, and is fresh once that works', async () => {
    const keys = cache()
    await keys.find('a')
    await pass(30 * seconds)
    down()
    await keys.find('a')
    await keys.find('a')
    expect(lookup).toHaveBeenCalledTimes(2)
    await pass(5 * seconds)
    up()
    stored.delete('a')
    expect(await keys.find('a')).toBeNull()
  })

  test('waits 500 ms for a lookup that hangs while it has a stale key, 5 s else', async () => {
    const keys = cache()
    await keys.find('a')
    await pass(30 * seconds)
    lookup.mockImplementation(() => new Promise(() => undefined))
    const stale = keys.find('a')
    await pass(500)
    expect(await stale).toEqual(record('a'))
    const absent = keys.find('b').catch(String)
    await pass(5000)
    expect(await absent).toContain('5000 ms')
  })

  test('remembers no failure', async () => {
    const keys = cache()
    down()
    await expect(keys.find('a')).rejects.toThrow('D1 is down')
    up()
    expect(await keys.find('a')).toEqual(record('a'))
  })

  test('holds 1,000 entries; guesses push out guesses, not keys', async () => {
    const keys = cache()
    await keys.find('a')
    for (let guess = 0; guess < 1500; guess++) await keys.find(`guess-${guess}`)
    expect(keys.size).toBe(1000)
    lookup.mockClear()
    await keys.find('a')
    expect(lookup).not.toHaveBeenCalled()
  })

  test('holds 1,000 keys; the one read longest ago goes', async () => {
    const keys = cache()
    for (let index = 0; index <= 1000; index++) {
      stored.set(`k${index}`, record(`k${index}`))
      await keys.find(`k${index}`)
    }
    expect(keys.size).toBe(1000)
    lookup.mockClear()
    await keys.find('k1')
    expect(lookup).not.toHaveBeenCalled()
    await keys.find('k0')
    expect(lookup).toHaveBeenCalledOnce()
  })
})
