import { createHash } from 'node:crypto'
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, test } from 'vitest'
import { behaviours, effectGates, effects } from '../../../support/test-agents.ts'
import { agreementsNeeded } from '../../../../src/reflexes/promotion.ts'
import { reflexes } from '../../../../src/artifacts/kinds.ts'
import { jsonHash } from '../../../../src/base/hash.ts'
import { acting, calls, did, notes, whileAway, write } from '../../../support/reflex-chain.ts'
import { call } from '../../../support/http.ts'
import { freshId } from '../../../support/reflexes.ts'
import {
  crash,
  entriesOf,
  evict,
  freshScope,
  hurry,
  inObject,
  logOf,
  note,
  runAlarm,
  send,
  sendAndSettle,
  stubOf,
  textOf,
  until,
} from '../../../support/scopes.ts'

let turns: string[] = []
const thinkingOf = (scope: string) => behaviours.set(scope, async (context) => void turns.push(...context.events.map(textOf)))
beforeEach(() => void (turns = []))

test('what decided is the same number in the state of a scope, in the list, and in each metric', async () => {
  const { scope, stub } = await acting(`if (context.event.text !== 'a') return null; ${calls('act')}`)
  await sendAndSettle(stub, note(scope, 'a'), note(scope, 'a'))
  behaviours.set(scope, async () => null)
  const [idle] = await sendAndSettle(stub, note(scope, 'b'))
  expect(idle?.outcome).toMatchObject({ by: 'turn', idle: true })
  behaviours.set(scope, async () => ({ did: 'something' }))
  const [busy] = await sendAndSettle(stub, note(scope, 'c'))
  expect(busy?.outcome).not.toHaveProperty('idle')

  const { fired, counters } = await stub.state()
  expect(fired).toEqual({ share: 1, decided: 2, model_calls: 0 })
  expect(counters).toMatchObject({ reflex_actions: 2, model_calls: 0 })
  const listed = await until(async () => {
    const { items } = (await call(`/v1/scopes?search=${encodeURIComponent(scope)}`)).body
    return items[0]?.accepted === 4 && items[0]
  }, 'the list has the statistics')
  expect(listed.fire_share).toBe(fired.share)
  const total = async (metric: string) =>
    (await call(`/v1/stats?metric=${metric}&bucket=all&scope=${encodeURIComponent(scope)}`)).body.series[0].total
  const names = ['events.by_reflex', 'reflexes.decided', 'reflex.decided', 'reflexes.fire_share', 'events.by_turn', 'events.by_condition']
  expect(await Promise.all(names.map(total))).toEqual([2, 2, 2, fired.share, 1, 1])
})

describe('a reflex of the chain', () => {
  test('that returns an action acts, completes its event, and no turn is started', async () => {
    const { id, scope, stub } = await acting(calls('act'))
    thinkingOf(scope)
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    expect(record).toMatchObject({ status: 'completed', attempts: 0, outcome: { by: 'reflex', reflex_id: id, version: 1 } })
    expect(did(scope)).toEqual(['a'])
    expect((await stub.state()).counters).toMatchObject({ reflex_actions: 1, turns: 0, effects: 1, completed: 1 })
    const fired = await entriesOf(stub, 'reflex-fired')
    expect(fired).toMatchObject([{ reflex_id: id, version: 1, state: 'active', action: { action_type: 'call_tool', tool: 'act' } }])
    expect(fired[0]?.context_hash).toMatch(/^[0-9a-f]{64}$/)
    expect(fired[0]?.context).toMatchObject({ event: { text: 'a' }, tick: 1 })
    expect((await logOf(stub)).map(({ kind }) => kind)).toEqual([
      'settings-changed',
      'event-accepted',
      'reflex-fired',
      'effect-started',
      'effect-ended',
      'action-ended',
      'event-ended',
    ])
    expect(await stub.context(10)).toMatchObject({ count: 1 })
  })

  test('that returns null lets a turn decide', async () => {
    const { scope, stub } = await acting('return null')
    thinkingOf(scope)
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    expect(record).toMatchObject({ status: 'completed', outcome: { by: 'turn' } })
    expect(turns).toEqual(['a'])
    expect(await entriesOf(stub, 'reflex-passed')).toMatchObject([{ reason: 'null', error: null }])
  })

  test.each([
    ['takes too long', 'while (true) {}', 'limit'],
    ['throws', 'throw new Error("no")', 'error'],
    ['returns what is no action', 'return { action_type: "fly" }', 'invalid_action'],
    ['wants a tool that this scope does not have', calls('launch'), 'refused'],
    ['gives a tool what it does not take', "return { action_type: 'call_tool', tool: 'act', args: {} }", 'refused'],
  ])('that %s lets a turn decide', async (_, body, reason) => {
    const { scope, stub } = await acting(body)
    thinkingOf(scope)
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ status: 'completed', outcome: { by: 'turn' } }])
    expect(turns).toEqual(['a'])
    const detail = expect.stringMatching(/^the (reflex failed|scope does not allow).*: the event continued$/)
    expect(await entriesOf(stub, 'reflex-passed')).toMatchObject([{ reason, detail }])
    expect(did(scope)).toEqual([])
  })

  test('is passed over where it is missing, and the next one acts', async () => {
    const scope = freshScope()
    const { id } = await write(calls('act'))
    const missing = freshId()
    await stubOf(scope).configure({ reflexes: [{ id: missing }, { id }] }, 'ops')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex', reflex_id: id } }])
    expect(await entriesOf(stubOf(scope), 'reflex-passed')).toMatchObject([{ reflex_id: missing, reason: 'missing', version: null }])
  })

  test('comes in order of priority: the first valid action wins', async () => {
    const scope = freshScope()
    const [first, second] = [await write('return null'), await write(calls('act', '"second"'))]
    const third = await write(calls('act', '"third"'))
    await stubOf(scope).configure({ reflexes: [first, second, third].map(({ id }) => ({ id })) }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    expect(did(scope)).toEqual(['second'])
  })

  test('is switched by the settings, at once', async () => {
    const { scope, stub } = await acting(calls('act', '"old"'))
    const { id } = await write(calls('act', '"new"'))
    await sendAndSettle(stub, note(scope, 'a'))
    await stub.configure({ reflexes: [{ id }] }, 'ops')
    await sendAndSettle(stub, note(scope, 'b'))
    await stub.configure({ reflexes: null }, 'ops')
    await sendAndSettle(stub, note(scope, 'c'))
    expect(did(scope)).toEqual(['old', 'new'])
  })

  test('follows its newest active version, once the scope is notified', async () => {
    const { id, scope, stub } = await acting(calls('act', '"one"'))
    await write(calls('act', '"two"'), { id })
    await stub.reflexesChanged([id])
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual(['two'])
  })

  test('stays at the version that the chain names', async () => {
    const { id, scope, stub } = await acting(calls('act', '"one"'), { version: 1 })
    await write(calls('act', '"two"'), { id })
    await stub.reflexesChanged([id])
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual(['one'])
  })

  test('of an owner who may not touch the scope runs only where its version is named, if it was published', async () => {
    const scope = freshScope()
    const { id } = await write(calls('act'), { scopes: ['elsewhere/*'], sharing: 'org' })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    expect(did(scope)).toEqual([])
    await stubOf(scope).configure({ reflexes: [{ id, version: 1 }] }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'b'))
    expect(did(scope)).toEqual(['b'])
    await call(`/v1/reflexes/${id}@1/sharing`, { json: { sharing: 'project' } })
    await until(async () => (await stubOf(scope).chain()).reflexes.every(({ absent }) => absent !== null), 'the chain has lost it')
    await sendAndSettle(stubOf(scope), note(scope, 'c'))
    expect(did(scope)).toEqual(['b'])
  })

  test('sees exactly what is documented', async () => {
    const { scope, stub } = await acting("return { action_type: 'set_scratch', key: 'saw', value: context }")
    behaviours.set(scope, async () => null)
    await sendAndSettle(stub, note(scope, 'a'), note(scope, 'b'))
    const { saw } = (await stub.context(1)).scratch as { saw: Record<string, unknown> }
    expect(Object.keys(saw).sort()).toEqual(
      'agent_id tick balance llm_tokens_remaining recent_events pending_purchases pending_contracts owned_artifacts event window recent_actions scratch thinking'
        .split(' ')
        .sort(),
    )
    expect(saw).toMatchObject({
      agent_id: 'test-agent',
      tick: 2,
      balance: 0,
      llm_tokens_remaining: null,
      recent_events: [{ text: 'a' }, { text: 'b' }],
      event: { text: 'b' },
      window: { '10s': { total: 2, by_type: { 'test.note': 2 }, by_source: { test: 2 } }, '1m': { total: 2 }, '10m': { total: 2 } },
      recent_actions: [{ action: { action_type: 'set_scratch' }, seconds_ago: expect.any(Number) }],
      thinking: null,
    })
  })

  test('still knows its windows and its latest actions after an eviction', async () => {
    const { scope, stub } = await acting(
      "return { action_type: 'set_scratch', key: 'saw', value: [context.window['10m'].total, context.recent_actions.length] }",
    )
    await sendAndSettle(stub, note(scope, 'a'), note(scope, 'b'))
    await evict(stub)
    await sendAndSettle(stub, note(scope, 'c'))
    expect((await stub.context(1)).scratch).toEqual({ saw: [3, 2] })
  })

  test.each([
    ['lives on', async () => {}],
    ['is evicted', async (scope: string) => evict(stubOf(scope))],
    [
      'loses old rows of its log, and is evicted',
      async (scope: string) => {
        await inObject(stubOf(scope), ({ storage: { sql } }) => {
          for (const aged of ['log SET at = at', 'events SET accepted_at = accepted_at']) sql.exec(`UPDATE ${aged} - 864000000`)
        })
        await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'D1 has all')
        await runAlarm(stubOf(scope))
        await evict(stubOf(scope))
      },
    ],
  ])('counts each action once, and knows the latest ones, if its scope %s at times', { timeout: 60_000 }, async (_how, happens) => {
    const { id, scope, stub } = await acting(
      "return { action_type: 'set_scratch', key: 'saw', value: context.recent_actions.map(({ event_id }) => event_id) }",
    )
    const sent: string[] = []
    for (let nth = 0; nth < 40; nth += 1) {
      const event = note(scope, `n${nth}`)
      await sendAndSettle(stubOf(scope), event)
      sent.push(event.id)
      if (nth % 7 === 6) await happens(scope)
    }
    await evict(stub)
    expect((await stubOf(scope).metrics()).reflexes).toMatchObject([{ reflex_id: id, metrics: { runs: 40, fired: 40, acted: 40 } }])
    await sendAndSettle(stubOf(scope), note(scope, 'the last'))
    expect((await stubOf(scope).context(1)).scratch).toEqual({ saw: sent.slice(-10) })
  })
})

describe('an action', () => {
  test('of each kind that changes only the scope happens with the acceptance', async () => {
    const { scope, stub } = await acting(`
      if (context.event.text === 'reply') return { action_type: 'reply', content: 'hello' }
      return { action_type: 'set_scratch', key: 'k', value: { n: 1 }, consume: true }`)
    await sendAndSettle(stub, note(scope, 'reply'), note(scope, 'note'))
    expect(await entriesOf(stub, 'reply-sent')).toMatchObject([{ turn_id: null, content: 'hello' }])
    expect(await stub.context(10)).toMatchObject({ count: 1, events: [{ text: 'reply' }], scratch: { k: { n: 1 } } })
    await evict(stub)
    expect(await stub.context(10)).toMatchObject({ count: 1, scratch: { k: { n: 1 } } })
  })

  test('emits a child event, which keeps the trace and comes once', async () => {
    const { id, scope, stub } = await acting(`
      if (context.event.text !== 'cause') return null
      return { action_type: 'emit_event', event: { type: 'test.note', text: 'effect' } }`)
    const cause = note(scope, 'cause')
    behaviours.set(scope, async () => null)
    await inObject(stub, ({ storage: { sql } }) => {
      sql.exec('CREATE TABLE ended_jobs AS SELECT * FROM jobs')
      sql.exec('CREATE TRIGGER keep BEFORE DELETE ON jobs BEGIN INSERT INTO ended_jobs SELECT * FROM jobs WHERE seq = OLD.seq; END')
    })
    expect(await sendAndSettle(stub, cause)).toMatchObject([{ outcome: { by: 'reflex' } }])
    const context = [
      { text: 'cause' },
      { text: 'effect', source: `reflex:${id}`, meta: { trace_id: cause.meta.trace_id, causation_id: cause.id, correlation_id: cause.id } },
    ]
    await sendAndSettle(stub, cause)
    expect(await stub.context(10)).toMatchObject({ count: 2, events: context })
    await evict(stub)
    await sendAndSettle(stub, cause)
    expect(await stub.context(10)).toMatchObject({ count: 2, events: context })
    // As if the object had died after the child was accepted, and before that was noted.
    await inObject(stub, ({ storage: { sql } }) => {
      sql.exec('INSERT INTO jobs SELECT * FROM ended_jobs')
      sql.exec(`UPDATE events SET status = 'processing', ended_at = NULL, outcome = NULL WHERE id = ?`, cause.id)
    })
    const again = await crash(scope)
    await until(async () => (await again.event(cause.id))?.status === 'completed', 'the cause is completed once more')
    expect(await again.context(10)).toMatchObject({ count: 2, events: context })
    expect((await again.state()).counters).toMatchObject({ accepted: 2, duplicates: 3 })
  })

  test('emits its child once although somebody sent an event under the id of the child to come', async () => {
    const { id, scope, stub } = await acting(`
      if (context.event.text !== 'cause') return null
      return { action_type: 'emit_event', event: { type: 'test.note', text: 'effect' } }`)
    const cause = note(scope, 'cause')
    behaviours.set(scope, async () => null)
    await send(stub, note(scope, 'forged', { id: `${jsonHash([scope, id, cause.id], 32)}-1` }))
    await sendAndSettle(stub, cause)
    const texts = [{ text: 'forged' }, { text: 'cause' }, { text: 'effect' }]
    expect(await stub.context(10)).toMatchObject({ events: texts })
    await inObject(stub, ({ storage: { sql } }) => sql.exec(`UPDATE events SET status = 'dead_lettered' WHERE id = ?`, cause.id))
    await evict(stub)
    await stub.reopen([cause.id], 'ops')
    await until(async () => (await stub.event(cause.id))?.status === 'completed', 'the cause is completed once more')
    expect((await entriesOf(stub, 'event-accepted')).filter(({ via }) => via === 'reflex')).toHaveLength(1)
  })

  test('may stop a thought, and preempt one', async () => {
    const { scope, stub } = await acting(`
      if (context.event.text === 'stop') return { action_type: 'cancel_turn', reason: 'enough' }
      if (context.event.text === 'first') return { action_type: 'reply', content: 'me', preempt: true }
      return null`)
    let started = 0
    behaviours.set(scope, async (_context, { signal }) => {
      started += 1
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    })
    const [thought] = await send(stub, note(scope, 'think'))
    await until(async () => (await stub.state()).turn, 'a turn is in flight')
    await sendAndSettle(stub, note(scope, 'first'))
    expect(await entriesOf(stub, 'turn-ended')).toMatchObject([{ status: 'interrupted' }])
    await until(async () => started === 2, 'the turn restarts')
    await sendAndSettle(stub, note(scope, 'stop'))
    expect(await stub.event(thought ?? '')).toMatchObject({ status: 'cancelled', outcome: { by: 'cancel', reason: 'enough' } })
  })

  test('completes an event that it ignores, without a turn', async () => {
    const { scope, stub } = await acting("return context.event.text === 'hum' ? { action_type: 'ignore', reason: 'no news' } : null")
    expect(await sendAndSettle(stub, note(scope, 'hum'))).toMatchObject([{ status: 'completed', outcome: { by: 'reflex' } }])
    expect(await sendAndSettle(stub, note(scope, 'news'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect((await stub.state()).counters).toMatchObject({ turns: 1, reflex_actions: 1 })
  })

  test('is compared, where it would ignore in shadow, with whether the turn did anything', async () => {
    const [scope, { id }] = [freshScope(), await write("return { action_type: 'ignore', reason: 'no news' }", { state: 'shadow' })]
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    behaviours.set(scope, async ({ events }, deps) => {
      if (events.some((event) => textOf(event) === 'news')) deps.reply('I see')
    })
    await sendAndSettle(stub, note(scope, 'hum'))
    await sendAndSettle(stub, note(scope, 'news'))
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { shadow: { agreed: 1, disagreed: 1 } } }])
  })

  test('agrees in shadow with a turn on several events that did something for others alone', async () => {
    const [scope, { id }] = [freshScope(), await write("return { action_type: 'ignore', reason: 'no news' }", { state: 'shadow' })]
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id }], overlap: { debounce: { quiet_ms: 200, max_ms: 2000 } } }, 'ops', 'key-of-ops')
    behaviours.set(scope, async ({ events }, deps) => {
      const ordered = events.find((event) => textOf(event).includes('refund'))
      if (ordered) await deps.call('act_once', { text: textOf(ordered) })
    })
    await sendAndSettle(stub, note(scope, 'refund order A-1001'), note(scope, 'humming along'), note(scope, 'nothing else'))
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { shadow: { agreed: 2, disagreed: 1 } } }])
    const compared = await entriesOf(stub, 'reflex-compared')
    expect(compared.map(({ agreed, terms }) => [agreed, terms])).toEqual([
      [false, undefined],
      [true, { others: true }],
      [true, { others: true }],
    ])
  })

  test('disagrees in shadow if its event had a turn do what an event before it had asked for', async () => {
    const ignores = await write("return context.event.text === 'yes please' ? { action_type: 'ignore', reason: 'no news' } : null", {
      state: 'shadow',
    })
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id: ignores.id }] }, 'ops', 'key-of-ops')
    behaviours.set(scope, async ({ events }, deps) => {
      if (events.some((event) => textOf(event) === 'yes please')) await deps.call('act_once', { text: 'refund order A-1001?' })
      return null
    })
    await sendAndSettle(stub, note(scope, 'refund order A-1001?'))
    await sendAndSettle(stub, note(scope, 'yes please'))
    expect(await entriesOf(stub, 'reflex-compared')).toMatchObject([{ agreed: false, decision: { acts: [{ tool: 'act_once' }] } }])
  })

  test('agrees in shadow with a turn that did again what a reflex had done for an event before it', async () => {
    const ignores = await write("return context.event.text === 'humming along' ? { action_type: 'ignore', reason: 'no news' } : null", {
      state: 'shadow',
    })
    const refunds = await write(`if (!context.event.text.includes('refund')) return null; ${calls('act_once')}`)
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id: ignores.id }, { id: refunds.id }] }, 'ops', 'key-of-ops')
    behaviours.set(scope, async ({ events }, deps) => {
      const ordered = events.find((event) => textOf(event).includes('refund'))
      if (ordered) await deps.call('act_once', { text: textOf(ordered) })
      return { done: true }
    })
    expect(await sendAndSettle(stub, note(scope, 'refund order A-1001'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(await sendAndSettle(stub, note(scope, 'humming along'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(await entriesOf(stub, 'reflex-compared')).toMatchObject([{ agreed: true, decision: { acts: [{ tool: 'act_once' }] } }])
  })

  test('is not compared in shadow with words that may be about an event that it left', async () => {
    const body = "return context.event.text === 'when?' ? null : { action_type: 'ignore', reason: 'no news' }"
    const [scope, { id }] = [freshScope(), await write(body, { state: 'shadow' })]
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id }], overlap: { debounce: { quiet_ms: 200, max_ms: 2000 } } }, 'ops', 'key-of-ops')
    behaviours.set(scope, async (_, deps) => deps.reply('We open at nine.'))
    await sendAndSettle(stub, note(scope, 'when?'), note(scope, 'humming along'))
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { shadow: { undecided: 1, disagreed: 0 } } }])
    expect(await entriesOf(stub, 'reflex-compared')).toMatchObject([{ agreed: null, terms: { unclear: true } }])
    // It would have ignored all of them, and so would have been wrong about one.
    await sendAndSettle(stub, note(scope, 'hello there'), note(scope, 'humming along'))
    expect((await stub.metrics()).reflexes).toMatchObject([{ metrics: { shadow: { undecided: 1, disagreed: 2 } } }])
  })

  test('escalates straight to a turn, debounce or not', async () => {
    const { scope, stub } = await acting("return context.event.text === 'urgent' ? { action_type: 'escalate', reason: 'look' } : null")
    await stub.configure({ overlap: { debounce: { quiet_ms: 60_000, max_ms: 60_000 } } }, 'ops')
    thinkingOf(scope)
    await send(stub, note(scope, 'wait'))
    expect(await sendAndSettle(stub, note(scope, 'urgent'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(turns).toEqual(['wait', 'urgent'])
  })

  test.each([
    ['that no agent serves', 'prompted', 'its settings have no instructions'],
    ['whose agent has no trigger', 'perceiver', 'agent perceiver has no trigger'],
  ])('that escalates in a scope %s leaves a dead letter, which a turn takes once there is one', async (_, agent, why) => {
    const { scope, stub } = await acting("return context.event.text === 'urgent' ? { action_type: 'escalate', reason: 'look' } : null")
    await stub.configure({ agent }, 'ops')
    const [plain, urgent] = [note(scope, 'plain'), note(scope, 'urgent')]
    expect(await sendAndSettle(stub, plain, urgent)).toMatchObject([
      { status: 'completed' },
      { status: 'dead_lettered', error: expect.stringContaining(why) },
    ])
    await stub.configure({ agent: null }, 'ops')
    thinkingOf(scope)
    await stub.reopen([urgent.id], 'ops')
    await until(async () => (await stub.event(urgent.id))?.status === 'completed', 'a turn has taken it')
    expect(turns).toEqual(['plain', 'urgent'])
  })

  test('runs beside a turn in flight', async () => {
    const { scope, stub } = await acting(`if (context.event.text !== 'now') return null; ${calls('act')}`)
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async () => gate.promise)
    await send(stub, note(scope, 'think'))
    await until(async () => (await stub.state()).turn, 'a turn is in flight')
    const [record] = await sendAndSettle(stub, note(scope, 'now'))
    expect(record).toMatchObject({ outcome: { by: 'reflex' } })
    expect((await stub.state()).turn).not.toBeNull()
    expect((await entriesOf(stub, 'reflex-fired'))[0]?.context).toMatchObject({ thinking: { since: expect.any(String) } })
    gate.resolve()
  })

  test('with a key is carried out once, within a batch and across them', async () => {
    const { scope, stub } = await acting("return { action_type: 'call_tool', tool: 'act', args: { text: 'x' }, idempotence_key: 'k' }")
    const records = await sendAndSettle(stub, note(scope, 'a'), note(scope, 'b'))
    expect(records).toMatchObject([{ outcome: { by: 'reflex' } }, { outcome: { by: 'reflex', reused: true } }])
    await evict(stub)
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { by: 'reflex', reused: true } }])
    expect(did(scope)).toEqual(['x'])
  })

  test('that is done at once is done once with a key, too', async () => {
    const { scope, stub } = await acting("return { action_type: 'reply', content: 'x', idempotence_key: 'k' }")
    await sendAndSettle(stub, note(scope, 'a'), note(scope, 'b'))
    await evict(stub)
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { by: 'reflex', reused: true } }])
    expect(await entriesOf(stub, 'reply-sent')).toHaveLength(1)
  })

  test('with a key is not confused with another one whose id starts like the key', async () => {
    const scope = freshScope()
    const id = freshId()
    const once = (text: string, key: string) =>
      `return context.event.text === '${text}' ? { action_type: 'call_tool', tool: 'act', args: { text: '${text}' }, idempotence_key: '${key}' } : null`
    await write(once('a', 'b:c'), { id })
    await write(once('b', 'c'), { id: `${id}:b` })
    await stubOf(scope).configure({ reflexes: [{ id }, { id: `${id}:b` }] }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'a'), note(scope, 'b'))
    expect(did(scope)).toEqual(['a', 'b'])
  })

  test('whose effect fails hands its event to the slow path', async () => {
    const { scope, stub } = await acting(calls('act', '"throw"'))
    thinkingOf(scope)
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ status: 'completed', outcome: { by: 'turn' } }])
    expect(turns).toEqual(['a'])
    expect(await entriesOf(stub, 'action-ended')).toMatchObject([{ status: 'failed', error: 'the tool failed' }])
  })

  test('is held back by its cooldown and its rate, with an entry in the log', async () => {
    const slow = await acting(calls('act'), { cooldown_s: 60 })
    await sendAndSettle(slow.stub, note(slow.scope, 'a'), note(slow.scope, 'b'))
    expect(did(slow.scope)).toEqual(['a'])
    expect(await entriesOf(slow.stub, 'reflex-passed')).toMatchObject([{ reason: 'cooldown' }])
    const limited = await acting(calls('act'), { rate: 2 })
    await sendAndSettle(limited.stub, ...'abcd'.split('').map((text) => note(limited.scope, text)))
    expect(did(limited.scope)).toEqual(['a', 'b'])
    expect(await entriesOf(limited.stub, 'reflex-passed')).toMatchObject([{ reason: 'rate' }, { reason: 'rate' }])
  })

  test.each([
    ['without a key ends as unknown, and a person decides', 'act', 'dead_lettered', ['a']],
    ['with a key runs again under the same key', 'act_once', 'completed', ['a', 'a']],
  ])('that a crash cuts off %s', async (_, tool, status, done) => {
    const { scope, stub } = await acting(calls(tool))
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    const [id = ''] = await send(stub, note(scope, 'a'))
    await until(async () => did(scope).length === 1, 'the effect has begun')
    const again = await crash(scope)
    effectGates.delete(scope)
    gate.resolve()
    await until(async () => (await again.event(id))?.status === status, `the event is ${status}`)
    expect(did(scope)).toEqual(done)
    const keys = effects.filter((effect) => effect.scope === scope).map(({ key }) => key)
    expect(new Set(keys).size).toBe(1)
  })

  test('that a crash cuts off before its effect began is carried out on waking', async () => {
    const { scope, stub } = await acting(calls('act'))
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    await send(stub, note(scope, 'first'))
    const [id = ''] = await send(stub, note(scope, 'second'))
    await until(async () => did(scope).length === 1, 'the first effect has begun')
    const again = await crash(scope)
    effectGates.delete(scope)
    gate.resolve()
    await until(async () => (await again.event(id))?.status === 'completed', 'the second event is completed')
    expect(did(scope)).toEqual(['first', 'second'])
  })
})

describe('a hostile reflex', () => {
  test('is removed from the chain after three limits in a row, and the scope continues', async () => {
    const { id, scope, stub } = await acting('while (true) {}')
    behaviours.set(scope, async () => null)
    const events = Array.from({ length: 20 }, (_, index) => note(scope, `${index}`))
    const records = await sendAndSettle(stub, ...events)
    expect(records.every(({ status }) => status === 'completed')).toBe(true)
    expect((await entriesOf(stub, 'reflex-passed')).filter(({ reason }) => reason === 'limit')).toHaveLength(3)
    expect(await entriesOf(stub, 'reflex-moved')).toMatchObject([{ reflex_id: id, from: 'active', to: 'draft' }])
  })
})

describe('the proving ground', () => {
  const decide = (scope: string, text: string) =>
    behaviours.set(scope, async (context, deps) => {
      for (const event of context.events)
        await deps.call('act_once', { text: text === 'same' ? (event as unknown as { text: string }).text : text })
      return 'done'
    })

  test('runs a reflex in shadow without acting, and says whether the turn agreed', async () => {
    const scope = freshScope()
    const { id } = await write(calls('act_once'), { state: 'shadow' })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    decide(scope, 'same')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ outcome: { by: 'turn' } }])
    decide(scope, 'other')
    await sendAndSettle(stubOf(scope), note(scope, 'b'))
    expect(await entriesOf(stubOf(scope), 'reflex-fired')).toMatchObject([{ state: 'shadow' }, { state: 'shadow' }])
    expect(await entriesOf(stubOf(scope), 'reflex-compared')).toMatchObject([{ agreed: true }, { agreed: false }])
    const { reflexes } = await stubOf(scope).metrics()
    expect(reflexes).toMatchObject([{ reflex_id: id, version: 1, metrics: { shadow: { runs: 2, fired: 2, agreed: 1, disagreed: 1 } } }])
  })

  test('promotes what an agent wrote once it has agreed often enough, and tells D1', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(calls('act_once'), { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id }] }, 'ops')
    decide(scope, 'same')
    await sendAndSettle(stub, ...notes(scope, agreementsNeeded(0.95) - 1))
    expect(await entriesOf(stub, 'reflex-moved')).toEqual([])
    await sendAndSettle(stub, note(scope, 'one more'))
    expect(await entriesOf(stub, 'reflex-moved')).toMatchObject([{ reflex_id: id, from: 'shadow', to: 'active' }])
    expect(await sendAndSettle(stub, note(scope, 'z'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    await hurry(stub)
    await until(async () => (await reflexes.find(env.DB, id))?.state === 'active', 'D1 knows')
  })

  test('leaves what a person put into shadow there', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(calls('act_once'), { state: 'shadow' })
    await stub.configure({ reflexes: [{ id }] }, 'ops')
    decide(scope, 'same')
    await sendAndSettle(stub, ...notes(scope, agreementsNeeded(0.95) + 2))
    expect(await entriesOf(stub, 'reflex-moved')).toEqual([])
  })

  test.each([
    ['', async () => {}],
    [', also after an eviction', (scope: string) => evict(stubOf(scope))],
  ])('leaves a version in shadow for good once it is refuted%s', async (_, meanwhile) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(calls('act_once'), { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id }] }, 'ops')
    decide(scope, 'other')
    await sendAndSettle(stub, note(scope, 'a'))
    await sendAndSettle(stub, note(scope, 'b'))
    const reason = '0 of 2 compared fires in shadow agreed: too few to activate it'
    expect(await entriesOf(stub, 'reflex-moved')).toMatchObject([{ reflex_id: id, from: 'shadow', to: 'shadow', reason }])
    await hurry(stub)
    await until(async () => (await reflexes.find(env.DB, id))?.state_reason === `${reason} (in scope ${scope})`, 'D1 knows')
    await meanwhile(scope)
    decide(scope, 'same')
    await sendAndSettle(stub, ...notes(scope, agreementsNeeded(0.95) + 100))
    expect(await entriesOf(stub, 'reflex-moved')).toHaveLength(1)
  })

  test('compares nothing on events that are older than the version', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    decide(scope, 'same')
    await stub.configure({ consumer: 'pull' }, 'ops')
    const ids = await send(stub, note(scope, 'old'))
    const { id } = await write(calls('act_once'), { state: 'shadow', scope, now: Date.now() + 60_000 })
    await stub.configure({ consumer: 'turn', reflexes: [{ id }] }, 'ops')
    expect(await stub.outcomes(ids, 15_000)).toMatchObject({ settled: true })
    expect(await entriesOf(stub, 'reflex-fired')).toMatchObject([{ state: 'shadow' }])
    expect(await entriesOf(stub, 'reflex-compared')).toEqual([])
  })

  test('demotes one whose effects fail, with the reason', async () => {
    const { id, scope, stub } = await acting(calls('act', '"throw"'))
    thinkingOf(scope)
    for (const text of 'abc') await sendAndSettle(stub, note(scope, text))
    expect(await entriesOf(stub, 'reflex-moved')).toMatchObject([
      { reflex_id: id, to: 'shadow', reason: 'the effects of 3 of 3 actions failed' },
    ])
    await sendAndSettle(stub, note(scope, 'd'))
    expect(did(scope)).toHaveLength(3)
  })

  test('only suspends here what another owns', async () => {
    const scope = freshScope()
    const { id } = await write('throw 1', { scopes: ['elsewhere/*'], sharing: 'org' })
    await stubOf(scope).configure({ reflexes: [{ id, version: 1 }] }, 'someone')
    behaviours.set(scope, async () => null)
    await sendAndSettle(stubOf(scope), ...'abcdef'.split('').map((text) => note(scope, text)))
    expect((await entriesOf(stubOf(scope), 'reflex-passed')).at(-1)).toMatchObject({ reason: 'suspended' })
    expect(await reflexes.find(env.DB, id)).toMatchObject({ state: 'active' })
  })
})

describe('recordings', () => {
  test('return each event with the context of the chain, or a rebuilt one, and with the decision', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => ({ did: await deps.call('act_once', { text: 'x' }) }))
    await sendAndSettle(stub, note(scope, 'before'))
    const { id } = await write(`if (context.event.text === 'fire') { ${calls('act')} } return null`)
    await stub.configure({ reflexes: [{ id }] }, 'ops')
    await sendAndSettle(stub, note(scope, 'pass'))
    await sendAndSettle(stub, note(scope, 'fire'))
    const { recordings, next } = await stub.recordings({ since: 0, after: 0, limit: 10 })
    expect(next).toBeNull()
    expect(recordings.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      {
        source: 'rebuilt',
        context: { event: { text: 'before' } },
        decision: { by: 'turn', acts: [{ tool: 'act_once', idempotence_key: 'once:x' }] },
      },
      { source: 'recorded', context: { event: { text: 'pass' } }, decision: { by: 'turn' } },
      { source: 'recorded', context: { event: { text: 'fire' } }, decision: { by: 'reflex', acts: [{ act: 'call_tool', tool: 'act' }] } },
    ])
  })

  test('rebuild a context with the scratch that the deciding turn saw', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (context) => {
      context.scratch['turns'] = Number(context.scratch['turns'] ?? 0) + 1
      return null
    })
    await sendAndSettle(stub, note(scope, 'one'))
    await sendAndSettle(stub, note(scope, 'two'))
    const { recordings } = await stub.recordings({ since: 0, after: 0, limit: 10 })
    expect(recordings.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { source: 'rebuilt', context: { event: { text: 'one' }, scratch: {} } },
      { source: 'rebuilt', context: { event: { text: 'two' }, scratch: { turns: 1 } } },
    ])
  })
})

describe('the context of a reflex in the log', () => {
  test('is found, too, where its event had waited for the chain', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async () => null)
    await stub.configure({ consumer: 'pull' }, 'ops')
    const ids = await send(stub, note(scope, 'one'), note(scope, 'two'))
    const { id } = await write('return null')
    await stub.configure({ consumer: 'turn', reflexes: [{ id }] }, 'ops')
    expect(await stub.outcomes(ids, 15_000)).toMatchObject({ settled: true })
    const { recordings } = await stub.recordings({ since: 0, after: 0, limit: 10 })
    expect(recordings.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { source: 'recorded', context: { event: { text: 'one' }, tick: 1 } },
      { source: 'recorded', context: { event: { text: 'two' }, tick: 2 } },
    ])
  })

  test('is found behind those of the chain that saw nothing', async () => {
    const scope = freshScope()
    const { id } = await write('return null')
    await stubOf(scope).configure({ reflexes: [{ id: freshId() }, { id: freshId() }, { id }] }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'one'), note(scope, 'two'))
    const { recordings } = await stubOf(scope).recordings({ since: 0, after: 0, limit: 10 })
    expect(recordings.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { source: 'recorded', context: { event: { text: 'one' } } },
      { source: 'recorded', context: { event: { text: 'two' } } },
    ])
  })

  test('is in the log without what is secret in it', async () => {
    const { scope, stub } = await acting(`const { event, scratch } = context
      if (event.text === 'note') return { action_type: 'set_scratch', key: 'login', value: { token: ['s3', 'cret'].join(''), pin: 470011470011, user: 'u' } }
      return scratch.login.token.length === 6 && scratch.login.pin === 470011470011 ? { action_type: 'reply', content: 'knew it' } : null`)
    await stub.configure({ redact: ['pin'] }, 'ops')
    await sendAndSettle(stub, note(scope, 'note'), note(scope, 'use'))
    const [, used] = await entriesOf(stub, 'reflex-fired')
    const hash = expect.stringMatching(/^sha256:[0-9a-f]{64}$/)
    const login = { token: hash, pin: hash, user: 'u' }
    expect(used).toMatchObject({ action: { content: 'knew it' }, context: { event: { text: 'use' }, scratch: { login } } })
    expect(JSON.stringify(await logOf(stub))).not.toMatch(/s3cret|470011470011/)
  })

  test('and noted under a secret name is in no entry of the log', async () => {
    const { scope, stub } = await acting(`return { action_type: 'set_scratch', key: 'api_key', value: 'hush-' + context.event.text }`)
    behaviours.set(scope, async () => null)
    for (const text of ['a', 'b']) await sendAndSettle(stub, note(scope, text))
    const log = await logOf(stub)
    expect(log.map(({ kind }) => kind)).toContain('scratch-set')
    expect(JSON.stringify(log)).not.toContain('hush-')
    expect(await stub.context(10)).toMatchObject({ scratch: { api_key: expect.stringMatching(/^sha256:/) } })
    const [row] = await inObject(stub, ({ storage }) => storage.sql.exec(`SELECT value FROM state WHERE key = 'scratch'`).toArray())
    expect(row).toEqual({ value: '{"api_key":"hush-b"}' })
  })

  test('is in the log as it was hashed', async () => {
    const { scope, stub } = await acting(`return { action_type: 'reply', content: 'é' + context.recent_actions.length }`)
    for (const text of ['ä', 'b', 'c']) await sendAndSettle(stub, note(scope, text))
    const fired = await entriesOf(stub, 'reflex-fired')
    expect(fired).toHaveLength(3)
    for (const { context, context_hash } of fired)
      expect(createHash('sha256').update(JSON.stringify(context)).digest('hex')).toBe(context_hash)
  })
})

describe('while D1 is away', () => {
  test('a chain acts on, also after an eviction', async () => {
    const { id, scope, stub } = await acting(calls('act'))
    await whileAway(async () => {
      await evict(stub)
      expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex', reflex_id: id } }])
      await stub.reflexesChanged([id])
      expect(await sendAndSettle(stub, note(scope, 'b'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    })
  })

  test('a chain may be set, and acts once D1 is back', async () => {
    const { id } = await write(calls('act'))
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async () => null)
    await whileAway(async () => {
      expect(await stub.configure({ reflexes: [{ id }] }, 'ops')).toMatchObject({ ok: true })
      expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'turn' } }])
    })
    await stub.reflexesChanged([id])
    expect(await sendAndSettle(stub, note(scope, 'b'))).toMatchObject([{ outcome: { by: 'reflex' } }])
  })

  test('a demotion holds, and is eventually replicated to D1', async () => {
    const { id, scope, stub } = await acting('while (true) {}')
    behaviours.set(scope, async () => null)
    await whileAway(async () => {
      await sendAndSettle(stub, ...'abc'.split('').map((text) => note(scope, text)))
      await evict(stub)
      await sendAndSettle(stub, note(scope, 'd'))
    })
    expect((await entriesOf(stub, 'reflex-passed')).filter(({ reason }) => reason === 'limit')).toHaveLength(3)
    await until(async () => (await hurry(stub), (await reflexes.find(env.DB, id))?.state === 'draft'), 'D1 knows')
    expect(await reflexes.find(env.DB, id)).toMatchObject({ state_reason: expect.stringContaining(scope) })
  })
})
