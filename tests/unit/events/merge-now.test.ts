import { expect, test, vi } from 'vitest'
import { outcomesSender } from '../../../src/events/outcomes.ts'
import type { PackedEvent } from '../../../src/store/packs/format.ts'
import { storeOf } from '../../../src/store/store.ts'

const event = {
  seq: 1n,
  id: 'a',
  scope: 'test:1',
  type: 'x',
  status: 'completed',
  attempts: 1,
  error: null,
  accepted_at: 1,
  ended_at: 1,
  revision: 1,
  agent: 'a',
  trace_id: '0'.repeat(32),
  log_from: 1,
  kinds: 0,
  skills: '',
  payload: { source: 's', timestamp: '2026-01-01T00:00:00.000Z', meta: {} },
} as unknown as PackedEvent

/** A database with many small packs. It answers no search for them until then. */
function crowded() {
  let merges = 0
  let answer = () => {}
  const asked = new Promise<{ results: never[] }>((resolve) => (answer = () => resolve({ results: [] })))
  const statement = { bind: () => statement, all: () => ((merges += 1), asked) }
  const batch = () => Promise.resolve([{ results: [{ are_many: 1 }] }])
  const DB = { prepare: () => statement, batch } as unknown as D1Database
  return { DB, answer, merges: () => merges }
}

const senderOf = (DB: D1Database) => outcomesSender({ REFLEX_QUEUE_NOTES: 'on' }, storeOf({ DB }, 1e9))

test('one scope of a process merges packs at a time, although each has its own store', async () => {
  const { DB, answer, merges } = crowded()
  const first = senderOf(DB)([event])
  await vi.waitFor(() => expect(merges()).toBe(1))
  await senderOf(DB)([event])
  expect(merges()).toBe(1)
  answer()
  await first
  await senderOf(DB)([event])
  expect(merges()).toBe(2)
})

test('a merge that was cut off with its request holds up later ones for a minute only', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    const { DB, merges } = crowded()
    void senderOf(DB)([event])
    await vi.waitFor(() => expect(merges()).toBe(1))
    vi.setSystemTime(Date.now() + 61_000)
    void senderOf(DB)([event])
    await vi.waitFor(() => expect(merges()).toBe(2))
  } finally {
    vi.useRealTimers()
  }
})
