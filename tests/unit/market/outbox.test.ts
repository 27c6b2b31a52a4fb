import { describe, expect, test } from 'vitest'
import type { Env } from '../../../src/env.ts'
import { layTables } from '../../../src/features/market/ledger/lay-tables.ts'
import { MarketOutbox, type GivenUp, type MarketMessage, type MarketTopic } from '../../../src/features/market/outbox.ts'
import { TABLES } from '../../../src/features/market/tables.ts'
import { ObjectSql } from '../../support/object-sql.ts'

/** An outbox with one topic, in which the keys `bad…` fail while `isBroken`. */
function outboxOf(options: Partial<MarketTopic> = {}) {
  const { storage } = new ObjectSql()
  layTables(storage, 'outbox', TABLES['outbox'] ?? [])
  const sent: string[] = []
  const state = { isBroken: true }
  const send = async (items: readonly MarketMessage[]) => {
    const bad = items.find(({ key }) => state.isBroken && key.startsWith('bad'))
    if (bad) throw new Error(`${bad.key} fails`)
    sent.push(...items.map(({ key }) => key))
  }
  const outbox = new MarketOutbox(storage, { deals: { send, ...options } }, {})
  const flush = (now: number) => outbox.flush({} as Env, now)
  const keys = () =>
    storage
      .exec<{ key: string }>('SELECT key FROM outbox ORDER BY seq')
      .toArray()
      .map(({ key }) => key)
  return { outbox, sent, state, flush, keys }
}
const later = (hours: number): number => Date.now() + hours * 3_600_000

test('a message that is put again while it is sent is sent again, although it says the same', async () => {
  const sent: string[] = []
  const { outbox, flush, keys } = outboxOf({
    send: async (items) => {
      sent.push(...items.map(({ key }) => key))
      await Promise.resolve()
      if (sent.length === 1) outbox.put('deals', 'view', {})
    },
  })
  outbox.put('deals', 'view', {})
  await flush(Date.now())
  await flush(Date.now())
  expect([sent, keys()]).toEqual([['view', 'view'], []])
})

describe('a message that fails alone', () => {
  test('does not delay those beside it, nor those that come later', async () => {
    const { outbox, sent, flush, keys } = outboxOf()
    for (const key of ['bad', 'first', 'second']) outbox.put('deals', key, {})
    await flush(Date.now())
    expect([sent, keys()]).toEqual([['first', 'second'], ['bad']])
    outbox.put('deals', 'third', {})
    expect(outbox.dueAt(0)).toBeLessThan(Date.now())
    await flush(Date.now())
    expect([sent, keys()]).toEqual([['first', 'second', 'third'], ['bad']])
  })

  test('is sent again after its pause, and at once if it has changed', async () => {
    const { outbox, sent, state, flush } = outboxOf()
    for (const key of ['bad 1', 'bad 2']) outbox.put('deals', key, {})
    await flush(Date.now())
    state.isBroken = false
    outbox.put('deals', 'bad 2', { newer: true })
    await flush(Date.now())
    expect(sent).toEqual(['bad 2'])
    expect(outbox.dueAt(0)).toBeGreaterThan(Date.now())
    await flush(later(1))
    expect(sent).toEqual(['bad 2', 'bad 1'])
  })

  test('is given up after twelve attempts, for a person', async () => {
    const given_up: GivenUp[] = []
    const { outbox, flush, keys } = outboxOf({ giveUp: (message) => void given_up.push(message) })
    outbox.put('deals', 'bad', { deal: 1 })
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
  const { outbox, sent, flush, keys } = outboxOf(options)
  for (const key of ['bad', 'first']) outbox.put('deals', key, {})
  await flush(Date.now())
  expect([sent, keys()]).toEqual([[], ['bad', 'first']])
  expect(outbox.dueAt(0)).toBeGreaterThan(Date.now())
})

test('a topic that cannot be sent keeps its newest messages alone', async () => {
  const send = () => Promise.reject(new Error('the inbox is full'))
  const { outbox, flush, keys } = outboxOf({ send, in_order: true, most_waiting: 3 })
  for (const key of ['1', '2', '3', '4', '5']) outbox.put('deals', key, {})
  await flush(Date.now())
  expect(keys()).toEqual(['3', '4', '5'])
})
