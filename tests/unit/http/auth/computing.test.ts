import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { enterComputing, withComputing } from '../../../../src/http/auth/computing.ts'
import type { Computing } from '../../../../src/base/computing.ts'
import { principal } from '../../../../src/contract/principal.ts'

const keyOf = (key_id: string) => principal.parse({ key_id, name: `key ${key_id}`, roles: ['viewer'], scopes: ['*'] })

const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  )
/** These rest whenever another waits, as what computes does. */
let places: Computing[] = []
const enter = async (key_id: string) => void places.push(await enterComputing(keyOf(key_id)))
const leaveAll = () => {
  for (const place of places) place.leave()
  places = []
}

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
  const wait = async (ms: number) => {
    vi.setSystemTime(Date.now() + ms)
    for (const place of places) place.rested_at = Date.now()
  }
  // Workers have it, and Node does not.
  vi.stubGlobal('scheduler', { wait })
})
afterEach(() => {
  leaveAll()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('a key that has used up its minute waits for the next one, and other keys do not', async () => {
  await withComputing(keyOf('a'), (computing) => computing.spend(4_000_000_000))
  const refusal = await thrownBy(withComputing(keyOf('a'), () => 'done'))
  expect(refusal).toMatchObject({ status: 429 })
  expect(String(refusal)).toContain('The key key a has used up what it may compute in a minute')
  expect(String(refusal)).toContain('Try again in 60 s.')
  expect(await withComputing(keyOf('b'), () => 'done')).toBe('done')
  vi.setSystemTime(Date.now() + 60_000)
  expect(await withComputing(keyOf('a'), () => 'done')).toBe('done')
})

test('two requests of a key and three of all compute at once, and a place is left after a failure', async () => {
  await enter('a')
  await enter('a')
  expect(String(await thrownBy(enter('a')))).toContain('Too many replays and evaluations run at once. Try again in 1 s.')
  leaveAll()
  await expect(withComputing(keyOf('a'), () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  for (const key of ['a', 'a', 'b']) await enter(key)
  expect(String(await thrownBy(enter('c')))).toContain('Too many')
})
