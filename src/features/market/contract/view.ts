import type { Result } from '../../../base/result.ts'
import type { Event } from '../../../core/event.ts'
import type { Account } from './account.ts'

/** A deal that waits for the answer of its seller. */
export type PendingPurchase = { deal_id: string; artifact_id: string; price: number; buyer: string }
export type PendingContract = {
  contract_id: string
  proposer: string
  terms: { service: string; price_per_invocation: number; limit: number }
}

/** A right to run a version in one scope. `expires_at` in ms. */
export type Licence = {
  deal_id: string
  kind: 'reflex' | 'skill'
  id: string
  version: string
  hash: string
  expires_at: number | null
  /** Actions that the scope may take under it. */
  fires: number | null
  /** The scope reports its certified decisions, which are paid for one by one. */
  metered: boolean
}

/** The part of a licence that the scope checks before it acts. `expires_at` in ms. */
export type ScopeLicence = Pick<Licence, 'deal_id' | 'expires_at' | 'fires' | 'metered'>

/**
 * A scope's part of the market, which the Ledger pushes after each change. A view with a lower
 * `revision` than the one that the scope has is ignored.
 */
export type MarketView = {
  revision: number
  account: Pick<Account, 'balance' | 'available'>
  pending_purchases: PendingPurchase[]
  pending_contracts: PendingContract[]
  /** Artifacts that the scope owns by purchase, of all kinds: `reflex:ID` or `skill:ID`. */
  owned: string[]
  /** The artifacts that the scope sold, in the same form; the last 500. */
  sold: string[]
  licences: Licence[]
  /** Contracts in force in which the scope takes part. */
  contracts: { contract_id: string; role: 'caller' | 'provider'; service: string; other: string }[]
}

/** A transfer or a change of a deal or contract, which becomes an event of the scope. */
export type MarketEvent = { id: string; type: 'transfer' | 'offer' | 'deal' | 'contract' | 'invocation'; [field: string]: unknown }

const marketEventTypes: ReadonlySet<string> = new Set<MarketEvent['type']>(['transfer', 'offer', 'deal', 'contract', 'invocation'])

/** True for an event that the Ledger sent: one with a key has a sender. */
export const isMarketEvent = ({ type, source, meta }: Event): boolean =>
  source === 'ledger' && meta.sender === undefined && marketEventTypes.has(type)

/** The reflex that is called sees the call itself, with its input: not this message of it, too. */
export const isCallOf = ({ id }: { id: string }, event: Event & { service?: unknown }): boolean =>
  event.type === 'invocation' && event.service === `reflex:${id}`

/** A call of a scope's skill or reflex by another scope, which has reserved the money for it. */
export type ServiceCall = {
  contract_id: string
  invocation_id: string
  caller: string
  service: string
  input: Record<string, unknown>
  trace?: { trace_id: string; parent_id: string | null } | undefined
}
/** `trace_id`: of this side. */
export type Served = Result<{ output: unknown; trace_id: string }, { detail: string; trace_id: string }>

/** `saves`: the average of a turn, which the action spares if it ends well. */
export type UsedLicence = { deal_id: string; saves: { model_calls: number; tokens: number; cost_usd: number } | null }
