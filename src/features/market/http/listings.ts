import { LEDGER, type LedgerCaller } from '../contract/ledger-api.ts'
import { close, create, find } from '../operations/listings.ts'
import type { Problem } from '../../../contract/problem.ts'
import { scopeOfOwner } from '../../../contract/reflex.ts'
import { measureListing } from '../discovery/measure.ts'
import { sell, type SaleRefused } from '../goods/sell.ts'
import { storeOf } from '../../../store/store.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { conflict, forbidden, invalid, notFound } from '../../../http/problems/refusals.ts'
import { actorFor, demandActor, ownKeyId } from './account-access.ts'
import { demandGoods, type FoundGoods } from './goods.ts'

export const listingRoutes = resource().openapiRoutes([
  serve(create, async ({ env, var: { principal } }, { body: asked }) => {
    const { account: seller, by } = await actorFor({ env, principal }, asked.seller)
    const found = await demandGoods(storeOf(env), asked.artifact, principal)
    demandOwner({ asked: asked.seller, seller }, found, by)
    const made = await sell(env, { ...asked, seller, listing_id: crypto.randomUUID() }, found, by)
    if (!made.ok) throw refused(made)
    return made.listing
  }),
  serve(find, async ({ env }, { params: { id } }) => {
    const found = await env.LEDGER.getByName(LEDGER).listing(id)
    if (!found) throw notFound(`There is no listing ${id}.`)
    return measureListing(storeOf(env), found, Date.now())
  }),
  serve(close, async ({ env, var: { principal } }, { params: { id } }) => {
    const ledger = env.LEDGER.getByName(LEDGER)
    const found = await ledger.listing(id)
    if (!found) throw notFound(`There is no listing ${id}.`)
    await demandActor({ env, principal }, found.seller)
    const closed = await ledger.unlist(id, { reason: `closed by ${principal.name}`, key_id: ownKeyId(principal, found.seller) })
    if (!closed.ok) throw refused(closed)
    return closed.listing
  }),
])

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
