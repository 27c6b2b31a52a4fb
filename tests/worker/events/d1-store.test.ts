import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { D1Store } from '../../../src/core/d1/index.ts'
import { buildEvent } from '../../support/build-event.ts'

test('the library keeps its events in D1: stored once, claimed, settled, and read as history', async () => {
  const store = await D1Store.open(env.DB, { table: 'library_events' })
  const events = [buildEvent({ id: 'a' }), buildEvent({ id: 'b' })]
  expect(await store.publish(...events)).toMatchObject([{ status: 'accepted' }, { status: 'accepted' }])
  const again = await D1Store.open(env.DB, { table: 'library_events' })
  expect(await again.publish(...events)).toMatchObject([{ status: 'duplicate' }, { status: 'duplicate' }])
  const stop = new AbortController()
  for await (const { event, ack_token } of store.subscribe({ signal: stop.signal })) {
    expect(await again.ack(ack_token)).toBe(true)
    expect(await again.ack(ack_token)).toBe(false)
    if (event.id === 'b') stop.abort()
  }
  const ids: string[] = []
  for await (const { id } of again.replay({ start: '2020-01-01T00:00:00Z' })) ids.push(id)
  expect(ids.toSorted()).toEqual(['a', 'b'])
})
