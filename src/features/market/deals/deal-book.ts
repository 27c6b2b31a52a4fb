import type { LedgerCaller, LedgerPage, LicenceUse, PageAsked } from '../contract/ledger-api.ts'
import type { DealState } from '../contract/deal.ts'
import { type ListingRecord, type DealRecord, runningOf, withStep } from './records.ts'
import { RECORD_BYTES } from '../limits.ts'
import type { MarketRoom } from '../room.ts'
import { earnedBy, nextTime, type UseCounts } from './earned.ts'
import { notifySides, publishDeal, publishListing } from './notify.ts'
import { Payments } from './payments.ts'

type DealRow = { seq: number; record: string }
const dealIn = ({ record }: DealRow): DealRecord => JSON.parse(record) as DealRecord

/** The rows of deals, of their licences and of what accounts own by purchase. */
class DealStore {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  find(deal_id: string): DealRecord | null {
    const [row] = this.#rows('deal_id = ?', deal_id)
    return row ? dealIn(row) : null
  }

  /** `due_at`: when it ends, or when more of it is earned. */
  write(deal: DealRecord, due_at: number | null): void {
    this.#sql.exec(
      `INSERT INTO deals (deal_id, listing_id, seller, buyer, artifact, status, due_at, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (deal_id) DO UPDATE SET status = ?6, due_at = ?7, record = ?8`,
      deal.deal_id,
      deal.listing_id,
      deal.seller,
      deal.buyer,
      deal.artifact,
      deal.status,
      due_at,
      JSON.stringify(deal),
    )
  }

  /** The deals of either side, oldest first. */
  page(account: string, { after, limit }: PageAsked): LedgerPage<DealRecord> {
    const rows = this.#rows('seq > ? AND (seller = ? OR buyer = ?) ORDER BY seq LIMIT ?', Number(after ?? 0), account, account, limit + 1)
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    return { items: shown.map(dealIn), next: last ? String(last.seq) : null }
  }

  offersOn(listing_id: string): DealRecord[] {
    return this.#rows("listing_id = ? AND status = 'offered' ORDER BY seq", listing_id).map(dealIn)
  }

  offersTo(seller: string, limit: number): DealRecord[] {
    return this.#rows("seller = ? AND status = 'offered' ORDER BY seq LIMIT ?", seller, limit).map(dealIn)
  }

  offersBy(buyer: string): number {
    return this.#count("SELECT count(*) AS n FROM deals WHERE buyer = ? AND status = 'offered'", buyer)
  }

  /** Offers and what has been paid for, for one version. */
  runningOf(artifact: string): DealRecord[] {
    return this.#rows("artifact = ? AND status IN ('offered', 'accepted') ORDER BY seq", artifact).map(dealIn)
  }

  get due(): number | null {
    return this.#sql.exec<{ at: number | null }>('SELECT min(due_at) AS at FROM deals WHERE due_at IS NOT NULL').one().at
  }

  dueBy(at: number, limit: number): DealRecord[] {
    return this.#rows('due_at <= ? ORDER BY due_at, seq LIMIT ?', at, limit).map(dealIn)
  }

  /** The deals among these that are offers, or for which escrow has money. */
  open(deal_ids: readonly string[]): Set<string> {
    const sql = `SELECT deal_id FROM deals WHERE deal_id IN (SELECT value FROM json_each(?))
      AND (status = 'offered' OR json_extract(record, '$.held') > 0)`
    return new Set(Array.from(this.#sql.exec<{ deal_id: string }>(sql, JSON.stringify(deal_ids)), ({ deal_id }) => deal_id))
  }

  openLicence(deal_id: string, patterns: readonly string[]): void {
    for (const pattern of patterns) this.#sql.exec('INSERT INTO licence_scopes (pattern, deal_id) VALUES (?, ?)', pattern, deal_id)
  }

  closeLicence(deal_id: string, patterns: readonly string[]): void {
    for (const pattern of patterns) this.#sql.exec('DELETE FROM licence_scopes WHERE pattern = ? AND deal_id = ?', pattern, deal_id)
  }

  licencesFor(pattern: string): number {
    return this.#count('SELECT count(*) AS n FROM licence_scopes WHERE pattern = ?', pattern)
  }

  /** The licences in use whose patterns are among these. */
  licencesIn(patterns: readonly string[], limit: number): DealRecord[] {
    const among = `deal_id IN (SELECT deal_id FROM licence_scopes WHERE pattern IN (SELECT value FROM json_each(?)))`
    return this.#rows(`${among} ORDER BY seq LIMIT ?`, JSON.stringify(patterns), limit).map(dealIn)
  }

  /** Patterns with a placeholder that have a licence in use. */
  get openPatterns(): string[] {
    const rows = this.#sql.exec<{ pattern: string }>("SELECT DISTINCT pattern FROM licence_scopes WHERE pattern LIKE '%*%'")
    return rows.toArray().map(({ pattern }) => pattern)
  }

  used(deal_id: string): UseCounts[] {
    return this.#sql
      .exec<UseCounts>('SELECT scope, fires, certified, lapses FROM licence_uses WHERE deal_id = ? ORDER BY scope', deal_id)
      .toArray()
  }

  /** Counts are cumulative: a repeated or stale report changes nothing. True if this one did. */
  use({ deal_id, scope, fires, certified, lapses }: LicenceUse): boolean {
    const written = this.#sql.exec(
      `INSERT INTO licence_uses (deal_id, scope, fires, certified, lapses) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT DO UPDATE SET fires = max(fires, ?3), certified = max(certified, ?4), lapses = max(lapses, ?5)
        WHERE fires < ?3 OR certified < ?4 OR lapses < ?5`,
      deal_id,
      scope,
      fires,
      certified,
      lapses,
    )
    return written.rowsWritten > 0
  }

  /** The deal by which an artifact was bought last, and its present owner. */
  bought(artifact_id: string): { account: string; deal_id: string } | null {
    const rows = this.#sql.exec<{ account: string; deal_id: string }>(
      'SELECT account, deal_id FROM bought WHERE artifact_id = ?',
      artifact_id,
    )
    return rows.toArray()[0] ?? null
  }

  own(artifact_id: string, account: string, deal_id: string): void {
    this.#sql.exec('INSERT OR REPLACE INTO bought (artifact_id, account, deal_id) VALUES (?, ?, ?)', artifact_id, account, deal_id)
  }

  ownedBy(account: string, limit: number): string[] {
    const rows = this.#sql.exec<{ artifact_id: string }>(
      'SELECT artifact_id FROM bought WHERE account = ? ORDER BY artifact_id LIMIT ?',
      account,
      limit,
    )
    return rows.toArray().map(({ artifact_id }) => artifact_id)
  }

  /** A sale of ownership. What an account sold and bought back is not sold. */
  sold(artifact_id: string, { seller, buyer }: { seller: string; buyer: string }): void {
    this.#sql.exec('DELETE FROM sold WHERE artifact_id = ? AND account IN (?, ?)', artifact_id, seller, buyer)
    this.#sql.exec('INSERT INTO sold (account, artifact_id) VALUES (?, ?)', seller, artifact_id)
  }

  soldBy(account: string, limit: number): string[] {
    const sql = 'SELECT artifact_id FROM sold WHERE account = ? ORDER BY seq DESC LIMIT ?'
    return this.#sql
      .exec<{ artifact_id: string }>(sql, account, limit)
      .toArray()
      .map(({ artifact_id }) => artifact_id)
  }

  #rows(where: string, ...params: SqlStorageValue[]): DealRow[] {
    return this.#sql.exec<DealRow>(`SELECT seq, record FROM deals WHERE ${where}`, ...params).toArray()
  }

  #count(sql: string, ...params: SqlStorageValue[]): number {
    return this.#sql.exec<{ n: number }>(sql, ...params).one().n
  }
}

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

type Why = { by: string; reason: string | null }
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
  closeListing(listing: ListingRecord, reason: string, why: Why, at: number): ListingRecord {
    for (const offer of this.deals.offersOn(listing.listing_id)) this.endOffer(offer, 'rejected', why, at)
    return this.saveListing({ ...listing, state: 'closed', state_reason: reason })
  }
}
