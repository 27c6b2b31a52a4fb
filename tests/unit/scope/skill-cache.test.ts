import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SkillCache } from '../../../src/engine/skills/skill-cache.ts'
import { defaultSettings } from '../../../src/contract/settings/settings.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

/** A D1 that never answers, and how often it was asked. */
function stalled() {
  const asked = vi.fn<() => Promise<never>>(() => Promise.withResolvers<never>().promise)
  const statement = { bind: () => statement, raw: asked, all: asked, first: asked, run: asked }
  const DB = { prepare: () => statement } as unknown as D1Database
  const log = { append: vi.fn<() => number>() }
  const database = { all: () => [], first: () => undefined, read: (_key: string, otherwise: unknown) => otherwise }
  const parts = {
    scope: 'test/1',
    env: { DB },
    database,
    log,
    unit: (work: () => unknown) => work(),
    settings: () => defaultSettings,
    now: Date.now,
  }
  return { asked, cache: new SkillCache(parts as unknown as ConstructorParameters<typeof SkillCache>[0]) }
}

test('a registry that stalls is waited for once, and asked again after a while', async () => {
  vi.spyOn(console, 'warn').mockReturnValue()
  const { asked, cache } = stalled()
  const first = cache.catchUp({ at_once: true })
  await vi.advanceTimersByTimeAsync(5000)
  await first
  await cache.catchUp({ at_once: true })
  await cache.catchUp({ at_once: false })
  expect(asked).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(10_000)
  void cache.catchUp({ at_once: true })
  await vi.advanceTimersByTimeAsync(1)
  expect(asked).toHaveBeenCalledTimes(2)
})

test('the wait for a skill that is not in the cache is limited', async () => {
  const { cache } = stalled()
  const found = cache.find('no.such.skill').catch(String)
  await vi.advanceTimersByTimeAsync(5000)
  expect(await found).toContain('longer than 5000 ms')
})
