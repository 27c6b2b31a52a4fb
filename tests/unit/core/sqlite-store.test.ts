import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import type { Delivery } from '../../../src/core/event-store.ts'
import type { Event } from '../../../src/core/event.ts'
import { SqliteStore } from '../../../src/core/node/index.ts'
import { buildEvent } from '../../support/build-event.ts'

function path(): string {
  const folder = mkdtempSync(join(tmpdir(), 'store-'))
  return join(folder, 'events.sqlite')
}

test('a file keeps what was published, and what was claimed, for the next process', async () => {
  const file = path()
  const clock = { now: 1_000_000 }
  const first = SqliteStore.open(file, { now: () => clock.now })
  const event = buildEvent()
  expect(await first.publish(event)).toEqual([{ id: event.id, scope: event.scope, status: 'accepted' }])
  const claimed = await takeOne(first)
  expect(claimed).toMatchObject({ event, attempts: 1 })
  first.close()
  clock.now += 60_000
  const second = SqliteStore.open(file, { now: () => clock.now })
  expect(await second.publish(event)).toMatchObject([{ status: 'duplicate' }])
  expect(await second.nack(claimed?.ack_token ?? '')).toBe(true)
  clock.now += 60_000
  expect(await takeOne(second)).toMatchObject({ event, attempts: 2 })
  second.close()
})

test('a file is written so that several processes may open it, until it is closed', async () => {
  const file = path()
  const store = SqliteStore.open(file)
  const other = new DatabaseSync(file)
  expect(other.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
  other.close()
  store.close()
  await expect(store.publish(buildEvent())).rejects.toThrow('database is not open')
})

test('two stores of a file have one table each if they name it', async () => {
  const file = path()
  const [one, other] = [SqliteStore.open(file, { table: 'one' }), SqliteStore.open(file, { table: 'other' })]
  const event = buildEvent()
  await one.publish(event)
  expect(await other.publish(event)).toMatchObject([{ status: 'accepted' }])
  const history: Event[] = []
  for await (const past of one.replay({ start: '2020-01-01T00:00:00Z' })) history.push(past)
  expect(history).toEqual([event])
  one.close()
  other.close()
})

async function takeOne(store: SqliteStore): Promise<Delivery | undefined> {
  for await (const delivery of store.subscribe()) return delivery
  return undefined
}
