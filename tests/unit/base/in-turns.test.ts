import { expect, test } from 'vitest'
import { inTurns } from '../../../src/base/in-turns.ts'

const ownerOf = (item: string): string => item.slice(0, 1)
const options = { ownerOf, at_once: 2, most_ms: 10_000, rest: async () => {} }

test('who has few items does not wait for all of one who has many', async () => {
  const begun: string[] = []
  const work = async (item: string) => begun.push(item)
  await inTurns(['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'], work, options)
  expect(begun).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
})

test('others are served after each portion, and not before its work has ended', async () => {
  const told: string[] = []
  const work = async (item: string) => {
    await Promise.resolve()
    told.push(item)
  }
  const rest = async () => void told.push('rest')
  await inTurns(['a1', 'a2', 'a3', 'a4', 'a5'], work, { ...options, rest })
  expect(told).toEqual(['a1', 'a2', 'rest', 'a3', 'a4', 'rest', 'a5'])
})

test('an item that never ends keeps the portions after its own no longer than they wait', async () => {
  const begun: string[] = []
  const held = Promise.withResolvers<string>()
  const work = async (item: string) => (begun.push(item), item === 'a1' ? held.promise : item)
  const all = inTurns(['a1', 'a2', 'a3'], work, { ...options, most_ms: 5 })
  await expect.poll(() => begun).toEqual(['a1', 'a2', 'a3'])
  held.resolve('late')
  expect(await all).toEqual(['late', 'a2', 'a3'])
})

test('work that fails fails the whole, and no later portion begins', async () => {
  const begun: string[] = []
  const work = async (item: string) => {
    begun.push(item)
    throw new Error('it failed')
  }
  await expect(inTurns(['a1', 'a2', 'a3'], work, options)).rejects.toThrow('it failed')
  expect(begun).toEqual(['a1', 'a2'])
})
