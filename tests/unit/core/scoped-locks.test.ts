import * as fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { ScopedLocks } from '../../../src/core/scoped-locks.ts'
import { assertProperty } from '../../support/property.ts'

const macrotask = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A task that runs until the test ends it. */
function held(locks: ScopedLocks, scope: string) {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  return { ended: locks.run(scope, () => promise), end: resolve, fail: reject }
}

test('a task runs at once where nobody holds its scope, and its result comes back', async () => {
  const locks = new ScopedLocks()
  expect(await locks.run('a', () => 42)).toBe(42)
  expect(await locks.run('a', async () => 'later')).toBe('later')
})

test('tasks of one scope run one after the other, first come, first served', async () => {
  const locks = new ScopedLocks()
  const story: string[] = []
  const task = (name: string) =>
    locks.run('a', async () => {
      story.push(`${name} begins`)
      await macrotask()
      story.push(`${name} ends`)
    })
  await Promise.all([task('one'), task('two'), task('three')])
  expect(story).toEqual(['one begins', 'one ends', 'two begins', 'two ends', 'three begins', 'three ends'])
})

test('scopes do not wait for one another', async () => {
  const locks = new ScopedLocks()
  const first = held(locks, 'a')
  expect(await locks.run('b', () => 'b')).toBe('b')
  first.end()
  await first.ended
})

test.each([
  ['rejects', async () => Promise.reject(new Error('broken'))],
  [
    'throws',
    () => {
      throw new Error('broken')
    },
  ],
])('a task that %s frees its lock', async (_, task) => {
  const locks = new ScopedLocks()
  const failing = locks.run('a', task)
  const next = locks.run('a', () => 'next')
  await expect(failing).rejects.toThrow('broken')
  expect(await next).toBe('next')
  expect(locks.size).toBe(0)
})

test('only locks that are held take memory', async () => {
  const locks = new ScopedLocks()
  const [first, second] = [held(locks, 'a'), held(locks, 'b')]
  const waiting = locks.run('a', () => 'done')
  expect(locks.size).toBe(2)
  second.end()
  await second.ended
  expect(locks.size).toBe(1)
  first.end()
  expect(await waiting).toBe('done')
  expect(locks.size).toBe(0)
})

describe('a wait', () => {
  test('that is aborted rejects with the reason, and the task never starts', async () => {
    const locks = new ScopedLocks()
    const first = held(locks, 'a')
    const controller = new AbortController()
    const task = vi.fn<() => void>()
    const waiting = locks.run('a', task, { signal: controller.signal })
    const behind = locks.run('a', () => 'behind')
    controller.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
    first.end()
    expect(await behind).toBe('behind')
    expect(task).not.toHaveBeenCalled()
    expect(locks.size).toBe(0)
  })

  test('never begins where its signal has aborted', async () => {
    const locks = new ScopedLocks()
    const task = vi.fn<() => void>()
    await expect(locks.run('a', task, { signal: AbortSignal.abort(new Error('stopped')) })).rejects.toThrow('stopped')
    expect(task).not.toHaveBeenCalled()
    expect(locks.size).toBe(0)
  })

  test('that takes too long rejects and says for what it waited', async () => {
    const locks = new ScopedLocks()
    const first = held(locks, 'orders/7')
    const task = vi.fn<() => void>()
    const waiting = locks.run('orders/7', task, { timeout_ms: 1 })
    await expect(waiting).rejects.toThrow('the lock of scope orders/7 was not free within 1 ms')
    await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' })
    first.end()
    await first.ended
    expect(task).not.toHaveBeenCalled()
    expect(locks.size).toBe(0)
  })

  test('that ends in the tick of a release does not keep the lock', async () => {
    const locks = new ScopedLocks()
    const controller = new AbortController()
    const first = locks.run('a', async () => {
      await macrotask()
      controller.abort(new Error('stopped'))
    })
    const aborted = locks.run('a', () => 'never', { signal: controller.signal })
    const behind = locks.run('a', () => 'behind')
    await expect(aborted).rejects.toThrow('stopped')
    await first
    expect(await behind).toBe('behind')
  })

  test('bounds the wait and not the task', async () => {
    const locks = new ScopedLocks()
    const controller = new AbortController()
    const task = async () => {
      controller.abort()
      await new Promise((resolve) => setTimeout(resolve, 5))
      return 'done'
    }
    expect(await locks.run('a', task, { signal: controller.signal, timeout_ms: 1 })).toBe('done')
  })

  test('leaves no timer and no listener behind', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const locks = new ScopedLocks()
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    const first = held(locks, 'a')
    const waiting = locks.run('a', () => 'done', { signal, timeout_ms: 60_000 })
    first.end()
    await waiting
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
    expect(added).toHaveBeenCalledOnce()
    expect(removed.mock.calls.map(([name, listener]) => [name, listener])).toEqual(
      added.mock.calls.map(([name, listener]) => [name, listener]),
    )
  })
})

test('in any mix of tasks, failures and aborts, no two of a scope overlap and every lock is freed', async () => {
  const plan = fc.record({ scope: fc.constantFrom('a', 'b'), ticks: fc.nat(3), fails: fc.boolean(), abortAfter: fc.option(fc.nat(4)) })
  await assertProperty(
    'core/scoped-locks',
    fc.asyncProperty(fc.array(plan, { maxLength: 12 }), async (plans) => {
      const locks = new ScopedLocks()
      const inside = new Map<string, number>()
      let overlapped = false
      const tasks = plans.map(async ({ scope, ticks, fails, abortAfter }) => {
        const controller = new AbortController()
        const running = locks.run(
          scope,
          async () => {
            inside.set(scope, (inside.get(scope) ?? 0) + 1)
            overlapped ||= inside.get(scope) !== 1
            for (let tick = 0; tick < ticks; tick += 1) await macrotask()
            inside.set(scope, (inside.get(scope) ?? 0) - 1)
            if (fails) throw new Error('broken')
          },
          { signal: controller.signal },
        )
        const abort = async () => {
          for (let tick = 0; tick < (abortAfter ?? 0); tick += 1) await macrotask()
          if (abortAfter !== null) controller.abort()
        }
        await Promise.allSettled([running, abort()])
      })
      await Promise.all(tasks)
      expect(overlapped).toBe(false)
      expect(locks.size).toBe(0)
    }),
  )
})

test('a wait without a limit lasts as long as the task before', async () => {
  const locks = new ScopedLocks()
  const first = held(locks, 'a')
  const second = locks.run('a', () => 'second')
  await new Promise((resolve) => setTimeout(resolve, 20))
  first.end()
  expect(await second).toBe('second')
})
