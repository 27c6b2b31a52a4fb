import type { Context } from 'hono'
import { deal, dealReason, type Deal } from '../../contract/market/deal.ts'
import { LEDGER, type DealRefused } from '../../contract/market/ledger-api.ts'
import { newOffer } from '../../contract/market/listing.ts'
import type { Problem } from '../../contract/problem.ts'
import { storeOf } from '../../store/store.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { guard, idPath, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { paged } from '../../contract/paging.ts'
import { conflict, demandCoverage, forbidden, notFound } from '../problems/refusals.ts'
import { accountQuery, actorFor, demandActor, mayActFor, mayReadOne, ownKeyId, readableAccount } from './account-access.ts'
import { stateOfGoods } from './goods.ts'

const route = routes('Market')

const offer = route('post /v1/market/listings/{id}/offers', 'makeOffer', 'Make an offer for a listing', {
  description:
    'The money is pending from now on, until the seller answers or the offer times out. The `id` becomes the id of the deal; the same offer again changes nothing. ' +
    'For the key whose account buys, operators of the scope that buys, and admins. The key must cover the scopes of a licence.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: { params: idPath, body: jsonRequest(newOffer, { id: 'offer-1', buyer: 'scope:shop' }) },
  responses: {
    200: json(deal, 'The deal, which existed already.'),
    201: json(deal, 'The deal, as offered.'),
    ...problems(400, 404, 409, 413, 415),
  },
})

const meanings = {
  accept: [
    'Accept an offer',
    'For the seller. The payment and the delivery are one transaction. If the version was retired, demoted or sold since the offer, nothing is sold and the money returns.',
  ],
  reject: ['Reject an offer', 'For the seller. The money returns to the buyer.'],
  cancel: ['Cancel an offer', 'For the buyer, before it is answered. The money returns.'],
  refund: [
    'End a licence early',
    'For the seller; for the buyer too, if it is paid by decision. What is not earned yet returns to the buyer.',
  ],
} as const

const decision = <const Decision extends keyof typeof meanings>(name: Decision) =>
  route(`post /v1/market/deals/{id}/${name}`, `${name}Deal`, meanings[name][0], {
    description: meanings[name][1],
    ...guard({ roles: ['operator'], body: 'optional' }),
    request: { params: idPath, body: { ...jsonRequest(dealReason, { reason: 'The price is too low.' }), required: false } },
    responses: { 200: json(deal, 'The deal.'), ...problems(400, 404, 409, 413, 415) },
  })

const find = route('get /v1/market/deals/{id}', 'getDeal', 'Get a deal', {
  description: 'For those who may read the account of the seller or of the buyer.',
  ...guard({ roles: ['viewer'] }),
  request: { params: idPath },
  responses: { 200: json(deal, 'The deal with its history and its delivery.'), ...problems(400, 404) },
})

const list = route('get /v1/market/deals', 'listDeals', 'List the deals of an account, oldest first', {
  ...guard({ roles: ['viewer'] }),
  request: { query: accountQuery },
  responses: { 200: json(paged(deal), 'A page.'), ...problems(400) },
})

export const dealRoutes = resource()
  .openapi(offer, async (c) => {
    const { env } = c
    const { principal } = c.var
    const asked = c.req.valid('json')
    const { account: buyer, by } = await actorFor({ env, principal }, asked.buyer)
    demandCoverage(
      principal,
      (asked.scopes ?? []).map((scope) => ({ scope })),
    )
    const made = await env.LEDGER.getByName(LEDGER).offer(c.req.valid('param').id, { ...asked, buyer }, by)
    if (!made.ok) throw refused(made)
    return made.created ? c.json(made.deal, 201) : c.json(made.deal, 200)
  })
  .openapi(decision('accept'), async (c) => c.json(await decide(c, 'accept', c.req.valid('param').id, c.req.valid('json')), 200))
  .openapi(decision('reject'), async (c) => c.json(await decide(c, 'reject', c.req.valid('param').id, c.req.valid('json')), 200))
  .openapi(decision('cancel'), async (c) => c.json(await decide(c, 'cancel', c.req.valid('param').id, c.req.valid('json')), 200))
  .openapi(decision('refund'), async (c) => c.json(await decide(c, 'refund', c.req.valid('param').id, c.req.valid('json')), 200))
  .openapi(find, async (c) => c.json(await dealFor(c, c.req.valid('param').id), 200))
  .openapi(list, async (c) => {
    const { account: asked, limit, cursor } = c.req.valid('query')
    const account = await readableAccount({ env: c.env, principal: c.var.principal }, asked)
    const { items, next } = await c.env.LEDGER.getByName(LEDGER).deals({ account, limit, after: cursor ?? null })
    return c.json({ items, next_cursor: next }, 200)
  })

type At = Pick<Context<AuthEnv>, 'env' | 'var'>

async function dealFor({ env, var: { principal } }: At, id: string): Promise<Deal> {
  const found = await env.LEDGER.getByName(LEDGER).deal(id)
  const isReader = found && (await mayReadOne({ env, principal }, [found.seller, found.buyer]))
  if (!isReader) throw notFound(`There is no deal ${id} of an account that this key may read.`)
  return found
}

async function decide(c: At, decided: keyof typeof meanings, id: string, { reason }: { reason?: string | undefined } = {}): Promise<Deal> {
  const { seller, buyer, artifact } = await dealFor(c, id)
  const { env } = c
  const { principal } = c.var
  // Both sides may ask for a refund: the Ledger knows which one may have it.
  const account = decided === 'cancel' || (decided === 'refund' && !(await mayActFor({ env, principal }, seller))) ? buyer : seller
  await demandActor({ env, principal }, account)
  const key_id = ownKeyId(principal, account)
  const goods_state = decided === 'accept' ? await stateOfGoods(storeOf(env), artifact) : undefined
  const made = await env.LEDGER.getByName(LEDGER).decide(id, decided, { account, key_id, reason, goods_state })
  if (!made.ok) throw refused(made)
  return made.deal
}

function refused({ reason, detail }: DealRefused): Problem {
  if (reason === 'not_found') return notFound(detail)
  if (reason === 'not_allowed') return forbidden(detail)
  return conflict(reason.replaceAll('_', '-'), detail)
}
