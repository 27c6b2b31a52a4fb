import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import type { AgentDeps } from '../../../../src/agent/define-agent.ts'
import { metricsOf } from '../../../../src/store/artifacts/reflex-metrics.ts'
import { agreementsNeeded } from '../../../../src/reflexes/promotion.ts'
import { reflexes } from '../../../../src/artifacts/kinds.ts'
import { acting, calls, did, notes, whileAway, write } from '../../../support/reflex-chain.ts'
import { freshId } from '../../../support/reflexes.ts'
import { entriesOf, evict, freshScope, hurry, inObject, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { behaviours } from '../../../support/test-agents.ts'

type Stub = ReturnType<typeof stubOf>
const REPLY = "return { action_type: 'reply', content: 'x' }"
const textOf = (event: object): string => (event as { text: string }).text
const movesOf = (stub: Stub) => entriesOf(stub, 'reflex-moved')
const reasonsOf = async (stub: Stub) => (await entriesOf(stub, 'reflex-passed')).map(({ reason }) => reason)
const countOf = (stub: Stub, table: string) =>
  inObject(stub, ({ storage }) => storage.sql.exec(`SELECT count(*) AS n FROM ${table}`).one()['n'])

/** A reflex of another owner that a third key puts into this scope's chain. */
async function foreign(body: string, state: 'active' | 'shadow' = 'active') {
  const scope = freshScope()
  const stub = stubOf(scope)
  const { id } = await write(body, { state, scopes: ['elsewhere/*'], sharing: 'org' })
  const chain = () => stub.configure({ reflexes: [{ id, version: 1 }] }, 'someone')
  await chain()
  return { id, scope, stub, chain }
}

describe('a reflex is not blamed', () => {
  test('for a large event, which is passed over and says so', async () => {
    const { id, scope, stub } = await acting(REPLY)
    const large = Array.from({ length: 6 }, () => note(scope, 'y'.repeat(66_000)))
    const records = await sendAndSettle(stub, ...large)
    expect(records.map(({ outcome }) => outcome?.by)).toEqual(Array(6).fill('turn'))
    const passed = await entriesOf(stub, 'reflex-passed')
    const entry = { reflex_id: id, reason: 'too_large', error: expect.stringContaining('larger than'), context: null, fuel: 0 }
    expect(passed).toMatchObject(large.map(() => entry))
    expect(await movesOf(stub)).toEqual([])
    expect((await stub.metrics()).reflexes).toEqual([])
    expect(await sendAndSettle(stub, note(scope, 'small'))).toMatchObject([{ outcome: { by: 'reflex', reflex_id: id } }])
  })

  test('and sees an event that fits alone without those before it', async () => {
    const { scope, stub } = await acting(`if (context.event.text === 'a') return null; ${REPLY}`)
    await sendAndSettle(stub, note(scope, 'a'))
    expect(await sendAndSettle(stub, note(scope, 'y'.repeat(33_000)))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect((await entriesOf(stub, 'reflex-fired'))[0]?.context).toMatchObject({ recent_events: [], window: { '10s': { total: 2 } } })
  })

  test('for a scratch that a turn has filled', async () => {
    const { scope, stub } = await acting(`if (context.event.text === 'fill') return null; ${REPLY}`)
    behaviours.set(scope, async (context) => void (context.scratch['notes'] = 'n'.repeat(70_000)))
    await sendAndSettle(stub, note(scope, 'fill'))
    await sendAndSettle(stub, ...notes(scope, 6))
    expect(await reasonsOf(stub)).toEqual(['null', ...Array(6).fill('too_large')])
    expect(await movesOf(stub)).toEqual([])
  })

  test('for a tool that a scope does not have, not even by its owner', async () => {
    const elsewhere = await acting(calls('act'))
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id: elsewhere.id }], tools: [] }, 'ops')
    await sendAndSettle(stub, ...notes(scope, 6))
    expect(await reasonsOf(stub)).toEqual(Array(6).fill('refused'))
    expect(await movesOf(stub)).toEqual([])
    await sendAndSettle(elsewhere.stub, note(elsewhere.scope, 'a'))
    expect([did(scope), did(elsewhere.scope)]).toEqual([[], ['a']])
  })
})

describe('a scope', () => {
  test.each([
    ['has a say about what its own agent wrote, whoever set the chain', true, 'someone', 'shadow'],
    ["has a say about another's reflex where its owner set the chain", false, 'key-of-ops', 'shadow'],
    ["has no say about another's reflex where a key named as its owner set the chain", false, 'key-named-ops', 'suspended'],
    ["has no say about another's reflex: it only does without it", false, 'someone', 'suspended'],
  ])('%s', async (_, own, by, to) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write('throw 1', own ? { scope } : {})
    await stub.configure({ reflexes: [{ id }] }, 'ops', by)
    await sendAndSettle(stub, ...notes(scope, 6))
    const reason = '5 of 5 runs ended in an error or at a limit'
    expect(await movesOf(stub)).toMatchObject([{ reflex_id: id, version: 1, from: 'active', to, reason }])
    if (to === 'shadow') {
      await until(async () => (await hurry(stub), (await reflexes.find(env.DB, id))?.state === 'shadow'), 'D1 knows')
      return
    }
    expect((await entriesOf(stub, 'reflex-passed')).at(-1)).toMatchObject({ reason: 'suspended', error: reason })
    await hurry(stub)
    expect(await reflexes.find(env.DB, id)).toMatchObject({ state: 'active', state_reason: null })
  })

  test("has no say about another's reflex by overruling it, and only what it did counts, once each", async () => {
    const theirs = await acting(`if (context.event.text === 'think') return null; ${calls('act')}`)
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ tools: ['act', 'update_agent_config', 'overrule_reflex'] }, 'ops')
    const overrule = async (_: unknown, deps: AgentDeps) => ({
      noted: [
        await deps.call('overrule_reflex', { id: theirs.id, reason: 'one' }),
        await deps.call('overrule_reflex', { id: theirs.id, reason: 'two' }),
      ],
    })
    await stub.configure({ reflexes: [{ id: theirs.id }] }, 'ops')
    behaviours.set(scope, overrule)
    const results = async () => (await sendAndSettle(stub, note(scope, 'think'))).map(({ outcome }) => outcome)
    expect(await results()).toMatchObject([{ result: { noted: [{ noted: false }, { noted: false }] } }])
    behaviours.set(scope, overrule)
    await sendAndSettle(stub, note(scope, 'a'))
    expect(await results()).toMatchObject([{ result: { noted: [{ noted: true }, { noted: false }] } }])
    await sendAndSettle(stub, note(scope, 'b'))
    expect(await results()).toMatchObject([{ result: { noted: [{ noted: true }, { noted: false }] } }])
    expect(await movesOf(stub)).toMatchObject([{ reflex_id: theirs.id, to: 'suspended', reason: '2 of 2 actions were overruled' }])
    await sendAndSettle(theirs.stub, note(theirs.scope, 'c'))
    expect([did(scope), did(theirs.scope)]).toEqual([['a', 'b'], ['c']])
    expect(await reflexes.find(env.DB, theirs.id)).toMatchObject({ state: 'active' })
  })

  test("suspends another's reflex in shadow that stops at its limit, too", async () => {
    const { id, scope, stub } = await foreign('while (true) {}', 'shadow')
    await sendAndSettle(stub, ...notes(scope, 6))
    const watched = ['limit', 'missing', 'limit', 'missing', 'limit', 'missing']
    expect(await reasonsOf(stub)).toEqual([...watched, 'suspended', 'suspended', 'suspended'])
    expect(await movesOf(stub)).toMatchObject([{ reflex_id: id, from: 'shadow', to: 'suspended' }])
    expect(await reflexes.find(env.DB, id)).toMatchObject({ state: 'shadow' })
  })

  test('that sets its chain again retries suspended reflexes', async () => {
    const { scope, stub, chain } = await foreign(`if (context.event.text === 'bad') throw 1; ${calls('act')}`)
    await sendAndSettle(stub, ...Array.from({ length: 5 }, () => note(scope, 'bad')), note(scope, 'kept back'))
    await chain()
    await sendAndSettle(stub, note(scope, 'a'), note(scope, 'bad'), note(scope, 'b'))
    expect(did(scope)).toEqual(['a', 'b'])
    expect(await movesOf(stub)).toMatchObject([{ to: 'suspended' }])
  })

  test('whose agent brings a chain along has it see the very first event', async () => {
    const { id } = await write(REPLY, { id: 'brought-along' })
    const scope = freshScope('chained')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex', reflex_id: id } }])
  })
})

describe('a version', () => {
  test('that was retired meanwhile stays so, although it proved itself here', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(calls('act_once'), { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    behaviours.set(scope, async ({ events }, deps) => {
      for (const event of events) await deps.call('act_once', { text: textOf(event) })
    })
    await sendAndSettle(stub, ...notes(scope, agreementsNeeded(0.95) - 1))
    await reflexes.setState(env.DB, { id, version: 1, state: 'retired', reason: 'malicious', now: Date.now() })
    await sendAndSettle(stub, note(scope, 'the last one needed'))
    expect(await movesOf(stub)).toMatchObject([{ reflex_id: id, from: 'shadow', to: 'active' }])
    await until(async () => (await hurry(stub), (await countOf(stub, "artifacts WHERE kind = 'reflex'")) === 0), 'the scope knows')
    expect(await reflexes.find(env.DB, id)).toMatchObject({ state: 'retired', state_reason: 'malicious' })
    expect(await sendAndSettle(stub, note(scope, 'z'))).toMatchObject([{ outcome: { by: 'turn' } }])
  })

  test('that was demoted keeps its code and continues in shadow mode, while D1 is unavailable and after an eviction', async () => {
    const { scope, stub } = await acting(calls('act', '"throw"'))
    await whileAway(async () => {
      await sendAndSettle(stub, ...notes(scope, 3))
      await sendAndSettle(stub, note(scope, 'd'))
      await evict(stub)
      await sendAndSettle(stub, note(scope, 'e'))
    })
    expect(await movesOf(stub)).toMatchObject([{ from: 'active', to: 'shadow' }])
    const states = (await entriesOf(stub, 'reflex-fired')).map(({ state }) => state)
    expect(states).toEqual(['active', 'active', 'active', 'shadow', 'shadow'])
    expect(did(scope)).toEqual(['throw', 'throw', 'throw'])
  })

  test.each([
    ['act', { agreed: 1, disagreed: 19, undecided: 0 }, [{ from: 'shadow', to: 'shadow' }]],
    ['act_once', { agreed: 1, disagreed: 0, undecided: 19 }, []],
  ])('that wants %s twenty times proves itself by one such act once', async (tool, shadow, moves) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(calls(tool, '"x"'), { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    behaviours.set(scope, async (_, deps) => void (await deps.call(tool, { text: 'x' })))
    await sendAndSettle(stub, ...notes(scope, 20))
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { shadow } }])
    expect(await movesOf(stub)).toMatchObject(moves)
  })

  test('in shadow leaves no trials behind where the turn in flight drops its events', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(`if (context.event.text === 'think') return null; ${calls('act')}`, { state: 'shadow' })
    await stub.configure({ reflexes: [{ id }], overlap: 'drop' }, 'ops', 'key-of-ops')
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async () => gate.promise)
    await send(stub, note(scope, 'think'))
    await until(async () => (await stub.state()).turn, 'a turn is in flight')
    await sendAndSettle(stub, ...notes(scope, 5))
    gate.resolve()
    expect(await countOf(stub, 'trials')).toBe(0)
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { shadow: { fired: 5, undecided: 5 } } }])
  })
})

describe('the sums', () => {
  test('count nothing as saved where a reflex escalates', async () => {
    const { scope, stub } = await acting("return { action_type: 'escalate', reason: 'x' }")
    await sendAndSettle(stub, note(scope, 'a'))
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { acted: 1, model_calls_saved: 0 } }])
  })

  test('count nothing as saved where no turn would take the event', async () => {
    const { scope, stub } = await acting("return { action_type: 'reply', content: 'x', consume: true }")
    await stub.configure({ agent: 'prompted' }, 'ops')
    await sendAndSettle(stub, note(scope, 'a'))
    await stub.configure({ instructions: 'Answer.' }, 'ops')
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { acted: 1, model_calls_saved: 0 } }])
    await sendAndSettle(stub, note(scope, 'b'))
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { acted: 2, model_calls_saved: 1 } }])
  })

  test('reach D1 although the object slept before they were replicated', async () => {
    const { id, scope, stub } = await acting(calls('act'))
    await sendAndSettle(stub, note(scope, 'a'))
    await evict(stub)
    const told = await until(async () => (await hurry(stub), (await metricsOf(env.DB, id))[0]), 'D1 knows')
    expect(told).toMatchObject({ scope, version: 1, metrics: { fired: 1, acted: 1 } })
  })
})

describe('an agent that may change itself', () => {
  const selfModifying = async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ tools: ['write_reflex', 'retire_reflex', 'list_reflexes', 'test_reflex'] }, 'ops')
    return { scope, stub }
  }

  test('no longer owns a retired reflex', async () => {
    const { scope, stub } = await selfModifying()
    const [id, kept] = [freshId(), freshId()]
    behaviours.set(scope, async (_, { call }) => {
      for (const one of [id, kept]) await call('write_reflex', { id: one, code: 'function reflex(context) { return null }' })
      return { retired: await call('retire_reflex', { id, reason: 'x' }), listed: await call('list_reflexes', {}) }
    })
    const [record] = await sendAndSettle(stub, note(scope, 'think'))
    expect(record?.outcome).toMatchObject({ result: { retired: { retired: true, versions: [1] }, listed: { owned: [kept] } } })
  })

  test('tests endless code on a few events only', async () => {
    const { scope, stub } = await selfModifying()
    await sendAndSettle(stub, ...notes(scope, 20))
    const code = 'function reflex(context) { while (true) {} }'
    behaviours.set(scope, async (_, { call }) => ({ answer: await call('test_reflex', { code, events: 20 }) }))
    const [record] = await sendAndSettle(stub, note(scope, 'think'))
    if (record?.outcome?.by !== 'turn') throw new Error(JSON.stringify(record))
    const { answer } = record.outcome.result as { answer: { runs: { reason: string }[]; note: string } }
    expect(answer.note).toBe(`it computes so much that it was tried on ${answer.runs.length} events only`)
    expect(answer.runs.length).toBeLessThanOrEqual(6)
    expect(answer.runs.every(({ reason }) => reason === 'limit')).toBe(true)
  })

  test('has no factory: its reflex writes five reflexes a minute', async () => {
    const { scope, stub } = await selfModifying()
    const child = freshId()
    const { id } = await write(`return {
      action_type: 'write_artifact', artifact_id: '${child}', artifact_type: 'reflex', content: 'function reflex(context) { return null } // ' + context.tick }`)
    await stub.configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    const records = await sendAndSettle(stub, ...notes(scope, 7))
    expect(records.map(({ outcome }) => outcome?.by)).toEqual([...Array(5).fill('reflex'), 'turn', 'turn'])
    const refused = { reason: 'refused', error: 'it wrote 5 artifacts within a minute' }
    expect(await entriesOf(stub, 'reflex-passed')).toMatchObject([refused, refused])
    expect(await reflexes.find(env.DB, child)).toMatchObject({ version: 5 })
  })
})
