import type { Account, LedgerAudit, SpendingLimits } from '../contract/market/account.ts'
import type { LedgerPage, PageAsked } from '../contract/market/ledger-api.ts'
import type { NewMint, NewTransfer, Transfer, TransferResult } from '../contract/market/transfer.ts'

export type TransferOptions = {
  /** Accounts that the edge vouches for: they are opened if they take part for the first time. */
  opens: readonly string[]
  /** The market's own transfers: they may debit escrow, and use ids that clients may not. */
  privileged: boolean
}

/** A pending transfer that timed out, at its expiry. */
export type TimedOut = { id: string; at: number }

/** Double entry. All methods that write run in the caller's transaction; `now` in ms. */
export class Ledger {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  transfer(_transfers: readonly NewTransfer[], _options: TransferOptions, _now: number): TransferResult[] {
    throw new Error('not built')
  }

  mint(_mint: NewMint, _opens: readonly string[], _now: number): TransferResult {
    throw new Error('not built')
  }

  account(_id: string): Account | null {
    throw new Error('not built')
  }

  accounts(_page: PageAsked): LedgerPage<Account> {
    throw new Error('not built')
  }

  statement(_id: string, _page: PageAsked): LedgerPage<Transfer> {
    throw new Error('not built')
  }

  audit(): LedgerAudit {
    throw new Error('not built')
  }

  setLimits(_account: string, _limits: SpendingLimits | null, _revision: number): void {
    throw new Error('not built')
  }

  closeAccount(_id: string): void {
    throw new Error('not built')
  }

  /** The time of the next timeout. */
  get due(): number | null {
    return this.#sql.exec<{ at: number | null }>('SELECT NULL AS at').one().at
  }

  /** Ends the pending transfers whose time has come by `now`, in order of their expiry. */
  expire(_now: number): TimedOut[] {
    return []
  }
}
