import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { LEDGER } from '../../../src/features/market/contract/ledger-api.ts'
import type { ListingTerms } from '../../../src/features/market/contract/listing.ts'
import type { ReflexVersion } from '../../../src/contract/reflex.ts'
import { agreementsNeeded } from '../../../src/reflexes/promotion.ts'
import { HIDDEN_ERROR } from '../../../src/reflexes/run-reflex.ts'
import { certify } from '../../support/certificates.ts'
import { call, keyFor } from '../../support/http.ts'
import { notes, write } from '../../support/reflex-chain.ts'
import { crash, entriesOf, evict, freshScope, hurry, inObject, note, runAlarm, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'

const ledger = env.LEDGER.getByName(LEDGER)
const DAY_MS = 86_400_000

/** A scope that D1 knows, whose agent answers each note. */
async function agentIn(): Promise<string> {
  const scope = freshScope()
  await env.DB.prepare('INSERT INTO scopes (scope, agent, open, updated_at) VALUES (?, ?, 0, 0)').bind(scope, 'test-agent').run()
  behaviours.set(scope, async ({ events }, deps) => {
    for (const _ of events) deps.reply('hi')
    return { done: true }
  })
  return scope
}

async function posted(path: string, json: unknown, status = 200) {
  const answer = await call(path, { method: 'POST', ...(json !== null && { json }) })
  expect(answer).toMatchObject({ status })
  return answer.body
}

type Sale = { artifact: string; seller: string; buyer: string; price: number; terms: ListingTerms; kind?: 'licence' | 'copy' }

/** Lists, offers and accepts over HTTP. Returns the deal once its delivery has been sent. */
async function sell({ artifact, seller, buyer, price, terms, kind = 'licence' }: Sale) {
  const deal_id = crypto.randomUUID()
  await posted('/v1/ledger/mint', { id: `mint-${deal_id}`, to: `scope:${buyer}`, amount: price })
  const account = seller.startsWith('key:') ? seller : `scope:${seller}`
  const listing = await posted('/v1/market/listings', { artifact, kind, price, seller: account, terms }, 201)
  await posted(`/v1/market/listings/${listing.listing_id}/offers`, { id: deal_id, buyer: `scope:${buyer}` }, 201)
  const deal = await posted(`/v1/market/deals/${deal_id}/accept`, null)
  await delivered()
  return deal as { deal_id: string; delivery: { artifact: string } }
}

/** Waits until the Ledger has sent the consequences of its deals. */
async function delivered(): Promise<void> {
  const waiting = () =>
    runInDurableObject(ledger as never, (_, { storage }: DurableObjectState) =>
      Number(storage.sql.exec("SELECT count(*) AS n FROM outbox WHERE topic = 'deals'").one()['n']),
    )
  await runAlarm(ledger)
  await until(async () => (await waiting()) === 0, 'the deals are delivered')
}
const setState = (artifact: string, state: string) =>
  posted(`/v1/reflexes/${artifact.replace('reflex:', '')}/state`, { state, force: true, reason: 'a test' })

const on_sale = new Set<string>()
/** A version that answers notes, of the agent of a scope. */
async function versionOf(
  scope: string,
  body = `return { action_type: 'reply', content: 'hi' }`,
): Promise<ReflexVersion & { artifact: string }> {
  const version = await write(`'${scope}'; ${body}`, { scope })
  const artifact = `reflex:${version.id}@${version.version}`
  on_sale.add(artifact)
  return { ...version, artifact }
}

/** A licence that was sold to a scope, in whose chain the version is. */
async function licensed(terms: ListingTerms, price = 100, body?: string) {
  const [seller, buyer] = [await agentIn(), await agentIn()]
  const version = await versionOf(seller, body)
  const { artifact } = version
  const { deal_id } = await sell({ artifact, seller, buyer, price, terms })
  await stubOf(buyer).configure({ reflexes: [{ id: version.id }] }, 'ops')
  return { seller, buyer, version, artifact, deal_id }
}

/** As `licensed`; the version is proven in the scope, so that it acts. */
async function acting(terms: ListingTerms, price = 100) {
  const made = await licensed(terms, price)
  await certify(made.buyer, made.version)
  return made
}

const decidedBy = async (scope: string, ...texts: string[]) => {
  const records = await sendAndSettle(stubOf(scope), ...texts.map((text) => note(scope, text)))
  return records.map(({ outcome }) => outcome?.by)
}
const dealOf = async (deal_id: string) => {
  const deal = await ledger.deal(deal_id)
  if (!deal) throw new Error(`there is no deal ${deal_id}`)
  return deal
}
const balanceOf = async (scope: string) => (await ledger.account(`scope:${scope}`))?.balance ?? 0
/** Once the scope has reported as many actions. */
async function reported(scope: string, deal_id: string, fires: number) {
  await hurry(stubOf(scope))
  return until(async () => {
    const deal = await dealOf(deal_id)
    return deal.delivery?.used[scope] === fires && deal
  }, `${fires} actions are reported`)
}
const passesIn = async (scope: string) =>
  (await entriesOf(stubOf(scope), 'reflex-passed')).map(({ reason, error }) => `${reason}: ${error}`)

/** No money is held once no version is on sale, and the sums agree. */
async function expectSettled(): Promise<void> {
  expect(await ledger.account('escrow')).toMatchObject({ balance: 0, credits_pending: 0 })
  expect(await call('/v1/ledger/audit')).toMatchObject({ status: 200, body: { ok: true, open_pendings: 0, problems: [] } })
}

afterEach(async () => {
  vi.useRealTimers()
  for (const artifact of on_sale) await setState(artifact, 'retired')
  on_sale.clear()
  await expectSettled()
})

describe('a version under licence', () => {
  test('is compared first, and acts once it is proven in the scope of its buyer', async () => {
    const { buyer, deal_id } = await licensed({ fires: 5 })
    const needed = agreementsNeeded(0.95)
    const records = await sendAndSettle(stubOf(buyer), ...notes(buyer, needed))
    expect(new Set(records.map(({ outcome }) => outcome?.by))).toEqual(new Set(['turn']))
    expect(await entriesOf(stubOf(buyer), 'reflex-fired')).toMatchObject(Array.from({ length: needed }, () => ({ state: 'shadow' })))
    expect(await decidedBy(buyer, 'proven')).toEqual(['reflex'])
    expect(await reported(buyer, deal_id, 1)).toMatchObject({ status: 'accepted', paid: 20, held: 80 })
  })

  test('acts as often as the licence allows, and each action names the turn that it saves', async () => {
    const { buyer, seller, deal_id } = await acting({ fires: 3 })
    expect(await decidedBy(buyer, 'a')).toEqual(['reflex'])
    expect(await decidedBy(buyer, 'b', 'c', 'd', 'e')).toEqual(['reflex', 'reflex', 'turn', 'turn'])
    const [first, ...later] = await entriesOf(stubOf(buyer), 'reflex-fired')
    expect(first).toMatchObject({ state: 'active', licence: { deal_id, saves: { model_calls: 1, tokens: 0, cost_usd: 0 } } })
    const { body: trace } = await call(`/v1/traces/${first?.trace_id ?? ''}?scope=${encodeURIComponent(buyer)}`)
    expect(JSON.stringify(trace)).toContain('"reflex.licence.saved_model_calls":1')
    expect(later.filter((one) => one.licence)).toHaveLength(2)
    expect((await passesIn(buyer)).at(-1)).toContain(`the licence of the deal ${deal_id} is used up: it was for 3 actions`)
    expect(await reported(buyer, deal_id, 3)).toMatchObject({ status: 'settled', paid: 100, held: 0, delivery: { in_use: false } })
    expect(await balanceOf(seller)).toBe(100)
    expect(await decidedBy(buyer, 'f')).toEqual(['turn'])
  })

  test.each([
    ['evicted', (scope: string) => evict(stubOf(scope))],
    ['killed', crash],
  ])('acts no more often although its scope is %s', async (_, stop) => {
    const { buyer, deal_id } = await acting({ fires: 2 })
    const found: unknown[] = []
    for (const text of ['a', 'b', 'c']) {
      found.push(...(await decidedBy(buyer, text)))
      await stop(buyer)
    }
    expect(found).toEqual(['reflex', 'reflex', 'turn'])
    expect(await reported(buyer, deal_id, 2)).toMatchObject({ status: 'settled', paid: 100 })
  })

  test('does not run in a scope that the licence does not name', async () => {
    const { version } = await acting({ days: 30 })
    const other = await agentIn()
    await stubOf(other).configure({ reflexes: [{ id: version.id, version: version.version }] }, 'ops')
    await certify(other, version)
    expect(await decidedBy(other, 'a')).toEqual(['turn'])
    expect(await entriesOf(stubOf(other), 'reflex-fired')).toEqual([])
    expect(await passesIn(other)).toEqual([expect.stringMatching(/^missing/)])
  })

  test('does not answer the calls of other scopes', async () => {
    const { buyer, version } = await acting({ fires: 3 })
    expect(await decidedBy(buyer, 'a')).toEqual(['reflex'])
    const asked = { contract_id: 'c', invocation_id: crypto.randomUUID(), caller: 'scope:shop', service: `reflex:${version.id}`, input: {} }
    const served = JSON.parse(await stubOf(buyer).serve(asked)) as unknown
    expect(served).toMatchObject({ ok: false, detail: expect.stringContaining('is not of scope') })
  })

  test('acts until the licence ends, to the millisecond, before the scope hears from the Ledger', async () => {
    const { buyer, seller, deal_id } = await acting({ days: 1 })
    const end = Date.parse((await dealOf(deal_id)).delivery?.expires_at ?? '')
    vi.useFakeTimers({ toFake: ['Date'], now: end - DAY_MS / 2 })
    expect(await decidedBy(buyer, 'a')).toEqual(['reflex'])
    vi.setSystemTime(end)
    expect(await decidedBy(buyer, 'b')).toEqual(['turn'])
    expect((await passesIn(buyer)).at(-1)).toContain(`the licence of the deal ${deal_id} expired at ${new Date(end).toISOString()}`)
    expect(await dealOf(deal_id)).toMatchObject({ status: 'settled', paid: 100, held: 0, delivery: { in_use: false } })
    expect(await balanceOf(seller)).toBe(100)
  })

  test('that is retired stops, and its buyer has the rest of the price back', async () => {
    const { buyer, seller, artifact, deal_id } = await acting({ fires: 4 })
    expect(await decidedBy(buyer, 'a')).toEqual(['reflex'])
    await reported(buyer, deal_id, 1)
    await setState(artifact, 'retired')
    expect(await dealOf(deal_id)).toMatchObject({ status: 'refunded', paid: 25, held: 0, delivery: { in_use: false } })
    expect([await balanceOf(seller), await balanceOf(buyer)]).toEqual([25, 75])
    await delivered()
    expect(await decidedBy(buyer, 'b')).toEqual(['turn'])
    expect((await passesIn(buyer)).at(-1)).toMatch(/^missing/)
  })
})

test('a licence whose certificate lapses in the scope of its buyer may be ended by the buyer', async () => {
  const { buyer, version, deal_id } = await licensed({ days: 3650 })
  const path = `/v1/market/deals/${deal_id}/refund`
  const key = await keyFor(['operator'], [buyer])
  expect(await call(path, { key, method: 'POST' })).toMatchObject({ status: 403 })
  await certify(buyer, version, { agent_version: 'an earlier one' })
  expect(await decidedBy(buyer, 'a')).toEqual(['turn'])
  await hurry(stubOf(buyer))
  await until(async () => (await dealOf(deal_id)).delivery?.lapsed.includes(buyer), 'the lapse is reported')
  expect(await call(path, { key, method: 'POST' })).toMatchObject({ status: 200, body: { status: 'refunded', paid: 0, held: 0 } })
  expect(await balanceOf(buyer)).toBe(100)
})

test('a licence of a version that fails in the scope of its buyer, and is suspended there, may be ended by the buyer', async () => {
  const body = `if (context.event.text === 'odd') throw new Error('it broke'); return { action_type: 'reply', content: 'hi' }`
  const { buyer, version, deal_id } = await licensed({ days: 3650 }, 100, body)
  await certify(buyer, version)
  expect(await decidedBy(buyer, 'a')).toEqual(['reflex'])
  for (let count = 0; count < 5; count += 1) expect(await decidedBy(buyer, 'odd')).toEqual(['turn'])
  expect(await entriesOf(stubOf(buyer), 'reflex-moved')).toMatchObject([{ reflex_id: version.id, to: 'suspended' }])
  await hurry(stubOf(buyer))
  await until(async () => (await dealOf(deal_id)).delivery?.lapsed.includes(buyer), 'the lapse is reported')
  const key = await keyFor(['operator'], [buyer])
  expect(await call(`/v1/market/deals/${deal_id}/refund`, { key, method: 'POST' })).toMatchObject({ status: 200 })
})

test('a version that the scope of its owner demotes is refunded', async () => {
  const { buyer, seller, version, deal_id } = await licensed({ days: 3650 })
  await stubOf(seller).configure({ reflexes: [{ id: version.id }] }, 'ops')
  await decidedBy(seller, 'a')
  const move = {
    id: version.id,
    version: version.version,
    from: 'active',
    state: 'shadow',
    reason: 'it fails',
    by_proof: false,
    since: null,
  }
  await inObject(stubOf(seller), ({ storage: { sql } }) => {
    sql.exec(`INSERT INTO outbox (topic, "key", value) VALUES ('reflex-moves', 'x', ?)`, JSON.stringify(move))
  })
  await evict(stubOf(seller))
  await hurry(stubOf(seller))
  await until(async () => (await dealOf(deal_id)).status === 'refunded', 'the licence has ended')
  expect(await balanceOf(buyer)).toBe(100)
})

describe('a hostile reflex that was bought', () => {
  test.each([
    ['calls a tool that the agent of the buyer has not', `return { action_type: 'call_tool', tool: 'wipe', args: {} }`, /^refused: .*wipe/],
    ['computes for ever', 'for (;;) {}', /^limit/],
    ['returns what is no action', `return { action_type: 'own_everything' }`, /^invalid_action/],
  ])('and that %s does nothing, and the turn decides', async (_, body, passed) => {
    const { buyer, version } = await licensed({ days: 30 }, 100, body)
    await certify(buyer, version)
    expect(await decidedBy(buyer, 'a')).toEqual(['turn'])
    expect(await entriesOf(stubOf(buyer), 'effect-started')).toEqual([])
    expect((await passesIn(buyer)).some((reason) => passed.test(reason))).toBe(true)
  })
})

/** Fails in ways that quote its code: by a field, an invalid action and an error of its own. */
const QUOTES_ITSELF = `
  const { text } = context.event
  if (text === 'field') return null.HIDDEN_FIELD
  if (text === 'action') return { action_type: 'HIDDEN_ACT' }
  if (text === 'throw') throw new Error('HIDDEN_RULE')
  for (let n = 0; n < text.length; n += 1) Math.sqrt(n)
  return null`

test('the log and its views hide the errors and the exact fuel of hidden code, and a replay finds them equal', async () => {
  const { buyer, version, artifact } = await licensed({ days: 30 }, 100, QUOTES_ITSELF)
  const key = await keyFor(['operator'], [buyer])
  const scope = encodeURIComponent(buyer)
  await certify(buyer, version, { act: 'reply' })
  await decidedBy(buyer, 'field', 'action', 'throw', 'a', 'a longer text, which costs more')
  const passed = await entriesOf(stubOf(buyer), 'reflex-passed')
  expect(passed.map(({ reason, error }) => [reason, error])).toEqual([
    ['error', HIDDEN_ERROR],
    ['invalid_action', HIDDEN_ERROR],
    ['error', HIDDEN_ERROR],
    ['null', null],
    ['null', null],
  ])
  expect(new Set(passed.map(({ fuel }) => fuel))).toEqual(new Set([25_000]))
  const of = artifact.replace('reflex:', '')
  const answers = [await call(`/v1/scopes/${scope}/log?limit=1000`, { key }), await call(`/v1/reflexes/${of}`, { key })]
  for (const { trace_id } of passed) {
    const path = `/v1/traces/${trace_id}`
    const replay = (json: unknown) => call(`${path}/replay?scope=${scope}`, { method: 'POST', json, key })
    const pinned = await replay({ mode: 'pinned' })
    expect(pinned).toMatchObject({ status: 200, body: { equivalent: true, divergences: [], unknown: [] } })
    const changes = { reflexes: [{ id: version.id, version: version.version }] }
    answers.push(pinned, await replay({ mode: 'what_if', changes }))
    for (const view of ['', '/export']) answers.push(await call(`${path}${view}?scope=${scope}`, { key }))
  }
  for (const { status, text } of answers) {
    expect(status).toBe(200)
    expect(text).not.toContain('HIDDEN_')
  }
})

test('a what-if hides the errors of hidden code that did not run when the trace was recorded', async () => {
  const { buyer, version } = await licensed({ days: 30 }, 100, QUOTES_ITSELF)
  const key = await keyFor(['operator'], [buyer])
  await stubOf(buyer).configure({ reflexes: [] }, 'ops')
  const [record] = await sendAndSettle(stubOf(buyer), note(buyer, 'field'))
  const json = { mode: 'what_if', changes: { reflexes: [{ id: version.id }] } }
  const path = `/v1/traces/${record?.event.meta.trace_id ?? ''}/replay?scope=${encodeURIComponent(buyer)}`
  const { status, text } = await call(path, { method: 'POST', json, key })
  expect(status).toBe(200)
  expect(text).toContain(HIDDEN_ERROR)
  expect(text).not.toContain('HIDDEN_')
})

describe('the use of a licence', () => {
  test('is paid once, although its report is repeated or arrives late', async () => {
    const { buyer, seller, deal_id } = await acting({ fires: 4 })
    expect(await decidedBy(buyer, 'a', 'b')).toEqual(['reflex', 'reflex'])
    await reported(buyer, deal_id, 2)
    const use = { deal_id, scope: buyer, certified: 2, lapses: 0 }
    for (const fires of [2, 1, 2]) await ledger.reportUse([{ ...use, fires }])
    expect(await balanceOf(seller)).toBe(50)
    await ledger.reportUse([{ ...use, scope: freshScope(), fires: 4 }])
    expect(await dealOf(deal_id)).toMatchObject({ paid: 50, held: 50, delivery: { used: { [buyer]: 2 } } })
  })

  test('is paid by certified decision, out of a budget that ends the licence', async () => {
    const { buyer, seller, deal_id } = await acting({ per_decision: 4 }, 10)
    expect(await decidedBy(buyer, 'a', 'b')).toEqual(['reflex', 'reflex'])
    expect(await reported(buyer, deal_id, 2)).toMatchObject({ status: 'accepted', paid: 8, held: 2 })
    expect(await decidedBy(buyer, 'c')).toEqual(['reflex'])
    expect(await reported(buyer, deal_id, 3)).toMatchObject({ status: 'settled', paid: 10, held: 0 })
    expect(await balanceOf(seller)).toBe(10)
    await delivered()
    expect(await decidedBy(buyer, 'd')).toEqual(['turn'])
  })

  test('of a copy pays a royalty to the author of the original', async () => {
    const [author, dealer, user] = [await agentIn(), await agentIn(), await agentIn()]
    const { artifact } = await versionOf(author)
    const resale = { resale: true, royalty_percent: 20 }
    const bought = await sell({ artifact, seller: author, buyer: dealer, price: 10, terms: resale, kind: 'copy' })
    const copy = bought.delivery.artifact
    on_sale.add(copy)
    await setState(copy, 'active')
    const { deal_id } = await sell({ artifact: copy, seller: dealer, buyer: user, price: 100, terms: { fires: 2 } })
    const { id, version, hash } = (await call(`/v1/reflexes/${copy.replace('reflex:', '')}`)).body
    await stubOf(user).configure({ reflexes: [{ id }] }, 'ops')
    await certify(user, { id, version, hash } as ReflexVersion)
    expect(await decidedBy(user, 'a')).toEqual(['reflex'])
    await reported(user, deal_id, 1)
    expect([await balanceOf(dealer), await balanceOf(author)]).toEqual([40, 10 + 10])

    const free = `free-${crypto.randomUUID()}`
    await posted(`/v1/reflexes/${copy.replace('reflex:', '')}/copy`, { id: free }, 201)
    on_sale.add(`reflex:${free}@1`)
    const seller = (await call(`/v1/reflexes/${free}@1`)).body.owner as string
    await sell({ artifact: `reflex:${free}@1`, seller: `key:${seller}`, buyer: user, price: 100, terms: {}, kind: 'copy' })
    expect(await balanceOf(author)).toBe(20 + 20)
  })
})
