import { describe, expect, test } from 'vitest'
import { env } from 'cloudflare:workers'
import { findEvent, listEvents } from '../../../src/store/events.ts'
import { crash, entriesOf, freshScope, hurry, inObject, note, send, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { behaviours, effects } from '../../support/test-agents.ts'

const ran = (scope: string) => effects.filter((effect) => effect.scope === scope)

describe('a turn', () => {
  test.each([
    [
      'a cycle',
      () => {
        const cycle: Record<string, unknown> = {}
        cycle['self'] = cycle
        return cycle
      },
    ],
    ['a bigint', () => 1n],
    ['more than fits', () => 'x'.repeat(300_000)],
  ])('that leaves %s in the scratch fails as any other, and the scope carries on', async (_, value) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async (context) => {
      context.scratch['bad'] = value()
      return null
    })
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([
      { status: 'dead_lettered', error: expect.stringContaining('scratch') },
    ])
    behaviours.delete(scope)
    expect(await sendAndSettle(stub, note(scope, 'b'))).toMatchObject([{ status: 'completed' }])
  })

  test.each([
    ['an object without a prototype', Object.create(null)],
    ['undefined', undefined],
    ['a symbol', Symbol('x')],
  ])('that throws %s fails, and frees the lane', async (_, thrown) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async () => Promise.reject(thrown))
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ status: 'dead_lettered' }])
    expect((await stub.state()).turn).toBeNull()
  })

  test('that loses its connection burns no attempt, waits longer each time, and is not tried for ever', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    let turns = 0
    behaviours.set(scope, async () => {
      turns += 1
      throw new Error('fetch failed', { cause: new Error('Network connection lost.') })
    })
    const [id] = await send(stub, note(scope, 'a'))
    for (let turn = 1; turn <= 9; turn += 1) {
      await until(async () => turns === turn && (await stub.state()).turn === null, `turn ${turn} ended`)
      expect(await stub.event(id!)).toMatchObject({ status: 'pending', attempts: 0 })
      expect((await stub.state()).inbox.delayed).toBe(1)
      await hurry(stub)
    }
    expect(await stub.outcomes([id!], 15_000)).toMatchObject({
      records: [{ status: 'dead_lettered', error: expect.stringContaining('10 times') }],
    })
  })

  test('claims only what it is shown, in order, also where failures and a backlog mix', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ context_limit: 4, max_attempts: 50 }, 'test')
    let failing = true
    behaviours.set(scope, async () => (failing ? Promise.reject(new Error('down')) : null))
    const ids: string[] = []
    for (let batch = 0; batch < 15; batch += 1) {
      ids.push(...(await send(stub, ...Array.from({ length: 20 }, (_, index) => note(scope, `${batch}:${index}`)))))
      await scheduler.wait(25)
    }
    failing = false
    await hurry(stub)
    expect(await stub.outcomes(ids, 15_000)).toMatchObject({ settled: true })
    const seqs = await inObject(
      stub,
      (state) =>
        new Map(
          state.storage.sql
            .exec<{ id: string; seq: number }>('SELECT id, seq FROM events')
            .toArray()
            .map(({ id, seq }) => [id, seq]),
        ),
    )
    for (const { event_ids, saw } of await entriesOf(stub, 'turn-started')) {
      const claimed = event_ids.map((id) => seqs.get(id) ?? -1)
      expect(claimed.filter((seq) => !saw.seqs.some(([from, to]) => from <= seq && seq <= to))).toEqual([])
      expect(claimed).toEqual([...claimed].sort((a, b) => a - b))
    }
  })

  test('on thousands of events with the longest ids is claimed, and its log names them by ranges', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const count = 5000
    await stub.configure({ context_limit: 10_000, overlap: { debounce: { quiet_ms: 60_000, max_ms: 60_000 } } }, 'test')
    const ids: string[] = []
    for (let batch = 0; batch < 5; batch += 1) {
      const longest = (index: number) => `${'漢'.repeat(122)}${String(batch * 1000 + index).padStart(6, '0')}`
      ids.push(...(await send(stub, ...Array.from({ length: 1000 }, (_, index) => note(scope, 'x', { id: longest(index) })))))
    }
    await stub.configure({ overlap: 'queue' }, 'test')
    expect(await stub.outcomes(ids.slice(-1), 20_000)).toMatchObject({ settled: true, records: [{ status: 'completed' }] })
    const [started] = await entriesOf(stub, 'turn-started')
    expect(started).toMatchObject({ considered: [[1, count]], event_count: count, event_ids: ids.slice(-100) })
  })

  test('that says more than a log entry holds ends all the same', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => {
      for (let reply = 0; reply < 12; reply += 1) deps.reply('漢'.repeat(80_000))
      return { said: true }
    })
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ status: 'completed', outcome: { result: { said: true } } }])
    expect(await entriesOf(stub, 'turn-ended')).toMatchObject([{ status: 'result', acts: { not_logged: { bytes: expect.any(Number) } } }])
  })

  test('whose tool call is too large for the journal has it rejected, and continues', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => {
      const refusal = await deps.call('act', { text: '漢'.repeat(90_000) }).catch((error: unknown) => String(error))
      return { refusal, next: await deps.call('act', { text: 'next' }) }
    })
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([
      { status: 'completed', outcome: { result: { refusal: expect.stringContaining('270011 bytes'), next: { did: 'next' } } } },
    ])
    expect(ran(scope)).toMatchObject([{ text: 'next' }])
  })

  test('never claims an event that its filters have not judged', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const [bad] = await send(stub, note(scope, 'bad filter'))
    await inObject(stub, (state) => void state.storage.sql.exec(`UPDATE events SET due_at = 1 WHERE id = ?`, bad!))
    await sendAndSettle(stub, note(scope, 'good'))
    for (const { event_ids } of await entriesOf(stub, 'turn-started')) expect(event_ids).not.toContain(bad)
  })

  test('is not interrupted for ever by events that never cease', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ overlap: 'interrupt' }, 'test')
    const finished: string[] = []
    behaviours.set(scope, async (_, deps) => {
      await Promise.race([scheduler.wait(80), new Promise((resolve) => deps.signal.addEventListener('abort', resolve))])
      if (!deps.signal.aborted) finished.push(deps.turn_id)
      return null
    })
    for (let index = 0; index < 200 && finished.length === 0; index += 1) {
      await send(stub, note(scope, 'more'))
      await scheduler.wait(15)
    }
    // The next turn may have finished before the loop looked again.
    expect(finished).not.toHaveLength(0)
  })

  test('waits for nobody where the scope is given to an agent that starts none', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ overlap: { debounce: { quiet_ms: 60_000, max_ms: 60_000 } } }, 'test')
    const ids = await send(stub, note(scope, 'a'))
    await stub.configure({ agent: 'perceiver' }, 'test')
    expect(await stub.outcomes(ids, 15_000)).toMatchObject({
      settled: true,
      records: [{ status: 'completed', outcome: { by: 'perceive' } }],
    })
  })
})

describe('tokens and effects', () => {
  test('events of a turn cannot be settled by its token, which the log shows', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async () => gate.promise.then(() => null))
    const [id] = await send(stub, note(scope, 'a'))
    const turn = await until(async () => (await stub.state()).turn, 'the turn is in flight')
    const token = `turn:${turn.turn_id}:1`
    expect(await stub.ack([token])).toEqual({ acked: [], stale: [token] })
    expect(await stub.nack(token, 'no')).toMatchObject({ ok: false, reason: 'stale' })
    expect((await stub.event(id!))?.status).toBe('processing')
    gate.resolve()
    expect(await stub.outcomes([id!], 15_000)).toMatchObject({ records: [{ outcome: { by: 'turn' } }] })
  })

  test('a dead letter that is retried does not repeat what was recorded as done', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    let broken = true
    behaviours.set(scope, async (_, deps) => {
      await deps.call('act', { text: 'charge' })
      if (broken) throw new Error('after the charge')
      return null
    })
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    broken = false
    await stub.reopen([record!.event.id], 'ops')
    expect(await stub.outcomes([record!.event.id], 15_000)).toMatchObject({ records: [{ status: 'completed' }] })
    expect(ran(scope)).toHaveLength(1)
  })

  test('a tool that does not stop when told to holds the lane for a while, and then no longer', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => {
      await deps.call('act_deaf', { text: 'deaf' }).catch(() => null)
      return deps.call('act', { text: 'next' })
    })
    await sendAndSettle(stub, note(scope, 'a'))
    const [deaf, next] = ran(scope)
    expect(next!.started).toBeGreaterThanOrEqual(deaf!.ended)
  })

  test('a model’s tool call is redacted in the log, though its input is JSON within text', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => {
      const { generateText } = await import('ai')
      await generateText({ model: deps.model, prompt: 'call a tool', tools: deps.tools })
      return null
    })
    await stub.configure({ redact: ['text'] }, 'test')
    await sendAndSettle(stub, note(scope, 'a'))
    const [call] = await entriesOf(stub, 'model-called')
    expect(JSON.stringify(call?.content)).toContain('sha256:')
    expect(JSON.stringify(call?.content)).not.toContain('secret plan')
  })
})

describe('D1', () => {
  test('hears also of what changed while it was being told, and of a scope that has only a timer', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.setTimer('beat', { every_s: 3600 }, 'ops')
    const row = await until(
      async () => env.DB.prepare('SELECT * FROM scopes WHERE scope = ?').bind(scope).first<{ wake_at: number }>(),
      'D1 knows the scope',
    )
    expect(row.wake_at).toBeGreaterThan(Date.now())
    for (let batch = 0; batch < 20; batch += 1) {
      await send(stub, note(scope, `${batch}`))
      await scheduler.wait(30)
    }
    await until(async () => {
      const page = await listEvents(env.DB, { patterns: ['*'], scope, status: 'completed', limit: 100 })
      return page.items.length === 20
    }, 'D1 has every outcome')
  })

  test('follows an id that comes again after its scope has forgotten it', async () => {
    const scope = freshScope()
    let stub = stubOf(scope)
    const event = note(scope, 'again')
    await sendAndSettle(stub, event)
    const told = () => findEvent(env.DB, event.id, { patterns: [scope] })
    await until(async () => (await told())?.status === 'completed', 'D1 knows')
    await inObject(stub, (state) => void state.storage.sql.exec('DELETE FROM events'))
    stub = await crash(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async () => Promise.reject(new Error('this time it fails')))
    await sendAndSettle(stub, event)
    expect(await until(async () => (await told())?.status === 'dead_lettered', 'D1 follows')).toBe(true)
  })
})
