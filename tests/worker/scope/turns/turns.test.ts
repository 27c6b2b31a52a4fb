import { describe, expect, test } from 'vitest'
import {
  crash,
  entriesOf,
  evict,
  freshScope,
  hurry,
  inObject,
  logOf,
  note,
  send,
  sendAndSettle,
  stubOf,
  textOf,
  until,
} from '../../../support/scopes.ts'
import { call, scopePath } from '../../../support/http.ts'
import { countStorage, takeStorageWrites } from '../../../support/count-writes.ts'
import { behaviours } from '../../../support/test-agents.ts'

describe('accepting', () => {
  test('a second delivery of an id is a duplicate and changes nothing', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const event = note(scope, 'once')
    await sendAndSettle(stub, event)
    const before = await logOf(stub)
    const again = await stub.accept([note(scope, 'other', { id: event.id }), event], 'queue')
    expect(again).toMatchObject({ ok: true, receipts: [{ status: 'duplicate' }, { status: 'duplicate' }] })
    expect(await logOf(stub)).toEqual(before)
    expect((await stub.state()).counters).toMatchObject({ accepted: 1, duplicates: 2, completed: 1 })
    expect((await stub.event(event.id))?.event).toEqual(event)
  })

  test('a duplicate is answered with the trace of the first, which is the one that the log has', async () => {
    const scope = freshScope()
    const first = note(scope, 'once')
    const { id, meta } = first
    const again = note(scope, 'again', { id })
    expect(again.meta.trace_id).not.toBe(meta.trace_id)
    await send(stubOf(scope), first)
    const accepted = await stubOf(scope).accept([again, note(scope, 'new')], 'http')
    expect(accepted).toMatchObject({ receipts: [{ status: 'duplicate', trace_id: meta.trace_id }, { status: 'accepted' }] })
  })

  test('what a turn publishes is accepted once although somebody sent an event under its id', async () => {
    const [from, to] = [freshScope(), freshScope()]
    const forged = note(to, 'forged')
    await sendAndSettle(stubOf(to), forged)
    behaviours.set(from, async (_context, { store }) => {
      const published = note(to, 'published', { id: forged.id })
      const [first] = await store.publish(published)
      const [again] = await store.publish(published)
      return [first?.status, again?.status, first?.id === again?.id]
    })
    const [ended] = await sendAndSettle(stubOf(from), note(from, 'go'))
    expect(ended?.outcome).toMatchObject({ result: ['accepted', 'duplicate', true] })
    expect((await stubOf(to).context(10)).events.map(textOf)).toEqual(['forged', 'published'])
  })

  test('of two equal ids in one call the first is accepted and the second a duplicate', async () => {
    const scope = freshScope()
    const event = note(scope, 'first')
    const receipts = await stubOf(scope).accept([event, note(scope, 'second', { id: event.id })], 'http')
    expect(receipts).toMatchObject({ receipts: [{ status: 'accepted' }, { status: 'duplicate' }] })
    expect((await stubOf(scope).event(event.id))?.event).toEqual(event)
  })

  test('a full inbox refuses all of a call, and takes it once there is room', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull', inbox_limit: 3 }, 'test')
    await send(stub, note(scope, 'a'), note(scope, 'b'))
    const more = [note(scope, 'c'), note(scope, 'd')]
    expect(await stub.accept(more, 'http')).toEqual({ ok: false, reason: 'inbox_full', depth: 2, limit: 3 })
    expect((await stub.state()).inbox.pending).toBe(2)
    const claimed = await stub.claim({ limit: 1, lease_s: 30 }, 'test')
    await stub.ack(claimed.ok ? claimed.deliveries.map(({ ack_token }) => ack_token) : [])
    expect(await stub.accept(more, 'http')).toMatchObject({ ok: true })
  })

  test('an event that no filter accepts is ignored, is not in the context and starts no turn', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    expect(await sendAndSettle(stub, note(scope, 'noise'))).toMatchObject([{ status: 'ignored', outcome: { by: 'filter' } }])
    expect(await stub.context(10)).toMatchObject({ count: 0, events: [] })
    expect(await entriesOf(stub, 'turn-started')).toEqual([])
  })

  test('a filter that throws sends its event to the dead letters after max_attempts, and the others continue', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 2 }, 'test')
    const [bad, good] = [note(scope, 'bad filter'), note(scope, 'good')]
    await send(stub, bad, good)
    expect((await stub.outcomes([good.id], 15_000)).records).toMatchObject([{ status: 'completed' }])
    expect(await stub.event(bad.id)).toMatchObject({ status: 'pending', attempts: 1 })
    await hurry(stub)
    expect(await stub.event(bad.id)).toMatchObject({
      status: 'dead_lettered',
      attempts: 2,
      error: expect.stringContaining('the filter broke'),
    })
  })

  test('an agent without a trigger only perceives', async () => {
    const scope = freshScope('perceive')
    const stub = stubOf(scope)
    expect(await sendAndSettle(stub, note(scope, 'seen'))).toMatchObject([{ status: 'completed', outcome: { by: 'perceive' } }])
    expect((await stub.context(10)).count).toBe(1)
  })
})

describe('a turn', () => {
  test('that returns null completes its events and leaves the context as it is', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    expect(await sendAndSettle(stub, note(scope, 'a'), note(scope, 'b'))).toMatchObject([
      { status: 'completed', outcome: { by: 'turn', result: null } },
      { status: 'completed', outcome: { by: 'turn', result: null } },
    ])
    expect((await stub.context(10)).events.map(textOf)).toEqual(['a', 'b'])
  })

  test('that returns a result clears what it saw and no more', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const gate = Promise.withResolvers<void>()
    const seen: string[][] = []
    behaviours.set(scope, async (context) => {
      seen.push(context.events.map(textOf))
      if (seen.length === 1) await gate.promise
      return seen.length === 1 ? { acted: true } : null
    })
    const first = await send(stub, note(scope, 'a'), note(scope, 'b'))
    await until(async () => (await stub.state()).turn, 'the turn is in flight')
    const second = await send(stub, note(scope, 'c'))
    expect((await stub.context(10)).count).toBe(3)
    gate.resolve()
    await stub.outcomes([...first, ...second], 15_000)
    expect(seen).toEqual([['a', 'b'], ['c']])
    expect((await stub.context(10)).events).toMatchObject([{ text: 'c' }])
    const [ended] = await entriesOf(stub, 'turn-ended')
    expect(ended).toMatchObject({ status: 'result', result: { acted: true }, cleared: 2 })
  })

  test('is the only one of its scope, however many events arrive while it thinks', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    let running = 0
    let most = 0
    behaviours.set(scope, async () => {
      running += 1
      most = Math.max(most, running)
      await scheduler.wait(5)
      running -= 1
      return null
    })
    const ids: string[] = []
    for (let index = 0; index < 30; index += 1) ids.push(...(await send(stub, note(scope, String(index)))))
    expect(await stub.outcomes(ids, 10_000)).toMatchObject({ settled: true })
    expect(most).toBe(1)
    expect((await stub.state()).turn).toBeNull()
  })

  test.each([
    ['throws', async () => Promise.reject(new Error('no idea')), 'no idea'],
    [
      'returns a cycle',
      async () => {
        const cycle: Record<string, unknown> = {}
        cycle['self'] = cycle
        return cycle
      },
      'cannot be serialised',
    ],
    ['returns a function', async () => () => 1, 'cannot be serialised'],
    ['returns a bigint', async () => ({ n: 1n }), 'cannot be serialised'],
    ['returns too much', async () => 'x'.repeat(300_000), 'the limit is'],
  ])('that %s is tried again, then its event goes to the dead letters', async (_, behaviour, error) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, behaviour)
    const event = note(scope, 'a')
    await send(stub, event)
    for (let attempt = 1; attempt < 3; attempt += 1) {
      await until(
        async () => (await stub.event(event.id))?.attempts === attempt && (await stub.event(event.id))?.status === 'pending',
        `attempt ${attempt}`,
      )
      await hurry(stub)
    }
    const [record] = (await stub.outcomes([event.id], 15_000)).records
    expect(record).toMatchObject({
      status: 'dead_lettered',
      attempts: 3,
      error: expect.stringContaining(error),
      outcome: { by: 'failure' },
    })
    expect((await entriesOf(stub, 'event-retried')).map(({ attempts }) => attempts)).toEqual([1, 2])
  })

  test.each([
    ['events', { events: 10, bytes: 1_000_000 }, 'x', 10],
    ['bytes', { events: 1000, bytes: 5000 }, 'x'.repeat(900), 4],
    ['one event at least', { events: 1000, bytes: 1000 }, 'x'.repeat(2000), 1],
  ])(
    'considers, and sees, no more than its limit of %s: the others have turns of their own, in order',
    async (_, turn_limit, filler, most) => {
      const scope = freshScope()
      const stub = stubOf(scope)
      await stub.configure({ turn_limit }, 'test')
      const seen: string[][] = []
      behaviours.set(scope, async ({ events }) => {
        seen.push(events.map((event) => textOf(event).split(' ')[0] ?? ''))
        return { seen: events.length }
      })
      const texts = Array.from({ length: 23 }, (_each, index) => `${index}`)
      const ended = await sendAndSettle(stub, ...texts.map((text) => note(scope, `${text} ${filler}`)))
      expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['completed']))
      expect(Math.max(...seen.map(({ length }) => length))).toBe(most)
      expect(seen.flat()).toEqual(texts)
      expect(await stub.context(10)).toMatchObject({ count: 0 })
      await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 knows the scope')
      const { body } = await call(scopePath(scope, '/replay'), { json: { since: '2020-01-01T00:00:00Z' } })
      expect(body).toMatchObject({ equivalent: true, changed: 0, unknown: 0, events: 23 })
    },
  )

  test('does not see events that wait for a retry, where it has a limit: each is in one turn that ends well', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ turn_limit: { events: 5, bytes: 100_000 }, retry: { backoff_ms: 1 } }, 'test')
    const [failed, seen] = [new Set<string>(), [] as string[][]]
    behaviours.set(scope, async ({ events }) => {
      const texts = events.map(textOf)
      const isNew = texts.some((text) => !failed.has(text))
      for (const text of texts) failed.add(text)
      if (isNew) throw new Error('the first time')
      seen.push(texts)
      return { seen: texts.length }
    })
    const texts = Array.from({ length: 15 }, (_each, index) => `${index}`)
    const ids = await send(stub, ...texts.map((text) => note(scope, text)))
    await until(async () => {
      await hurry(stub)
      return (await stub.outcomes(ids, 1000)).settled
    }, 'all events have outcomes')
    expect(seen.flat().toSorted()).toEqual(texts.toSorted())
    expect(Math.max(...seen.map(({ length }) => length))).toBeLessThanOrEqual(5)
  })

  test('is not interrupted for an event that its successor could not take either', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ turn_limit: { events: 2, bytes: 100_000 }, overlap: 'interrupt' }, 'test')
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async ({ events }) => {
      await gate.promise
      return { seen: events.length }
    })
    const first = await send(stub, note(scope, 'a'), note(scope, 'b'))
    const next = await send(stub, note(scope, 'c'))
    gate.resolve()
    expect(await stub.outcomes([...first, ...next], 10_000)).toMatchObject({ settled: true })
    expect((await entriesOf(stub, 'turn-ended')).map(({ status, result }) => ({ status, result }))).toEqual([
      { status: 'result', result: { seen: 2 } },
      { status: 'result', result: { seen: 1 } },
    ])
  })

  test('that hangs is aborted at its timeout, and can have no effect any more', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ turn_timeout_ms: 30, max_attempts: 1 }, 'test')
    const late = Promise.withResolvers<unknown>()
    behaviours.set(scope, async (_, deps) => {
      await new Promise((resolve) => deps.signal.addEventListener('abort', resolve))
      deps.call('act', { text: 'too late' }).then(late.resolve, late.resolve)
      await new Promise(() => {})
    })
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([
      { status: 'dead_lettered', error: expect.stringContaining('longer than 30 ms') },
    ])
    expect(String(await late.promise)).toContain('longer than 30 ms')
    expect(await entriesOf(stub, 'effect-started')).toEqual([])
    expect(await entriesOf(stub, 'turn-ended')).toMatchObject([{ status: 'timeout' }])
  })

  test('keeps a retried event in its place in the context', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const seen: string[][] = []
    behaviours.set(scope, async (context) => {
      seen.push(context.events.map(textOf))
      if (seen.length === 1) throw new Error('not now')
      return seen.length === 2 ? { acted: true } : null
    })
    const [a] = await send(stub, note(scope, 'a'))
    await until(async () => (await stub.event(a!))?.status === 'pending' && seen.length === 1, 'the first turn failed')
    await sendAndSettle(stub, note(scope, 'b'))
    await hurry(stub)
    await stub.outcomes([a!], 15_000)
    expect(seen).toEqual([['a'], ['a', 'b'], ['a']])
  })

  test.each([
    ['alone', []],
    ['behind an older event', ['stays']],
  ])('sees a dead letter that a person retries in its context, %s', async (_, older) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const seen: string[][] = []
    behaviours.set(scope, async (context) => {
      seen.push(context.events.map(textOf))
      if (seen.length === older.length + 1) throw new Error('not now')
      return null
    })
    await stub.configure({ max_attempts: 1 }, 'test')
    for (const text of older) await sendAndSettle(stub, note(scope, text))
    const event = note(scope, 'a')
    expect(await sendAndSettle(stub, event)).toMatchObject([{ status: 'dead_lettered' }])
    expect((await stub.state()).context.events).toBe(older.length)
    expect(await stub.reopen([event.id], 'ops')).toEqual([event.id])
    await until(async () => (await stub.event(event.id))?.status === 'completed', 'the retried event has its outcome')
    expect(seen.at(-1)).toEqual([...older, 'a'])
    expect((await stub.state()).context.events).toBe((await stub.context(10)).events.length)
  })

  test('lost with its object gives its events back without counting the attempt', async () => {
    const scope = freshScope()
    let stub = stubOf(scope)
    let turns = 0
    behaviours.set(scope, async () => {
      turns += 1
      if (turns === 1) await new Promise(() => {})
      return null
    })
    const ids = await send(stub, note(scope, 'a'))
    await until(async () => (await stub.state()).turn, 'the turn is in flight')
    stub = await crash(scope)
    expect(await stub.outcomes(ids, 15_000)).toMatchObject({ settled: true, records: [{ status: 'completed', attempts: 1 }] })
    expect((await entriesOf(stub, 'turn-ended')).map(({ status }) => status)).toEqual(['lost', 'none'])
  })

  test('that kills its object every time ends in the dead letters', async () => {
    const scope = freshScope()
    let stub = stubOf(scope)
    behaviours.set(scope, () => new Promise(() => {}))
    const [id] = await send(stub, note(scope, 'poison'))
    for (let death = 0; death < 10; death += 1) {
      await until(async () => (await stub.state()).turn, 'the turn is in flight')
      stub = await crash(scope)
    }
    expect(await stub.event(id!)).toMatchObject({ status: 'dead_lettered', error: expect.stringContaining('10 times') })
  })
})

describe('memory', () => {
  test('the context and the scratch survive eviction', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (context) => {
      context.scratch['count'] = Number(context.scratch['count'] ?? 0) + context.events.length
      return null
    })
    await sendAndSettle(stub, note(scope, 'a'), note(scope, 'noise'), note(scope, 'b'))
    const before = await stub.context(10)
    await evict(stub)
    expect(await stub.context(10)).toEqual(before)
    expect(before).toMatchObject({ events: [{ text: 'a' }, { text: 'b' }], scratch: { count: 2 } })
  })

  test('a failed turn leaves the scratch alone', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async (context) => {
      context.scratch['half'] = true
      throw new Error('half way')
    })
    await sendAndSettle(stub, note(scope, 'a'))
    expect((await stub.context(10)).scratch).toEqual({})
  })

  test('the context keeps its limit, and a backlog beyond it is considered in order, all of it', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ context_limit: 10 }, 'test')
    const considered: string[] = []
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async (context) => {
      await gate.promise
      const texts = context.events.map(textOf)
      considered.push(...texts.filter((text) => !considered.includes(text)))
      return null
    })
    const events = Array.from({ length: 250 }, (_, index) => note(scope, `n${index}`))
    const ids = await send(stub, ...events)
    gate.resolve()
    expect(await stub.outcomes(ids, 10_000)).toMatchObject({ settled: true })
    expect(considered).toEqual(events.map(textOf))
    expect((await stub.context(1000)).count).toBeLessThanOrEqual(110)
    expect((await entriesOf(stub, 'context-trimmed')).length).toBeGreaterThan(0)
  })
})

describe('overlap', () => {
  async function during(scope: string, overlap: 'queue' | 'interrupt' | 'drop') {
    const stub = stubOf(scope)
    await stub.configure({ overlap }, 'test')
    const gate = Promise.withResolvers<void>()
    const seen: string[][] = []
    behaviours.set(scope, async (context, deps) => {
      seen.push(context.events.map(textOf))
      if (seen.length === 1) await Promise.race([gate.promise, new Promise((resolve) => deps.signal.addEventListener('abort', resolve))])
      return null
    })
    const first = await send(stub, note(scope, 'a'))
    await until(async () => (await stub.state()).turn, 'the turn is in flight')
    const second = await send(stub, note(scope, 'b'))
    gate.resolve()
    const { records } = await stub.outcomes([...first, ...second], 15_000)
    return { stub, seen, records }
  }

  test('queue: evaluated again afterwards', async () => {
    const { seen, records } = await during(freshScope(), 'queue')
    expect(seen).toEqual([['a'], ['a', 'b']])
    expect(records).toMatchObject([{ status: 'completed' }, { status: 'completed', attempts: 1 }])
  })

  test('interrupt: aborted, and started again with everything, no attempt burned', async () => {
    const { stub, seen, records } = await during(freshScope(), 'interrupt')
    expect(seen).toEqual([['a'], ['a', 'b']])
    expect(records).toMatchObject([
      { status: 'completed', attempts: 1 },
      { status: 'completed', attempts: 1 },
    ])
    expect((await entriesOf(stub, 'turn-ended')).map(({ status }) => status)).toEqual(['interrupted', 'none'])
  })

  test('drop: joins the context only', async () => {
    const { stub, seen, records } = await during(freshScope(), 'drop')
    expect(seen).toEqual([['a']])
    expect(records).toMatchObject([{ status: 'completed' }, { status: 'completed', outcome: { by: 'perceive' } }])
    expect((await stub.context(10)).count).toBe(2)
  })

  test('debounce: one turn after quiet, with the whole window as its input', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ overlap: { debounce: { quiet_ms: 1500, max_ms: 10_000 } } }, 'test')
    const ids: string[] = []
    for (const text of ['a', 'b', 'c', 'd']) {
      ids.push(...(await send(stub, note(scope, text))))
      await scheduler.wait(20)
    }
    expect(await stub.outcomes(ids, 15_000)).toMatchObject({ settled: true })
    expect(await entriesOf(stub, 'turn-started')).toMatchObject([{ event_ids: ids }])
  })

  test('debounce: max_ms ends a window that is never quiet', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ overlap: { debounce: { quiet_ms: 1500, max_ms: 1600 } } }, 'test')
    const began = Date.now()
    const ids: string[] = []
    while ((await entriesOf(stub, 'turn-started')).length === 0 && Date.now() - began < 15_000) {
      ids.push(...(await send(stub, note(scope, 'tick'))))
      await scheduler.wait(50)
    }
    const [started] = await entriesOf(stub, 'turn-started')
    expect(started?.event_ids.length).toBeGreaterThan(2)
  })

  test('debounce: the window survives eviction by the alarm alone', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ overlap: { debounce: { quiet_ms: 300, max_ms: 5000 } } }, 'test')
    const ids = await send(stub, note(scope, 'a'), note(scope, 'b'))
    await evict(stub)
    await until(async () => (await stub.event(ids[0]!))?.status === 'completed', 'the alarm started the turn')
    expect(await entriesOf(stub, 'turn-started')).toMatchObject([{ event_ids: ids }])
  })
})

describe('a turn that ends within the task that accepts its events', () => {
  /** Entries of each row of the log, and rows of its events, as the scope has written them. */
  const written = (stub: ReturnType<typeof stubOf>) =>
    inObject(stub, async ({ storage }) => ({
      rows: storage.sql.exec('SELECT seq FROM log ORDER BY seq').toArray().length,
      events: storage.sql.exec('SELECT status, attempts, ended_at >= accepted_at AS ended FROM events ORDER BY seq').toArray(),
    }))

  test('is written with them: one row of the log, and no claim', async () => {
    const scope = freshScope()
    behaviours.set(scope, async () => null)
    await sendAndSettle(stubOf(scope), note(scope, 'no'))
    expect((await logOf(stubOf(scope))).map(({ kind }) => kind)).toEqual(['event-accepted', 'turn-started', 'turn-ended', 'event-ended'])
    expect(await written(stubOf(scope))).toEqual({ rows: 1, events: [{ status: 'completed', attempts: 1, ended: 1 }] })
  })

  test('is written with them after an eviction, too, when all is read for the first time: three rows', async () => {
    const scope = freshScope()
    behaviours.set(scope, async () => null)
    await stubOf(scope).accept([note(scope, 'first')], 'queue', true)
    await evict(stubOf(scope))
    await inObject(stubOf(scope), ({ storage }) => countStorage(storage))
    await stubOf(scope).accept([note(scope, 'second')], 'queue', true)
    const rows = await inObject(stubOf(scope), ({ storage }) => takeStorageWrites(storage).rows)
    expect(rows).toBe(3)
  })

  test('is written with them where the context is full, and trims it', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ context_limit: 50 }, 'test')
    const before = (await written(stub)).rows
    const shown: number[] = []
    behaviours.set(scope, async ({ events }) => (shown.push(events.length), null))
    for (let batch = 0; batch < 8; batch += 1)
      await sendAndSettle(stub, ...Array.from({ length: 50 }, (_, index) => note(scope, `${index}`)))
    expect((await written(stub)).rows - before).toBe(8)
    expect((await entriesOf(stub, 'context-trimmed')).map(({ count }) => count)).toEqual([150, 150])
    expect((await stub.state()).context.events).toBe(100)
    // A trim leaves the limit, and the next is due after 100 more; one batch may precede it.
    expect(shown).toEqual([50, 100, 150, 200, 100, 150, 200, 100])
  })

  test('leaves the events beyond its context to the next turn, and keeps the order of acceptance', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ context_limit: 2 }, 'test')
    behaviours.set(scope, async () => ({ said: 'it' }))
    const records = await sendAndSettle(stubOf(scope), note(scope, 'a'), note(scope, 'b'), note(scope, 'c'))
    for (const record of records) expect(record).toMatchObject({ status: 'completed', attempts: 1 })
    const turns = await entriesOf(stubOf(scope), 'turn-started')
    expect(turns.map(({ event_ids }) => event_ids)).toEqual([[records[0]?.event.id, records[1]?.event.id], [records[2]?.event.id]])
  })

  test('may read what the scope has stored', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, { done }) => (done('act_once', { text: 'it' }) ? { was: 'done' } : null))
    await sendAndSettle(stubOf(scope), note(scope, 'first'), note(scope, 'second'))
    const event = { status: 'completed', attempts: 1, ended: 1 }
    expect(await written(stubOf(scope))).toEqual({ rows: 1, events: [event, event] })
  })

  test.each([
    ['waits', async () => scheduler.wait(0).then(() => ({ waited: true }))],
    ['never settles within the task', async () => new Promise<null>((resolve) => setTimeout(() => resolve(null), 0))],
  ])('is written after them if it %s', async (_, behaviour) => {
    const scope = freshScope()
    behaviours.set(scope, behaviour)
    const ids = await send(stubOf(scope), note(scope, 'later'))
    const [accepted] = (await logOf(stubOf(scope))).map(({ kind }) => kind)
    expect(accepted).toBe('event-accepted')
    await stubOf(scope).outcomes(ids, 10_000)
    expect(await written(stubOf(scope))).toEqual({ rows: 2, events: [{ status: 'completed', attempts: 1, ended: 1 }] })
  })

  test('fails as any other: the attempt counts, and the event is tried again', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ retry: { backoff_ms: 1 } }, 'test')
    let tries = 0
    behaviours.set(scope, async () => {
      tries += 1
      if (tries === 1) throw new Error('not today')
      return null
    })
    const [record] = await sendAndSettle(stubOf(scope), note(scope, 'again'))
    expect(record).toMatchObject({ status: 'completed', attempts: 2 })
    expect((await logOf(stubOf(scope))).map(({ kind }) => kind)).toContain('event-retried')
  })

  test('leaves nothing, and its sender without a receipt, if the scope dies before the end of the task', async () => {
    const scope = freshScope()
    behaviours.set(scope, async () => null)
    await sendAndSettle(stubOf(scope), note(scope, 'first'))
    const poison = `CREATE TRIGGER poison BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'poison'); END`
    await inObject(stubOf(scope), async ({ storage }) => void storage.sql.exec(poison))
    const event = note(scope, 'lost')
    await expect(send(stubOf(scope), event)).rejects.toThrow(/poison/)
    const stored = await inObject(stubOf(scope), async ({ storage }) => {
      storage.sql.exec('DROP TRIGGER poison')
      return storage.sql.exec('SELECT count(*) AS n FROM events').one()
    })
    expect(stored).toEqual({ n: 1 })
    expect(await sendAndSettle(stubOf(scope), event)).toMatchObject([{ status: 'completed', attempts: 1 }])
  })
})

describe('cancel', () => {
  test('ends the turn and its events at once and durably, whatever the trigger still does', async () => {
    const scope = freshScope()
    let stub = stubOf(scope)
    const end = Promise.withResolvers<void>()
    behaviours.set(scope, async (_, deps) => {
      await end.promise
      await deps.call('act', { text: 'after cancel' })
      return { never: true }
    })
    const ids = await send(stub, note(scope, 'a'), note(scope, 'b'))
    await until(async () => (await stub.state()).turn, 'the turn is in flight')
    expect(await stub.cancel('wrong idea', 'ops')).toMatchObject({ cancelled: true, events: 2 })
    stub = await crash(scope)
    end.resolve()
    expect((await stub.outcomes(ids, 1000)).records).toMatchObject([
      { status: 'cancelled', outcome: { by: 'cancel', reason: 'wrong idea' } },
      { status: 'cancelled' },
    ])
    expect(await entriesOf(stub, 'effect-started')).toEqual([])
    expect((await stub.context(10)).count).toBe(0)
    expect(await stub.cancel('again', 'ops')).toEqual({ cancelled: false, turn_id: null, events: 0 })
  })
})

test('the alarm that was lost is set again by whatever wakes the scope next', async () => {
  const scope = freshScope()
  const stub = stubOf(scope)
  behaviours.set(scope, async () => Promise.reject(new Error('later')))
  const [id] = await send(stub, note(scope, 'a'))
  await until(async () => (await stub.event(id!))?.attempts === 1 && (await stub.state()).turn === null, 'the first attempt failed')
  await inObject(stub, async (state) => state.storage.deleteAlarm())
  await evict(stub)
  await stub.state()
  const alarm = await until(() => inObject(stub, async (state) => state.storage.getAlarm()), 'an alarm is set')
  expect(alarm).toBeGreaterThan(Date.now() - 1000)
})

describe('mistakes of a trigger', () => {
  const run = async (behaviour: Parameters<typeof behaviours.set>[1]) => {
    const scope = freshScope()
    behaviours.set(scope, behaviour)
    await stubOf(scope).configure({ max_attempts: 1 }, 'test')
    const [settled] = await sendAndSettle(stubOf(scope), note(scope, 'go'))
    const [ended] = await entriesOf(stubOf(scope), 'turn-ended')
    return { stub: stubOf(scope), settled, ended }
  }

  test('a forgotten return counts as null, with a warning; null itself has none', async () => {
    const forgot = await run(async () => undefined)
    expect(forgot.settled).toMatchObject({ status: 'completed' })
    expect(forgot.ended).toMatchObject({ status: 'none', warnings: [expect.stringContaining('the trigger returned undefined')] })
    expect((await run(async () => null)).ended).not.toHaveProperty('warnings')
  })

  test('a call that was not awaited ends before the turn does, with a warning', async () => {
    const { stub, ended } = await run(async (_, deps) => {
      void deps.call('act', { text: 'not awaited' })
      return { ok: true }
    })
    expect(ended).toMatchObject({
      status: 'result',
      warnings: [expect.stringMatching(/deps\.call\("act"\) was still running.*it ended well/)],
    })
    const [effect] = await entriesOf(stub, 'effect-ended')
    expect(effect).toMatchObject({ status: 'ok' })
    expect(effect?.seq).toBeLessThan(ended?.seq ?? 0)
  })

  test('a failed one is reported, too', async () => {
    const { ended } = await run(async (_, deps) => {
      void deps.call('act', { text: 'throw' })
      return { ok: true }
    })
    expect(ended?.warnings).toEqual([expect.stringMatching(/it failed: .*the tool failed/)])
  })

  test.each([
    ['an empty text', '', 'deps.reply was given an empty text'],
    ['an object', { a: 1 }, 'deps.reply takes text, not object: pass a string, such as JSON.stringify(value)'],
    ['null', null, 'deps.reply takes text, not null'],
  ])('a reply of %s is refused, with what to do', async (_, content, message) => {
    const { stub, settled } = await run(async (__, deps) => deps.reply(content as string))
    expect(settled).toMatchObject({ status: 'dead_lettered', error: expect.stringContaining(message) })
    expect(await entriesOf(stub, 'reply-sent')).toEqual([])
  })
})
