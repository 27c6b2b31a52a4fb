import { expect, test } from 'vitest'
import { acting, calls, did } from '../../support/reflex-chain.ts'
import { behaviours } from '../../support/test-agents.ts'
import { entriesOf, evict, freshScope, note, send, sendAndSettle, stubOf, until } from '../../support/scopes.ts'

test('a paused scope accepts events and starts no turn, also after an eviction, until it is resumed', async () => {
  const scope = freshScope()
  const stub = stubOf(scope)
  let turns = 0
  behaviours.set(scope, async () => {
    turns += 1
    return null
  })
  expect(await stub.configure({ paused: true }, 'ops')).toMatchObject({ ok: true })
  const event = note(scope, 'wait')
  await send(stub, event)
  expect((await stub.event(event.id))?.waiting).toMatchObject({ reason: 'pause' })
  await evict(stub)
  await send(stub, note(scope, 'wait, too'))
  await stub.poke()
  expect((await stub.event(event.id))?.status).toBe('pending')
  expect(turns).toBe(0)
  await stub.configure({ paused: null }, 'ops')
  await until(async () => ((await stub.event(event.id))?.status === 'completed' ? true : null), 'the event has ended')
  expect(turns).toBeGreaterThan(0)
})

test('a reflex that is switched off does not act, and its events go to a turn', async () => {
  const { id, scope, stub } = await acting(calls('act'))
  await sendAndSettle(stub, note(scope, 'first'))
  for (const reflexes_off of [[id], ['*']]) {
    await stub.configure({ reflexes_off }, 'ops')
    const [ended] = await sendAndSettle(stub, note(scope, 'second'))
    expect(ended?.outcome?.by).toBe('turn')
    expect((await stub.chain()).reflexes).toMatchObject([{ id, version: null, absent: 'the setting reflexes_off of this scope names it' }])
  }
  await stub.configure({ reflexes_off: ['other'] }, 'ops')
  await sendAndSettle(stub, note(scope, 'third'))
  expect(did(scope)).toEqual(['first', 'third'])
  expect((await entriesOf(stub, 'reflex-passed')).map(({ reason }) => reason)).toEqual(['suspended', 'suspended'])
})

test('a paused scope runs no reflex, and hands out no claim', async () => {
  const { scope, stub } = await acting(calls('act'))
  await stub.configure({ paused: true, consumer: 'pull' }, 'ops')
  await send(stub, note(scope, 'kept'))
  expect(await stub.claim({ limit: 10, lease_s: 60 }, 'test')).toMatchObject({ ok: true, deliveries: [] })
  expect(did(scope)).toEqual([])
  await stub.configure({ paused: false }, 'ops')
  expect(await stub.claim({ limit: 10, lease_s: 60 }, 'test')).toMatchObject({ deliveries: [{ attempts: 1 }] })
})
