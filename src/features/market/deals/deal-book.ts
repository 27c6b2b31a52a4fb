import type { LedgerCaller } from '../contract/ledger-api.ts'
import type { DealState } from '../contract/deal.ts'
import { type ListingRecord, type DealRecord, runningOf, withStep } from './records.ts'
import { RECORD_BYTES } from '../limits.ts'
import type { MarketRoom } from '../room.ts'
import { DealStore } from './deal-store.ts'
import { earnedBy, nextTime } from './earned.ts'
import { notifySides, publishDeal, publishListing } from './notify.ts'
import { Payments } from './payments.ts'

type RecordRow = { record: string }
const listingIn = ({ record }: RecordRow): ListingRecord => JSON.parse(record) as ListingRecord

/** The rows of listings. */
class ListingStore {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  find(listing_id: string): ListingRecord | null {
    return this.#rows('listing_id = ?', listing_id)[0] ?? null
  }

  write(listing: ListingRecord): void {
    this.#sql.exec(
      `INSERT INTO listings (listing_id, seller, artifact, hash, kind, state, expires_at, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (listing_id) DO UPDATE SET state = ?6, record = ?8`,
      listing.listing_id,
      listing.seller,
      listing.artifact,
      listing.hash,
      listing.kind,
      listing.state,
      listing.expires_at,
      JSON.stringify(listing),
    )
  }

  openBy(seller: string): number {
    return this.#sql.exec<{ n: number }>("SELECT count(*) AS n FROM listings WHERE seller = ? AND state = 'open'", seller).one().n
  }

  /** Open listings of an artifact, in any version. */
  openOf(seller: string, artifact_id: string): ListingRecord[] {
    return this.#rows("seller = ? AND state = 'open' AND substr(artifact, 1, length(?) + 1) = ? || '@'", seller, artifact_id, artifact_id)
  }

  /** The first listing of goods with this hash. */
  first(hash: string): ListingRecord | null {
    return this.#rows('hash = ? ORDER BY seq LIMIT 1', hash)[0] ?? null
  }

  openWith(hash: string): ListingRecord[] {
    return this.#rows("hash = ? AND state = 'open'", hash)
  }

  get due(): number | null {
    const sql = "SELECT min(expires_at) AS at FROM listings WHERE state = 'open' AND expires_at IS NOT NULL"
    return this.#sql.exec<{ at: number | null }>(sql).one().at
  }

  dueBy(at: number): ListingRecord[] {
    return this.#rows("state = 'open' AND expires_at IS NOT NULL AND expires_at <= ?", at)
  }

  #rows(where: string, ...params: SqlStorageValue[]): ListingRecord[] {
    return this.#sql
      .exec<RecordRow>(`SELECT record FROM listings WHERE ${where}`, ...params)
      .toArray()
      .map(listingIn)
  }
}

export type Why = { by: string; reason: string | null }
export const LEDGER_ACTS = 'ledger'

/** The steps that operations on listings, offers and licences share. Each writes and publishes. */
export class DealBook {
  readonly listings: ListingStore
  readonly deals: DealStore
  readonly payments: Payments
  readonly limits: MarketRoom['limits']
  readonly #outbox: MarketRoom['outbox']
  readonly #ledger: MarketRoom['ledger']

  constructor({ sql, ledger, outbox, limits }: MarketRoom) {
    this.listings = new ListingStore(sql)
    this.deals = new DealStore(sql)
    this.payments = new Payments(ledger)
    this.#outbox = outbox
    this.#ledger = ledger
    this.limits = limits
  }

  /** Counts a new record for its maker. The reason, if the maker has added too much today. */
  obstacle({ name, counted }: LedgerCaller, at: number): string | null {
    return this.#ledger.mayGrow(RECORD_BYTES, counted ?? name, at)
      ? null
      : `${name} has added as much as one may add to the market in a day.`
  }

  saveListing(listing: ListingRecord): ListingRecord {
    const changed = { ...listing, revision: listing.revision + 1 }
    this.listings.write(changed)
    publishListing(this.#outbox, changed)
    return changed
  }

  /** Writes a deal that has entered a state, and notifies both sides. */
  enter(deal: DealRecord, at: number): DealRecord {
    const changed = this.save(deal, at)
    notifySides(this.#outbox, changed)
    return changed
  }

  save(deal: DealRecord, at: number): DealRecord {
    const changed = { ...deal, revision: deal.revision + 1 }
    const runs = deal.status === 'accepted' && deal.kind === 'licence'
    this.deals.write(changed, runs ? nextTime(runningOf(deal), { held: deal.held, at }) : null)
    const owners = { seller: this.payments.ownerOf(deal, deal.seller), buyer: this.payments.ownerOf(deal, deal.buyer) }
    publishDeal(this.#outbox, changed, { used: this.deals.used(deal.deal_id), owners })
    return changed
  }

  /** Ends an offer without a sale; its money returns. */
  endOffer(deal: DealRecord, status: DealState, { by, reason }: Why, at: number): DealRecord {
    const transfers = this.payments.release(deal, at)
    return this.enter(withStep(deal, status, { at, by, reason, transfers }), at)
  }

  /** Ends a licence: what is earned is paid, the rest returns. */
  endLicence(deal: DealRecord, status: 'refunded' | 'settled', { by, reason }: Why, at: number): DealRecord {
    const paid = this.payments.pay(deal, earnedBy(runningOf(deal), this.deals.used(deal.deal_id), at), at)
    const returned = this.payments.refund(paid.deal, at)
    const { delivery } = deal
    if (delivery) this.deals.closeLicence(deal.deal_id, delivery.scopes ?? [])
    const ended = { ...returned.deal, delivery: delivery && { ...delivery, in_use: false } }
    return this.enter(withStep(ended, status, { at, by, reason, transfers: [...paid.transfers, ...returned.transfers] }), at)
  }

  /** Closes a listing; its open offers are rejected. */
  closeListing(listing: ListingRecord, state: 'closed' | 'sold', reason: string, why: Why, at: number): ListingRecord {
    for (const offer of this.deals.offersOn(listing.listing_id)) this.endOffer(offer, 'rejected', why, at)
    return this.saveListing({ ...listing, state, state_reason: reason })
  }
}
