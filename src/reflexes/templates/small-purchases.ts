import { z } from 'zod'
import { defineTemplate, literal } from './define-template.ts'

export const smallPurchases = defineTemplate({
  name: 'small-purchases',
  description: 'Accepts the cheapest purchase that waits in escrow, where it costs at most so much; dearer ones are left to the model.',
  params: z.strictObject({
    max_price: z.number().min(0),
    escrow_id: z.string().min(1).max(128).default('genesis_escrow'),
  }),
  code: (params) => `
const settings = ${literal(params)}

function reflex(context) {
  const small = context.pending_purchases.filter(({ price }) => price <= settings.max_price)
  if (small.length === 0) return null
  const { deal_id } = small.reduce((cheapest, other) => (other.price < cheapest.price ? other : cheapest))
  return {
    action_type: 'invoke_artifact',
    artifact_id: settings.escrow_id,
    method: 'accept',
    args: [deal_id],
    idempotence_key: 'accept:' + deal_id,
  }
}
`,
})
