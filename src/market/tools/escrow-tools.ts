import { z } from 'zod'
import { artifactReference, goodsKinds, listingTerms } from '../../contract/market/listing.ts'
import { amount } from '../../contract/market/transfer.ts'
import { agentOwner, scopeOfOwner } from '../../contract/reflex.ts'
import { storeOf } from '../../store/store.ts'
import { defineTool } from '../../tools/define-tool.ts'
import { findGoods, stateOfGoods } from '../goods.ts'
import { sell } from '../goods/sell.ts'
import { artifactOf } from '../deals/records.ts'
import { made, type Desk } from './desk.ts'

const deal_id = z.string().min(1).max(128)
const reason = z.string().max(500).optional()

/** The methods of `genesis_escrow`. Decisions have the deal as their key. */
export const escrowTools = (desk: Desk) => ({ ...selling(desk), ...buying(desk) })

function selling(desk: Desk) {
  return {
    'genesis_escrow.list': defineTool({
      keyed_by_call: true,
      description: 'Lists a version of a reflex or skill that you own for sale: a licence to run it, a copy of its code, or its ownership.',
      input: z.strictObject({ artifact: artifactReference, kind: z.enum(goodsKinds), price: amount, terms: listingTerms.optional() }),
      async execute({ terms, ...asked }, call) {
        const found = await findGoods(storeOf(desk.env), asked.artifact)
        if (!found || found.owner.owner_id !== desk.account) throw new Error(`you own no version ${asked.artifact}`)
        const input = { ...asked, ...(terms && { terms }) }
        const gives = `${asked.kind} of ${asked.artifact}`
        const sale = { tool: 'genesis_escrow.list', input, to: 'any buyer', amount: asked.price, gives }
        await desk.demandConsent(sale, artifactOf(asked.artifact), call)
        const listing = { ...asked, seller: desk.account, listing_id: desk.idOf(call), ...(terms && { terms }) }
        return made(await sell(desk.env, listing, found, await desk.caller())).listing
      },
    }),
    'genesis_escrow.unlist': defineTool({
      idempotence_key: ({ listing_id }) => `unlist:${listing_id}`,
      description: 'Withdraws a listing of yours. Its open offers end, and their money returns.',
      input: z.strictObject({ listing_id: deal_id }),
      async execute({ listing_id }) {
        const listing = await desk.ledger.listing(listing_id)
        if (listing?.seller !== desk.account) throw new Error(`you have no listing ${listing_id}`)
        return made(await desk.ledger.unlist(listing_id, { reason: 'its seller withdrew it' })).listing
      },
    }),
    'genesis_escrow.accept': defineTool({
      idempotence_key: (input) => `accept:${input.deal_id}`,
      description: 'Accepts an offer for what you sell. The payment and the delivery are one step.',
      input: z.strictObject({ deal_id }),
      async execute(input, call) {
        const deal = await desk.ledger.deal(input.deal_id)
        if (deal?.seller !== desk.account) throw new Error(`no deal ${input.deal_id} waits for your answer`)
        if (deal.status === 'offered') {
          const { artifact, kind, buyer: to, price } = deal
          const sale = { tool: 'genesis_escrow.accept', input, to, amount: price, gives: `${kind} of ${artifact}` }
          await desk.demandConsent(sale, artifactOf(artifact), call)
        }
        const goods_state = await stateOfGoods(storeOf(desk.env), deal.artifact)
        return made(await desk.ledger.decide(input.deal_id, 'accept', { account: desk.account, goods_state })).deal
      },
    }),
    'genesis_escrow.reject': defineTool({
      idempotence_key: (input) => `reject:${input.deal_id}`,
      description: 'Rejects an offer for what you sell. The money returns to the buyer.',
      input: z.strictObject({ deal_id, reason }),
      execute: async (input) =>
        made(await desk.ledger.decide(input.deal_id, 'reject', { account: desk.account, reason: input.reason })).deal,
    }),
  }
}

function buying(desk: Desk) {
  return {
    'genesis_escrow.offer': defineTool({
      keyed_by_call: true,
      description: 'Offers to buy what a listing sells, at its price or another. The money is reserved until the seller answers.',
      input: z.strictObject({ listing_id: deal_id, price: amount.optional() }),
      async execute({ listing_id, price }, call) {
        const listing = await desk.ledger.listing(listing_id)
        if (!listing) throw new Error(`there is no listing ${listing_id}`)
        const pays = price ?? listing.price
        const input = { listing_id, price: pays }
        await desk.demandAllowance({ tool: 'genesis_escrow.offer', input, to: listing.seller, amount: pays }, call)
        const seller = scopeOfOwner(listing.seller)
        const by = await desk.caller(seller === null ? undefined : agentOwner(seller))
        const asked = { id: desk.idOf(call), buyer: desk.account, ...(price !== undefined && { price }) }
        return made(await desk.ledger.offer(listing_id, asked, by)).deal
      },
    }),
    'genesis_escrow.cancel': defineTool({
      idempotence_key: (input) => `cancel:${input.deal_id}`,
      description: 'Cancels an offer of yours that waits for an answer. The money returns.',
      input: z.strictObject({ deal_id, reason }),
      execute: async (input) =>
        made(await desk.ledger.decide(input.deal_id, 'cancel', { account: desk.account, reason: input.reason })).deal,
    }),
  }
}
