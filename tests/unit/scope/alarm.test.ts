import { describe, expect, test } from 'vitest'
import { Alarm } from '../../../src/kernel/alarm.ts'

/** An alarm at a time that the test moves, and the alarms that it set. */
function opened(stored: number | null = null) {
  const set: (number | null)[] = []
  const clock = { now: 1000 }
  const storage = { getAlarm: async () => stored, setAlarm: (at: number) => set.push(at), deleteAlarm: () => set.push(null) }
  const alarm = new Alarm(storage as unknown as DurableObjectStorage, { now: () => clock.now, database: { laid: true } })
  return { alarm, clock, set }
}

describe('the alarm', () => {
  test('is set to the earliest time that is asked for', () => {
    const { alarm, set } = opened()
    for (const at of [5000, 3000, 4000]) alarm.by(at)
    expect(set).toEqual([5000, 3000])
  })

  test('is not set on waking where the right one is set, and once for an earlier event', async () => {
    const { alarm, set } = opened(9000)
    alarm.source(() => 9000)
    await alarm.woke()
    alarm.rearm()
    expect(set).toEqual([])
    alarm.by(2000)
    expect(set).toEqual([2000])
  })

  test.each([
    ['none', null],
    ['another', 7000],
    ['an overdue one that must be lost', 1000 - 60_000],
  ])('is set on waking where %s is set', async (_, stored) => {
    const { alarm, set } = opened(stored)
    alarm.source(() => 9000)
    await alarm.woke()
    alarm.rearm()
    expect(set).toEqual([stored === 1000 - 60_000 ? 1000 : 9000])
  })

  test('is not set while its handler runs, but once at the end', async () => {
    const { alarm, set } = opened()
    alarm.source(() => 9000)
    await alarm.fired(async () => {
      alarm.by(900)
      alarm.by(9000)
      alarm.rearm()
    })
    expect(set).toEqual([9000])
  })

  test('comes at once for a time that passed while its handler ran', async () => {
    const { alarm, clock, set } = opened()
    // A source that, like the inbox, only knows what is due in the future.
    alarm.source((now) => (now < 1500 ? 1500 : null))
    await alarm.fired(async () => {
      alarm.by(1500)
      clock.now = 2000
    })
    expect(set.at(-1)).toBe(2000)
  })

  test('comes at once for a time asked for earlier that passed while its handler ran', async () => {
    const { alarm, clock, set } = opened()
    alarm.source((since) => (since < 1500 ? 1500 : null))
    alarm.by(1200)
    alarm.by(1500)
    clock.now = 1200
    await alarm.fired(async () => {
      clock.now = 2000
    })
    expect(set).toEqual([1200, 2000])
  })

  test('is not moved once it is overdue, and set again once it must be lost', () => {
    const { alarm, clock, set } = opened()
    alarm.source((since) => (since < 1500 ? 1500 : 99_000))
    alarm.rearm()
    clock.now = 1501
    alarm.rearm()
    expect(set).toEqual([1500])
    clock.now = 40_000
    alarm.rearm()
    expect(set).toEqual([1500, 40_000])
  })

  test('is retried if its handler fails', async () => {
    const { alarm, set } = opened()
    await expect(alarm.fired(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
    expect(set).toEqual([31_000])
  })

  test('covers background work that is slow until it ends', async () => {
    const { alarm, set } = opened()
    const { promise, resolve } = Promise.withResolvers<void>()
    await alarm.fired(() => alarm.cover(promise))
    expect(set).toEqual([31_000])
    resolve()
    await promise
    await Promise.resolve()
    alarm.rearm()
    expect(set).toEqual([31_000, null])
  })
})
