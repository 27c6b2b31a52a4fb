import type { Refused, Result } from '../../../base/result.ts'
import type { Account, LedgerAudit, SpendingLimits } from './account.ts'
import type { Deal } from './deal.ts'
import type { Listing, NewListing, NewOffer } from './listing.ts'
import type { Contract, NewContract } from './service.ts'
import type { NewMint, NewTransfer, Transfer, TransferResult } from './transfer.ts'
import type { MarketView } from './view.ts'

/** The name of the only Ledger object of a deployment. */
export const LEDGER = 'ledger'

export type PageAsked = { after: string | null; limit: number }
export type LedgerPage<Item> = { items: Item[]; next: string | null }

/**
 * A caller, whom the edge has authorised to act for these accounts. `opens`: accounts that exist
 * by D1 (a scope, a key) and may be opened if the Ledger does not have them yet. `owners`: the ids
 * of the keys to which the `key:` accounts among them belong.
 * `ends`: the pending transfers that the caller may end, beside its own; unset: all.
 * `counted`: the id under which its growth of a day is counted; unset: its name, which may repeat.
 * `empties`: it may pay from closed accounts. `privileged`: the market itself.
 */
export type LedgerCaller = {
  name: string
  counted?: string
  opens: string[]
  owners?: Record<string, string>
  ends?: { id: string; debit: string }[]
  empties?: boolean
  privileged?: true
}

/** A key, as D1 knows it. `opens`: its account is opened, unless it has one. */
export type AccountKey = { id: string; name: string; opens: boolean }
/** `owner`: the id of the key that has the account; null if it is not open yet. */
export type KeyAccount = { account: string; owner: string | null }

/** Facts about the goods, as D1 has them at the time of the listing. */
export type SoldGoods = {
  hash: string
  /** The state of the version. A version in a lower one is not delivered. */
  state: string
  /** An older version of another artifact with the same content, as `reflex:ID@V`. */
  original: string | null
  description: string
  event_types: string[]
  tools: string[]
  /** The scopes of its owner: it runs there without a licence. */
  owner_scopes: readonly string[]
  /** The artifacts that it was copied from, as `reflex:ID`; nearest first. */
  origins: string[]
}

export type ListingRefused = Refused<
  'not_found' | 'sold_as_new' | 'too_many' | 'expired' | 'not_resalable' | 'listed_already' | 'not_allowed'
>
export type DealRefused = Refused<
  | 'not_found'
  | 'not_open'
  | 'decided'
  | 'expired'
  | 'insufficient_funds'
  | 'limit'
  | 'own'
  | 'other_content'
  | 'goods_changed'
  | 'nothing_left'
  | 'not_licensable'
  | 'not_allowed'
>
export type ContractRefused = Refused<'not_found' | 'decided' | 'own' | 'other_content' | 'insufficient_funds' | 'limit' | 'used_up'>

/**
 * The cumulative use of a licence in a scope. A repeated report changes nothing. `lapses`: how
 * often its certificate ended there, or the scope suspended it.
 */
export type LicenceUse = { deal_id: string; scope: string; fires: number; certified: number; lapses: number }

/** Ends a licence early: its certificate lapsed, or its version was retired. */
export type Revocation = { artifact: string; hash: string; reason: string }

/** The RPC interface of the Ledger. Expected outcomes are data. Lists are pages. */
export interface LedgerApi {
  /** At most MOST_TRANSFERS, in one transaction; results in order. */
  transfer(transfers: NewTransfer[], by: LedgerCaller): Promise<TransferResult[]>
  mint(mint: NewMint, by: LedgerCaller): Promise<TransferResult>
  account(id: string): Promise<Account | null>
  accounts(page: PageAsked): Promise<LedgerPage<Account>>
  /** Oldest first; `after` is a `seq`. */
  statement(id: string, page: PageAsked): Promise<LedgerPage<Transfer>>
  audit(): Promise<LedgerAudit>
  /** The size of the object in bytes. */
  size(): Promise<number>
  /** The highest `seq` that has left for D1; 0 if none has. */
  departedUpTo(): Promise<number>
  setLimits(account: string, limits: SpendingLimits | null, revision: number): Promise<void>
  /** Closes the account of the key with the id `owner`, or `id`, if nobody owns that. */
  closeAccount(id: string, owner: string | null): Promise<void>
  /** The accounts of keys, in order. */
  accountsOfKeys(keys: AccountKey[]): Promise<KeyAccount[]>
  /** The transfers with these ids, as far as they exist: several accounts may use the same id. */
  transfers(ids: string[]): Promise<Transfer[]>

  list(
    asked: NewListing & { listing_id: string },
    goods: SoldGoods,
    by: LedgerCaller,
  ): Promise<Result<{ listing: Listing }, ListingRefused>>
  /** `key_id`: as for `decide`. */
  unlist(listing_id: string, by: { reason: string; key_id?: string | undefined }): Promise<Result<{ listing: Listing }, ListingRefused>>
  listing(listing_id: string): Promise<Listing | null>
  offer(listing_id: string, asked: NewOffer, by: LedgerCaller): Promise<Result<{ deal: Deal; created: boolean }, DealRefused>>
  /**
   * `goods_state`: D1's state of the version just before, for `accept`. `key_id`: the key that acts
   * for its own account, which must be the account's owner.
   */
  decide(
    deal_id: string,
    decision: 'accept' | 'reject' | 'cancel' | 'refund',
    by: { account: string; key_id?: string | undefined; reason?: string | undefined; goods_state?: string | undefined },
  ): Promise<Result<{ deal: Deal }, DealRefused>>
  deal(deal_id: string): Promise<Deal | null>
  deals(of: { account: string } & PageAsked): Promise<LedgerPage<Deal>>
  /** Sends the state of these deals to D1 again, with all that follows from it. */
  deliverAgain(deal_ids: string[]): Promise<void>
  /** Pays a fee for a trial, or counts a free one. Refused beyond the limit of trials. */
  payTrial(listing_id: string, of: { buyer: string; id: string }): Promise<Result<{ transfer: string | null }, DealRefused>>
  reportUse(uses: LicenceUse[]): Promise<void>
  revoke(revocation: Revocation): Promise<void>

  propose(asked: NewContract, by: LedgerCaller): Promise<Result<{ contract: Contract; created: boolean }, ContractRefused>>
  decideContract(
    id: string,
    decision: 'accept' | 'reject' | 'end' | 'dispute',
    by: { account: string; reason?: string | undefined; traces?: string[] | undefined },
  ): Promise<Result<{ contract: Contract }, ContractRefused>>
  contract(id: string): Promise<Contract | null>
  contracts(of: { account: string } & PageAsked): Promise<LedgerPage<Contract>>
  /** Reserves the price of a call under a contract, once per `invocation_id`. */
  payInvocation(id: string, of: { caller: string; invocation_id: string }): Promise<Result<{ contract: Contract }, ContractRefused>>

  /** Pays for a call that was served, or returns the money. */
  settleInvocation(
    id: string,
    of: { invocation_id: string; served: boolean; trace_id: string | null },
  ): Promise<Result<{ contract: Contract }, ContractRefused>>

  /** The view of a scope as of now, for a scope that has none. */
  view(scope: string): Promise<MarketView>
}
