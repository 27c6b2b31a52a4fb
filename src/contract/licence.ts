/** The part of a licence that a scope checks before it uses a version. `expires_at` in ms. */
export type ScopeLicence = {
  deal_id: string
  expires_at: number | null
  /** Actions that the scope may take under it. */
  fires: number | null
  /** The scope reports its certified decisions, which are paid for one by one. */
  metered: boolean
}
/** A scope uses goods under licences, unless their owner covers the scope. */
export type LicensedGoods = { readonly licences?: readonly ScopeLicence[] | undefined }

/** `saves`: the average of a turn, which the action spares if it ends well. */
export type UsedLicence = { deal_id: string; saves: { model_calls: number; tokens: number; cost_usd: number } | null }

/** A deal that waits for the answer of its seller, as its reflexes see it. */
export type PendingPurchase = { deal_id: string; artifact_id: string; price: number; buyer: string }
export type PendingContract = {
  contract_id: string
  proposer: string
  terms: { service: string; price_per_invocation: number; limit: number }
}
