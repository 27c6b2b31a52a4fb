import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { acting, calls, did } from '../../support/reflex-chain.ts'
import { propose, skill, twoSteps } from '../../support/two-step-skill.ts'
import { crash, entriesOf, evict, freshScope, hurry, inObject, note, send, stubOf, until } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'

// Background work of a dropped object rejects without a handler.
const listeners = process.listeners('unhandledRejection')
process.removeAllListeners('unhandledRejection')
process.on('unhandledRejection', (error, promise) => {
  if (!/poison|restarts/.test(String(error))) for (const listener of listeners) listener(error, promise)
})

/** Makes this statement fail as if it were too large, in each object built for the scope. */
const poison = (scope: string, before: string, when: string): Promise<unknown> =>
  inObject(stubOf(scope), ({ storage }) =>
    storage.sql.exec(
      `CREATE TRIGGER poison_${crypto.randomUUID().slice(0, 8)} BEFORE ${before} WHEN ${when} BEGIN SELECT RAISE(ABORT, 'poison'); END`,
    ),
  )

/** Wakes the scope again and again, as alarms and callers do, until it has parked this. */
const parkedIn = (scope: string, kind: string) =>
  until(async () => {
    await stubOf(scope)
      .poke()
      .catch(() => null)
    const state = await stubOf(scope)
      .state()
      .catch(() => null)
    return state?.parked.find((work) => work.kind === kind)
  }, `a piece of ${kind} is parked`)

/** The scope continues: a turn considers new events. */
async function expectAlive(scope: string): Promise<void> {
  const [id] = await send(stubOf(scope), note(scope, 'afterwards'))
  expect(await stubOf(scope).outcomes([id!], 10_000)).toMatchObject({ settled: true, records: [{ status: 'completed' }] })
}

/** Its memory is lost, and so is what is not on disk. */
async function dies(scope: string): Promise<void> {
  await stubOf(scope)
    .state()
    .catch(() => null)
  await crash(scope)
}

describe.each([
  ['', async () => {}],
  [', also where it dies in between', dies],
])('work that takes its scope down each time is parked, and the rest continues%s', { timeout: 30_000 }, (_, between) => {
  test('an event that cannot be perceived', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ consumer: 'pull' }, 'test')
    const ids = await send(stubOf(scope), note(scope, 'a'), note(scope, 'poison'), note(scope, 'b'))
    await poison(scope, 'UPDATE OF in_context ON events', `NEW.in_context = 1 AND NEW.payload LIKE '%poison%'`)
    await stubOf(scope)
      .configure({ consumer: 'turn' }, 'test')
      .catch(() => null)
    await between(scope)
    expect(await parkedIn(scope, 'event')).toMatchObject({ id: '2', deaths: 5, reason: expect.stringContaining('poison') })
    expect(await stubOf(scope).outcomes(ids, 10_000)).toMatchObject({
      settled: true,
      records: [
        { status: 'completed' },
        { status: 'dead_lettered', error: expect.stringContaining('crashed its scope') },
        { status: 'completed' },
      ],
    })
    expect(await entriesOf(stubOf(scope), 'work-parked')).toMatchObject([{ work: 'event', id: '2' }])
    await expectAlive(scope)
  })

  test('an event that no turn can claim', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ overlap: { debounce: { quiet_ms: 60_000, max_ms: 60_000 } } }, 'test')
    const ids = await send(stubOf(scope), note(scope, 'a'), note(scope, 'poison'), note(scope, 'b'))
    await poison(scope, 'UPDATE OF attempts ON events', `NEW.attempts > OLD.attempts AND NEW.payload LIKE '%poison%'`)
    await stubOf(scope).configure({ overlap: 'queue' }, 'test')
    await between(scope)
    expect(await parkedIn(scope, 'turn')).toMatchObject({ id: '2', deaths: 5 })
    expect(await stubOf(scope).outcomes(ids, 10_000)).toMatchObject({
      settled: true,
      records: [{ status: 'completed' }, { status: 'dead_lettered' }, { status: 'completed' }],
    })
    await expectAlive(scope)
  })

  test('a run whose second step cannot be begun: its first is undone, and it is done once', async () => {
    const scope = freshScope()
    const compensation = [{ when: 'partial_failure', tool: 'act', args: { text: 'undo first' }, step: 0 }]
    const id = await skill({ plan: { ...twoSteps('x').plan, compensation, idempotence_key: 'twice' } })
    // A scope keeps nothing, and has no tables, until something is sent to it.
    await send(stubOf(scope), note(scope, 'first of all'))
    await poison(scope, 'INSERT ON effects', `NEW.phase = 'step' AND NEW.place = 1 AND NEW.status = 'started'`)
    await propose(scope, id).catch(() => null)
    await between(scope)
    await until(async () => {
      await stubOf(scope)
        .poke()
        .catch(() => null)
      return did(scope).includes('undo first')
    }, 'the run is undone')
    const ended = await until(async () => (await entriesOf(stubOf(scope), 'skill-applied').catch(() => []))[0], 'the run has ended')
    expect(ended).toMatchObject({ status: 'partial_failure' })
    expect(did(scope)).toEqual(['first x', 'undo first'])
    await expectAlive(scope)
  })

  test('an action of a reflex: its event goes the slow path', async () => {
    const { scope } = await acting(`if (context.event.text === 'poison') ${calls('act')}`)
    await poison(scope, 'INSERT ON log', `NEW.entries LIKE '%"kind":"effect-started"%' AND NEW.entries LIKE '%poison%'`)
    const [id] = await send(stubOf(scope), note(scope, 'poison'))
    await between(scope)
    expect(await parkedIn(scope, 'action')).toMatchObject({ reason: expect.stringContaining('poison') })
    expect(await stubOf(scope).outcomes([id!], 10_000)).toMatchObject({
      settled: true,
      records: [{ status: 'completed', outcome: { by: 'turn' } }],
    })
    await expectAlive(scope)
  })

  test('a timer: the others tick, and setting it again retries it', async () => {
    const scope = freshScope()
    await stubOf(scope).setTimer('poison', { every_s: 3600 }, 'test')
    await stubOf(scope).setTimer('fine', { every_s: 3600 }, 'test')
    await poison(scope, 'UPDATE ON timers', `NEW.name = 'poison' AND NEW.fired > 0`)
    await hurry(stubOf(scope)).catch(() => null)
    await between(scope)
    expect(await parkedIn(scope, 'timer')).toMatchObject({ id: 'poison', deaths: 5 })
    expect(await stubOf(scope).timer('fine')).toMatchObject({ fired: 1 })
    await stubOf(scope).setTimer('poison', { every_s: 7200 }, 'test')
    expect((await stubOf(scope).state()).parked).toEqual([])
    await expectAlive(scope)
  })

  test('an event that D1 rejects: the others are replicated', async () => {
    const scope = freshScope()
    await env.DB.exec(
      `CREATE TRIGGER IF NOT EXISTS poison BEFORE INSERT ON events WHEN NEW.payload LIKE '%poison in D1%' BEGIN SELECT RAISE(ABORT, 'poison'); END`,
    )
    // Late ones are rows in D1.
    const timestamp = new Date(Date.now() - 60_000).toISOString()
    const ids = await send(stubOf(scope), ...['a', 'poison in D1', 'b'].map((text) => note(scope, text, { timestamp })))
    await between(scope)
    expect(await parkedIn(scope, 'outbox')).toMatchObject({ id: '2', reason: expect.stringContaining('poison') })
    await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'the outbox is empty')
    const { results } = await env.DB.prepare('SELECT id FROM events WHERE scope = ? ORDER BY seq').bind(scope).all()
    expect(results).toEqual([{ id: ids[0] }, { id: ids[2] }])
    await until(
      async () => (await env.DB.prepare('SELECT parked FROM scopes WHERE scope = ?').bind(scope).first('parked')) === 1,
      'D1 knows of it',
    )
    await expectAlive(scope)
  })

  test('a setting that can no longer be read: its default applies until it is set again', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ max_attempts: 7 }, 'test')
    await inObject(stubOf(scope), ({ storage }) =>
      storage.sql.exec(`UPDATE state SET value = '{"max_attempts":7,"context_limit":"poison"}' WHERE key = 'settings'`),
    )
    await evict(stubOf(scope))
    await between(scope)
    const { settings, parked } = await stubOf(scope).state()
    expect(settings).toMatchObject({ max_attempts: 7, context_limit: 1000 })
    expect(parked).toMatchObject([{ kind: 'setting', id: 'context_limit', reason: expect.stringContaining('default') }])
    await expectAlive(scope)
    await stubOf(scope).configure({ context_limit: 500 }, 'test')
    expect((await stubOf(scope).state()).parked).toEqual([])
  })
})

describe('a failure of other work', { timeout: 30_000 }, () => {
  test('is not counted against the turn in flight, however often', async () => {
    const scope = freshScope()
    let turns = 0
    let over = false
    behaviours.set(scope, async (_, { signal }) => {
      turns += 1
      if (!over) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return null
    })
    const [id] = await send(stubOf(scope), note(scope, 'a'))
    await poison(scope, 'INSERT ON events', `NEW.payload LIKE '%poison%'`)
    for (let death = 1; death <= 12; death += 1) {
      await until(async () => turns >= death && (await stubOf(scope).state()).turn, `turn ${death} is in flight`)
      await expect(stubOf(scope).accept([note(scope, 'poison')], 'http')).rejects.toThrow(/poison/)
      await until(
        async () =>
          stubOf(scope)
            .state()
            .catch(() => null),
        'the scope is rebuilt',
      )
      await hurry(stubOf(scope)).catch(() => null)
    }
    over = true
    expect(await stubOf(scope).event(id!)).toMatchObject({ attempts: expect.any(Number), error: null })
    await stubOf(scope).cancel('the test is over', 'test')
  })

  test('keeps what was written just before it', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ agent: 'perceiver' }, 'test')
    await poison(scope, 'INSERT ON events', `NEW.payload LIKE '%poison%'`)
    const [fine, bad] = [note(scope, 'fine'), note(scope, 'poison')]
    // In one turn of the event loop: nothing has been flushed between the two.
    await Promise.allSettled([stubOf(scope).accept([fine], 'http'), stubOf(scope).accept([bad], 'http')])
    expect(
      await until(
        async () =>
          stubOf(scope)
            .event(fine.id)
            .catch(() => null),
        'the scope is rebuilt',
      ),
    ).toMatchObject({ status: 'completed' })
  })
})
