import type { Result } from '../../../base/result.ts'
import type { PendingContract, PendingPurchase, ScopeLicence } from '../../../contract/licence.ts'
import type { Account } from './account.ts'

/** A right to run a version in one scope. */
export type Licence = ScopeLicence & { kind: 'reflex' | 'skill'; id: string; version: string; hash: string }

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
