import type { Deal } from '../../contract/market/deal.ts'
import type {
  DealRefused,
  Goods,
  LedgerCaller,
  LedgerPage,
  LicenceUse,
  ListingRefused,
  PageAsked,
  Revocation,
} from '../../contract/market/ledger-api.ts'
import { artifactIn, type Listing, type NewListing, type NewOffer } from '../../contract/market/listing.ts'
import type { Licence, PendingPurchase } from '../../contract/market/view.ts'
import { matchesScope } from '../../contract/settings/scope-pattern.ts'
import type { Result } from '../../base/result.ts'
import { logError } from '../../base/warn.ts'
import type { TimedOut } from '../../ledger/ledger.ts'
import type { Parts, Room } from '../room.ts'
import { decide, type DecideBy, type Decision } from './decide.ts'
import { Desk, LEDGER_ACTS } from './desk.ts'
import { advance, reportUse, revoke } from './licences.ts'
import { list } from './list.ts'
import { offer } from './offer.ts'
import { presentDeal, presentListing, withStep, type DealRecord } from './records.ts'
import { payTrial } from './trial.ts'

const DUE_AT_ONCE = 500
const HOUR_MS = 3_600_000
/** Maximum number of items of each kind in the view of a scope. */
const MOST_VIEWED = 1000

const randomName = (): string => crypto.randomUUID().slice(0, 8)

/** Listings, offers, deals and licences. */
export class Deals implements Room {
  readonly #parts: Parts
  readonly #desk: Desk
  /** Names copies. Nobody can register such a name before the copy is delivered. */
  readonly #copyName: () => string

  constructor(parts: Parts, copyName: () => string = randomName) {
    this.#parts = parts
    this.#desk = new Desk(parts)
    this.#copyName = copyName
  }

  get due(): number | null {
    const times = [this.#desk.listings.due, this.#desk.deals.due].filter((time) => time !== null)
    return times.length === 0 ? null : Math.min(...times)
  }

  expire(at: number, timed_out: readonly TimedOut[]): void {
    for (const hold of timed_out) this.#expireOffer(hold)
    for (const listing of this.#desk.listings.dueBy(at)) this.#desk.saveListing({ ...listing, state: 'expired' })
    for (const deal of this.#desk.deals.dueBy(at, DUE_AT_ONCE)) this.#advance(deal, at)
  }

  list(
    asked: NewListing & { listing_id: string },
    goods: Goods,
    by: LedgerCaller,
    now: number,
  ): Result<{ listing: Listing }, ListingRefused> {
    return list(this.#desk, asked, { goods, by }, now)
  }

  /** Closes a listing, once; its open offers are rejected and their money returns. */
  unlist(
    listing_id: string,
    { reason, key_id }: { reason: string; key_id?: string | undefined },
    now: number,
  ): Result<{ listing: Listing }, ListingRefused> {
    const listing = this.#desk.listings.find(listing_id)
    if (!listing) return { ok: false, reason: 'not_found', detail: `There is no listing ${listing_id}.` }
    if (!this.#desk.payments.belongsTo(listing, listing.seller, key_id))
      return { ok: false, reason: 'not_allowed', detail: `${listing.seller} belongs to another key of this name.` }
    if (listing.state !== 'open') return { ok: true, listing: presentListing(listing) }
    const why = { by: listing.seller, reason: 'the listing was closed' }
    return { ok: true, listing: presentListing(this.#desk.closeListing(listing, 'closed', reason, why, now)) }
  }

  listing(listing_id: string): Listing | null {
    const listing = this.#desk.listings.find(listing_id)
    return listing && presentListing(listing)
  }

  offer(listing_id: string, asked: NewOffer, by: LedgerCaller, now: number): Result<{ deal: Deal; created: boolean }, DealRefused> {
    return offer(this.#desk, listing_id, asked, by, now)
  }

  decide(deal_id: string, decision: Decision, by: DecideBy, now: number): Result<{ deal: Deal }, DealRefused> {
    return decide(this.#desk, deal_id, decision, by, { now, copyName: this.#copyName() })
  }

  deal(deal_id: string): Deal | null {
    const deal = this.#desk.deals.find(deal_id)
    return deal && this.#present(deal)
  }

  deals({ account, ...page }: { account: string } & PageAsked): LedgerPage<Deal> {
    const { items, next } = this.#desk.deals.page(account, page)
    return { items: items.map((deal) => this.#present(deal)), next }
  }

  deliverAgain(deal_ids: readonly string[], now: number): void {
    for (const id of deal_ids) {
      const deal = this.#desk.deals.find(id)
      if (deal) this.#desk.save(deal, now)
    }
  }

  payTrial(
    listing_id: string,
    { buyer, id }: { buyer: string; id: string },
    now: number,
  ): Result<{ transfer: string | null }, DealRefused> {
    return payTrial(this.#desk, this.#parts, { listing_id, buyer, id, now })
  }

  reportUse(uses: readonly LicenceUse[], now: number): void {
    reportUse(this.#desk, uses, now)
  }

  revoke(revocation: Revocation, now: number): void {
    revoke(this.#desk, revocation, now)
  }

  /** Deals that wait for the answer of this account as their seller. */
  pendingPurchases(account: string): PendingPurchase[] {
    return this.#desk.deals
      .offersTo(account, MOST_VIEWED)
      .map(({ deal_id, artifact, price, buyer }) => ({ deal_id, artifact_id: artifactIn(artifact).id, price, buyer }))
  }

  /** The licences in use that cover a scope, oldest first. */
  licences(scope: string): Licence[] {
    const { deals, limits } = this.#desk
    const patterns = [scope, ...deals.openPatterns.filter((pattern) => matchesScope(pattern, scope))]
    return deals.licencesIn(patterns, limits.licences).map(licenceOf)
  }

  /** `reflex:ID` and `skill:ID` that the account owns by purchase. */
  owned(account: string): string[] {
    return this.#desk.deals.ownedBy(account, MOST_VIEWED)
  }

  /** The artifacts whose ownership the account sold, newest first. */
  sold(account: string): string[] {
    return this.#desk.deals.soldBy(account, MOST_VIEWED)
  }

  /** Each request first ends what is due: a deal that throws must not stop them all. */
  #advance(deal: DealRecord, at: number): void {
    try {
      this.#parts.separately(() => advance(this.#desk, deal, at))
    } catch (error) {
      logError({ message: 'a due deal threw; it is retried in an hour', deal_id: deal.deal_id, error })
      this.#desk.deals.write(deal, at + HOUR_MS)
    }
  }

  #expireOffer({ id, at }: TimedOut): void {
    const [, deal_id] = /^deal:(.+):hold$/.exec(id) ?? []
    const deal = deal_id === undefined ? null : this.#desk.deals.find(deal_id)
    if (deal?.status !== 'offered') return
    const step = { at, by: LEDGER_ACTS, reason: 'nobody answered in time', transfers: [] }
    this.#desk.enter(withStep(deal, 'expired', step), at)
  }

  #present(deal: DealRecord): Deal {
    return presentDeal(deal, this.#desk.deals.used(deal.deal_id))
  }
}

function licenceOf({ deal_id, artifact, hash, terms, delivery }: DealRecord): Licence {
  const { fires = null, per_decision } = terms
  const metered = per_decision !== undefined
  return { deal_id, ...artifactIn(artifact), hash, expires_at: delivery?.ends_at ?? null, fires, metered }
}
