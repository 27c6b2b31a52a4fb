import { ESCROW, GENESIS, MOST_SCRIP, type NewTransfer, type TransferFailure, type TransferResult } from '../contract/transfer.ts'
import type { LedgerCaller } from '../contract/ledger-api.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { DealRecord } from './records.ts'
import { sharesBetween } from './royalties.ts'

type Money = Pick<Ledger, 'transfer' | 'account' | 'mayPay' | 'ownerOf'>

type Sale = Pick<DealRecord, 'seller' | 'owner'>

/**
 * The money of a deal: held in escrow from the offer on, paid as it is earned, the rest returned.
 * 1. `held` is what escrow has for the deal: all of the offer once it is accepted, 0 at its end.
 * 2. paid + returned + held is the price, after each transaction.
 * 3. The ids of transfers derive from the deal and the sum paid, so that nothing is paid twice.
 */
export class Payments {
  readonly #ledger: Money

  constructor(ledger: Money) {
    this.#ledger = ledger
  }

  /** Reserves the price. The reason, if the buyer cannot pay it. */
  hold({ deal_id, buyer, seller, price }: DealRecord, { timeout_s, by }: { timeout_s: number; by: LedgerCaller }, now: number) {
    const id = idOf(deal_id, 'hold')
    const hold = { id, debit: buyer, credit: ESCROW, amount: price, code: 'offer', memo: seller, pending: true, timeout_s }
    const [result] = this.#ledger.transfer(
      [hold],
      { opens: by.opens, owners: by.owners, caller: by.name, counted: by.counted, privileged: true },
      now,
    )
    return result?.status === 'failed' ? result.reason : null
  }

  /** Moves the held money to escrow. */
  take(deal: DealRecord, now: number): string[] {
    const id = idOf(deal.deal_id, 'post')
    return this.#demand(deal, [{ id, pending_id: idOf(deal.deal_id, 'hold'), post: true, code: 'accept' }], now)
  }

  /** Returns the held money of an offer. */
  release(deal: DealRecord, now: number): string[] {
    return this.#demand(deal, [{ id: idOf(deal.deal_id, 'void'), pending_id: idOf(deal.deal_id, 'hold'), void: true, code: 'offer' }], now)
  }

  /** Pays what is earned: `earned` is the sum so far. Closed accounts receive nothing. */
  pay(deal: DealRecord, earned: number, now: number): { deal: DealRecord; transfers: string[] } {
    const { seller, line, paid, held } = deal
    if (earned <= paid) return { deal, transfers: [] }
    const shares = sharesBetween(paid, earned, seller, line)
    const transfers = shares.map(({ account, amount }, index) => ({
      ...this.#payment(deal, `pay-${earned}-${index}`, [account, seller, deal.buyer], amount),
      code: account === seller ? 'sale' : 'royalty',
      memo: deal.artifact,
    }))
    const ids = this.#demand(deal, chained(transfers), now)
    return { deal: { ...deal, paid: earned, held: held - (earned - paid) }, transfers: ids }
  }

  /** Returns what is held to the buyer. */
  refund(deal: DealRecord, now: number): { deal: DealRecord; transfers: string[] } {
    if (deal.held === 0) return { deal, transfers: [] }
    const refund = this.#payment(deal, 'refund', [deal.buyer, deal.seller], deal.held)
    return { deal: { ...deal, held: 0 }, transfers: this.#demand(deal, [{ ...refund, code: 'refund', memo: deal.artifact }], now) }
  }

  /** The id of the key that a side's account belongs to, if it is a key's. */
  ownerOf({ seller, owner }: Sale, account: string): string | null {
    return (account === seller ? owner : null) ?? this.#ledger.ownerOf(account)
  }

  /** False if the account belongs to another key, which may have the same name. */
  belongsTo(sale: Sale, account: string, key_id: string | undefined): boolean {
    const owner = this.ownerOf(sale, account)
    return key_id === undefined || owner === null || owner === key_id
  }

  /** Also if another key has it by now: the seller's own was deleted before the account opened. */
  isClosed({ seller, owner }: Sale): boolean {
    const opened_by = this.#ledger.ownerOf(seller)
    const is_other = owner !== null && opened_by !== null && opened_by !== owner
    return is_other || this.#ledger.account(seller)?.closed === true
  }

  /** False if the settings of the buyer exclude the seller: the money itself goes to escrow. */
  mayPay(buyer: string, seller: string): boolean {
    return this.#ledger.mayPay(buyer, seller)
  }

  /** To the first of the accounts that can take it. What none can take leaves circulation. */
  #payment(deal: DealRecord, part: string, to: readonly string[], amount: number): NewTransfer {
    const credit = to.find((account) => this.#takes(deal, account, amount)) ?? GENESIS
    return { id: idOf(deal.deal_id, part), debit: ESCROW, credit, amount }
  }

  #takes(sale: Sale, id: string, amount: number): boolean {
    const account = this.#ledger.account(id)
    if (!account) return true
    const is_closed = account.closed || (id === sale.seller && this.isClosed(sale))
    return !is_closed && account.credits_posted + account.credits_pending <= MOST_SCRIP - amount
  }

  /** These cannot fail by the invariants above. If one does, the transaction is rolled back. */
  #demand({ seller, owner }: DealRecord, transfers: readonly NewTransfer[], now: number): string[] {
    const opens = transfers.flatMap(({ credit }) => credit ?? [])
    const owners = owner === null ? undefined : { [seller]: owner }
    const results = this.#ledger.transfer(transfers, { opens, owners, privileged: true }, now)
    const failed = results.find(({ status }) => status !== 'created')
    if (failed) throw new Error(`the transfer ${failed.id} of a deal ${meaning(failed)}`)
    return transfers.map(({ id }) => id)
  }
}

const idOf = (deal_id: string, part: string): string => `deal:${deal_id}:${part}`

/** The deal of a transfer; null for other transfers. No part of a deal has a colon in its name. */
export const dealOf = (id: string): string | null => (id.startsWith('deal:') ? id.slice('deal:'.length, id.lastIndexOf(':')) : null)

const chained = (transfers: readonly NewTransfer[]): NewTransfer[] =>
  transfers.map((transfer, index) => (index < transfers.length - 1 ? { ...transfer, linked: true } : transfer))

const meaning = ({ status, reason }: TransferResult): string => (status === 'exists' ? 'was made before' : `failed: ${reason}`)

export const isLimit = (reason: TransferFailure): boolean =>
  reason.startsWith('exceeds_limit') ||
  reason === 'counterparty_not_allowed' ||
  reason === 'too_many_failures' ||
  reason === 'too_much_of_a_day'
