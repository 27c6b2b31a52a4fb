import { describe, expect, test } from 'vitest'
import { acting, calls, did, notes, write } from '../../../support/reflex-chain.ts'
import { entriesOf, evict, freshScope, hurry, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { behaviours, effects } from '../../../support/test-agents.ts'

const by = (records: readonly { outcome: { by: string } | null }[]) => records.map(({ outcome }) => outcome?.by)
const scratchOf = async (scope: string) => (await stubOf(scope).context(1)).scratch

describe("a batch's notes", () => {
  test('build on each other', async () => {
    const { scope, stub } = await acting(
      "return { action_type: 'set_scratch', key: 'n', value: [...(context.scratch.n ?? []), context.event.text] }",
    )
    await sendAndSettle(stub, ...notes(scope, 5))
    expect(await scratchOf(scope)).toEqual({ n: ['n0', 'n1', 'n2', 'n3', 'n4'] })
  })

  const hoarding = "return { action_type: 'set_scratch', key: context.event.text, value: 'z'.repeat(15000) }"

  test('end if the scratch reaches the input limit of a reflex; turns continue', async () => {
    const { scope, stub } = await acting(hoarding)
    expect(by(await sendAndSettle(stub, ...notes(scope, 7)))).toEqual([...Array(5).fill('reflex'), 'turn', 'turn'])
    expect(Object.keys(await scratchOf(scope))).toEqual(['n0', 'n1', 'n2', 'n3', 'n4'])
    expect(await entriesOf(stub, 'reflex-passed')).toMatchObject([{ reason: 'too_large' }, { reason: 'too_large' }])
  })

  test('never make a scope refuse the batch, however many there are', async () => {
    const { scope, stub } = await acting(hoarding)
    const batch = notes(scope, 150)
    await sendAndSettle(stub, ...batch)
    expect(Object.keys(await scratchOf(scope))).toHaveLength(5)
    expect((await stub.accept(batch, 'http')).ok).toBe(true)
    expect((await stub.state()).counters).toMatchObject({ accepted: 150, duplicates: 150, completed: 150 })
  })

  test('never make a scope unfit to be configured, where they wait for it', async () => {
    const { scope, stub } = await acting(hoarding)
    await stub.configure({ consumer: 'pull' }, 'ops')
    const ids = await send(stub, ...notes(scope, 150))
    expect(await stub.configure({ consumer: 'turn' }, 'ops')).toMatchObject({ ok: true })
    expect(await stub.outcomes(ids, 15_000)).toMatchObject({ settled: true })
    expect(Object.keys(await scratchOf(scope))).toHaveLength(5)
  })
})

describe('the fuel of reflexes on a batch', () => {
  test('is bounded: the rest of its events is passed over and goes to turns', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const reflexes: { id: string }[] = []
    for (const name of 'abcd') reflexes.push(await write(`for (let i = 0, s = 0; i < 20000; i++) s += i; return null // ${name}`))
    await stub.configure({ reflexes: reflexes.map(({ id }) => ({ id })) }, 'ops')
    expect(by(await sendAndSettle(stub, ...notes(scope, 100)))).toEqual(Array(100).fill('turn'))
    const runs = await entriesOf(stub, 'reflex-passed')
    const ran = runs.findIndex(({ reason }) => reason === 'fuel')
    expect(runs).toHaveLength(400)
    expect(runs.slice(ran).every(({ reason, fuel }) => reason === 'fuel' && fuel === 0)).toBe(true)
    const spent = (count: number) => runs.slice(0, count).reduce((sum, { fuel }) => sum + fuel + 25_000, 0)
    expect(spent(ran)).toBeGreaterThanOrEqual(100_000_000)
    expect(spent(ran - 1)).toBeLessThan(100_000_000)
    expect(await entriesOf(stub, 'reflex-moved')).toEqual([])
  })
})

describe('the context', () => {
  const keeping = `
    if (context.event.text === 'look') return { action_type: 'set_scratch', key: 'saw', value: context.recent_events.map(({ text }) => text), consume: true }
    return context.event.text[0] === 'n' ? { action_type: 'reply', content: 'x', consume: true } : null`

  test('keeps nothing of a batch that is consumed, however large', async () => {
    const { scope, stub } = await acting(keeping)
    await stub.configure({ context_limit: 10 }, 'ops')
    await sendAndSettle(stub, ...notes(scope, 230))
    expect(await stub.context(10)).toMatchObject({ count: 0, events: [] })
    await evict(stub)
    expect(await stub.context(10)).toMatchObject({ count: 0, events: [] })
  })

  test('keeps what was there before a batch that is consumed', async () => {
    const { scope, stub } = await acting(keeping)
    await stub.configure({ context_limit: 10 }, 'ops')
    await sendAndSettle(stub, note(scope, 'a'), note(scope, 'b'))
    await sendAndSettle(stub, ...notes(scope, 230), note(scope, 'look'))
    expect(await stub.context(10)).toMatchObject({ count: 2, events: [{ text: 'a' }, { text: 'b' }], scratch: { saw: ['a', 'b', 'look'] } })
  })

  test('is bounded where the effect lane ends all of its events', async () => {
    const { scope, stub } = await acting(calls('act_once', '"x"'))
    await stub.configure({ context_limit: 10 }, 'ops')
    await sendAndSettle(stub, ...notes(scope, 115))
    expect(await stub.context(1)).toMatchObject({ events: [{ text: 'n114' }] })
    expect((await stub.context(1)).count).toBeLessThanOrEqual(110)
    expect(await entriesOf(stub, 'context-trimmed')).not.toEqual([])
  })

  test('is left by an event that waited, where its action was carried out before', async () => {
    const { scope, stub } = await acting(
      "return { action_type: 'call_tool', tool: 'act', args: { text: 'x' }, idempotence_key: 'k', consume: true }",
    )
    await sendAndSettle(stub, note(scope, 'a'))
    await stub.configure({ consumer: 'pull' }, 'ops')
    const ids = await send(stub, note(scope, 'b'))
    await stub.configure({ consumer: 'turn' }, 'ops')
    expect((await stub.outcomes(ids, 15_000)).records).toMatchObject([{ outcome: { by: 'reflex', reused: true } }])
    expect(await stub.context(10)).toMatchObject({ count: 0, events: [] })
    expect(did(scope)).toEqual(['x'])
  })
})

describe('the windows', () => {
  const counting = `
    if (context.event.text === 'dies') return null
    return { action_type: 'set_scratch', key: 'saw', value: context.window['10m'].total }`

  test('count what came while there was no chain', async () => {
    const { id, scope, stub } = await acting(counting)
    await sendAndSettle(stub, note(scope, 'a'))
    await stub.configure({ reflexes: null }, 'ops')
    await sendAndSettle(stub, ...notes(scope, 3))
    await stub.configure({ reflexes: [{ id }] }, 'ops')
    await sendAndSettle(stub, note(scope, 'e'))
    expect(await scratchOf(scope)).toEqual({ saw: 5 })
  })

  test('count what waited in the inbox once', async () => {
    const { scope, stub } = await acting(counting)
    await stub.configure({ consumer: 'pull' }, 'ops')
    const ids = await send(stub, ...notes(scope, 5))
    await stub.configure({ consumer: 'turn' }, 'ops')
    await stub.outcomes(ids, 15_000)
    expect(await scratchOf(scope)).toEqual({ saw: 5 })
  })

  test.each([
    ['in one life of the object', async () => {}],
    ['after an eviction', evict],
  ])('count an event that is tried again once, %s', async (_, between) => {
    const { scope, stub } = await acting(counting)
    await stub.configure({ max_attempts: 1 }, 'ops')
    behaviours.set(scope, async () => {
      throw new Error('no')
    })
    const dead = note(scope, 'dies')
    expect(await sendAndSettle(stub, dead)).toMatchObject([{ status: 'dead_lettered' }])
    await sendAndSettle(stub, ...notes(scope, 4))
    await between(stub)
    behaviours.set(scope, async () => null)
    await stub.reopen([dead.id], 'ops')
    await sendAndSettle(stub, note(scope, 'last'))
    expect(await scratchOf(scope)).toEqual({ saw: 6 })
  })
})

describe('an action', () => {
  test('whose connection is lost is not repeated, and holds up nothing', async () => {
    const { scope, stub } = await acting(calls('act'))
    const records = await sendAndSettle(stub, note(scope, 'lose connection'), note(scope, 'fine'))
    expect(by(records)).toEqual(['turn', 'reflex'])
    expect(did(scope)).toEqual(['lose connection', 'fine'])
    expect((await entriesOf(stub, 'action-ended')).map(({ status, error }) => [status, error])).toEqual([
      ['failed', 'Network connection lost.'],
      ['ok', null],
    ])
  })

  test('with a key that ends unknown is repeated under its key five times, and then a person decides, not a turn', async () => {
    const { id, scope, stub } = await acting(
      "return { action_type: 'call_tool', tool: 'act_quickly', args: { text: 'hang' }, idempotence_key: 'k' }",
    )
    let turns = 0
    behaviours.set(scope, async (_, deps) => {
      turns += 1
      return { did: await deps.call('act_quickly', { text: 'hang' }).catch(String) }
    })
    const [event = ''] = await send(stub, note(scope, 'a'))
    await until(async () => (await hurry(stub), (await stub.event(event))?.status === 'dead_lettered'), 'the event is given up')
    await hurry(stub)
    expect(turns).toBe(0)
    expect(effects.filter((effect) => effect.scope === scope).map(({ key }) => key)).toEqual(Array(5).fill(`${id} k`))
    expect((await entriesOf(stub, 'effect-ended')).map(({ status }) => status)).toEqual(Array(5).fill('unknown'))
    expect(await entriesOf(stub, 'action-ended')).toMatchObject([
      { status: 'unknown', error: expect.stringContaining('longer than 50 ms') },
    ])
    const reason = `the effect of reflex ${id} has an unknown outcome: check whether it happened, then retry or discard this event`
    expect((await stub.event(event))?.outcome).toEqual({ by: 'failure', reason })
  })

  test('that failed is not taken for done by another with its key in the same batch', async () => {
    const { scope, stub } = await acting("return { action_type: 'call_tool', tool: 'act', args: { text: 'throw' }, idempotence_key: 'k' }")
    expect(by(await sendAndSettle(stub, ...notes(scope, 2)))).toEqual(['turn', 'turn'])
    expect((await entriesOf(stub, 'action-ended')).map(({ status }) => status)).toEqual(['failed', 'failed'])
  })

  test('that preempts lets a turn through that was preempted ten times', async () => {
    const { scope, stub } = await acting(
      "return context.event.text === 'think' ? null : { action_type: 'reply', content: 'x', preempt: true }",
    )
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async (_, { signal }) => {
      const stopped = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
      await Promise.race([gate.promise, stopped])
    })
    const ids = await send(stub, note(scope, 'think'))
    for (let index = 0; index < 12; index += 1) {
      await until(async () => (await stub.state()).turn, 'a turn is in flight')
      await sendAndSettle(stub, note(scope, 'tick'))
    }
    gate.resolve()
    expect((await stub.outcomes(ids, 15_000)).records).toMatchObject([{ status: 'completed', outcome: { by: 'turn' } }])
    expect((await entriesOf(stub, 'turn-ended')).map(({ status }) => status)).toEqual([...Array(10).fill('interrupted'), 'none'])
  })

  test('that emits goes no deeper than ten, whoever answers whom', async () => {
    const answering = (call: string, answer: string) =>
      write(
        `return context.event.text === '${call}' ? { action_type: 'emit_event', event: { type: 'test.note', text: '${answer}' } } : null`,
      )
    const [ping, pong] = [await answering('ping', 'pong'), await answering('pong', 'ping')]
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id: ping.id }, { id: pong.id }] }, 'ops')
    await sendAndSettle(stub, note(scope, 'ping'))
    await until(async () => (await stub.state()).counters.completed === 11, 'the last one is completed')
    expect((await stub.state()).counters).toMatchObject({ accepted: 11, reflex_actions: 10, turns: 1 })
    const refused = (await entriesOf(stub, 'reflex-passed')).filter(({ reason }) => reason === 'refused')
    expect(refused).toMatchObject([{ reflex_id: ping.id, error: expect.stringContaining('this looks like a loop') }])
  })

  test('that emits into another scope is refused', async () => {
    const other = freshScope()
    const { scope, stub } = await acting(
      `return { action_type: 'emit_event', event: { type: 'test.note', text: 'injected', scope: ${JSON.stringify(other)} } }`,
    )
    expect(by(await sendAndSettle(stub, note(scope, 'a')))).toEqual(['turn'])
    expect(await entriesOf(stub, 'reflex-passed')).toMatchObject([{ reason: 'refused', error: expect.stringContaining('scope') }])
    expect((await stubOf(other).state()).counters.accepted).toBe(0)
  })
})
