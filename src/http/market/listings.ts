import { LEDGER, type LedgerCaller } from '../../contract/market/ledger-api.ts'
import { foundListing, listing, newListing } from '../../contract/market/listing.ts'
import type { Problem } from '../../contract/problem.ts'
import { scopeOfOwner } from '../../contract/reflex.ts'
import { measureListing } from '../../market/discovery/measure.ts'
import { sell, type SaleRefused } from '../../market/goods/sell.ts'
import { storeOf } from '../../store/store.ts'
import { guard, idPath, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { conflict, forbidden, invalid, notFound } from '../problems/refusals.ts'
import { actorFor, demandActor, ownKeyId } from './account-access.ts'
import { demandGoods, type FoundGoods } from './goods.ts'

const route = routes('Market')

const create = route('post /v1/market/listings', 'createListing', 'List a version for sale', {
  description:
    'Sells a version of a reflex or a skill by its hash: a `licence` to run it in named scopes, a `copy` of its code, or its `ownership`. ' +
    'For the owner of the artifact, operators of the scope whose agent owns it, and admins. A copy of the same content is not sold as new. ' +
    'A licence ends after `days`, or after `fires` in a scope, or when its price, as a budget, is used up at `per_decision`; without any of these it does not end, and its seller has earned it after 30 days.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    body: jsonRequest(newListing, { artifact: 'reflex:greet@1', kind: 'licence', price: 30, seller: 'scope:shop', terms: { days: 30 } }),
  },
  responses: { 201: json(listing, 'The open listing.'), ...problems(400, 404, 409, 413, 415) },
})

const find = route('get /v1/market/listings/{id}', 'getListing', 'Get a listing', {
  description: 'With the figures that a search shows, measured now.',
  ...guard({ roles: ['viewer'] }),
  request: { params: idPath },
  responses: { 200: json(foundListing, 'The listing, open or not.'), ...problems(400, 404) },
})

const close = route('delete /v1/market/listings/{id}', 'closeListing', 'Close a listing', {
  description: 'Open offers on it are rejected, and their money returns. Licences that were sold stay.',
  ...guard({ roles: ['operator'] }),
  request: { params: idPath },
  responses: { 200: json(listing, 'The closed listing.'), ...problems(400, 404, 409) },
})

export const listingRoutes = resource()
  .openapi(create, async (c) => {
    const { env } = c
    const { principal } = c.var
    const asked = c.req.valid('json')
    const { account: seller, by } = await actorFor({ env, principal }, asked.seller)
    const found = await demandGoods(storeOf(env), asked.artifact, principal)
    demandOwner({ asked: asked.seller, seller }, found, by)
    const made = await sell(env, { ...asked, seller, listing_id: crypto.randomUUID() }, found, by)
    if (!made.ok) throw refused(made)
    return c.json(made.listing, 201)
  })
  .openapi(find, async (c) => {
    const { id } = c.req.valid('param')
    const found = await c.env.LEDGER.getByName(LEDGER).listing(id)
    if (!found) throw notFound(`There is no listing ${id}.`)
    return c.json(await measureListing(storeOf(c.env), found, Date.now()), 200)
  })
  .openapi(close, async (c) => {
    const { id } = c.req.valid('param')
    const { env } = c
    const { principal } = c.var
    const ledger = env.LEDGER.getByName(LEDGER)
    const found = await ledger.listing(id)
    if (!found) throw notFound(`There is no listing ${id}.`)
    await demandActor({ env, principal }, found.seller)
    const closed = await ledger.unlist(id, { reason: `closed by ${principal.name}`, key_id: ownKeyId(principal, found.seller) })
    if (!closed.ok) throw refused(closed)
    return c.json(closed.listing, 200)
  })

/** The seller is the account of the owner: a scope, or the key with its id. */
function demandOwner(
  { asked, seller }: { asked: string; seller: string },
  { owner, kind, id }: FoundGoods,
  { owners }: LedgerCaller,
): void {
  const is_scope = scopeOfOwner(owner.owner_id) !== null
  if (is_scope ? seller === owner.owner_id : owners?.[seller] === owner.owner_id) return
  const account = is_scope ? owner.owner_id : `key:${owner.owner}`
  throw forbidden(`The ${kind} ${id} belongs to ${account === asked ? 'another key of this name' : account}.`)
}

function refused(sale: SaleRefused): Problem {
  const { reason, detail } = sale
  if (reason === 'terms') return invalid(detail, [{ path: sale.term, message: sale.message }])
  if (reason === 'not_allowed') return forbidden(detail)
  return reason === 'not_found' ? notFound(detail) : conflict(reason.replaceAll('_', '-'), detail)
}
