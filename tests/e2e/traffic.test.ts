import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { connectScope, type LogEntry } from '../../client/index.ts'
import { ADMIN_KEY, ask, call, eventually, openIn, scopePath, stateOf, temporaryState, wholeLog } from './api.ts'
import { lineTo } from './line.ts'
import { gate, Refusal, scriptedModel } from './scripted-model.ts'

const SOON_MS = 40_000
const MANY_MS = 120_000

const state = await temporaryState()
const model = await scriptedModel(async function* (question) {
  yield `answer to ${question}`
})
let server: LocalServer

const start = (port?: number): Promise<LocalServer> =>
  startServer({
    persist_to: state.directory,
    migrated: true,
    vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, ...model.vars },
    ...(port === undefined ? {} : { port }),
  })

beforeAll(async () => {
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  model.stop()
  await state.remove()
})

type Sent = { id: string; type: string; scope: string; [field: string]: unknown }
const message = (scope: string, content = 'hello'): Sent => ({ id: randomUUID(), type: 'ws.message', scope, connection_id: 'e2e', content })
const task = (scope: string, content: string): Sent => ({ id: randomUUID(), type: 'team.task', scope, task: content })
const send = (scope: string, events: Sent | Sent[]) => call(server.url, `${scopePath(scope)}/events`, { body: events })

const recordOf = (scope: string, id: string) => ask<{ status: string }>(server.url, `${scopePath(scope)}/events/${id}`)

type Row = { id: string; type: string; status: string; attempts: number; timestamp: string }
/** A scope's events in D1. The scope itself is not called, and so not woken. */
async function rowsInD1(scope: string): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: { items: Row[]; next_cursor: string | null } = await ask(
      server.url,
      `/v1/events?limit=1000&scope=${encodeURIComponent(scope)}${cursor && `&cursor=${cursor}`}`,
    )
    rows.push(...page.items)
    cursor = page.next_cursor
  }
  return rows
}

/** The number of entries of a kind for each event. */
function timesIn(log: Record<string, unknown>[], kind: string): Map<string, number> {
  const ids = log.filter((entry) => entry['kind'] === kind).flatMap((entry) => entry['event_ids'] as string[])
  return new Map(
    Array.from(
      Map.groupBy(ids, (id) => id),
      ([id, group]) => [id, group.length],
    ),
  )
}
const onceEach = (events: readonly { id: string }[]): Map<string, number> => new Map(events.map(({ id }) => [id, 1]))

test('ten thousand events of two clients over both paths, many of them sent twice by both, get one outcome each, and D1 agrees', async () => {
  const scopes = Array.from({ length: 5 }, (_, index) => `traffic/${index}`)
  const batches = Array.from({ length: 100 }, (_, index) => {
    const scope = scopes[index % scopes.length] ?? ''
    return { scope, events: Array.from({ length: 100 }, () => message(scope)) }
  })
  const client = async (name: string, first: number, last: number, turn: 0 | 1): Promise<void> => {
    const { key } = await ask<{ key: string }>(server.url, '/v1/keys', { body: { name, roles: ['publisher'], scopes: ['traffic/*'] } })
    // The common part goes first, so that both send it at the same time over different paths.
    const shared = Array.from({ length: 40 }, (_, index) => 30 + index)
    const own = Array.from({ length: last - first }, (_, index) => first + index).filter((index) => !shared.includes(index))
    const todo = [...shared, ...own].flatMap((index) => (index % 10 === 0 ? [index, index] : [index]))
    const sender = async () => {
      for (let index = todo.shift(); index !== undefined; index = todo.shift()) {
        const { scope, events = [] } = batches[index] ?? { scope: '' }
        const route = index % 2 === turn ? '/v1/events' : `${scopePath(scope)}/events`
        expect((await call(server.url, route, { body: events, key }))?.status).toBe(202)
      }
    }
    await Promise.all([sender(), sender()])
  }
  await Promise.all([client('one', 0, 70, 0), client('two', 30, 100, 1)])

  const sent = Map.groupBy(
    batches.flatMap(({ events }) => events),
    ({ scope }) => scope,
  )
  expect(Array.from(sent.values(), ({ length }) => length)).toEqual(scopes.map(() => 2000))
  for (const [scope, events] of sent) {
    await eventually(
      async () => (await stateOf(server.url, scope)).counters['completed'] === events.length,
      `all of ${scope} has ended`,
      MANY_MS,
    )
    const log = await wholeLog(server.url, scope)
    expect(timesIn(log, 'event-accepted')).toEqual(onceEach(events))
    expect(timesIn(log, 'event-ended')).toEqual(onceEach(events))
    const { counters } = await stateOf(server.url, scope)
    expect(counters).toMatchObject({ accepted: 2000, completed: 2000, ignored: 0, dead_lettered: 0, cancelled: 0 })
    expect(counters['duplicates']).toBeGreaterThanOrEqual(400)
    const completed = new Map(events.map(({ id }) => [id, 'completed']))
    const isReplicated = async () => {
      const rows = await rowsInD1(scope)
      return rows.length === events.length && rows.every(({ status }) => status === 'completed')
    }
    await eventually(isReplicated, `D1 has all of ${scope}`, SOON_MS)
    expect(new Map((await rowsInD1(scope)).map(({ id, status }) => [id, status]))).toEqual(completed)
    expect(await rowsInD1(scope)).toHaveLength(2000)
  }
})

test('a viewer that reads nothing for a while holds nobody up, and gets everything in order once it reads again', async () => {
  const scope = 'viewers/slow'
  const line = await lineTo(server.port)
  const slow: LogEntry[] = []
  const quick: LogEntry[] = []
  const view = (base_url: string, entries: LogEntry[]) =>
    connectScope({ base_url, scope, key: ADMIN_KEY, after: 0, onEntry: (entry) => entries.push(entry) })
  const viewers = [view(line.url, slow), view(server.url, quick)]
  await send(scope, message(scope))
  await eventually(async () => slow.length > 0 && quick.length > 0, 'both viewers follow', SOON_MS)

  line.fault('answers held')
  const heard = slow.length
  // Each change logs all settings: more than 20 MB in total, which exceeds all buffers on the way.
  const parameters = { padding: 'x'.repeat(60_000) }
  for (let round = 0; round < 200; round += 1) {
    await call(server.url, scopePath(scope), { method: 'PATCH', body: { parameters: { ...parameters, round } } })
    if (round % 20 > 0) continue
    const answer = await call(server.url, `${scopePath(scope)}/events?wait=outcome&timeout_ms=5000`, { body: message(scope) })
    expect(answer).toMatchObject({ status: 200, body: { events: [{ status: 'completed' }] } })
  }
  const { last_seq } = await stateOf(server.url, scope)
  await eventually(async () => quick.at(-1)?.seq === last_seq, 'the quick viewer has heard everything', SOON_MS)
  expect(slow.length).toBeLessThan(heard + 100)

  line.fault(null)
  await eventually(async () => slow.at(-1)?.seq === last_seq, 'the slow viewer has caught up', SOON_MS)
  for (const viewer of viewers) viewer.close()
  line.stop()
  expect(slow.map(({ seq }) => seq)).toEqual(Array.from({ length: last_seq }, (_, index) => index + 1))
  expect(slow).toEqual(quick)
})

test('timers tick on after kill -9 and a restart, though nobody asks for them, and a tick that was missed comes once', async () => {
  const scope = 'timers/kill'
  const set = (name: string, schedule: object) => call(server.url, `${scopePath(scope)}/timers/${name}`, { method: 'PUT', body: schedule })
  const ticks = async (name: string) =>
    (await rowsInD1(scope)).filter(({ id, status }) => id.startsWith(`timer:${name}:`) && status === 'completed')
  expect((await set('pulse', { every_s: 1 }))?.status).toBe(201)
  await eventually(async () => (await ticks('pulse')).length >= 2, 'the timer ticks', SOON_MS)
  // A machine that is busy may answer after the two seconds, which is then a time of the past.
  const setOnce = async () => (await set('once', { at: new Date(Date.now() + 2000).toISOString() }))?.status === 201
  await eventually(setOnce, 'the timer is set in time', SOON_MS)
  await server.kill9()
  const killed = new Date().toISOString()
  server = await start(server.port)
  const started = new Date().toISOString()

  await eventually(async () => (await ticks('pulse')).filter(({ timestamp }) => timestamp > started).length >= 3, 'it ticks again', SOON_MS)
  const [once, ...more] = await eventually(async () => (await ticks('once')).length > 0 && ticks('once'), 'the missed tick comes', SOON_MS)
  expect(more).toEqual([])
  expect(once?.timestamp && once.timestamp > killed).toBe(true)
  expect((await call(server.url, `${scopePath(scope)}/timers/pulse`, { method: 'DELETE' }))?.status).toBe(204)
  await eventually(async () => (await openIn(server.url, scope)) === 0, 'the last tick has ended', SOON_MS)
  const log = await wholeLog(server.url, scope)
  const ended = timesIn(log, 'event-ended')
  expect(Array.from(ended.values())).toEqual(Array.from(ended, () => 1))
  expect(timesIn(log, 'event-accepted')).toEqual(ended)
})

test('a turn that was cancelled stays cancelled after kill -9 and a restart', async () => {
  const scope = 'team/cancel'
  const never = gate()
  model.script = async function* (question) {
    await never.opened
    yield question
  }
  const endless = task(scope, 'endless')
  await send(scope, endless)
  await eventually(async () => model.asked.includes('endless'), 'the model thinks', SOON_MS)
  const answer = await call(server.url, `${scopePath(scope)}/cancel`, { body: { reason: 'it went astray' } })
  expect(answer).toMatchObject({ status: 200, body: { cancelled: true, events: 1 } })
  await eventually(async () => model.abandoned.includes('endless'), "the model's work was stopped", SOON_MS)
  await server.kill9()
  server = await start(server.port)

  const cancelled = { status: 'cancelled', outcome: { by: 'cancel', reason: 'it went astray' } }
  expect(await recordOf(scope, endless.id)).toMatchObject(cancelled)
  // Also where it is sent again.
  expect((await send(scope, endless))?.body).toMatchObject({ accepted: 0, events: [{ status: 'duplicate' }] })
  expect(await recordOf(scope, endless.id)).toMatchObject(cancelled)
  expect(await stateOf(server.url, scope)).toMatchObject({ turn: null, inbox: { pending: 0, processing: 0, delayed: 0 } })
  await eventually(async () => (await rowsInD1(scope)).every(({ status }) => status === 'cancelled'), 'D1 knows', SOON_MS)
  expect(model.asked.filter((question) => question === 'endless')).toHaveLength(1)
  const log = await wholeLog(server.url, scope)
  expect(timesIn(log, 'event-ended')).toEqual(onceEach([endless]))
  expect(log.filter(({ kind }) => kind === 'turn-cancelled')).toHaveLength(1)
})

test('events after a cancelled turn are handled without the cancelled ones', async () => {
  const scope = 'team/after-cancel'
  const never = gate()
  model.script = async function* (question) {
    if (question === 'run away') await never.opened
    yield `answer to ${question}`
  }
  const [away, next] = [task(scope, 'run away'), task(scope, 'next')]
  await send(scope, away)
  await eventually(async () => model.asked.includes('run away'), 'the model thinks', SOON_MS)
  await send(scope, next)
  await call(server.url, `${scopePath(scope)}/cancel`, { method: 'POST' })
  await eventually(async () => (await recordOf(scope, next.id)).status === 'completed', 'the next task is done', 15_000)
  expect((await recordOf(scope, away.id)).status).toBe('cancelled')
  expect(model.asked.filter((question) => question === 'run away')).toHaveLength(1)
})

test('a turn that kill -9 ends in the middle of a thought is taken up again by itself, and no attempt is burned', async () => {
  const scope = 'team/killed'
  const never = gate()
  model.script = async function* (question) {
    await never.opened
    yield question
  }
  const tasks = Array.from({ length: 3 }, (_, index) => task(scope, `think ${index}`))
  await send(scope, tasks)
  await eventually(async () => model.asked.includes('think 0'), 'the model thinks', SOON_MS)
  await server.kill9()
  model.script = async function* (question) {
    yield `answer to ${question}`
  }
  server = await start(server.port)

  const rows = await eventually(
    async () => {
      const found = await rowsInD1(scope)
      return found.length === 3 && found.every(({ status }) => status === 'completed') && found
    },
    'every task is done, though nobody asked for it',
    SOON_MS,
  )
  expect(rows.map(({ attempts }) => attempts)).toEqual([1, 1, 1])
  const log = await wholeLog(server.url, scope)
  expect(timesIn(log, 'event-ended')).toEqual(onceEach(tasks))
  const turns = log.filter(({ kind }) => kind === 'turn-ended')
  expect(turns.map(({ status }) => status)).toEqual(['lost', 'result'])
  expect(log.filter(({ kind }) => kind === 'turn-started').map(({ attempts }) => attempts)).toEqual([1, 1])
})

type Letter = { id: string; origin: string; event_id: string; error: string; attempts: number }
const lettersOf = async (scope: string): Promise<Letter[]> =>
  (await ask<{ items: Letter[] }>(server.url, `/v1/dlq?scope=${encodeURIComponent(scope)}`)).items

test('a turn whose model is silent is tried three times, then a dead letter, and done on a retry once the model is well', async () => {
  const silent = 'team/silent'
  const never = gate()
  model.script = async function* (question) {
    await never.opened
    yield question
  }
  await call(server.url, scopePath(silent), { method: 'PATCH', body: { turn_timeout_ms: 500 } })
  const timedOut = task(silent, 'be silent')
  await send(silent, timedOut)
  const letters = await eventually(async () => (await lettersOf(silent)).length > 0 && lettersOf(silent), 'the scope gives up', SOON_MS)
  expect(letters).toMatchObject([
    { origin: 'scope', event_id: timedOut.id, attempts: 3, error: expect.stringContaining('took longer than 500 ms') as string },
  ])
  expect(model.asked.filter((question) => question === 'be silent')).toHaveLength(3)
  expect(model.abandoned.filter((question) => question === 'be silent')).toHaveLength(3)

  model.script = async function* (question) {
    yield `answer to ${question}`
  }
  const [letter] = letters
  expect((await call(server.url, `/v1/dlq/${letter?.id ?? ''}/retry`, { method: 'POST' }))?.body).toMatchObject({
    event_id: timedOut.id,
    status: 'retried',
  })
  const record = await eventually(
    async () => {
      const found = await recordOf(silent, timedOut.id)
      return found.status === 'completed' && found
    },
    'it is done',
    SOON_MS,
  )
  expect(record).toMatchObject({ attempts: 1, error: null, outcome: { by: 'turn' } })
  await eventually(async () => (await rowsInD1(silent)).every(({ status }) => status === 'completed'), 'D1 knows', SOON_MS)
  expect(await lettersOf(silent)).toEqual([])
  const log = await wholeLog(server.url, silent)
  expect(log.filter(({ kind }) => kind === 'event-ended').map(({ status }) => status)).toEqual(['dead_lettered', 'completed'])
  expect(log.filter(({ kind }) => kind === 'event-retried')).toHaveLength(2)
  expect(log.filter(({ kind }) => kind === 'event-reopened')).toHaveLength(1)
})

test('events wait for a model that is ill and are answered once it is well, with no attempt burned', async () => {
  const scope = 'team/waiting'
  model.script = async function* (question) {
    if (question === 'fail') throw new Error('the model is ill')
    yield `answer to ${question}`
  }
  await call(server.url, scopePath(scope), { method: 'PATCH', body: { retry: { backoff_ms: 100, max_backoff_ms: 300, max_attempts: 1 } } })
  const event = task(scope, 'fail')
  const asked = () => model.asked.filter((question) => question === 'fail').length
  const before = asked()
  await send(scope, event)
  await eventually(async () => asked() >= before + 4, 'it was asked again and again', SOON_MS)
  expect(await recordOf(scope, event.id)).toMatchObject({ status: expect.stringMatching(/pending|processing/) as string })
  expect(await lettersOf(scope)).toEqual([])

  model.script = async function* (question) {
    yield `answer to ${question}`
  }
  const record = await eventually(
    async () => {
      const found = await recordOf(scope, event.id)
      return found.status === 'completed' && found
    },
    'it is answered',
    SOON_MS,
  )
  expect(record).toMatchObject({ attempts: 1, error: null, outcome: { by: 'turn' } })
  const kinds = (await wholeLog(server.url, scope)).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'model-lost' || kind === 'model-restored')).toEqual(['model-lost', 'model-restored'])
})

test('a message that the model refuses for good becomes a dead letter alone: those that come after it are answered', async () => {
  const scope = 'chat/refused'
  model.script = async function* (question) {
    if (question === 'refused') throw new Refusal('this is against the rules')
    yield `answer to ${question}`
  }
  await call(server.url, scopePath(scope), { method: 'PATCH', body: { max_attempts: 1 } })
  const [refused, fine] = [message(scope, 'refused'), message(scope, 'fine')]
  for (const event of [refused, fine]) {
    await send(scope, event)
    await eventually(async () => (await openIn(server.url, scope)) === 0, 'it has its outcome', SOON_MS)
  }
  expect((await recordOf(scope, refused.id)).status).toBe('dead_lettered')
  expect(await recordOf(scope, fine.id)).toMatchObject({ status: 'completed', error: null })
})

test('lone events of many senders are each taken, by a deployment that keeps no notes of its queue', async () => {
  const place = await temporaryState()
  const relying = await startServer({
    persist_to: place.directory,
    migrated: true,
    vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, REFLEX_QUEUE_NOTES: 'off' },
  })
  try {
    const scopes = ['lone/1', 'lone/2']
    const senders = Array.from({ length: 4 }, async (_, sender) => {
      for (let nth = 0; nth < 150; nth += 1) {
        const answer = await call(relying.url, '/v1/events', { body: message(scopes[(sender + nth) % 2] ?? '') })
        expect(answer).toMatchObject({ status: 202 })
      }
    })
    await Promise.all(senders)
    const accepted = async (scope: string) => (await stateOf(relying.url, scope)).counters['accepted']
    for (const scope of scopes) await eventually(async () => (await accepted(scope)) === 300, 'the scope has all', SOON_MS)
  } finally {
    await relying.stop()
    await place.remove()
  }
})
