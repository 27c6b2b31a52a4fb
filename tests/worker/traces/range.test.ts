import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { ARCHIVED, hooks } from '../../support/archive-bucket.ts'
import { call, fetchRaw, scopePath } from '../../support/http.ts'
import { createVersion, replying } from '../../support/reflexes.ts'
import { age, freshScope, logOf, note, stubOf, until } from '../../support/scopes.ts'
import { ask, behaviours, effects } from '../../support/test-agents.ts'

const SINCE = '2020-01-01T00:00:00Z'
const asked = (scope: string, json: object = {}, headers: Record<string, string> = {}) =>
  call(scopePath(scope, '/replay'), { json: { since: SINCE, ...json }, headers })

/** The calls of a scope that D1 lists, once it has all that the scope reports. */
async function callsIn(scope: string) {
  await until(async () => (await stubOf(scope).state()).outbox.waiting === 0, 'D1 knows the scope')
  return env.DB.prepare('SELECT count(*) AS n FROM calls WHERE scope = ?').bind(scope).first('n')
}

async function ranged(...given: Parameters<typeof asked>) {
  const answer = await asked(...given)
  expect(answer).toMatchObject({ status: 200 })
  return answer
}

async function accept(scope: string, ...texts: string[]) {
  for (const text of texts) {
    const event = note(scope, text)
    await stubOf(scope).accept([event], 'http')
    await stubOf(scope).outcomes([event.id], 15_000)
  }
}
const answeringHellos = `function reflex(context) {
  const { event, recent_actions } = context
  return event.text === 'hello' ? { action_type: 'reply', content: 'hello ' + recent_actions.length } : null
}`

async function busyScope(kind?: string) {
  const scope = freshScope(kind)
  const { id } = await createVersion({ code: answeringHellos })
  await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
  behaviours.set(scope, async (_context, deps) => ({ said: await ask(deps, 'why'), did: await deps.call('act', { text: 'one' }) }))
  await accept(scope, 'hello', 'noise', 'question', 'hello', 'another question', 'hello')
  return { scope, id }
}

describe('a replay of a time range', () => {
  test('decides on everything again as it was recorded', async () => {
    const { scope } = await busyScope()
    const { status, body } = await ranged(scope)
    expect({ status, body }).toMatchObject({ status: 200, body: { equivalent: true, changed: 0, unknown: 0, events: 6, examples: [] } })
    expect(body.decisions).toMatchObject({ filter: { same: 6 }, reflex: { same: 5 }, turn: { same: 2 }, model: { same: 2 } })
    expect(body.recorded).toMatchObject({ usage: { model_calls: 2 }, effects: 2 })
    expect(body.replayed).toEqual(body.recorded)
    expect(body.next_cursor).toBeNull()
  })

  test('reports exactly the decisions that another reflex changes, and carries its actions from event to event', async () => {
    const { scope, id } = await busyScope()
    const code = answeringHellos.replace(`event.text === 'hello'`, `event.text.includes('question')`)
    const { body } = await ranged(scope, { mode: 'what_if', changes: { reflex_code: { [id]: code } } })
    // Three hellos are no longer answered, two questions are, and their turns do not start.
    expect(body.decisions).toMatchObject({
      filter: { same: 6, changed: 0 },
      reflex: { same: 0, changed: 5 },
      turn: { same: 0, changed: 2, unknown: 3 },
      effect: { changed: 2 },
    })
    expect(body.effects).toEqual({ appear: 2, vanish: 5 })
    expect(body.examples.map(({ why }: { why: string }) => why)).toEqual(
      expect.arrayContaining([
        'call_tool would not have been',
        'the turn would not start',
        'a reply would appear',
        'a reply would not have been',
      ]),
    )
    const replies = body.examples.filter(({ why }: { why: string }) => why === 'a reply would appear')
    expect(replies).toMatchObject([{ alike: 2 }])
    expect(body.recorded).toMatchObject({ usage: { model_calls: 2 }, effects: 2 })
    expect(body.replayed).toMatchObject({ usage: { model_calls: 0 }, effects: 0 })
    expect(body.reasons).toMatchObject([{ count: 3, reason: expect.stringContaining('a turn would consider this event') }])
    expect(effects.filter((effect) => effect.scope === scope)).toHaveLength(2)
  })

  test('takes the actions under one key as one, also those that were decided before the first had ended', async () => {
    const scope = freshScope()
    const action = `{ action_type: 'call_tool', tool: 'act', args: { text: 'one' }, idempotence_key: 'once' }`
    const acts = (when: string) => `function reflex(context) { const { event } = context; return ${when} ? ${action} : null }`
    const { id } = await createVersion({ code: acts('true') })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
    const events = ['a', 'b', 'c'].map((text) => note(scope, text))
    await stubOf(scope).accept(events, 'http')
    await stubOf(scope).outcomes(
      events.map((event) => event.id),
      15_000,
    )
    const what = async (when: string) => (await ranged(scope, { mode: 'what_if', changes: { reflex_code: { [id]: acts(when) } } })).body
    const alike = await what('event.text')
    expect(alike).toMatchObject({ changed: 0, effects: { appear: 0, vanish: 0 }, recorded: { effects: 1 }, replayed: { effects: 1 } })
    const later = await what(`event.text !== 'a'`)
    expect(later).toMatchObject({ changed: 1, effects: { appear: 1, vanish: 1 }, replayed: { effects: 1 } })
    const never = await what('false')
    expect(never).toMatchObject({ effects: { appear: 0, vanish: 1 }, recorded: { effects: 1 }, replayed: { effects: 0 } })
  })

  test('holds a reflex back by a cooldown that it did not have', async () => {
    const { scope, id } = await busyScope()
    const { body } = await ranged(scope, { mode: 'what_if', changes: { reflexes: [{ id, cooldown_s: 3600 }] } })
    expect(body.decisions.reflex).toEqual({ same: 1, changed: 4, unknown: 0 })
    expect(body.effects).toEqual({ appear: 0, vanish: 2 })
  })

  test('continues after a cursor within the range', async () => {
    const { scope } = await busyScope()
    const log = await logOf(stubOf(scope))
    const [, , , fourth] = log.filter(({ kind }) => kind === 'event-accepted')
    const { body } = await ranged(scope, { cursor: String(fourth!.seq - 1) })
    expect(body).toMatchObject({ equivalent: true, events: 3, entries: log.length - fourth!.seq + 1, next_cursor: null })
  })

  test('reads what retention has moved to the archive', async () => {
    const { scope } = await busyScope(ARCHIVED)
    const stub = stubOf(scope)
    const log = await logOf(stub)
    await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has everything')
    await age(stub, 20)
    await until(async () => (await stub.state()).archive!.files > 1, 'everything is archived')
    await accept(scope, 'hello')
    const { body } = await ranged(scope)
    expect(body).toMatchObject({ equivalent: true, unknown: 0, events: 7 })
    expect(body.entries).toBeGreaterThan(log.length)
    const fourth = log.filter(({ kind }) => kind === 'event-accepted')[3]!
    expect((await ranged(scope, { cursor: String(fourth.seq - 1) })).body).toMatchObject({ equivalent: true, events: 4 })
  })

  test('continues after a file of the archive that cannot be read, and names it', async () => {
    const { scope } = await busyScope(ARCHIVED)
    const stub = stubOf(scope)
    await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has everything')
    await age(stub, 20)
    await until(async () => (await stub.state()).archive!.files > 1, 'everything is archived')
    await accept(scope, 'hello')
    hooks.set(scope, {
      before(call, path) {
        if (call === 'get' && path.startsWith('log/')) throw new Error('the bucket is away')
      },
    })
    const { body } = await ranged(scope)
    hooks.delete(scope)
    const reason = expect.stringContaining('the bucket is away')
    expect(body).toMatchObject({ equivalent: null, unknown: 1, events: 1, reasons: [{ reason, count: 1 }], next_cursor: null })
  })

  test('asks the model no more often than its budget allows', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ agent: 'prompted', instructions: 'Answer in one line.' }, 'a test')
    await accept(scope, 'one')
    await accept(scope, 'two')
    const changes = { instructions: 'Answer in two lines.' }
    const { body } = await ranged(scope, { mode: 'what_if', changes, budget: { calls: 1 } })
    expect(body).toMatchObject({ spent: { calls: 1 }, replayed: { unanswered: 1 } })
    expect(body.reasons).toContainEqual({ count: 1, reason: expect.stringContaining('the budget of 1 model call is spent') })
  })

  test('shows its progress as lines, and the report at last', async () => {
    const { scope } = await busyScope()
    const { text, type } = await ranged(scope, {}, { Accept: 'application/x-ndjson' })
    expect(type).toBe('application/x-ndjson')
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(lines.slice(0, -1)).toEqual(lines.slice(0, -1).map(() => ({ progress: expect.objectContaining({ changed: 0 }) })))
    expect(lines.at(-1)).toMatchObject({ report: { events: 6, equivalent: true } })
  })

  test('stops when the stream of its progress is left', async () => {
    const { scope } = await busyScope()
    const before = await logOf(stubOf(scope))
    const left = await fetchRaw(scopePath(scope, '/replay'), { json: { since: SINCE }, headers: { Accept: 'application/x-ndjson' } })
    await left.body?.cancel()
    // A replay that is read to its end is the only one that the log has.
    await ranged(scope)
    expect((await logOf(stubOf(scope))).slice(before.length).map(({ kind }) => kind)).toEqual(['replay-done'])
  })

  test('is one entry of the log, with a trace of its own, and touches nothing else', async () => {
    const { scope, id } = await busyScope()
    const calls = await callsIn(scope)
    const before = await stubOf(scope).state()
    const log = await logOf(stubOf(scope))
    const changes = { reflex_code: { [id]: replying('x') } }
    const { body } = await ranged(scope, { mode: 'what_if', changes })
    const after = await logOf(stubOf(scope))
    expect(after.slice(0, -1)).toEqual(log)
    expect(after.at(-1)).toMatchObject({
      kind: 'replay-done',
      mode: 'what_if',
      changes_hash: body.changes_hash,
      changed: body.changed,
      event_ids: [],
    })
    expect(log.map(({ trace_id }) => trace_id)).not.toContain(after.at(-1)?.trace_id)
    expect(await stubOf(scope).state()).toEqual({
      ...before,
      last_seq: expect.anything(),
      outbox: { last_error: null, waiting: expect.anything() },
    })
    // Nor is it a call, which lists of traces would show.
    expect(await callsIn(scope)).toBe(calls)
  })

  test('finds the entries of a unit of work at one time, so that no part of the log ends within it', async () => {
    const scope = freshScope()
    const { id } = await createVersion({ code: replying('hello') })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
    const events = Array.from({ length: 100 }, (_, index) => note(scope, `n${index}`))
    await stubOf(scope).accept(events, 'http')
    const times = (await logOf(stubOf(scope))).filter(({ event_ids }) => event_ids.length === 1).map(({ at }) => at)
    expect(times).toHaveLength(400)
    expect(new Set(times).size).toBe(1)
  })

  test('is limited to its times', async () => {
    const { scope } = await busyScope()
    const until = new Date(Date.now() + 60_000).toISOString()
    expect(await asked(scope, { since: until, until: SINCE })).toMatchObject({ status: 400 })
    const future = await ranged(scope, { since: new Date(Date.now() + 1000).toISOString(), until })
    expect(future.body).toMatchObject({ events: 0, entries: 0, next_cursor: null })
    const past = await ranged(scope, { until: '2020-01-02T00:00:00Z' })
    expect(past.body).toMatchObject({ events: 0, entries: 0, next_cursor: null })
    expect((await ranged(freshScope())).body).toMatchObject({ events: 0, equivalent: true })
  })
})
