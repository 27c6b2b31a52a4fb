import { describe, expect, test } from 'vitest'
import { pauses } from '../../../src/base/backoff.ts'
import { Outbox, type GivenUp, type OutboxItem, type Topic } from '../../../src/kernel/outbox.ts'
import { Database } from '../../../src/kernel/unit.ts'
import { Alarm } from '../../../src/kernel/alarm.ts'
import { layTables } from '../../../src/kernel/lay-tables.ts'
import { TABLES } from '../../../src/features/market/tables.ts'
import { part } from '../agents/agent-fixtures.ts'
import { ObjectSql } from '../../support/object-sql.ts'

/** An outbox with one topic, in which the keys `bad…` fail while `isBroken`. */
function outboxOf(options: Partial<Topic> = {}) {
  const { storage } = new ObjectSql()
  layTables(storage, 'outbox', TABLES['outbox'] ?? [])
  const sent: string[] = []
  const state = { isBroken: true }
  const send = async (items: readonly OutboxItem[]) => {
    const bad = items.find(({ key }) => state.isBroken && key.startsWith('bad'))
    if (bad) throw new Error(`${bad.key} fails`)
    sent.push(...items.map(({ key }) => key))
  }
  const database = new Database(part<DurableObjectStorage>({ sql: storage }))
  let clock = Date.now()
  const alarm = new Alarm(part<DurableObjectStorage>({ setAlarm: async () => {}, deleteAlarm: async () => {} }), {
    now: () => clock,
    database,
  })
  const pace = { gather_ms: 50, most_items: 100, pauses: pauses.topic, alone: true, failed: 'failed to send' } as const
  const outbox = new Outbox({ database, alarm, now: () => clock, pace })
  outbox.topic('deals', { send, ...options })
  const flush = (now: number) => {
    clock = now
    return outbox.flush()
  }
  const put = (topic: string, key: string, value: unknown) => outbox.put(database, topic, key, value)
  const keys = () =>
    storage
      .exec<{ key: string }>('SELECT key FROM outbox ORDER BY seq')
      .toArray()
      .map(({ key }) => key)
  return { put, due: () => alarm.next() ?? Infinity, sent, state, flush, keys }
}
const later = (hours: number): number => Date.now() + hours * 3_600_000

test('a message that is put again while it is sent is sent again, although it says the same', async () => {
  const sent: string[] = []
  const { put, flush, keys } = outboxOf({
    send: async (items) => {
      sent.push(...items.map(({ key }) => key))
      await Promise.resolve()
      if (sent.length === 1) put('deals', 'view', {})
    },
  })
  put('deals', 'view', {})
  await flush(Date.now())
  await flush(Date.now())
  expect([sent, keys()]).toEqual([['view', 'view'], []])
})

describe('a message that fails alone', () => {
  test('does not delay those beside it, nor those that come later', async () => {
    const { put, due, sent, flush, keys } = outboxOf()
    for (const key of ['bad', 'first', 'second']) put('deals', key, {})
    await flush(Date.now())
    expect([sent, keys()]).toEqual([['first', 'second'], ['bad']])
    put('deals', 'third', {})
    expect(due()).toBeLessThan(Date.now() + 100)
    await flush(Date.now())
    expect([sent, keys()]).toEqual([['first', 'second', 'third'], ['bad']])
  })

  test('is sent again after its pause, and at once if it has changed', async () => {
    const { put, due, sent, state, flush } = outboxOf()
    for (const key of ['bad 1', 'bad 2']) put('deals', key, {})
    await flush(Date.now())
    state.isBroken = false
    put('deals', 'bad 2', { newer: true })
    await flush(Date.now())
    expect(sent).toEqual(['bad 2'])
    expect(due()).toBeGreaterThan(Date.now() + 100)
    await flush(later(1))
    expect(sent).toEqual(['bad 2', 'bad 1'])
  })

  test('is given up after twelve attempts, for a person', async () => {
    const given_up: GivenUp[] = []
    const { put, flush, keys } = outboxOf({ giveUp: (message) => void given_up.push(message) })
    put('deals', 'bad', { deal: 1 })
    for (let attempt = 1; attempt < 12; attempt += 1) await flush(later(attempt))
    expect([given_up, keys()]).toEqual([[], ['bad']])
    await flush(later(12))
    expect(given_up).toMatchObject([{ key: 'bad', value: { deal: 1 }, attempts: 12, error: { message: 'bad fails' } }])
    expect(keys()).toEqual([])
  })
})

test.each([
  ['sent in order', { in_order: true as const }],
  ['away', { send: () => Promise.reject(new Error('D1_ERROR: Network connection lost.')) }],
])('a topic that is %s waits as a whole', async (_, options) => {
  const { put, due, sent, flush, keys } = outboxOf(options)
  for (const key of ['bad', 'first']) put('deals', key, {})
  await flush(Date.now())
  expect([sent, keys()]).toEqual([[], ['bad', 'first']])
  expect(due()).toBeGreaterThan(Date.now() + 100)
})

test('a topic that cannot be sent keeps its newest messages alone', async () => {
  const send = () => Promise.reject(new Error('the inbox is full'))
  const { put, flush, keys } = outboxOf({ send, in_order: true, most_waiting: 3 })
  for (const key of ['1', '2', '3', '4', '5']) put('deals', key, {})
  await flush(Date.now())
  expect(keys()).toEqual(['3', '4', '5'])
})
