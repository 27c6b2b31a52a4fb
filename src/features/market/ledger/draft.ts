import type { SpendingLimits } from '../contract/account.ts'
import type { NewTransfer, TransferFailure } from '../contract/transfer.ts'
import { clientId } from './ids.ts'

export type TransferKind = 'single' | 'pending' | 'post' | 'void' | 'timeout'

/** A row of the history, before the database gives it its `seq`. Its ids are kept ones. */
export type NewRow = {
  id: string
  debit: string
  credit: string
  amount: number
  kind: TransferKind
  code: string | null
  memo: string | null
  pending_id: string | null
  timeout_s: number | null
  linked: 0 | 1
  /** The request said `post: true`. */
  post_all: 0 | 1
  expires_at: number | null
  /** The caller; null for the market. */
  by: string | null
  at: number
}

export type Sums = { debits_pending: number; debits_posted: number; credits_pending: number; credits_posted: number }
export type AccountState = Sums & {
  id: string
  closed: boolean
  owner: string | null
  limits: SpendingLimits | null
  /** Spent in the last hour and day; known if the account has limits. */
  hour: number
  day: number
}
type FailedId = { asked: NewTransfer; reason: TransferFailure }

/**
 * The part of the ledger that a request concerns, and the changes that it makes. A chain has a
 * draft of its own, whose changes are merged into the draft below it, or dropped.
 */
export class LedgerDraft {
  readonly #below: LedgerDraft | null
  readonly accounts = new Map<string, AccountState>()
  readonly rows = new Map<string, NewRow>()
  /** The end of a pending transfer, by its id. */
  readonly ends = new Map<string, TransferKind>()
  /** By kept ids. */
  readonly failed = new Map<string, FailedId>()
  /** Kept ids whose transfer or failure has left the ledger. */
  readonly departed = new Set<string>()
  readonly made: NewRow[] = []
  readonly #own = new Set<string>()
  readonly newly_failed: (FailedId & { id: string; at: number })[] = []
  /** The rows by the ids that their clients gave them. */
  readonly #named = new Map<string, NewRow[]>()

  constructor(below: LedgerDraft | null = null) {
    this.#below = below
  }

  account(id: string): AccountState | undefined {
    return this.accounts.get(id) ?? this.#below?.account(id)
  }

  row(id: string): NewRow | undefined {
    return this.rows.get(id) ?? this.#below?.row(id)
  }

  /** The rows to which their clients gave this id; each has another debit account. */
  named(id: string): NewRow[] {
    return [...(this.#below?.named(id) ?? []), ...(this.#named.get(id) ?? [])]
  }

  /** Takes a row of the database. */
  add(row: NewRow): void {
    const id = clientId(row.id, row.debit)
    this.rows.set(row.id, row)
    this.#named.set(id, [...(this.#named.get(id) ?? []), row])
  }

  end(pending_id: string): TransferKind | undefined {
    return this.ends.get(pending_id) ?? this.#below?.end(pending_id)
  }

  failure(id: string): FailedId | undefined {
    return this.failed.get(id) ?? this.#below?.failure(id)
  }

  hasLeft(id: string): boolean {
    return this.departed.has(id) || this.#below?.hasLeft(id) === true
  }

  /** True for a row that this request makes. */
  isMade(id: string): boolean {
    return this.#own.has(id) || this.#below?.isMade(id) === true
  }

  fail(id: string, failed: FailedId, at: number): void {
    this.failed.set(id, failed)
    this.newly_failed.push({ id, ...failed, at })
  }

  /** Adds a row to the history, and to the sums of its two accounts. */
  make(row: NewRow): void {
    this.made.push(row)
    this.#own.add(row.id)
    this.add(row)
    const pending = row.pending_id === null ? undefined : this.row(row.pending_id)
    if (pending) this.ends.set(pending.id, row.kind)
    const reserved = row.kind === 'pending' ? row.amount : -(pending?.amount ?? 0)
    const posted = row.kind === 'single' || row.kind === 'post' ? row.amount : 0
    const debit = this.#changed(row.debit)
    debit.debits_pending += reserved
    debit.debits_posted += posted
    const credit = this.#changed(row.credit)
    credit.credits_pending += reserved
    credit.credits_posted += posted
    if (debit.limits) spend(debit, row, pending)
  }

  merge(above: LedgerDraft): void {
    for (const [id, account] of above.accounts) this.accounts.set(id, account)
    for (const row of above.rows.values()) this.add(row)
    for (const [id, kind] of above.ends) this.ends.set(id, kind)
    this.made.push(...above.made)
    for (const { id } of above.made) this.#own.add(id)
  }

  /** This draft's own copy of an account; a new one if nobody has it yet. */
  #changed(id: string): AccountState {
    const own = this.accounts.get(id)
    if (own) return own
    const copy = { ...(this.#below?.account(id) ?? newAccount(id, null)) }
    this.accounts.set(id, copy)
    return copy
  }
}

export const newAccount = (id: string, owner: string | null): AccountState => ({
  id,
  debits_pending: 0,
  debits_posted: 0,
  credits_pending: 0,
  credits_posted: 0,
  closed: false,
  owner,
  limits: null,
  hour: 0,
  day: 0,
})

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** Counts a debit as spent, and takes back the part that returns from a pending one. */
function spend(account: AccountState, { kind, amount, at }: NewRow, pending: NewRow | undefined): void {
  if (!pending) {
    account.hour += amount
    account.day += amount
    return
  }
  const returned = kind === 'post' ? pending.amount - amount : pending.amount
  if (pending.at > at - HOUR_MS) account.hour -= returned
  if (pending.at > at - DAY_MS) account.day -= returned
}
