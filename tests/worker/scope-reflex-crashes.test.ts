import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { findReflex } from '../../src/store/reflexes.ts'
import { calls, notes, whileAway, write } from '../support/chain.ts'
import { crash, entriesOf, freshScope, hurry, note, send, sendAndSettle, stubOf, until } from '../support/scopes.ts'
import { behaviours } from '../support/test-agents.ts'

describe('a death of the object', () => {
  test('does not set a reflex free that is suspended here; setting the chain anew does', async () => {
    const scope = freshScope()
    const { id } = await write('throw 1', { scopes: ['elsewhere/*'] })
    const chain = { reflexes: [{ id, version: 1 }] }
    await stubOf(scope).configure(chain, 'someone')
    await sendAndSettle(stubOf(scope), ...notes(scope, 5))
    const stub = await crash(scope)
    await sendAndSettle(stub, note(scope, 'after'))
    const reasons = async () => (await entriesOf(stub, 'reflex-passed')).map(({ reason }) => reason)
    expect(await reasons()).toEqual([...Array(5).fill('error'), 'suspended'])
    await stub.configure(chain, 'someone')
    await sendAndSettle(stub, note(scope, 'anew'))
    expect((await reasons()).at(-1)).toBe('error')
  })

  test('before D1 is told of a demotion does not take it back, and D1 is told later', async () => {
    const scope = freshScope()
    const { id } = await write('throw 1', { scope })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'someone')
    await whileAway(async () => {
      await sendAndSettle(stubOf(scope), ...notes(scope, 5))
      await crash(scope)
    })
    const stub = stubOf(scope)
    await sendAndSettle(stub, note(scope, 'after'))
    expect(await entriesOf(stub, 'reflex-moved')).toMatchObject([{ reflex_id: id, from: 'active', to: 'shadow' }])
    await until(async () => (await hurry(stub), (await findReflex(env.DB, id))?.state === 'shadow'), 'D1 knows')
  })

  test('in the middle of the turn that decides leaves what a reflex in shadow wanted to be compared', async () => {
    const scope = freshScope()
    const { id } = await write(calls('act'), { state: 'shadow', scope })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'someone')
    behaviours.set(scope, () => new Promise(() => {}))
    await send(stubOf(scope), note(scope, 'a'))
    await until(async () => (await stubOf(scope).state()).turn !== null, 'a turn is in flight')
    behaviours.set(scope, async (_, deps) => ({ done: await deps.call('act', { text: 'a' }) }))
    const stub = await crash(scope)
    await until(async () => (await stub.state()).counters.completed === 1, 'the turn was repeated')
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { shadow: { fired: 1, agreed: 1 } } }])
  })
})
