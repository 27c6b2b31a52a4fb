import { describe, expect, test, vi } from 'vitest'
import { DecisionContext, dedupeFilter, typeFilter, type ReflexDeps, type Trigger } from '../../../src/core/decision-context.ts'
import { SqlEventStore, type EventStore } from '../../../src/core/event-store.ts'
import type { Event } from '../../../src/core/event.ts'
import { runAgent, runAgentWithLock, runAgentWithTimeout } from '../../../src/core/run-agent.ts'
import { ScopedLocks } from '../../../src/core/scoped-locks.ts'
import { buildEvent } from '../../support/build-event.ts'
import { openEvents } from '../../support/sqlite.ts'

const macrotask = () => new Promise<void>((resolve) => setImmediate(resolve))

/**
 * A store whose loop stops after `settled` acks and nacks; a nack advances the clock to the retry.
 */
function setUp({ settled, max_attempts = 3 }: { settled: number; max_attempts?: number }) {
  const clock = { now: 1_000_000 }
  const controller = new AbortController()
  const { run, rows } = openEvents()
  const sql = new SqlEventStore({ run, now: () => clock.now, random: () => 0, poll_ms: 1, max_attempts })
  let left = settled
  const settle = (done: boolean) => {
    left -= 1
    if (left === 0) controller.abort()
    return done
  }
  const subscribe = vi.fn<EventStore['subscribe']>((subscription) => sql.subscribe(subscription))
  const store: EventStore = {
    publish: (...events) => sql.publish(...events),
    subscribe,
    replay: (span) => sql.replay(span),
    ack: async (token) => settle(await sql.ack(token)),
    nack: async (token, error) => {
      const done = await sql.nack(token, error)
      clock.now += 10_000
      return settle(done)
    },
  }
  const statuses = () => rows().map((row) => row['status'])
  return { store, subscribe, rows, statuses, agent: { store, deps: {}, signal: controller.signal }, controller }
}

/** The contexts of the trigger's calls. */
const sightings = (result: (seen: string[]) => unknown = () => null) => {
  const seen: string[][] = []
  const trigger = async (context: DecisionContext) => {
    seen.push(context.events.map(({ id }) => id))
    return result(seen.at(-1) ?? [])
  }
  return { seen, trigger }
}

describe('runAgent', () => {
  test('accumulates events until the trigger acts, then starts empty', async () => {
    const { store, statuses, agent } = setUp({ settled: 5 })
    await store.publish(...['a', 'b', 'c', 'd', 'e'].map((id) => buildEvent({ id })))
    const { seen, trigger } = sightings((events) => (events.length === 3 ? 'acted' : null))
    await runAgent({ ...agent, trigger })
    expect(seen).toEqual([['a'], ['a', 'b'], ['a', 'b', 'c'], ['d'], ['d', 'e']])
    expect(statuses()).toEqual(Array(5).fill('completed'))
  })

  test('acks what no filter passes, and the trigger does not see it', async () => {
    const { store, statuses, agent } = setUp({ settled: 3 })
    await store.publish(buildEvent({ id: 'a', type: 'x' }), buildEvent({ id: 'b', type: 'y' }), buildEvent({ id: 'c', type: 'z' }))
    const { seen, trigger } = sightings()
    await runAgent({ ...agent, trigger, filters: [typeFilter('x'), typeFilter('z')] })
    expect(seen).toEqual([['a'], ['a', 'c']])
    expect(statuses()).toEqual(['completed', 'completed', 'completed'])
  })

  test('nacks with the error where the trigger throws, and tries again with the event in memory once', async () => {
    const { store, rows, agent } = setUp({ settled: 2 })
    await store.publish(buildEvent({ id: 'a' }))
    const errors: unknown[] = []
    const { seen, trigger } = sightings()
    const failing = async (context: DecisionContext) => {
      errors.push(rows()[0]?.['error'])
      await trigger(context)
      if (seen.length === 1) throw new Error('the model is away')
      return null
    }
    await runAgent({ ...agent, trigger: failing })
    expect(seen).toEqual([['a'], ['a']])
    expect(errors).toEqual([null, 'the model is away'])
    expect(rows()).toMatchObject([{ status: 'completed', attempts: 2 }])
  })

  test('continues after an event that always fails, which becomes a dead letter', async () => {
    const { store, rows, agent } = setUp({ settled: 3, max_attempts: 2 })
    await store.publish(buildEvent({ id: 'bad' }), buildEvent({ id: 'good' }))
    const filter = ({ id }: Event) => {
      if (id === 'bad') throw new Error('bad event')
      return true
    }
    await runAgent({ ...agent, trigger: async () => null, filters: [filter] })
    expect(rows()).toMatchObject([
      { id: 'bad', status: 'dead_lettered', attempts: 2, error: 'bad event' },
      { id: 'good', status: 'completed', attempts: 1 },
    ])
  })

  test('keeps what was thrown, also where it is no Error', async () => {
    const { store, rows, agent } = setUp({ settled: 1 })
    await store.publish(buildEvent())
    await runAgent({ ...agent, trigger: () => Promise.reject('just words') })
    expect(rows()).toMatchObject([{ status: 'pending', error: 'just words' }])
  })

  test('nacks where a filter throws', async () => {
    const { store, rows, agent } = setUp({ settled: 1 })
    await store.publish(buildEvent())
    const filter = () => {
      throw new Error('bad filter')
    }
    await runAgent({ ...agent, trigger: async () => null, filters: [filter] })
    expect(rows()).toMatchObject([{ status: 'pending', error: 'bad filter' }])
  })

  test('does not take the retry of an event for its duplicate', async () => {
    const { store, agent } = setUp({ settled: 2 })
    await store.publish(buildEvent({ id: 'a' }))
    const trigger = vi.fn<Trigger<Event, object>>().mockRejectedValueOnce(new Error('once')).mockResolvedValue(null)
    await runAgent({ ...agent, trigger, filters: [dedupeFilter({ window_s: 60, key: ({ type }) => type })] })
    expect(trigger).toHaveBeenCalledTimes(2)
  })

  test.each([null, undefined, false, '', 0])('a result of %j is no action', async (result) => {
    const { store, agent } = setUp({ settled: 2 })
    await store.publish(buildEvent(), buildEvent())
    const { seen, trigger } = sightings(() => result)
    await runAgent({ ...agent, trigger })
    expect(seen[1]).toHaveLength(2)
  })

  test('serves its own scope and leaves the others’ events', async () => {
    const { store, statuses, agent } = setUp({ settled: 1 })
    await store.publish(buildEvent({ id: 'other' }), buildEvent({ id: 'mine', scope: 'ops' }))
    const { seen, trigger } = sightings()
    await runAgent({ ...agent, trigger, scope: 'ops' })
    expect(seen).toEqual([['mine']])
    expect(statuses()).toEqual(['pending', 'completed'])
  })

  test('gives the trigger its deps and the loop’s own', async () => {
    const { store, agent } = setUp({ settled: 1 })
    const event = buildEvent({ scope: 'ops' })
    await store.publish(event)
    const given = { fetch, db: { rows: 3 }, model: 'a model' }
    const trigger = vi.fn<Trigger<Event, object>>(async () => null)
    await runAgent({ ...agent, scope: 'ops', deps: given, trigger })
    const [context, deps] = trigger.mock.calls[0] ?? []
    expect(deps).toEqual({ ...given, context, store, scope: 'ops', signal: agent.signal })
    expect(context).toMatchObject({ scope: 'ops', events: [event] })
  })

  test('adds a retried event that is not in memory, and a first attempt whatever is', async () => {
    const { store, agent } = setUp({ settled: 2 })
    await store.publish(buildEvent({ id: 'a' }))
    const { seen, trigger } = sightings()
    const memory = new DecisionContext({ scope: 'default', events: [buildEvent({ id: 'b' }), buildEvent({ id: 'a' })] })
    const forgetting = async (context: DecisionContext) => {
      await trigger(context)
      if (seen.length > 1) return null
      context.events = context.events.filter(({ id }) => id === 'b')
      throw new Error('once more')
    }
    await runAgent({ ...agent, trigger: forgetting, context: memory })
    expect(seen).toEqual([
      ['b', 'a', 'a'],
      ['b', 'a'],
    ])
  })

  test('adds no retried event that is in memory beside others', async () => {
    const { store, agent } = setUp({ settled: 2 })
    await store.publish(buildEvent({ id: 'a' }))
    const { seen, trigger } = sightings()
    const failing = async (context: DecisionContext) => {
      await trigger(context)
      if (seen.length === 1) throw new Error('once more')
      return null
    }
    const memory = new DecisionContext({ scope: 'default', events: [buildEvent({ id: 'b' })] })
    await runAgent({ ...agent, trigger: failing, context: memory })
    expect(seen).toEqual([
      ['b', 'a'],
      ['b', 'a'],
    ])
  })

  test('waits for its lock no longer than until its signal aborts', async () => {
    const { store, statuses, agent, controller } = setUp({ settled: 1 })
    const locks = new ScopedLocks()
    const { promise, resolve } = Promise.withResolvers<void>()
    const holding = locks.run('default', () => promise)
    await store.publish(buildEvent())
    const { seen, trigger } = sightings()
    const ended = runAgent({ ...agent, trigger, locks })
    await macrotask()
    controller.abort(new Error('stopped'))
    await ended
    expect([seen, statuses()]).toEqual([[], ['pending']])
    resolve()
    await holding
  })

  test('continues with the given memory', async () => {
    const { store, agent } = setUp({ settled: 1 })
    await store.publish(buildEvent({ id: 'b' }))
    const { seen, trigger } = sightings()
    await runAgent({ ...agent, trigger, context: new DecisionContext({ scope: 'default', events: [buildEvent({ id: 'a' })] }) })
    expect(seen).toEqual([['a', 'b']])
  })

  test('uses the given types and lease', async () => {
    const { store, subscribe, agent } = setUp({ settled: 1 })
    await store.publish(buildEvent({ type: 'x' }), buildEvent({ type: 'y' }))
    await runAgent({ ...agent, trigger: async () => null, types: ['y'], lease_ms: 77 })
    expect(subscribe).toHaveBeenCalledWith(expect.objectContaining({ types: ['y'], lease_ms: 77, scope: 'default' }))
  })

  test('ends when its signal aborts', async () => {
    const { agent, controller } = setUp({ settled: 9 })
    const running = runAgent({ ...agent, trigger: async () => null })
    controller.abort()
    await expect(running).resolves.toBeUndefined()
  })

  test('takes a trigger that was written for all of ReflexDeps, where it gets them', () => {
    const trigger: Trigger<Event, ReflexDeps<Event, { rows: number }>> = async (_, { db }) => db.rows
    const { agent } = setUp({ settled: 1 })
    const start = (given: Pick<ReflexDeps, 'fetch' | 'model'>) => runAgent({ ...agent, deps: { ...given, db: { rows: 1 } }, trigger })
    // @ts-expect-error the trigger needs a db with rows
    const wrong = (given: Pick<ReflexDeps, 'fetch' | 'model'>) => runAgent({ ...agent, deps: given, trigger })
    expect([typeof start, typeof wrong]).toEqual(['function', 'function'])
  })
})

describe('runAgentWithTimeout', () => {
  test('gives up a trigger that takes too long, and aborts its signal', async () => {
    const { store, rows, agent } = setUp({ settled: 1 })
    await store.publish(buildEvent())
    let reason: unknown
    await runAgentWithTimeout({
      ...agent,
      action_timeout_ms: 2,
      trigger: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason
            reject(new Error('the trigger’s own words'))
          })
        }),
    })
    expect(rows()).toMatchObject([{ status: 'pending', error: 'action timeout: no result in 2 ms' }])
    expect(reason).toMatchObject({ name: 'TimeoutError' })
  })

  test('a late result of a trigger that ignores its signal changes nothing', async () => {
    const { store, rows, agent } = setUp({ settled: 1 })
    const late = Promise.withResolvers<string>()
    const context = new DecisionContext({ scope: 'default' })
    await store.publish(buildEvent({ id: 'a' }))
    await runAgentWithTimeout({ ...agent, context, action_timeout_ms: 2, trigger: () => late.promise })
    late.resolve('acted')
    await macrotask()
    expect(context.events.map(({ id }) => id)).toEqual(['a'])
    expect(rows()).toMatchObject([{ status: 'pending', attempts: 1 }])
  })

  test('lets a trigger be that is in time', async () => {
    const { store, statuses, agent } = setUp({ settled: 2 })
    await store.publish(buildEvent(), buildEvent())
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const signals: AbortSignal[] = []
    const context = new DecisionContext({ scope: 'default' })
    await runAgentWithTimeout({
      ...agent,
      context,
      trigger: async (_, { signal }) => {
        signals.push(signal)
        return 'acted'
      },
    })
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
    expect(statuses()).toEqual(['completed', 'completed'])
    expect(context.events).toEqual([])
    expect(signals[0]).not.toBe(signals[1])
  })

  test('leases for longer than the timeout', async () => {
    const { store, subscribe, agent } = setUp({ settled: 1 })
    await store.publish(buildEvent())
    await runAgentWithTimeout({ ...agent, trigger: async () => null, action_timeout_ms: 60_000 })
    expect(subscribe).toHaveBeenCalledWith(expect.objectContaining({ lease_ms: 120_000 }))
  })

  test('passes on the abort of the loop', async () => {
    const { store, agent, controller } = setUp({ settled: 9 })
    await store.publish(buildEvent())
    const trigger = vi.fn<Trigger<Event, { signal: AbortSignal }>>(async (_, { signal }) => {
      controller.abort()
      return signal.aborted ? null : 'not aborted'
    })
    await runAgentWithTimeout({ ...agent, trigger })
    expect(await trigger.mock.results[0]?.value).toBeNull()
  })
})

describe('runAgentWithLock', () => {
  const overlaps = async (locks: [ScopedLocks, ScopedLocks]) => {
    const { store, statuses, agent } = setUp({ settled: 6 })
    await store.publish(...Array.from({ length: 6 }, () => buildEvent()))
    let [inside, most] = [0, 0]
    const trigger = async () => {
      inside += 1
      most = Math.max(most, inside)
      for (let tick = 0; tick < 3; tick += 1) await macrotask()
      inside -= 1
      return 'acted'
    }
    await Promise.all(locks.map((lock) => runAgentWithLock({ ...agent, trigger, locks: lock })))
    expect(statuses().filter((status) => status === 'pending').length).toBeLessThanOrEqual(1)
    return most
  }

  test('two loops of one scope with the same locks never act at once', async () => {
    const locks = new ScopedLocks()
    expect(await overlaps([locks, locks])).toBe(1)
    expect(locks.size).toBe(0)
  })

  test('with locks of their own they do', async () => {
    expect(await overlaps([new ScopedLocks(), new ScopedLocks()])).toBe(2)
  })

  test('the context is cleared before the lock is free', async () => {
    const { store, agent } = setUp({ settled: 4 })
    await store.publish(...Array.from({ length: 4 }, () => buildEvent()))
    const [locks, context] = [new ScopedLocks(), new DecisionContext({ scope: 'default' })]
    const cleared: boolean[] = []
    const trigger = async () => {
      cleared.push(context.last_action_at !== null || cleared.length === 0)
      await macrotask()
      context.last_action_at = null
      return 'acted'
    }
    await Promise.all([1, 2].map(() => runAgentWithLock({ ...agent, trigger, locks, context })))
    expect(cleared).not.toContain(false)
  })
})
