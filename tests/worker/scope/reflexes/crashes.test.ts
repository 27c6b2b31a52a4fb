import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { reflexes } from '../../../../src/artifacts/kinds.ts'
import { calls, notes, whileAway, write } from '../../../support/reflex-chain.ts'
import { freshId } from '../../../support/reflexes.ts'
import { CRASH, crash, entriesOf, freshScope, hurry, inObject, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { behaviours } from '../../../support/test-agents.ts'

describe('a death of the object', () => {
  test('does not resume a reflex that is suspended here; setting the chain again does', async () => {
    const scope = freshScope()
    const { id } = await write('throw 1', { scopes: ['elsewhere/*'], sharing: 'org' })
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

  test('before a demotion is replicated does not revert it, and D1 receives it later', async () => {
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
    await until(async () => (await hurry(stub), (await reflexes.find(env.DB, id))?.state === 'shadow'), 'D1 knows')
  })

  test('between D1 and the list of what the agent wrote leaves the reflex to the agent, which may write it again', async () => {
    const scope = freshScope()
    const id = freshId()
    await stubOf(scope).configure({ tools: ['write_reflex'] }, 'ops')
    const code = 'function reflex(context) {\n  return null\n}\n'
    behaviours.set(scope, async (_, deps) => ({ written: await deps.call('write_reflex', { id, code, description: 'looks on' }) }))
    await inObject(stubOf(scope), ({ storage: { sql } }) => {
      const exec = sql.exec.bind(sql)
      sql.exec = ((query: string, ...bindings: unknown[]) => {
        if (bindings[0] === 'owned_reflexes' && query.startsWith('INSERT')) throw new Error(CRASH)
        return exec(query, ...bindings)
      }) as typeof sql.exec
    })
    const [event_id = ''] = await send(stubOf(scope), note(scope, 'a'))
    const dead = await until(async () => {
      // While it dies, the object does not answer.
      const record = await stubOf(scope)
        .event(event_id)
        .catch(() => null)
      return record?.status === 'dead_lettered' && record
    }, 'nobody knows whether it was written')
    expect(dead.error).toContain('write_reflex has an unknown outcome')
    expect(await reflexes.find(env.DB, id)).toMatchObject({ version: 1, state: 'shadow', owner: `scope:${scope}` })
    expect(await sendAndSettle(stubOf(scope), note(scope, 'b'))).toMatchObject([
      { outcome: { result: { written: { written: true, id, version: 1 } } } },
    ])
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    await sendAndSettle(stubOf(scope), note(scope, 'c'))
    const [looked] = await entriesOf(stubOf(scope), 'reflex-passed')
    expect(looked).toMatchObject({ state: 'shadow', reason: 'null', context: { owned_artifacts: [id] } })
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
