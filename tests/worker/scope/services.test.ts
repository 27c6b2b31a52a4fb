import migrations from '../../../migrations/scope/migrations.js'
import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import { limits } from '../../../src/base/limits.ts'
import { scopeTotals } from '../../../src/features/statistics/store/packed.ts'
import { findEvent } from '../../../src/store/events.ts'
import { sortAll } from '../../support/sort-told.ts'
import { call, keyFor, scopePath } from '../../support/http.ts'
import {
  age,
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
} from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'
import { resetClock } from '../../../testing/clock.ts'

const inD1 = async (id: string) =>
  (await env.DB.prepare('SELECT status, attempts, error, revision FROM events WHERE id = ?').bind(id).first()) ??
  findEvent(env.DB, id, { patterns: ['*'] })
const totalsOf = async (scope: string) => {
  await sortAll(env.DB)
  return (await scopeTotals(env.DB, [scope])).get(scope)
}
/** It was accepted long after its own time, and so has a row in D1. */
const lateNote = (scope: string, text: string) => note(scope, text, { timestamp: new Date(Date.now() - 60_000).toISOString() })

describe('timers', () => {
  test('tick as events, each once, whatever wakes the scope', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    expect(await stub.setTimer('beat', { every_s: 3600 }, 'ops')).toMatchObject({ ok: true, created: true })
    await hurry(stub)
    await stub.poke()
    const accepted = await until(async () => (await entriesOf(stub, 'event-accepted'))[0], 'the tick came')
    expect(accepted).toMatchObject({ event_type: 'timer.tick', source: 'timer:beat', via: 'timer' })
    expect(await entriesOf(stub, 'event-accepted')).toHaveLength(1)
    expect(await stub.timer('beat')).toMatchObject({ fired: 1 })
  })

  test('that tick again are skipped while the inbox is full, and said to be; last ticks come', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull', inbox_limit: 2 }, 'ops')
    await send(stub, note(scope, 'a'), note(scope, 'b'))
    await stub.setTimer('beat', { every_s: 3600 }, 'ops')
    await stub.setTimer('once', { at: new Date(Date.now() + 60_000).toISOString() }, 'ops')
    await hurry(stub)
    expect(await entriesOf(stub, 'timer-skipped')).toMatchObject([{ timer_name: 'beat', reason: 'the inbox is full' }])
    expect((await entriesOf(stub, 'event-accepted')).map(({ source }) => source)).toEqual(['test', 'test', 'timer:once'])
    expect(await stub.timer('beat')).toMatchObject({ fired: 0 })
    await stub.configure({ inbox_limit: 10 }, 'ops')
    await hurry(stub)
    expect(await stub.timer('beat')).toMatchObject({ fired: 1 })
  })

  test('are idempotent: setting the same again changes nothing', async () => {
    const stub = stubOf(freshScope())
    const first = await stub.setTimer('a', { cron: '0 6 * * *' }, 'ops')
    expect(await stub.setTimer('a', { cron: '0 6 * * *' }, 'ops')).toEqual({ ...first, created: false })
    expect(await entriesOf(stub, 'timer-set')).toHaveLength(1)
    expect(await stub.setTimer('a', { cron: '0 7 * * *' }, 'ops')).toMatchObject({
      created: false,
      timer: { schedule: { cron: '0 7 * * *' } },
    })
  })

  test('with {at} tick once and are gone; one in the past is refused', async () => {
    const stub = stubOf(freshScope())
    expect(await stub.setTimer('late', { at: '2020-01-01T00:00:00Z' }, 'ops')).toMatchObject({ ok: false, reason: 'never_due' })
    await stub.setTimer('once', { at: new Date(Date.now() + 60_000).toISOString() }, 'ops')
    await hurry(stub)
    expect(await stub.timers()).toEqual([])
    expect(await entriesOf(stub, 'event-accepted')).toHaveLength(1)
  })

  test('come by their alarm, also after eviction', async () => {
    const stub = stubOf(freshScope())
    await stub.setTimer('soon', { at: new Date(Date.now() + 300).toISOString() }, 'ops')
    await evict(stub)
    const ticks = await until(async () => (await entriesOf(stub, 'event-accepted')).length, 'the timer ticked')
    expect(ticks).toBe(1)
  })

  test('tick although somebody sent an event under the id of the tick to come', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const at = Date.now() + 1500
    await stub.setTimer('soon', { at: new Date(at).toISOString() }, 'ops')
    expect(await call(scopePath(scope, '/events'), { json: note(scope, 'first', { id: `timer:soon:${at}` }) })).toMatchObject({
      status: 202,
    })
    await until(async () => (await stub.timers()).length === 0, 'the timer came due')
    const types = (await entriesOf(stub, 'event-accepted')).map(({ event_type }) => event_type)
    expect(types).toEqual(['test.note', 'timer.tick'])
  })

  test('that are removed tick no more', async () => {
    const stub = stubOf(freshScope())
    await stub.setTimer('gone', { every_s: 60 }, 'ops')
    expect(await stub.removeTimer('gone', 'ops')).toBe(true)
    expect(await stub.removeTimer('gone', 'ops')).toBe(false)
    await hurry(stub)
    expect(await entriesOf(stub, 'event-accepted')).toEqual([])
  })
})

describe('the pull loop', () => {
  const pulling = async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull', max_attempts: 2 }, 'test')
    return { scope, stub }
  }
  const claim = async (stub: ReturnType<typeof stubOf>, limit = 10, types?: string[]) => {
    const claimed = await stub.claim({ limit, lease_s: 30, types }, 'worker')
    if (!claimed.ok) throw new Error(claimed.detail)
    return claimed.deliveries
  }

  test('claims in order, each event for one consumer', async () => {
    const { scope, stub } = await pulling()
    const ids = await send(stub, ...['a', 'b', 'c'].map((text) => note(scope, text)))
    const [one, two] = [await claim(stub, 2), await claim(stub, 2)]
    expect([...one, ...two].map(({ event }) => event.id)).toEqual(ids)
    expect(await stub.ack([...one, ...two].map(({ ack_token }) => ack_token))).toMatchObject({ stale: [] })
    expect(await stub.outcomes(ids, 100)).toMatchObject({ settled: true, records: [{ outcome: { by: 'pull' } }, {}, {}] })
  })

  test('filters by type', async () => {
    const { scope, stub } = await pulling()
    await send(stub, note(scope, 'a'), note(scope, '', { type: 'http.request', method: 'GET', path: '/' }))
    expect((await claim(stub, 10, ['http.request'])).map(({ event }) => event.type)).toEqual(['http.request'])
  })

  test('a nacked event comes again with backoff, then goes to the dead letters', async () => {
    const { scope, stub } = await pulling()
    const [id] = await send(stub, note(scope, 'a'))
    const [first] = await claim(stub)
    expect(await stub.nack(first!.ack_token, 'no')).toMatchObject({ ok: true, status: 'pending' })
    expect(await stub.nack(first!.ack_token, 'no')).toMatchObject({ ok: false, reason: 'stale' })
    expect(await claim(stub)).toEqual([])
    await hurry(stub)
    const [second] = await claim(stub)
    expect(second).toMatchObject({ attempts: 2 })
    expect(await stub.nack(second!.ack_token, 'still no')).toMatchObject({ ok: true, status: 'dead_lettered' })
    expect(await stub.event(id!)).toMatchObject({ status: 'dead_lettered', error: 'still no' })
  })

  test('a consumer that dies gives its events back when the lease ends, the attempt counted, and its token is stale', async () => {
    const { scope, stub } = await pulling()
    await send(stub, note(scope, 'a'))
    const [dead] = await claim(stub)
    await hurry(stub)
    await hurry(stub)
    const [again] = await claim(stub)
    expect(again).toMatchObject({ attempts: 2, event: { id: dead!.event.id } })
    expect(await stub.ack([dead!.ack_token])).toEqual({ acked: [], stale: [dead!.ack_token] })
    expect(await stub.ack([again!.ack_token])).toMatchObject({ stale: [] })
  })

  test('an event that came to the dead letters takes no room in the inbox', async () => {
    const { scope, stub } = await pulling()
    await stub.configure({ max_attempts: 1, inbox_limit: 1 }, 'test')
    for (const text of ['a', 'b']) {
      await send(stub, note(scope, text))
      const [delivery] = await claim(stub)
      expect(await stub.nack(delivery!.ack_token, 'no')).toMatchObject({ status: 'dead_lettered' })
    }
  })

  test('a batch larger than the inbox enters one that is empty, since it could enter no other', async () => {
    const { scope, stub } = await pulling()
    await stub.configure({ inbox_limit: 1 }, 'test')
    await send(stub, note(scope, 'a'), note(scope, 'b'))
    expect(await stub.accept([note(scope, 'c')], 'http')).toMatchObject({ ok: false, reason: 'inbox_full' })
  })

  test('only a dead letter is opened again, or discarded', async () => {
    const { scope, stub } = await pulling()
    const ids = await send(stub, note(scope, 'a'))
    for (const act of ['reopen', 'discard'] as const) expect(await stub[act](ids, 'ops')).toEqual([])
    const [delivery] = await claim(stub)
    await stub.ack([delivery!.ack_token])
    for (const act of ['reopen', 'discard'] as const) expect(await stub[act](ids, 'ops')).toEqual([])
    expect(await stub.event(ids[0]!)).toMatchObject({ status: 'completed' })
  })

  test('claims survive eviction', async () => {
    const { scope, stub } = await pulling()
    await send(stub, note(scope, 'a'))
    const [delivery] = await claim(stub)
    await evict(stub)
    expect(await stub.ack([delivery!.ack_token])).toMatchObject({ stale: [] })
  })

  test('a scope that runs its own turns refuses claims; one set back to turns takes up what waits', async () => {
    const { scope, stub } = await pulling()
    expect(await stubOf(freshScope()).claim({ limit: 1, lease_s: 1 }, 'x')).toMatchObject({ ok: false, reason: 'not_pull' })
    const ids = await send(stub, note(scope, 'a'), note(scope, 'noise'))
    await stub.configure({ consumer: null }, 'test')
    expect(await stub.outcomes(ids, 15_000)).toMatchObject({
      records: [{ status: 'completed', outcome: { by: 'turn' } }, { status: 'ignored' }],
    })
    await stub.configure({ inbox_limit: 1 }, 'test')
    await send(stub, note(scope, 'b'))
  })

  test('ten thousand events wait in an inbox and a claim still takes the oldest', async () => {
    const { scope, stub } = await pulling()
    const first = note(scope, 'first')
    await send(stub, first)
    for (let batch = 0; batch < 20; batch += 1)
      await send(stub, ...Array.from({ length: 500 }, (_, index) => note(scope, `${batch}:${index}`)))
    expect((await stub.state()).inbox.pending).toBe(10_001)
    expect((await claim(stub, 1))[0]?.event.id).toBe(first.id)
  }, 300_000)
})

describe('the outbox', () => {
  test('tells D1 of each event within about a second, dead letters too', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async (context) =>
      context.events.some((event) => textOf(event) === 'bad') ? Promise.reject(new Error('bad')) : null,
    )
    const [good] = await sendAndSettle(stub, note(scope, 'good'))
    const [bad] = await sendAndSettle(stub, note(scope, 'bad'))
    await until(async () => (await inD1(bad!.event.id))?.['status'] === 'dead_lettered', 'D1 knows of the dead letter')
    expect(await inD1(good!.event.id)).toMatchObject({ status: 'completed' })
    const letter = await env.DB.prepare('SELECT * FROM dead_letters WHERE scope = ?').bind(scope).first()
    expect(letter).toMatchObject({ origin: 'scope', event_id: bad!.event.id, attempts: 1, error: expect.stringContaining('bad') })
    behaviours.delete(scope)
    await stub.reopen([bad!.event.id], 'ops')
    await until(async () => (await inD1(bad!.event.id))?.['status'] === 'completed', 'D1 knows of the second outcome')
    expect(await env.DB.prepare('SELECT * FROM dead_letters WHERE scope = ?').bind(scope).first()).toBeNull()
  })

  test('a discarded letter keeps its outcome and leaves the list', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async () => Promise.reject(new Error('bad')))
    const [bad] = await sendAndSettle(stub, note(scope, 'bad'))
    await until(async () => (await inD1(bad!.event.id))?.['status'] === 'dead_lettered', 'D1 knows')
    expect(await stub.discard([bad!.event.id], 'ops')).toEqual([bad!.event.id])
    await until(
      async () => (await env.DB.prepare('SELECT * FROM dead_letters WHERE scope = ?').bind(scope).first()) === null,
      'the letter is gone',
    )
    expect(await stub.event(bad!.event.id)).toMatchObject({ status: 'dead_lettered', outcome: { discarded: true } })
  })

  test('waits out a D1 that fails on every write, while the scope accepts and acts; then tells all of it', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await env.DB.exec('ALTER TABLE events RENAME TO events_away')
    const ids: string[] = []
    try {
      for (const text of ['a', 'b', 'noise']) ids.push((await sendAndSettle(stub, note(scope, text)))[0]!.event.id)
      const state = await until(async () => {
        const now = await stub.state()
        return now.outbox.last_error && now
      }, 'telling has failed')
      expect(state.outbox).toMatchObject({ waiting: 3, last_error: expect.stringContaining('events') })
      expect(state.counters).toMatchObject({ completed: 2, ignored: 1 })
    } finally {
      await env.DB.exec('ALTER TABLE events_away RENAME TO events')
    }
    for (const id of ids) await until(async () => inD1(id), 'D1 is current')
    await until(async () => (await stub.state()).outbox.waiting === 0, 'nothing waits any more')
    expect((await stub.state()).outbox.last_error).toBeNull()
    await until(async () => (await totalsOf(scope))?.['accepted'] === 3, 'D1 has the numbers')
  })

  test('a death between D1 and the note of it tells again, and changes nothing', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const [record] = await sendAndSettle(stub, lateNote(scope, 'a'))
    const id = record!.event.id
    await until(async () => (await inD1(id))?.['status'] === 'completed', 'D1 is current')
    const before = await inD1(id)
    await inObject(stub, (state) => void state.storage.sql.exec(`DELETE FROM state WHERE key = 'replica'`))
    await evict(stub)
    await until(async () => (await stub.state()).outbox.waiting === 0, 'it is replicated again')
    expect(await inD1(id)).toEqual(before)
  })

  test('leaves the mark of an earlier version as it was, and continues from it after that version has run again', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const sql = <Row extends Record<string, SqlStorageValue>>(text: string): Promise<Row[]> =>
      inObject(stub, ({ storage }) => storage.sql.exec<Row>(text).toArray())
    const markedBy = async () =>
      (await sql<{ value: string }>(`SELECT value FROM state WHERE key = 'replicated'`)).map(({ value }) => value)
    const told = () => until(async () => (await stub.state()).outbox.waiting === 0, 'D1 is current')
    await sendAndSettle(stub, note(scope, 'a'))
    await told()
    const { last_seq } = await stub.state()
    await sql(`DELETE FROM state WHERE key = 'replica'`)
    await sql(`INSERT INTO state (key, value) VALUES ('replicated', '${last_seq}')`)
    await evict(stub)
    await sendAndSettle(stub, note(scope, 'b'))
    await told()
    expect(await markedBy()).toEqual([String(last_seq)])

    const now = (await stub.state()).last_seq
    await sql(`UPDATE state SET value = '${now}' WHERE key = 'replicated'`)
    await sql(`UPDATE state SET value = '{"seq":0,"told":0,"untold":0}' WHERE key = 'replica'`)
    await evict(stub)
    expect((await stub.state()).outbox.waiting).toBe(0)
  })

  test('a late report never overwrites a newer one', async () => {
    const scope = freshScope()
    const [record] = await sendAndSettle(stubOf(scope), lateNote(scope, 'a'))
    const id = record!.event.id
    await until(async () => (await inD1(id))?.['status'] === 'completed', 'D1 is current')
    const { replicateEvents } = await import('../../../src/store/replicate.ts')
    const late = {
      ...(await env.DB.prepare('SELECT * FROM events WHERE id = ?').bind(id).first()),
      payload: JSON.stringify(record!.event),
      status: 'pending',
      revision: 1,
      discarded: false,
    }
    await replicateEvents(env.DB, [late as never], {
      scope,
      agent: 'x',
      open: 1,
      wake_at: null,
      updated_at: 0,
      parked: 0,
      spans_exported: 0,
      spans_dropped: 0,
    })
    expect(await inD1(id)).toMatchObject({ status: 'completed' })
  })
})

describe('retention', () => {
  test('forgets what is older than retained, keeps what is open or in the context, numbers on, and has a log that ends', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async () => ({ done: true }))
    const [old] = await sendAndSettle(stub, note(scope, 'old'))
    await until(async () => (await stub.state()).outbox.waiting === 0, 'it is replicated')
    const { last_seq } = await stub.state()
    await inObject(stub, (state) => {
      state.storage.sql.exec('UPDATE log SET at = at - 864000000')
      state.storage.sql.exec('UPDATE events SET accepted_at = accepted_at - 864000000')
    })
    await runAlarm(stub)
    expect(await stub.event(old!.event.id)).toBeNull()
    expect(await logOf(stub)).toEqual([])
    expect(await stub.readLog(0, 10)).toMatchObject({ entries: [], last_seq, next: null })
    await evict(stub)
    await sendAndSettle(stub, note(scope, 'new'))
    expect((await logOf(stub))[0]?.seq).toBe(last_seq + 1)
  })
})

describe('a clock that was ahead', () => {
  const DAY_MS = 86_400_000
  /** As if all of this had been written by a clock a day ahead, and the object had died then. */
  const wakeAfter = async (stub: ReturnType<typeof stubOf>) => {
    await inObject(stub, ({ storage }) => {
      storage.sql.exec(`UPDATE log SET at = at + ${DAY_MS}`)
      storage.sql.exec(`UPDATE events SET due_at = due_at + ${DAY_MS} WHERE due_at > 0`)
      storage.sql.exec(`UPDATE events SET lease_until = lease_until + ${DAY_MS} WHERE ack_token IS NOT NULL`)
      storage.sql.exec(`UPDATE timers SET next_at = next_at + ${DAY_MS}, set_at = set_at + ${DAY_MS}`)
    })
    await evict(stub)
    await stub.state()
  }
  const within = async (stub: ReturnType<typeof stubOf>, sql: string, ms: number) => {
    const [row] = await inObject(stub, ({ storage }) => storage.sql.exec<{ at: number }>(sql).toArray())
    expect(row!.at - Date.now()).toBeLessThanOrEqual(ms)
  }

  test('holds up no retry, lease or timer once it is right, and is in the log once', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull' }, 'ops')
    await stub.setTimer('beat', { every_s: 600 }, 'ops')
    const [a, b] = await send(stub, note(scope, 'a'), note(scope, 'b'))
    await inObject(stub, ({ storage }) => {
      const [last] = storage.sql.exec<{ at: number }>('SELECT max(at) AS at FROM log').toArray()
      const soon = last!.at + 30_000
      storage.sql.exec(`UPDATE events SET due_at = ? WHERE id = ?`, soon, a)
      storage.sql.exec(`UPDATE events SET status = 'processing', ack_token = 't', lease_until = ? WHERE id = ?`, soon, b)
    })
    await wakeAfter(stub)
    await within(stub, `SELECT due_at AS at FROM events WHERE status = 'pending'`, 30_000)
    await within(stub, `SELECT lease_until AS at FROM events WHERE status = 'processing'`, 30_000)
    await within(stub, 'SELECT next_at AS at FROM timers', 600_000)
    await evict(stub)
    await stub.state()
    await runAlarm(stub)
    expect(await entriesOf(stub, 'clock-corrected')).toHaveLength(1)
  })

  test('is the one that a scope reads, also where a file of tests before this one faked dates', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    vi.useRealTimers()
    resetClock()
    const { now } = Date
    const time = vi.spyOn(Date, 'now').mockReturnValue(5)
    expect(now()).toBe(5)
    time.mockRestore()
  })

  test('holds up no timer either where an event comes before the alarm', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.setTimer('beat', { every_s: 600 }, 'ops')
    const time = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + DAY_MS)
    try {
      await stub.setTimer('beat', { every_s: 599 }, 'ops')
    } finally {
      time.mockRestore()
    }
    await sendAndSettle(stub, note(scope, 'a'))
    await within(stub, 'SELECT next_at AS at FROM timers', 600_000)
    expect(await entriesOf(stub, 'clock-corrected')).toHaveLength(1)
  })

  test('takes no time from a lease that begins once it is right', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull' }, 'ops')
    await send(stub, note(scope, 'a'))
    const time = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + DAY_MS)
    try {
      await stub.setTimer('beat', { every_s: 600 }, 'ops')
    } finally {
      time.mockRestore()
    }
    expect(await stub.claim({ limit: 1, lease_s: 300 }, 'ops')).toMatchObject({ deliveries: [{ attempts: 1 }] })
    expect(await entriesOf(stub, 'clock-corrected')).toHaveLength(1)
    const sql = `SELECT lease_until AS at FROM events WHERE status = 'processing'`
    const [row] = await inObject(stub, ({ storage }) => storage.sql.exec<{ at: number }>(sql).toArray())
    expect(row!.at - Date.now()).toBeGreaterThan(200_000)
  })

  test('holds up no job that is to be tried again', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await sendAndSettle(stub, note(scope, 'a'))
    const columns = 'seq integer PRIMARY KEY NOT NULL, kind text, key text, payload text, locks text, attempts integer, due_at integer'
    await inObject(stub, ({ storage }) => {
      storage.sql.exec(`CREATE TABLE jobs (${columns})`)
      // A job of a feature that the deployment left out: nothing runs it.
      const job = `'left-out', 'a', '{}', '[]', 1, max(at) + ${DAY_MS + 30_000} FROM log`
      storage.sql.exec(`INSERT INTO jobs (kind, key, payload, locks, attempts, due_at) SELECT ${job}`)
    })
    await wakeAfter(stub)
    await within(stub, 'SELECT due_at AS at FROM jobs', 30_000)
    expect(await entriesOf(stub, 'clock-corrected')).toHaveLength(1)
  })

  test('has nothing forgotten that is open, in the context, or not yet told to D1', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull' }, 'ops')
    const [id] = await send(stub, note(scope, 'open'))
    await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 is current')
    await age(stub, 400)
    expect((await stub.event(id!))?.status).toBe('pending')
  })
})

describe('settings', () => {
  test('are merged, null goes back to the default, and each change is in the log', async () => {
    const stub = stubOf(freshScope())
    expect(await stub.configure({ max_attempts: 7, instructions: 'be brief' }, 'ops')).toMatchObject({
      settings: { max_attempts: 7, instructions: 'be brief' },
    })
    await evict(stub)
    const changed = await stub.configure({ max_attempts: null }, 'ops')
    expect(changed).toMatchObject({ settings: { max_attempts: 3, instructions: 'be brief', turn_timeout_ms: 5000 } })
    expect(await entriesOf(stub, 'settings-changed')).toMatchObject([
      { by: 'ops', patch: { max_attempts: 7 } },
      { patch: { max_attempts: null } },
    ])
  })

  test.each([
    [{ agent: 'nobody' }, 'unknown agent "nobody". Available: test-agent, '],
    [{ when: 'total >=' }, 'when'],
    [{ when: 'total + 1' }, 'must be true or false; its type is int'],
    [{ tools: ['nothing'] }, 'unknown tool "nothing" of agent test-agent. Available: act, '],
  ])('%j is refused with the reason, and changes nothing', async (patch, reason) => {
    const stub = stubOf(freshScope())
    expect(await stub.configure(patch, 'ops')).toMatchObject({ ok: false, reason: 'invalid', detail: expect.stringContaining(reason) })
    expect(await entriesOf(stub, 'settings-changed')).toEqual([])
  })

  test('name the agent that serves a scope', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ agent: 'perceiver' }, 'ops')
    expect(await sendAndSettle(stub, note(scope, 'noise'))).toMatchObject([{ outcome: { by: 'perceive' } }])
  })
})

describe('a ticket', () => {
  const soon = () => Date.now() + 60_000

  test('is used once, also where the object is evicted in between', async () => {
    const stub = stubOf(freshScope())
    const expires_at = soon()
    expect(await stub.useTicket('a', expires_at)).toEqual({ ok: true })
    expect(await stub.useTicket('a', expires_at)).toMatchObject({ ok: false, reason: 'used' })
    await evict(stub)
    expect(await stub.useTicket('a', expires_at)).toMatchObject({ ok: false, reason: 'used' })
    expect(await stub.useTicket('b', expires_at)).toEqual({ ok: true })
  })

  test('that has expired is refused, and those that were used leave nothing once they have', async () => {
    const stub = stubOf(freshScope())
    expect(await stub.useTicket('a', Date.now() - 1)).toMatchObject({ ok: false, reason: 'used' })
    await stub.useTicket('b', soon())
    await inObject(stub, (state) => void state.storage.sql.exec('UPDATE used_tickets SET expires_at = 1'))
    await stub.useTicket('c', soon())
    const kept = await inObject(stub, (state) => state.storage.sql.exec('SELECT nonce FROM used_tickets').toArray())
    expect(kept).toEqual([{ nonce: 'c' }])
  })

  test('beyond what one scope takes in a minute is refused', async () => {
    const stub = stubOf(freshScope())
    await stub.useTicket('a', soon())
    const fill = `INSERT INTO used_tickets SELECT 'n' || value, ${soon()} FROM json_each(?)`
    const many = JSON.stringify(Array.from({ length: limits.tickets_per_scope }, (_, index) => index))
    await inObject(stub, (state) => void state.storage.sql.exec(fill, many))
    expect(await stub.useTicket('b', soon())).toMatchObject({ ok: false, reason: 'too_many' })
  })
})

describe('a scope that nothing was written in', () => {
  /** All that the object keeps. */
  const keptBy = (stub: ReturnType<typeof stubOf>) =>
    inObject(stub, async ({ storage }) => ({
      tables: storage.sql.exec(`SELECT name FROM sqlite_master WHERE name NOT GLOB '_cf_*'`).toArray(),
      alarm: await storage.getAlarm(),
    }))
  const NOTHING = { tables: [], alarm: null }

  const looks = async (stub: ReturnType<typeof stubOf>) => {
    const { created_at: _, ...context } = await stub.context(10)
    return {
      state: await stub.state(),
      context,
      log: await stub.readLog(0, 10),
      event: await stub.event('none'),
      outcomes: await stub.outcomes(['none'], 1),
      timers: [await stub.timers(), await stub.timer('none'), await stub.removeTimer('none', 'ops')],
      recordings: await stub.recordings({ since: 0, after: 0, limit: 10 }),
      metrics: await stub.metrics(),
      settled: [await stub.ack(['none']), await stub.nack('none', 'no'), await stub.cancel('no', 'ops')],
      letters: [await stub.reopen(['none'], 'ops'), await stub.discard(['none'], 'ops')],
    }
  }

  test.each(['test', 'ssh'])('keeps nothing, however it is looked at (%s)', async (kind) => {
    const scope = freshScope(kind)
    const stub = stubOf(scope)
    await looks(stub)
    await stub.poke()
    await evict(stub)
    await looks(stub)
    expect(await keptBy(stub)).toEqual(NOTHING)
    expect(await env.DB.prepare('SELECT scope FROM scopes WHERE scope = ?').bind(scope).first()).toBeNull()
    expect(await env.DB.prepare('SELECT scope FROM reflex_uses WHERE scope = ?').bind(scope).first()).toBeNull()
  })

  const reads = ['', '/context', '/log', '/events/none', '/bulletin', '/timers', '/timers/none', '/mcp'] as const
  test('is not kept because somebody asks the API about it', async () => {
    const key = await keyFor(['viewer', 'operator'], ['made-up/*'])
    const scopes = Array.from({ length: 3 }, () => freshScope('made-up'))
    const looks = scopes.flatMap((scope) => reads.map((path) => call(scopePath(scope, path), { key })))
    for (const { status } of await Promise.all(looks)) expect(status).toBeLessThan(500)
    for (const scope of scopes) {
      expect(await call(scopePath(scope), { key })).toMatchObject({ status: 200, body: { scope, last_seq: 0, inbox: { pending: 0 } } })
      await evict(stubOf(scope))
      expect(await call(scopePath(scope, '/log'), { key })).toMatchObject({ status: 200, body: { items: [] } })
      expect(await keptBy(stubOf(scope))).toEqual(NOTHING)
    }
    expect((await call('/v1/scopes?limit=1000', { key })).body.items).toEqual([])
  })

  test('answers as one that has its tables and nothing in them', async () => {
    const scope = freshScope()
    const [bare, emptied] = [stubOf(scope), stubOf(freshScope())]
    await emptied.useTicket('a', Date.now() + 60_000)
    await inObject(emptied, (state) => void state.storage.sql.exec('DELETE FROM used_tickets'))
    const { state, ...rest } = await looks(emptied)
    const named = JSON.parse(JSON.stringify(rest).replaceAll(state.scope, scope)) as unknown
    const found = await looks(bare)
    expect(found).toEqual({ state: { ...state, scope }, ...(named as object) })
  })

  test('keeps nothing while sockets and streams are open', async () => {
    const scope = freshScope()
    const connect = { connection_id: 'c', key_id: 'admin', source: 'a', may_send: true, decides_as: null, after: 0 }
    const headers = { 'x-reflex-connect': JSON.stringify(connect) }
    const { webSocket: socket } = await stubOf(scope).fetch('https://scope/', { headers: { ...headers, upgrade: 'websocket' } })
    const stream = await stubOf(scope).fetch('https://scope/', { headers })
    socket?.accept()
    expect(await keptBy(stubOf(scope))).toEqual(NOTHING)
    socket?.close()
    await stream.body?.cancel()
  })

  test.each<[string, (stub: ReturnType<typeof stubOf>, scope: string) => Promise<unknown>]>([
    ['event', (stub, scope) => sendAndSettle(stub, note(scope, 'noise'))],
    ['setting', (stub) => stub.configure({ instructions: 'x' }, 'ops')],
    ['timer', (stub) => stub.setTimer('t', { every_s: 3600 }, 'ops')],
    ['ticket', (stub) => stub.useTicket('a', Date.now() + 60_000)],
  ])('has its name and its alarm from the first %s on', async (_, write) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.state()
    await write(stub, scope)
    const { created_at } = await stub.context(1)
    expect(await keptBy(stub)).toMatchObject({ tables: expect.arrayContaining([{ name: 'state' }]), alarm: expect.any(Number) })
    await evict(stub)
    const state = await inObject(stub, ({ storage }) => storage.sql.exec(`SELECT value FROM state WHERE key = 'scope'`).one())
    expect(state).toEqual({ value: JSON.stringify(scope) })
    expect((await stub.context(1)).created_at).toBe(created_at)
  })

  test('keeps its tables and gets new columns if a migrator laid them, as before', async () => {
    const scope = freshScope()
    const [file = '', ...later] = Object.values(migrations.migrations)
    expect(later).toHaveLength(2)
    await inObject(stubOf(scope), ({ storage: { sql } }) => {
      for (const step of file.split('--> statement-breakpoint')) sql.exec(step)
      sql.exec('CREATE TABLE __drizzle_migrations (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at NUMERIC)')
      sql.exec('INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)', 'x', migrations.journal.entries[0]?.when ?? 0)
      sql.exec(`INSERT INTO state (key, value) VALUES ('scope', ?), ('created_at', '5')`, JSON.stringify(scope))
    })
    await evict(stubOf(scope))
    const stub = stubOf(scope)
    expect(await sendAndSettle(stub, note(scope, 'noise'))).toHaveLength(1)
    expect((await stub.context(1)).created_at).toBe('1970-01-01T00:00:00.005Z')
    const sql = 'SELECT log.chain IS NOT NULL AS chained, events.sent FROM log, events'
    const seen = () => inObject(stub, ({ storage }) => storage.sql.exec(sql).toArray())
    expect(await seen()).toContainEqual({ chained: 1, sent: 1 })
    await evict(stub)
    expect(await seen()).toContainEqual({ chained: 1, sent: 1 })
  })

  test.each([
    ['fewer, by an earlier version that ran in between', -1, 0],
    ['more, by a newer version that ran before', 1, 1],
  ])('of which %s has noted that many steps continues', async (_, by, kept) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await sendAndSettle(stub, note(scope, 'noise'))
    const noted = (more: number) =>
      inObject(stub, ({ storage: { sql } }) => {
        sql.exec(`UPDATE state SET value = value + ? WHERE key = 'schema'`, more)
        return Number(sql.exec(`SELECT value FROM state WHERE key = 'schema'`).one()['value'])
      })
    const steps = await noted(0)
    await noted(by)
    await evict(stub)
    expect(await sendAndSettle(stub, note(scope, 'noise'))).toHaveLength(1)
    expect(await noted(0)).toBe(steps + kept)
  })

  test('gets each table with its first row', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const tables = async () => {
      const { tables: kept } = await keptBy(stub)
      return kept.map(({ name }) => name)
    }
    await sendAndSettle(stub, note(scope, 'noise'))
    const first = await tables()
    expect(first).toEqual(expect.arrayContaining(['state', 'events', 'events_claim', 'log']))
    expect(first).not.toEqual(expect.arrayContaining(['skill_runs']))
    expect(first).not.toEqual(expect.arrayContaining(['used_tickets']))
    await evict(stub)
    await stub.useTicket('a', Date.now() + 60_000)
    expect(await tables()).toEqual(expect.arrayContaining([...first, 'used_tickets']))
    expect(await stub.useTicket('a', Date.now() + 60_000)).toMatchObject({ ok: false })
  })
})
