import { z } from 'zod'
import { defineTemplate, literal } from './define-template.ts'

const price = z.int().min(0)
const buyers = z.array(z.string().min(1).max(200)).max(100)

export const genesisTradingReflex = defineTemplate({
  name: 'genesis_trading_reflex',
  description:
    'Answers the offers for what the scope sells: accepts those up to a price, and rejects those below a floor or from buyers that are not allowed. It leaves dearer offers to the model, and makes none.',
  params: z
    .strictObject({
      max_price: price.describe('Offers up to this price are accepted. Dearer ones are left to the model.'),
      min_price: price.default(0).describe('Offers below this price are rejected.'),
      buyers: buyers.optional().describe('Accounts whose offers are accepted; `*` at the end matches any ending. Unset: all.'),
      refused_buyers: buyers.default([]).describe('Accounts whose offers are rejected, even if `buyers` has them.'),
      escrow_id: z.string().min(1).max(128).default('genesis_escrow'),
    })
    .refine(({ max_price, min_price }) => min_price <= max_price, { path: ['min_price'], message: 'is greater than max_price' }),
  code: (params) => `
const settings = ${literal(params)}

function matches(account, pattern) {
  return pattern.endsWith('*') ? account.startsWith(pattern.slice(0, -1)) : account === pattern
}

function refusal({ price, buyer }) {
  const among = (patterns) => patterns.some((pattern) => matches(buyer, pattern))
  if (among(settings.refused_buyers)) return 'the seller does not sell to this buyer'
  if (settings.buyers && !among(settings.buyers)) return 'the seller does not sell to this buyer'
  return price < settings.min_price ? 'the price is below ' + settings.min_price : null
}

function answer(deal_id, method, args) {
  return {
    action_type: 'invoke_artifact',
    artifact_id: settings.escrow_id,
    method,
    args: [deal_id, ...args],
    idempotence_key: method + ':' + deal_id,
  }
}

function reflex(context) {
  if (context.event.type !== 'offer') return null
  const deal = context.pending_purchases.find(({ deal_id }) => deal_id === context.event.deal_id)
  if (!deal) return null
  const reason = refusal(deal)
  if (reason !== null) return answer(deal.deal_id, 'reject', [reason])
  return deal.price <= settings.max_price ? answer(deal.deal_id, 'accept', []) : null
}
`,
})
