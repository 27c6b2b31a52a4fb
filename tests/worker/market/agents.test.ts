import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { LEDGER } from '../../../src/features/market/contract/ledger-api.ts'
import { defaultMarket } from '../../../src/features/market/contract/setting.ts'
import { defaultSettings } from '../../../src/contract/settings/settings.ts'
import type { SettingsPatch } from '../../../src/contract/settings/settings.ts'
import type { MarketView } from '../../../src/features/market/contract/view.ts'
import { reflexes } from '../../../src/artifacts/kinds.ts'
import { marketTools } from '../../../src/features/market/tools/tools.ts'
import { instantiateTemplate } from '../../../src/reflexes/templates/define-template.ts'
import { genesisTradingReflex } from '../../../src/reflexes/templates/genesis-trading-reflex.ts'
import { call } from '../../support/http.ts'
import { listed } from '../../support/market.ts'
import { acting, write } from '../../support/reflex-chain.ts'
import { entriesOf, evict, freshScope, note, runAlarm, sendAndSettle, stubOf, until } from '../../support/scopes.ts'

const ledger = env.LEDGER.getByName(LEDGER)
const pushed = () => runAlarm(ledger)

/** As in the second document: accepts what costs at most 10. */
const TRADING = `
  for (const deal of context.pending_purchases) {
    if (deal.price <= 10)
      return { action_type: 'invoke_artifact', artifact_id: 'genesis_escrow', method: 'accept', args: [deal.deal_id] }
  }
  return null`

async function buyer(balance: number) {
  const scope = freshScope()
  const account = `scope:${scope}`
  const by = { name: 'test', opens: [account] }
  await ledger.mint({ id: `mint:${account}`, to: account, amount: balance }, by)
  return { scope, account, by }
}

/** A scope whose reflex trades, and a listing of what it sells. */
async function seller(price: number, trading = TRADING, settings: SettingsPatch = { market: { least_price: 1, services: ['reflex:*'] } }) {
  const { id, scope, stub } = await acting(trading)
  await stub.configure(settings, 'test')
  const account = `scope:${scope}`
  const version = await reflexes.find(env.DB, id)
  if (!version) throw new Error('the reflex is missing')
  const by = { name: 'test', opens: [account] }
  const asked = { artifact: `reflex:${id}@${version.version}`, kind: 'licence' as const, price, seller: account, terms: { days: 30 } }
  const { hash, state } = version
  const goods = { hash, state, original: null, description: '', event_types: [], tools: [], owner_scopes: [], origins: [] }
  const made = await ledger.list({ ...asked, listing_id: `listing:${scope}` }, goods, by)
  if (!made.ok) throw new Error(made.detail)
  return { scope, stub, account, listing_id: made.listing.listing_id }
}

test('a reflex accepts a cheap offer on its own, without a model', async () => {
  const [sells, buys] = [await seller(10), await buyer(50)]
  const deal_id = crypto.randomUUID()
  expect(await ledger.offer(sells.listing_id, { id: deal_id, buyer: buys.account }, buys.by)).toMatchObject({ ok: true })
  await pushed()
  await until(async () => (await ledger.deal(deal_id))?.status === 'accepted', 'the deal is accepted')
  await until(async () => (await entriesOf(sells.stub, 'action-ended')).length > 0, 'the action has ended')
  const [fired] = await entriesOf(sells.stub, 'reflex-fired')
  expect(fired?.context).toMatchObject({
    pending_purchases: [{ deal_id, price: 10, buyer: buys.account }],
    event: { type: 'offer', deal_id },
  })
  expect(await entriesOf(sells.stub, 'effect-ended')).toMatchObject([
    { tool: 'genesis_escrow.accept', idempotence_key: `accept:${deal_id}` },
  ])
  expect((await sells.stub.state()).counters).toMatchObject({ turns: 0 })
  await pushed()
  expect(await ledger.view(sells.scope)).toMatchObject({ pending_purchases: [] })
  expect(await ledger.view(buys.scope)).toMatchObject({ account: { balance: 40 }, licences: [{ deal_id }] })
})

const dealt = (id: string, status: string) => until(async () => (await ledger.deal(id))?.status === status, `the deal is ${status}`)

test.each([
  ['without a rule for sales', {}, 'may not give'],
  ['below the least price', { least_price: 11, services: ['*'] }, '10 is less than 11'],
  ['of what the rule does not name', { least_price: 1, services: ['skill:*', 'reflex:other'] }, 'may not give'],
])('a sale %s waits for a person, and is made once it is approved', async (_what, market, why) => {
  const [sells, buys] = [await seller(10, TRADING, { market: { without_approval: 1000, ...market } }), await buyer(50)]
  const deal_id = crypto.randomUUID()
  expect(await ledger.offer(sells.listing_id, { id: deal_id, buyer: buys.account }, buys.by)).toMatchObject({ ok: true })
  await pushed()
  const [asked] = await until(async () => {
    const entries = await entriesOf(sells.stub, 'approval-requested')
    return entries.length > 0 ? entries : null
  }, 'a person is asked')
  expect(asked).toMatchObject({
    skill_id: 'genesis_escrow.accept',
    payment: { to: buys.account, amount: 10 },
    reason: expect.stringContaining(why),
  })
  expect((await ledger.deal(deal_id))?.status).toBe('offered')
  const { body } = await call(`/v1/approvals?scope=${encodeURIComponent(sells.scope)}`)
  expect(body.items).toMatchObject([{ inputs: { deal_id, gives: expect.stringMatching(/^licence of reflex:/) } }])
  expect(await call(`/v1/approvals/${body.items[0].id}/approve`, { json: {} })).toMatchObject({ status: 200 })
  await dealt(deal_id, 'accepted')
})

test('a contract to serve others waits for a person, unless the settings name the service and a price that it reaches', async () => {
  const accepting = `
    const [one] = context.pending_contracts
    return one ? { action_type: 'invoke_artifact', artifact_id: 'genesis_contracts', method: 'accept', args: [one.contract_id] } : null`
  const propose = async (market: object) => {
    const [serves, pays] = [await seller(10, accepting, { market }), await buyer(50)]
    const terms = { id: crypto.randomUUID(), proposer: pays.account, counterparty: serves.account, price_per_invocation: 5, limit: 9 }
    const proposed = await ledger.propose({ ...terms, service: 'reflex:greet' }, { ...pays.by, opens: [pays.account, serves.account] })
    expect(proposed).toMatchObject({ ok: true })
    await pushed()
    return { id: terms.id, stub: serves.stub }
  }
  const allowed = await propose({ least_price: 5, services: ['reflex:greet'] })
  await until(async () => (await ledger.contract(allowed.id))?.status === 'accepted', 'it is accepted')
  const held = await propose({ least_price: 6, services: ['reflex:greet'] })
  await until(async () => (await entriesOf(held.stub, 'approval-requested')).length > 0, 'a person is asked')
  expect(await ledger.contract(held.id)).toMatchObject({ status: 'proposed' })
})

test('a listing by an agent waits for a person: nothing is listed or sealed before', async () => {
  const scope = freshScope()
  const asked: unknown[] = []
  const { 'genesis_escrow.list': list } = marketTools({
    scope,
    env,
    settings: () => ({ ...defaultSettings, market: defaultMarket }),
    view: () => view(1, 0),
    ask: (payment) => Promise.resolve(String(asked.push(payment))),
  })
  const version = await write(`return '${scope}' && 1`, { scope })
  const input = { artifact: `reflex:${version.id}@1`, kind: 'ownership', price: 1 }
  const calling = { env, fetch, scope, parameters: {}, signal: AbortSignal.timeout(10_000), now: () => Date.now() }
  await expect(list?.execute(input, { ...calling, idempotence_key: scope })).rejects.toThrow('it waits for the approval 1')
  expect(asked).toMatchObject([{ tool: 'genesis_escrow.list', input, amount: 1, gives: `ownership of reflex:${version.id}@1` }])
  expect((await reflexes.find(env.DB, version.id))?.sealed).toBe(false)
})

test('market events reach the reflexes of an agent whose filters drop them, and start no turn of it', async () => {
  const market = { least_price: 1, services: ['*'] }
  const [sells, buys] = [await seller(10, TRADING, { agent: 'greeter', market }), await buyer(50)]
  const deal_id = crypto.randomUUID()
  expect(await ledger.offer(sells.listing_id, { id: deal_id, buyer: buys.account }, buys.by)).toMatchObject({ ok: true })
  await pushed()
  await dealt(deal_id, 'accepted')
  const dear = crypto.randomUUID()
  expect(await ledger.offer(sells.listing_id, { id: dear, buyer: buys.account, price: 11 }, buys.by)).toMatchObject({ ok: true })
  await pushed()
  const offers = async () => (await entriesOf(sells.stub, 'event-ended')).map(({ status, outcome }) => [status, outcome?.by])
  await until(async () => (await offers()).length === 2, 'both offers have ended')
  expect(await offers()).toEqual([
    ['completed', 'reflex'],
    ['ignored', 'filter'],
  ])
  await sendAndSettle(sells.stub, note(sells.scope, 'no market event'))
  expect((await entriesOf(sells.stub, 'reflex-passed')).at(-1)?.event_ids[0]).toContain(dear)
  expect((await sells.stub.state()).counters).toMatchObject({ turns: 0 })
  expect((await sells.stub.context(10)).events).toEqual([])
})

test('the template trades: it accepts up to a price, rejects below a floor and by buyer, and leaves the rest', async () => {
  const [shop, refused] = [await buyer(100), await buyer(100)]
  const instance = instantiateTemplate(genesisTradingReflex, { max_price: 10, min_price: 3, refused_buyers: [refused.account] })
  if (!instance.ok) throw new Error(JSON.stringify(instance.errors))
  const sells = await seller(20, `${instance.code}\nreturn reflex(context)`)
  const offers = async (by: typeof shop, price: number) => {
    const id = crypto.randomUUID()
    expect(await ledger.offer(sells.listing_id, { id, buyer: by.account, price }, by.by)).toMatchObject({ ok: true })
    return id
  }
  const deals = [await offers(shop, 20), await offers(shop, 2), await offers(refused, 5), await offers(shop, 9)]
  const states = () => Promise.all(deals.map(async (deal) => (await ledger.deal(deal))?.status))
  await until(async () => {
    await pushed()
    return (await states()).filter((status) => status === 'offered').length === 1
  }, 'three deals are decided')
  expect(await states()).toEqual(['offered', 'rejected', 'rejected', 'accepted'])
  await until(async () => (await entriesOf(sells.stub, 'action-ended')).length === 3, 'the actions have ended')
  expect((await entriesOf(sells.stub, 'effect-ended')).map(({ tool, idempotence_key }) => [tool, idempotence_key])).toEqual(
    expect.arrayContaining([
      ['genesis_escrow.reject', `reject:${deals[1]}`],
      ['genesis_escrow.reject', `reject:${deals[2]}`],
      ['genesis_escrow.accept', `accept:${deals[3]}`],
    ]),
  )
  await until(async () => (await sells.stub.state()).counters.turns === 1, 'the dear offer is left to a turn')
  await pushed()
  expect(await ledger.account(shop.account)).toMatchObject({ balance: 91, available: 71 })
  expect(await ledger.account(refused.account)).toMatchObject({ balance: 100, available: 100 })
})

test('a version that an agent lists is sealed, and terms and states are checked as over HTTP', async () => {
  const scope = freshScope()
  const { 'genesis_escrow.list': list } = marketTools({
    scope,
    env,
    settings: () => ({ ...defaultSettings, market: { ...defaultMarket, least_price: 0, services: ['*'] } }),
    view: () => view(1, 0),
    ask: () => Promise.resolve(null),
  })
  const sells = (of: { id: string; version: number }, more: object = {}) => {
    const call_of = { env, fetch, scope, parameters: {}, signal: AbortSignal.timeout(10_000), now: () => Date.now() }
    const asked = { artifact: `reflex:${of.id}@${of.version}`, kind: 'licence', price: 5, ...more }
    return list?.execute(list.input.parse(asked), { ...call_of, idempotence_key: crypto.randomUUID() })
  }
  const version = await write(`return '${scope}' && null`, { scope })
  await expect(sells(version, { terms: { per_decision: 6 } })).rejects.toThrow('more than the price')
  expect((await reflexes.find(env.DB, version.id))?.sealed).toBe(false)
  expect(await sells(version, { terms: { days: 30 } })).toMatchObject({ state: 'open', seller: `scope:${scope}` })
  expect((await reflexes.find(env.DB, version.id))?.sealed).toBe(true)
  const retired = await write(`return null // retired ${scope}`, { scope, state: 'retired' })
  await expect(sells(retired)).rejects.toThrow('is retired')
})

test('an agent pays the key that a name means, and none of several', async () => {
  const payer = await buyer(50)
  const settings = () => ({ ...defaultSettings, market: { ...defaultMarket, without_approval: 50 } })
  const { 'genesis_ledger.transfer': transfer } = marketTools({
    scope: payer.scope,
    env,
    settings,
    view: () => view(1, 50),
    ask: () => Promise.resolve(null),
  })
  const pay = (to: string) => {
    const call_of = { env, fetch, scope: payer.scope, parameters: {}, signal: AbortSignal.timeout(10_000), now: () => Date.now() }
    return transfer?.execute(transfer.input.parse({ to, amount: 5 }), { ...call_of, idempotence_key: crypto.randomUUID() })
  }
  const name = `payee-${crypto.randomUUID()}`
  const created = async () => (await call('/v1/keys', { json: { name, roles: ['operator'], scopes: ['x'] } })).body.id as string
  const first = await created()
  expect(await pay(`key:${name}`)).toMatchObject({ paid: 5, to: `key:${name}` })
  const second = await created()
  await expect(pay(`key:${name}`)).rejects.toThrow('use key:ID')
  expect(await pay(`key:${second}`)).toMatchObject({ to: `key:${second}` })
  expect(await pay(`key:${first}`)).toMatchObject({ to: `key:${name}` })
})

test('a search by an agent finds listings with figures and the reasons of their rank, without code', async () => {
  const version = await write('return null // a secret of the trade')
  await listed(version, { description: 'sorts the post', price: 7 })
  await listed(await write('return null'), { description: 'sorts the post, dearer', price: 70 })
  const { 'genesis_store.search': search } = marketTools({
    scope: 's',
    env,
    settings: () => defaultSettings,
    view: () => view(1, 0),
    ask: () => Promise.resolve(null),
  })
  const now = Date.now()
  const tool_call = { env, fetch, scope: 's', parameters: {}, signal: AbortSignal.timeout(10_000), idempotence_key: null, now: () => now }
  const input = search?.input.parse({ q: 'sorts post', max_price: 10 })
  const found = await search?.execute(input, tool_call)
  expect(found).toEqual({
    listings: [
      expect.objectContaining({
        artifact: `reflex:${version.id}@${version.version}`,
        price: 7,
        figures: expect.objectContaining({ fires: 0 }),
        rank: { score: expect.any(Number), because: expect.any(Array) },
        measured_at: new Date(now).toISOString(),
      }),
    ],
  })
  expect(JSON.stringify(found)).not.toContain('secret of the trade')
})

const view = (revision: number, balance: number): MarketView => ({
  revision,
  account: { balance, available: balance },
  pending_purchases: [],
  pending_contracts: [],
  owned: ['skill:deploy'],
  sold: [],
  licences: [],
  contracts: [],
})

test('a scope keeps the newest view on its disk, and accepts each event once', async () => {
  const { scope, stub } = await acting('return { action_type: "ignore", reason: String(context.balance) + context.owned_artifacts }')
  await stub.configure({ market: {} }, 'test')
  const event = { id: 'transfer:1', type: 'transfer' as const, from: 'scope:bob', to: `scope:${scope}`, amount: 5 }
  expect(await stub.marketChanged(view(2, 7), [event])).toEqual({ accepted: true })
  await stub.marketChanged(view(1, 3), [event])
  await evict(stub)
  await stubOf(scope).marketChanged(view(2, 9), [{ ...event, id: 'transfer:2' }])
  const fired = await entriesOf(stubOf(scope), 'reflex-fired')
  expect(fired.map(({ action }) => action)).toMatchObject([{ reason: '7deploy' }, { reason: '7deploy' }])
  expect(await entriesOf(stubOf(scope), 'event-accepted')).toMatchObject([{ via: 'ledger' }, { via: 'ledger' }])
})

test('a scope without the setting takes no events of the market, and its agent no tools', async () => {
  const { stub } = await acting(TRADING)
  const offer = { id: 'offer:1', type: 'offer' as const }
  await stub.marketChanged({ ...view(1, 0), pending_purchases: [{ deal_id: 'd', artifact_id: 'a', price: 1, buyer: 'scope:b' }] }, [offer])
  expect(await entriesOf(stub, 'event-accepted')).toEqual([])
})

test('a contract is paid for each call that is served, and for no other', async () => {
  const [caller, provider] = [await buyer(10), await buyer(1)]
  const id = crypto.randomUUID()
  const asked = { proposer: caller.account, counterparty: provider.account, service: 'reflex:greet', price_per_invocation: 4, limit: 2 }
  expect(await ledger.propose({ id, ...asked }, caller.by)).toMatchObject({ ok: true, created: true })
  expect(await ledger.propose({ id, ...asked }, caller.by)).toMatchObject({ ok: true, created: false })
  expect(await ledger.propose({ id, ...asked, limit: 3 }, caller.by)).toMatchObject({ ok: false, reason: 'other_content' })
  expect(await ledger.decideContract(id, 'accept', { account: caller.account })).toMatchObject({ ok: false, reason: 'own' })
  const pay = (invocation_id: string) => ledger.payInvocation(id, { caller: caller.account, invocation_id: `${id}${invocation_id}` })
  const settle = (invocation_id: string, served: boolean) =>
    ledger.settleInvocation(id, { invocation_id: `${id}${invocation_id}`, served, trace_id: 'a'.repeat(32) })
  expect(await pay('1')).toMatchObject({ ok: false, reason: 'decided' })
  expect((await ledger.view(provider.scope)).pending_contracts).toMatchObject([{ contract_id: id, proposer: caller.account }])
  expect(await ledger.decideContract(id, 'accept', { account: provider.account })).toMatchObject({ ok: true })
  expect((await ledger.view(caller.scope)).contracts).toEqual([
    { contract_id: id, role: 'caller', service: 'reflex:greet', other: provider.account },
  ])
  for (const call of ['1', '1', '2']) expect(await pay(call)).toMatchObject({ ok: true })
  expect(await pay('3')).toMatchObject({ ok: false, reason: 'used_up' })
  const pending_id = `invoke:${id}1`
  for (const end of [{ void: true }, { post: 1 }] as const)
    expect(await ledger.transfer([{ pending_id, ...end, id: crypto.randomUUID() }], caller.by)).toMatchObject([{ reason: 'reserved_id' }])
  await settle('1', true)
  expect(await settle('1', true)).toMatchObject({ ok: true, contract: { invocations: 1, paid: 4 } })
  await settle('2', false)
  expect(await settle('2', true)).toMatchObject({ ok: false, reason: 'used_up' })
  expect(await pay('2')).toMatchObject({ ok: false, reason: 'used_up' })
  expect(await ledger.account(caller.account)).toMatchObject({ balance: 6, available: 6 })
  expect(await ledger.account(provider.account)).toMatchObject({ balance: 5 })
  const disputed = await ledger.decideContract(id, 'dispute', { account: caller.account, reason: 'wrong answer' })
  expect(disputed).toMatchObject({ ok: true, contract: { status: 'disputed', disputes: [{ traces: ['a'.repeat(32)] }] } })
  expect(await pay('4')).toMatchObject({ ok: false, reason: 'decided' })
})

test('a scope gets its opening grant once, and spends within its limits alone', async () => {
  const pays = (amount: number) => `
    if (context.event.type !== 'test.note') return null
    return { action_type: 'invoke_artifact', artifact_id: 'genesis_ledger', method: 'transfer', args: ['scope:' + context.event.text, ${amount}] }`
  const { scope: paid } = await buyer(1)
  const { scope, stub } = await acting(pays(6))
  for (const without_approval of [5, 8]) {
    await stub.configure({ market: { opening_grant: 30, per_day: 7, without_approval } }, 'test')
    await stub.poke()
  }
  const account = `scope:${scope}`
  expect(await ledger.account(account)).toMatchObject({ balance: 30, limits: { per_day: 7 } })
  await sendAndSettle(stub, note(scope, paid))
  expect(await ledger.account(account)).toMatchObject({ balance: 24 })
  await sendAndSettle(stub, note(scope, paid))
  expect(await ledger.account(account)).toMatchObject({ balance: 24 })
  expect((await entriesOf(stub, 'effect-ended')).map(({ error }) => error)).toMatchObject([null, expect.stringContaining('per_day')])
  await stub.configure({ market: { without_approval: 5 } }, 'test')
  await sendAndSettle(stub, note(scope, paid))
  expect((await entriesOf(stub, 'effect-ended')).at(-1)?.error).toContain('more than this agent may spend without a person')
})
