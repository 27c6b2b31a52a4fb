import { z } from 'zod'
import * as lists from '../contract/lists.ts'
import { operations, type CommandOf } from '../../../contract/operation.ts'
import { deal, dealReason, type Deal } from '../contract/deal.ts'
import { newOffer, type ListingTerms } from '../contract/listing.ts'
import { amount } from '../contract/transfer.ts'
import { paged } from '../../../contract/paging.ts'
import { counted } from '../../../base/amounts.ts'
import { accountQuery, byId, decidedById, idPath, reasonFlag } from '../../../contract/operations/shared.ts'

const operation = operations({ tag: 'Market', roles: ['operator'] })

/** The terms of a listing or a deal in words. */
export function termsText({ days, fires, per_decision, most_scopes, resale, royalty_percent, trial_fee }: ListingTerms): string {
  const parts = [
    days !== undefined && `ends after ${counted(days, 'day')}`,
    fires !== undefined && `ends in a scope after ${counted(fires, 'action')}`,
    per_decision !== undefined && `${per_decision} for each certified decision, the price is the budget`,
    most_scopes === 'any' && 'for any scopes and patterns',
    typeof most_scopes === 'number' && `for ${counted(most_scopes, 'scope')}`,
    resale === true && 'may be sold on',
    royalty_percent !== undefined && `a royalty of ${royalty_percent} % of each resale`,
    trial_fee !== undefined && trial_fee > 0 && `${trial_fee} for a trial`,
  ]
  return parts.filter((part) => part !== false).join('; ')
}

const shows: CommandOf<Deal>['shows'] = (found) => {
  const { deal_id, status, artifact, kind, price, seller, buyer, paid, held, delivery, history } = found
  const answer_by = status === 'offered' ? found.expires_at : undefined
  const scopes = found.scopes?.join(', ')
  const terms = termsText(found.terms)
  return [
    { deal_id, status, artifact, kind, scopes, terms, price, seller, buyer, paid, held, answer_by },
    ...(delivery ? [`delivered: ${delivery.artifact}${delivery.in_use ? '' : ', no longer in use'}`] : []),
    ...Object.entries(delivery?.used ?? {}).map(([scope, fires]) => `  ${scope}: ${counted(fires, 'action')}`),
    ...history.map(({ at, state, by, reason }) => `  ${at}  ${state} by ${by}${reason === null ? '' : `: ${reason}`}`),
  ]
}

export const offer = operation(lists.offer.at, 'makeOffer', 'Make an offer for a listing', {
  description:
    'The money is pending from now on, until the seller answers or the offer times out. The `id` becomes the id of the deal; the same offer again changes nothing. ' +
    'For the key whose account buys, operators of the scope that buys, and admins. The key must cover the scopes of a licence.',
  params: idPath,
  body: newOffer,
  agent: {
    name: 'genesis_escrow.offer',
    description: 'Offers to buy what a listing sells, at its price or another. The money is reserved until the seller answers.',
    input: z.strictObject({ listing_id: idPath.shape.id, price: amount.optional() }),
  },
  example: { id: 'offer-1', buyer: 'scope:shop' },
  answers: { 200: [deal, 'The deal, which existed already.'], 201: [deal, 'The deal, as offered.'] },
  problems: [404, 409],
  command: {
    ...lists.offer,
    help: 'Offer to buy; the money is held until the seller answers',
    shows,
  },
})

export const list = operation(lists.deals.at, 'listDeals', 'List the deals of an account, oldest first', {
  roles: ['viewer'],
  query: accountQuery,
  answers: { 200: [paged(deal), 'A page.'] },
  command: {
    usage: 'deals',
    flags: [['--account <account>', 'the buyer or the seller, such as scope:shop/berlin', { required: true }]],
    table: {
      columns: lists.deals.columns,
      empty: 'The account has no deals.',
      most: 100,
      limit: 20,
    },
  },
})

export const find = operation('get /v1/market/deals/{id}', 'getDeal', 'Get a deal', {
  description: 'For those who may read the account of the seller or of the buyer.',
  roles: ['viewer'],
  ...byId(deal, 'The deal with its history and its delivery.'),
  command: { usage: 'deal <id>', help: 'Show a deal with its history', shows },
})

const toAccept = z.strictObject({ deal_id: idPath.shape.id })
const toEnd = toAccept.extend(dealReason.shape)

type Words = readonly [summary: string, description: string, help: string, of_tool?: string]
/** `input`: for the tool of agents that decides so. */
const decision = <const Verb extends string, Input = never>(
  verb: Verb,
  input: z.ZodType<Input> | null,
  [summary, description, help, of_tool = '']: Words,
) =>
  operation(`post /v1/market/deals/{id}/${verb}`, `${verb}Deal`, summary, {
    description,
    ...decidedById(deal, 'The deal.', dealReason),
    ...(input && { agent: { name: `genesis_escrow.${verb}`, description: of_tool, input } }),
    takes: 'optional',
    example: { reason: 'The price is too low.' },
    command: { usage: `${verb} <deal>`, help, flags: [reasonFlag()], shows },
  })

export const accept = decision('accept', toAccept, [
  'Accept an offer',
  'For the seller. The payment and the delivery are one transaction. If the version was retired, demoted or sold since the offer, nothing is sold and the money returns.',
  'Accept an offer, as its seller: the goods and the money change hands together',
  'Accepts an offer for what you sell. The payment and the delivery are one step.',
])
export const reject = decision('reject', toEnd, [
  'Reject an offer',
  'For the seller. The money returns to the buyer.',
  'Reject an offer, as its seller',
  'Rejects an offer for what you sell. The money returns to the buyer.',
])
export const cancel = decision('cancel', toEnd, [
  'Cancel an offer',
  'For the buyer, before it is answered. The money returns.',
  'Cancel your offer',
  'Cancels an offer of yours that waits for an answer. The money returns.',
])
export const refund = decision('refund', null, [
  'End a licence early',
  'For the seller; for the buyer too, if it is paid by decision. What is not earned yet returns to the buyer.',
  'End a licence: what is not used up returns',
])
