import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test } from 'vitest'
import type { SettingsPatch } from '../../../../src/contract/settings/settings.ts'
import { outside } from '../../../support/mock-fetch.ts'
import { rowsWritten } from '../../../support/rows.ts'
import { HOST, PRICED } from '../../../support/scope-with-remote-tools.ts'
import { crash, entriesOf, evict, freshScope, inObject, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { ask, behaviours, variables } from '../../../support/test-agents.ts'

let network: ReturnType<typeof outside> | undefined
afterEach(() => {
  network?.restore()
  network = undefined
})

const DAY = 86_400_000
const answered = (tokens: number) =>
  Response.json({
    id: 'answer',
    model: 'priced',
    choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens },
  })

/** A scope whose turns ask a model that answers with so many tokens, 100 dollars a million. */
async function scopeAt(tokens: number, patch: SettingsPatch = {}) {
  const scope = freshScope(PRICED)
  network ??= outside(HOST, () => answered(tokens))
  behaviours.set(scope, async (_context, deps) => ({ said: await ask(deps, 'hello') }))
  expect(await stubOf(scope).configure({ agent: 'test-agent', ...patch }, 'a test')).toMatchObject({ ok: true })
  return scope
}

const inBudget = <Result>(work: (state: DurableObjectState) => Result | Promise<Result>): Promise<Result> =>
  runInDurableObject(env.GLOBAL_KEYS.getByName('budget:scope:priced/*') as never, (_, state: DurableObjectState) => work(state))

const waitingOf = async (scope: string, id: string) => (await stubOf(scope).event(id))?.waiting

describe('a budget in money', () => {
  test('sets no alarm and writes no row in a day of silence', async () => {
    // This test is the first of the file: rows of other scopes would be counted, too.
    const scope = await scopeAt(10)
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    expect(await inBudget(({ storage }) => storage.getAlarm())).toBeNull()
    // Retention alone is due, and no sooner than in days.
    const isQuiet = async () => ((await stubOf(scope).poke()).wake_at ?? Number.POSITIVE_INFINITY) > Date.now() + DAY
    await until(isQuiet, 'D1 has what happened')
    expect(await rowsWritten(scope, async () => expect(await isQuiet()).toBe(true))).toEqual({ scope: 0, d1: 0 })
  })

  test('has the provider told the longest answer, and settles what the call has cost', async () => {
    const scope = await scopeAt(1000, { budget: { usd_per_day: 0.6 } })
    const [record] = await sendAndSettle(stubOf(scope), note(scope, 'a'))
    expect(record).toMatchObject({ status: 'completed', outcome: { by: 'turn' } })
    expect(JSON.parse(network!.requests[0]!.body)).toMatchObject({ max_tokens: 4096 })
    const kept = await inObject(
      stubOf(scope),
      ({ storage }) => storage.sql.exec<{ value: string }>("SELECT value FROM state WHERE key = 'money'").one().value,
    )
    expect(JSON.parse(kept)).toMatchObject({ own: { today: 100_010 }, open: {} })
  })

  test('has an event wait for what would pass the limit, or refuses it', async () => {
    const waits = await scopeAt(1000, { budget: { usd_per_day: 0.45 } })
    await sendAndSettle(stubOf(waits), note(waits, 'a'))
    const [id] = await send(stubOf(waits), note(waits, 'b'))
    const waiting = await until(async () => waitingOf(waits, id!), 'the event waits')
    expect(waiting).toMatchObject({ reason: 'budget', detail: expect.stringContaining('$0.4500 per day') })
    const refuses = await scopeAt(1000, { budget: { usd_per_event: 0.01, over: 'refuse' } })
    const [refused] = await sendAndSettle(stubOf(refuses), note(refuses, 'a'))
    expect(refused).toMatchObject({ status: 'dead_lettered', outcome: { reason: expect.stringContaining('per event is the limit') } })
  })

  test('that the deployment raises lets the events continue that wait, once the scope wakes', async () => {
    const scope = await scopeAt(1000)
    const limit = (usd_per_day: number) => {
      const budgets = { [`scope:${scope}`]: { usd_per_day } }
      variables.set(scope, { REFLEX_BUDGETS: JSON.stringify(budgets) })
      return evict(stubOf(scope))
    }
    await limit(0.45)
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    const [id] = await send(stubOf(scope), note(scope, 'b'))
    await until(async () => (await waitingOf(scope, id!))?.reason === 'budget', 'the event waits')
    // Waking alone changes nothing, and forgets nothing.
    await evict(stubOf(scope))
    expect((await waitingOf(scope, id!))?.detail).toMatch(/\$0\.4500 per day.*raise it in REFLEX_BUDGETS/)
    const { wake_at } = await stubOf(scope).poke()
    expect(wake_at).toBeLessThanOrEqual(Date.now() + 3_600_000)
    await limit(0.9)
    const { records } = await stubOf(scope).outcomes([id!], 10_000)
    expect(records).toMatchObject([{ status: 'completed' }])
  })

  test('that refuses a call does not end the wait for a provider that is not available', async () => {
    const scope = freshScope(PRICED)
    const stub = stubOf(scope)
    let failing = true
    network ??= outside(HOST, () => (failing ? new Response('busy', { status: 503 }) : answered(1000)))
    behaviours.set(scope, async (_context, deps) => ({ said: await ask(deps, 'hello') }))
    await stub.configure({ agent: 'test-agent', retry: { backoff_ms: 600_000, max_backoff_ms: 600_000 } }, 'a test')
    const [first] = await send(stub, note(scope, 'a'))
    const { tries } = await until(async () => (await stub.state()).waiting_for_model, 'the scope waits for its model')
    // A change of the settings has the next turn ask at once, which the budget refuses.
    await stub.configure({ budget: { usd_per_event: 0.01, over: 'refuse' } }, 'a test')
    const { records } = await stub.outcomes([first!], 10_000)
    expect(records).toMatchObject([{ status: 'dead_lettered', error: expect.stringContaining('per event is the limit') }])
    expect(tries).toBe(1)
    expect((await stub.state()).waiting_for_model).toMatchObject({ tries: 1, detail: expect.stringContaining('503') })
    expect(await entriesOf(stub, 'model-restored')).toEqual([])
    failing = false
    await stub.configure({ budget: null }, 'a test')
    const [next] = await sendAndSettle(stub, note(scope, 'b'))
    expect(next).toMatchObject({ status: 'completed' })
    expect((await stub.state()).waiting_for_model).toBeNull()
  })

  test('is shared by scopes, and a part that a crash loses sight of counts', async () => {
    const [one, two] = [await scopeAt(1000), await scopeAt(1000)]
    await sendAndSettle(stubOf(one), note(one, 'a'))
    await crash(one)
    await sendAndSettle(stubOf(two), note(two, 'a'))
    const book = await inBudget(({ storage }) => storage.kv.get<{ spent: { today: number }; outstanding: number }>('book'))
    expect(book!.spent.today + book!.outstanding).toBeGreaterThanOrEqual(300_000)
    expect(book!.spent.today + book!.outstanding).toBeLessThanOrEqual(1_000_000)
  })

  test('has a scope take no events once it has written its rows of the day', async () => {
    const scope = await scopeAt(10, { budget: { rows_per_day: 1 } })
    expect(await stubOf(scope).accept([note(scope, 'b')], 'http')).toMatchObject({ ok: false, reason: 'inbox_full', rows: { limit: 1 } })
    expect(await entriesOf(stubOf(scope), 'turn-started')).toEqual([])
  })

  test('has the scope wake each hour no longer than an event waits for it', async () => {
    const scope = await scopeAt(1000, { budget: { usd_per_day: 0.1 } })
    const stub = stubOf(scope)
    const [id] = await send(stub, note(scope, 'a'))
    await until(async () => (await waitingOf(scope, id!))?.reason === 'budget', 'the event waits')
    behaviours.set(scope, async () => null)
    await stub.configure({ budget: { usd_per_day: 50 } }, 'a test')
    expect((await stub.outcomes([id!], 10_000)).records).toMatchObject([{ status: 'completed' }])
    await stub.configure({ paused: true }, 'a test')
    await send(stub, note(scope, 'b'))
    const isQuiet = async () => ((await stub.poke()).wake_at ?? Number.POSITIVE_INFINITY) > Date.now() + DAY
    await until(isQuiet, 'the paused scope sleeps with its event')
  })
})

describe('a budget in money of a model without a price', () => {
  const model = 'openai-compatible/nobody-knows'
  const refused = {
    ok: false,
    reason: 'invalid',
    detail: expect.stringMatching(/^\w+: the model openai-compatible\/nobody-knows has no price, .*REFLEX_MODEL_PRICES/),
  }
  /** A scope whose model may have any price, and that shares no budget. */
  const alone = () => {
    const scope = freshScope(`${PRICED}-alone`)
    network ??= outside(HOST, () => answered(10))
    behaviours.set(scope, async (_context, deps) => ({ said: await ask(deps, 'hello') }))
    return stubOf(scope)
  }

  test.each([{ usd_per_day: 1 }, { usd_per_month: 1 }, { usd_per_event: 1, rows_per_day: 9000 }])('is refused: %j', async (budget) => {
    const stub = alone()
    expect(await stub.configure({ agent: 'test-agent', model, budget }, 'a test')).toMatchObject(refused)
    expect(await stub.configure({ agent: 'test-agent', model }, 'a test')).toMatchObject({ ok: true })
    expect(await stub.configure({ budget }, 'a test')).toMatchObject(refused)
    expect(await stub.configure({ model: 'openai-compatible/priced', budget }, 'a test')).toMatchObject({ ok: true })
    expect(await stub.configure({ model }, 'a test')).toMatchObject(refused)
    expect(await stub.configure({ model, budget: null }, 'a test')).toMatchObject({ ok: true })
  })

  test('is refused by the budget of the deployment, which the scope shares', async () => {
    const stub = stubOf(freshScope(PRICED))
    expect(await stub.configure({ model }, 'a test')).toMatchObject(refused)
    expect(await stub.configure({ model: 'offline' }, 'a test')).toMatchObject({ ok: true })
  })

  test('limits rows without a price, and the model is asked', async () => {
    const stub = alone()
    const { scope } = await stub.state()
    expect(await stub.configure({ agent: 'test-agent', model, budget: { rows_per_day: 9000 } }, 'a test')).toMatchObject({ ok: true })
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ status: 'completed', outcome: { by: 'turn' } }])
  })

  test('is named by the state of a scope that has it, where other settings can be changed', async () => {
    const stub = alone()
    expect(await stub.configure({ model: 'openai-compatible/priced', budget: { usd_per_day: 1 } }, 'a test')).toMatchObject({ ok: true })
    expect((await stub.state()).budget_problem).toBeNull()
    await inObject(stub, ({ storage }) => {
      storage.sql.exec("UPDATE state SET value = replace(value, 'openai-compatible/priced', ?) WHERE key = 'settings'", model)
    })
    await evict(stub)
    expect((await stub.state()).budget_problem).toContain(`the model ${model} has no price`)
    expect(await stub.configure({ max_attempts: 2 }, 'a test')).toMatchObject({ ok: true })
  })
})
