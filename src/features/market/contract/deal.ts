import { z } from 'zod'
import { goodsKinds, listingTerms } from './listing.ts'

/** `settled`: a licence that has ended, and whose money is divided. */
const dealStates = ['offered', 'accepted', 'rejected', 'cancelled', 'expired', 'refunded', 'settled'] as const
export type DealState = (typeof dealStates)[number]

const dealStep = z.object({
  at: z.iso.datetime(),
  state: z.enum(dealStates),
  by: z.string().describe('The account that acted, or `ledger`.'),
  reason: z.string().nullable(),
  transfers: z.array(z.string()).describe('Ids of the transfers of this step.'),
})

/** The goods as the buyer has them. The transaction of the payment writes it. */
const delivery = z.object({
  kind: z.enum(goodsKinds),
  artifact: z.string().describe('The licensed or bought version; for a copy, the version that the buyer owns.'),
  scopes: z.array(z.string()).nullable(),
  expires_at: z.iso.datetime().nullable(),
  fires: z.int().nullable().describe('Actions that each scope may take under the licence.'),
  used: z.record(z.string(), z.int()).describe('Actions taken, by scope.'),
  lapsed: z.array(z.string()).describe('The scopes in which its certificate has lapsed: the buyer may end a licence then.'),
  in_use: z.boolean().describe('False once it is revoked, expired or used up.'),
})

export const deal = z
  .object({
    deal_id: z.string(),
    listing_id: z.string(),
    artifact: z.string(),
    hash: z.string(),
    kind: z.enum(goodsKinds),
    scopes: z.array(z.string()).nullable().describe('The scopes of a licence, as the offer names them.'),
    terms: listingTerms,
    price: z.int(),
    seller: z.string(),
    buyer: z.string(),
    status: z.enum(dealStates),
    offered_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    paid: z.int().describe('Paid to the seller and for royalties so far.'),
    held: z.int().describe('Held in escrow for this deal.'),
    history: z.array(dealStep),
    delivery: delivery.nullable(),
  })
  .meta({ id: 'Deal' })
export type Deal = z.infer<typeof deal>

export const dealReason = z.strictObject({ reason: z.string().max(500).optional() })
