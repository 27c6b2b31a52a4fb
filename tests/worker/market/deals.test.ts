import { describe, expect, test } from 'vitest'
import { env } from 'cloudflare:workers'
import { LEDGER } from '../../../src/contract/market/ledger-api.ts'
import { call, keyFor } from '../../support/http.ts'

describe('a deal over HTTP', () => {
  test('is offered, accepted once, and delivered with its payment', async () => {
    const buyer = 'scope:deals/buyer'
    const ledger = env.LEDGER.getByName(LEDGER)
    await ledger.mint({ id: 'mint-deals', to: buyer, amount: 50 }, { name: 'admin', opens: [buyer] })
    const code = 'function reflex(context) { return context.event.content === "deal" ? { action_type: "reply", content: "Done" } : null }'
    expect(await call('/v1/reflexes', { json: { id: 'deals-reflex', description: 'deals', code } })).toMatchObject({ status: 201 })
    const asked = { artifact: 'reflex:deals-reflex@1', kind: 'licence', price: 30, seller: 'key:admin', terms: { days: 30 } }
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
    expect(await call('/v1/market/deals/deal-http/accept', { method: 'POST' })).toMatchObject({
      status: 200,
      body: { status: 'accepted', held: 30, delivery: { artifact: 'reflex:deals-reflex@1', scopes: ['deals/buyer'], in_use: true } },
    })
    expect(await call('/v1/market/deals/deal-http/accept', { method: 'POST' })).toMatchObject({ status: 409 })
    expect(await call('/v1/market/deals/deal-http/refund', { method: 'POST' })).toMatchObject({
      status: 200,
      body: { status: 'refunded', held: 0 },
    })
    expect(await ledger.account(buyer)).toMatchObject({ balance: 50 })
  })
})
