import { runInDurableObject } from 'cloudflare:test'
import { describe, expect, test } from 'vitest'
import { env } from 'cloudflare:workers'
import { reflexes } from '../../../src/artifacts/kinds.ts'
import type { Deal } from '../../../src/features/market/contract/deal.ts'
import { LEDGER } from '../../../src/features/market/contract/ledger-api.ts'
import { deliver } from '../../../src/features/market/goods/deliver.ts'
import { forgetEntitlements } from '../../../src/store/artifacts/entitlements.ts'
import { call, keyFor, problem } from '../../support/http.ts'
import { listed } from '../../support/market.ts'
import { skill, twoSteps } from '../../support/two-step-skill.ts'
import { write } from '../../support/reflex-chain.ts'
import { freshScope, runAlarm, until } from '../../support/scopes.ts'

describe('a deal over HTTP', () => {
  test('is offered, accepted once, and delivered with its payment', async () => {
    const buyer = 'scope:deals/buyer'
    const ledger = env.LEDGER.getByName(LEDGER)
    await ledger.mint({ id: 'mint-deals', to: buyer, amount: 50 }, { name: 'admin', opens: [buyer] })
    const code = 'function reflex(context) { return context.event.content === "deal" ? { action_type: "reply", content: "Done" } : null }'
    const maker = await keyFor(['operator'], ['makers/*'], 'deals-maker')
    expect(await call('/v1/reflexes', { key: maker, json: { id: 'deals-reflex', description: 'deals', code } })).toMatchObject({
      status: 201,
    })
    const asked = { artifact: 'reflex:deals-reflex@1', kind: 'licence', price: 30, seller: 'key:deals-maker', terms: { days: 30 } }
    const listing = await call('/v1/market/listings', { json: asked })
    expect(listing).toMatchObject({ status: 201, body: { state: 'open', tools: ['reply'] } })
    expect(await call('/v1/market/listings', { json: asked })).toMatchObject({
      status: 409,
      body: { type: 'urn:reflex:problem:listed-already' },
    })

    const offers = `/v1/market/listings/${listing.body.listing_id}/offers`
    const operator = await keyFor(['operator'], ['deals/*'])
    const offer = { id: 'deal-http', buyer }
    expect(await call(offers, { key: operator, json: offer })).toMatchObject({
      status: 201,
      body: { deal_id: 'deal-http', status: 'offered' },
    })
    expect(await call(offers, { key: operator, json: offer })).toMatchObject({ status: 200 })
    expect(await call('/v1/market/deals/deal-http/accept', { key: operator, method: 'POST' })).toMatchObject({ status: 403 })
    expect(await call('/v1/market/deals/deal-http/accept', { json: { reason: 'welcome' } })).toMatchObject({
      status: 200,
      body: {
        history: [{}, { state: 'accepted', reason: 'welcome' }],
        status: 'accepted',
        held: 30,
        delivery: { artifact: 'reflex:deals-reflex@1', scopes: ['deals/buyer'], in_use: true },
      },
    })
    expect(await call('/v1/market/deals/deal-http/accept', { method: 'POST' })).toMatchObject({ status: 409 })
    expect(await call('/v1/market/deals/deal-http/refund', { method: 'POST' })).toMatchObject({
      status: 200,
      body: { status: 'refunded', held: 0 },
    })
    expect(await ledger.account(buyer)).toMatchObject({ balance: 50 })
  })
})

test('a seller whose name another key took first lists, is paid, and is closed by nobody else', async () => {
  const name = `paris-${crypto.randomUUID()}`
  const mint = (to: string) => call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to, amount: 50 } })
  const squatter = await keyFor(['operator'], ['evil/*'], name)
  await mint(`key:${name}`)
  const owner = await keyFor(['operator'], ['paris/*'], name)
  const buyer = await keyFor(['operator'], ['shop/*'], `buyer-${name}`)
  await mint(`key:buyer-${name}`)
  const code = `function reflex(context) { return { action_type: 'reply', content: '${name}' } }`
  expect((await call('/v1/reflexes', { key: owner, json: { id: name, code } })).status).toBe(201)
  const sale = { artifact: `reflex:${name}@1`, kind: 'ownership', price: 30, seller: `key:${name}` }
  expect(await call('/v1/market/listings', { key: squatter, json: sale })).toMatchObject({ status: 404 })
  const listing = await call('/v1/market/listings', { key: owner, json: sale })
  const { key_id } = (await call('/v1/key', { key: owner })).body
  expect(listing).toMatchObject({ status: 201, body: { seller: `key:${key_id}` } })
  const path = `/v1/market/listings/${listing.body.listing_id}`
  expect(await call(path, { key: squatter, method: 'DELETE' })).toMatchObject(problem(403))
  expect((await call(`${path}/offers`, { key: buyer, json: { id: `deal-${name}`, buyer: `key:buyer-${name}` } })).status).toBe(201)
  const accept = (key: string) => call(`/v1/market/deals/deal-${name}/accept`, { key, method: 'POST' })
  expect(await accept(squatter)).toMatchObject(problem(404))
  expect(await accept(owner)).toMatchObject({ status: 200, body: { status: 'accepted', paid: 30 } })
  const balance = async (key: string) => (await call(`/v1/ledger/accounts/${encodeURIComponent(`key:${name}`)}`, { key })).body.balance
  expect([await balance(owner), await balance(squatter)]).toEqual([30, 50])
})

describe('hostile requests', () => {
  const bad = [0, -1, 0.5, 2 ** 53, '5', null]
  test.each([
    ['/v1/market/listings', 'price', { artifact: 'reflex:x@1', kind: 'copy', seller: 'scope:a' }],
    ['/v1/market/listings/any/offers', 'price', { id: 'x', buyer: 'scope:b' }],
    [
      '/v1/market/contracts',
      'price_per_invocation',
      { id: 'x', proposer: 'scope:a', counterparty: 'scope:b', service: 'reflex:x', limit: 1 },
    ],
  ])('to %s with a %s that is no positive integer are refused by their field', async (path, field, fields) => {
    for (const price of bad) {
      const { status, body } = await call(path, { json: { ...fields, [field]: price } })
      expect([status, body.errors[0].path]).toEqual([400, field])
    }
  })

  /** An offer for a copy, which waits. */
  async function offered() {
    const ledger = env.LEDGER.getByName(LEDGER)
    const [seller, buyer] = [freshScope(), freshScope()]
    const opens = [`scope:${buyer}`]
    await ledger.mint({ id: `mint:${buyer}`, to: `scope:${buyer}`, amount: 30 }, { name: 'test', opens })
    const { id } = await write(`return { action_type: 'reply', content: '${seller}' }`, { scope: seller })
    const asked = { artifact: `reflex:${id}@1`, kind: 'copy', price: 30, seller: `scope:${seller}` }
    const { body } = await call('/v1/market/listings', { json: asked })
    const deal_id = crypto.randomUUID()
    const made = await call(`/v1/market/listings/${body.listing_id}/offers`, { json: { id: deal_id, buyer: `scope:${buyer}` } })
    expect(made.status).toBe(201)
    const accept = () => call(`/v1/market/deals/${deal_id}/accept`, { method: 'POST' })
    const balances = async () => [
      (await ledger.account(`scope:${seller}`))?.balance ?? 0,
      (await ledger.account(`scope:${buyer}`))?.available,
    ]
    return { id, accept, balances, deal: () => ledger.deal(deal_id) }
  }

  test('two acceptances of one offer at once pay it once', async () => {
    const { accept, balances } = await offered()
    const answers = await Promise.all([accept(), accept()])
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.find(({ status }) => status === 409)).toMatchObject(problem(409, 'decided'))
    expect(await balances()).toEqual([30, 0])
  })

  test('goods that were retired after the offer are not sold, and those that were edited are sold as they were', async () => {
    const [retired, edited] = [await offered(), await offered()]
    await reflexes.setState(env.DB, { id: retired.id, version: 1, state: 'retired', reason: null, now: Date.now() })
    expect(await retired.accept()).toMatchObject(problem(409, 'goods-changed'))
    expect([await retired.balances(), await retired.deal()]).toMatchObject([[0, 30], { status: 'rejected', delivery: null }])
    const before = await reflexes.find(env.DB, edited.id, 1)
    const scope = before?.provenance.scope ?? ''
    await write('return null', { id: edited.id, scope })
    expect(await edited.accept()).toMatchObject({ status: 200, body: { hash: before?.hash, status: 'accepted' } })
    expect(await edited.balances()).toEqual([30, 0])
  })
})

describe('a listing over HTTP', () => {
  test('seals its version only if it is accepted, and D1 has both together', async () => {
    const scope = freshScope()
    const { id } = await write(`return { action_type: 'reply', content: '${scope}' }`, { scope })
    const asked = { artifact: `reflex:${id}@1`, kind: 'licence', price: 30, seller: `scope:${scope}` }
    const sealed = async () => (await reflexes.find(env.DB, id))?.sealed
    const expires_at = new Date(Date.now() - 1000).toISOString()
    expect(await call('/v1/market/listings', { json: { ...asked, expires_at } })).toMatchObject(problem(409, 'expired'))
    expect(await sealed()).toBe(false)
    expect((await call('/v1/market/listings', { json: asked })).status).toBe(201)
    expect(await sealed()).toBe(true)
    const other = await write('return null', { scope })
    await listed(other)
    expect((await reflexes.find(env.DB, other.id))?.sealed).toBe(true)
  })

  test.each([
    [
      'other spaces, comments, quotes and semicolons',
      'refused',
      (text: string) => `/* mine */ return {"action_type": 'reply', content: ("${text}")}`,
    ],
    ['another word in its answer', 'sold', (text: string) => `return { 'action_type': 'reply', content: '${text}!' };`],
  ])('of a copied reflex with %s is %s', async (_, verdict, other) => {
    const [author, copier] = [freshScope(), freshScope()]
    await write(`return { 'action_type': 'reply', content: '${author}' };`, { scope: author })
    const { id } = await write(other(author), { scope: copier })
    const json = { artifact: `reflex:${id}@1`, kind: 'copy', price: 1, seller: `scope:${copier}` }
    const answer = await call('/v1/market/listings', { json })
    expect(answer).toMatchObject(verdict === 'sold' ? { status: 201 } : problem(409, 'sold-as-new'))
  })

  test.each([
    [
      'another description, budget and patience',
      'refused',
      { description: 'New!', plan: { budget: { max_cost_usd: 2, max_latency_ms: 9000 } } },
    ],
    ['another argument', 'sold', { plan: { steps: [{ tool: 'act', args: { text: 'third {{what}}' } }] } }],
  ])('of a copied skill with %s is %s', async (_, verdict, { plan, ...changes }) => {
    const word = crypto.randomUUID()
    const steps = [{ tool: 'act', args: { text: `${word} {{what}}` }, timeout_ms: 5000 }]
    const original = { ...twoSteps('').plan, compensation: [], steps }
    await skill({ plan: original })
    const key = await keyFor(['operator'], ['*'], word)
    const id = `copied.s${word.slice(0, 8)}`
    const copied = twoSteps(id, { ...changes, plan: { ...original, ...plan } })
    expect((await call('/v1/skills', { key, json: copied })).status).toBe(201)
    const json = { artifact: `skill:${id}@1.0.0`, kind: 'copy', price: 1, seller: `key:${word}` }
    const answer = await call('/v1/market/listings', { key, json })
    expect(answer).toMatchObject(verdict === 'sold' ? { status: 201 } : problem(409, 'sold-as-new'))
  })

  test('is closed by the key whose account sells, and not by another key of its name', async () => {
    const name = `seller-${crypto.randomUUID()}`
    const owner = await keyFor(['operator'], ['*'], name)
    const code = `function reflex(context) { return { action_type: 'reply', content: '${name}' } }`
    expect((await call('/v1/reflexes', { key: owner, json: { id: name, code } })).status).toBe(201)
    const json = { artifact: `reflex:${name}@1`, kind: 'licence', price: 1, seller: `key:${name}` }
    const { body } = await call('/v1/market/listings', { key: owner, json })
    const close = (key: string) => call(`/v1/market/listings/${body.listing_id}`, { key, method: 'DELETE' })
    expect(await close(await keyFor(['operator'], ['*'], name))).toMatchObject(problem(403, 'forbidden'))
    expect(await close(owner)).toMatchObject({ status: 200, body: { state: 'closed' } })
  })

  test.each([
    ['/v1/market/listings/any/offers', { buyer: 'scope:b' }],
    ['/v1/market/contracts', { proposer: 'scope:a', counterparty: 'scope:b', service: 'reflex:x', price_per_invocation: 1, limit: 1 }],
  ])('and its like take no id of an agent: %s', async (path, fields) => {
    const answer = await call(path, { json: { id: 'agent:1', ...fields } })
    expect(answer).toMatchObject(problem(400, 'invalid-request'))
    expect(answer.text).toContain('for the tools of agents')
  })
})

describe('the delivery of a deal', () => {
  const ledger = env.LEDGER.getByName(LEDGER)
  const inLedger = <Found>(work: (sql: SqlStorage) => Found) =>
    runInDurableObject(ledger as never, (_, { storage }: DurableObjectState) => work(storage.sql))
  const copyDeal = (artifact: string, copy: string, seller: string, buyer: string): Deal => {
    const delivery = { kind: 'copy', artifact: copy, scopes: null, expires_at: null, fires: null, used: {}, in_use: true }
    return { deal_id: copy, artifact, kind: 'copy', terms: {}, seller, buyer, delivery } as unknown as Deal
  }

  test('continues behind a deal that fails, which alone is kept', async () => {
    const [seller, buyer] = [freshScope(), freshScope()]
    const { id } = await write('return null', { scope: seller })
    const copy = `reflex:${id}-copy@1`
    const deals = {
      a_broken: copyDeal('reflex:no-such-reflex@1', 'reflex:broken-copy@1', `scope:${seller}`, `scope:${buyer}`),
      b_whole: copyDeal(`reflex:${id}@1`, copy, `scope:${seller}`, `scope:${buyer}`),
    }
    const kept = () => inLedger((sql) => sql.exec("SELECT key FROM outbox WHERE topic = 'deals'").toArray())
    await inLedger((sql) => {
      for (const [key, deal] of Object.entries(deals))
        sql.exec("INSERT INTO outbox (topic, key, value) VALUES ('deals', ?, ?)", key, JSON.stringify({ deal, revision: 1 }))
    })
    await ledger.mint({ id: 'mint-delivery', to: `scope:${seller}`, amount: 1 }, { name: 'admin', opens: [`scope:${seller}`] })
    await runAlarm(ledger)
    await until(async () => (await reflexes.find(env.DB, `${id}-copy`)) !== null, 'the later deal is delivered')
    await until(async () => (await kept()).length === 1, 'the later deal is deleted')
    expect(await kept()).toEqual([{ key: 'a_broken' }])
    await inLedger((sql) => void sql.exec("DELETE FROM outbox WHERE key = 'a_broken'"))
  })

  test('that fails too often is a dead letter, which a person retries once its cause is gone', async () => {
    const [seller, buyer] = [freshScope(), freshScope()]
    const { id } = await write(`return { action_type: 'reply', content: '${seller}' }`, { scope: seller })
    const deal_id = `stuck-${crypto.randomUUID()}`
    await env.DB.prepare('INSERT INTO scopes (scope, agent, open, updated_at) VALUES (?, ?, 0, 0)').bind(buyer, 'prompted').run()
    await ledger.mint({ id: `mint-${buyer}`, to: `scope:${buyer}`, amount: 5 }, { name: 'admin', opens: [`scope:${buyer}`] })
    const asked = { artifact: `reflex:${id}@1`, kind: 'copy', price: 5, seller: `scope:${seller}` }
    const { body: listing } = await call('/v1/market/listings', { json: asked })
    await call(`/v1/market/listings/${listing.listing_id}/offers`, { json: { id: deal_id, buyer: `scope:${buyer}` } })
    await env.DB.prepare('UPDATE artifact_versions SET kind = ? WHERE id = ?').bind('away', id).run()
    const accepted = await ledger.decide(deal_id, 'accept', { account: `scope:${seller}`, goods_state: 'active' })
    expect(accepted).toMatchObject({ ok: true })
    const letter = await until(async () => {
      await inLedger((sql) => void sql.exec('UPDATE outbox SET due_at = 0, failures = 11 WHERE key = ?', deal_id))
      await runAlarm(ledger)
      const { status, body } = await call(`/v1/dlq/deal:${deal_id}`)
      return status === 200 ? body : null
    }, 'the deal is a dead letter')
    expect(letter).toMatchObject({ origin: 'market', scope: null, type: 'deal', attempts: 12, error: expect.stringContaining('to copy') })
    await env.DB.prepare('UPDATE artifact_versions SET kind = ? WHERE id = ?').bind('reflex', id).run()
    expect(await call(`/v1/dlq/deal:${deal_id}/retry`, { method: 'POST' })).toMatchObject({ status: 200 })
    await until(async () => {
      await runAlarm(ledger)
      return env.DB.prepare('SELECT 1 FROM artifacts WHERE owner_id = ?').bind(`scope:${buyer}`).first()
    }, 'the copy is delivered')
    expect(await call(`/v1/dlq/deal:${deal_id}`)).toMatchObject({ status: 404 })
  })

  test('may be repeated, and fails if something else has the name of the copy', async () => {
    const [seller, buyer, other] = [freshScope(), freshScope(), freshScope()]
    const { id } = await write('return null', { scope: seller })
    const deal = copyDeal(`reflex:${id}@1`, `reflex:${id}-copy@1`, `scope:${seller}`, `scope:${buyer}`)
    for (const _ of [1, 2]) await deliver(env, { deal }, Date.now())
    expect(await reflexes.versions(env.DB, `${id}-copy`)).toHaveLength(1)
    const taken = await write('return null', { scope: other })
    const blocked = copyDeal(`reflex:${id}@1`, `reflex:${taken.id}@1`, `scope:${seller}`, `scope:${buyer}`)
    await expect(deliver(env, { deal: blocked }, Date.now())).rejects.toThrow('is not the copy')
  })

  test('of a licence that has ended is forgotten after a year, and of one in use never', async () => {
    const seller = freshScope()
    const { id } = await write(`return { action_type: 'reply', content: '${seller}' }`, { scope: seller })
    const licence = (deal_id: string, in_use: boolean, now: number) => {
      const delivery = { kind: 'licence', artifact: `reflex:${id}@1`, scopes: [seller], expires_at: null, fires: null, used: {}, in_use }
      const deal = { deal_id, artifact: `reflex:${id}@1`, kind: 'licence', terms: {}, hash: '', delivery } as unknown as Deal
      return deliver(env, { deal }, now)
    }
    await licence('runs', true, 1000)
    for (const in_use of [true, false]) await licence('ended', in_use, 2000)
    const known = async () => (await env.DB.prepare('SELECT deal_id FROM entitlements WHERE id = ?').bind(id).all()).results
    await forgetEntitlements(env.DB, 2000, 100)
    expect(await known()).toHaveLength(2)
    await forgetEntitlements(env.DB, 2001, 100)
    expect(await known()).toEqual([{ deal_id: 'runs' }])
  })

  test('goes to the key whose account bought, although that is deleted', async () => {
    const { id } = await write('return null', { scope: freshScope() })
    const deal = copyDeal(`reflex:${id}@1`, `reflex:${id}-copy@1`, 'key:deleted-seller', 'key:deleted-buyer')
    await deliver(env, { deal, owners: { seller: 'id-of-seller', buyer: 'id-of-buyer' } }, Date.now())
    expect(await reflexes.find(env.DB, `${id}-copy`)).toMatchObject({ owner: 'deleted-buyer', owner_id: 'id-of-buyer' })
    await expect(deliver(env, { deal }, Date.now())).rejects.toThrow('does not name one key')
  })
})
