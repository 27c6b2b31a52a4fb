import type { Deal } from '../contract/deal.ts'
import type {
  DealRefused,
  SoldGoods,
  LedgerCaller,
  LedgerPage,
  LicenceUse,
  ListingRefused,
  PageAsked,
  Revocation,
  LedgerApi,
} from '../contract/ledger-api.ts'
import { artifactIn, type Listing, type NewListing, type NewOffer } from '../contract/listing.ts'
import type { PendingPurchase } from '../../../contract/licence.ts'
import type { Licence } from '../contract/view.ts'
import { matchesScope } from '../../../contract/principal.ts'
import { refuse, type Result } from '../../../base/result.ts'
import { logError } from '../../../base/warn.ts'
import type { TimedOut } from '../ledger/ledger.ts'
import type { MarketRoom, Room } from '../room.ts'
import { DealBook, LEDGER_ACTS } from './deal-book.ts'
import { list } from './list.ts'
import { offer } from './offer.ts'
import { presentDeal, presentListing, withStep, type DealRecord, artifactOf, runningOf } from './records.ts'
import { dealOf } from './payments.ts'
import { payTrial } from './trial.ts'
import { endOf, earnedBy, endedBy } from './earned.ts'

/** Counts what scopes report. A licence that is paid by use is paid for it, or ends by it. */
function reportUse(book: DealBook, uses: readonly LicenceUse[], now: number): void {
  for (const use of uses) {
    const deal = book.deals.find(use.deal_id)
    const covers = deal?.delivery?.scopes?.some((pattern) => matchesScope(pattern, use.scope)) ?? false
    if (!deal || !covers || !book.deals.use(use)) continue
    if (deal.status === 'accepted') advance(book, deal, now)
    else book.save(deal, now)
  }
}

/** Pays what is earned by now, and ends a licence whose end has come. */
function advance(book: DealBook, deal: DealRecord, at: number): void {
  const running = runningOf(deal)
  const used = book.deals.used(deal.deal_id)
  const ended = endedBy(running, used, at)
  if (ended !== null) book.endLicence(deal, 'settled', { by: LEDGER_ACTS, reason: ended }, at)
  else book.save(book.payments.pay(deal, earnedBy(running, used, at), at).deal, at)
}

/** Closes the listings of a version, returns the money of offers and ends its licences. */
function revoke(book: DealBook, { artifact, hash, reason }: Revocation, now: number): void {
  const why = { by: LEDGER_ACTS, reason }
  for (const listing of book.listings.openWith(hash)) if (listing.artifact === artifact) book.closeListing(listing, reason, why, now)
  for (const deal of book.deals.runningOf(artifact)) {
    if (deal.status === 'offered') book.endOffer(deal, 'rejected', why, now)
    else if (deal.kind === 'licence') book.endLicence(deal, 'refunded', why, now)
  }
}

type DealDecision = Parameters<LedgerApi['decide']>[1]
type DecideBy = Parameters<LedgerApi['decide']>[2]
type DealDecided = Result<{ deal: Deal }, DealRefused>

/** Applies the answer of a side to an offer, or ends a licence. `copyName`: a new part of an id. */
function decide(book: DealBook, deal_id: string, decision: DealDecision, by: DecideBy, at: { now: number; copyName: string }): DealDecided {
  const deal = book.deals.find(deal_id)
  if (!deal) return refuse('not_found', `There is no deal ${deal_id}.`)
  const lapsed = book.deals.used(deal_id).some(({ lapses }) => lapses > 0)
  const refused = mayDecide(deal, decision, { account: by.account, lapsed })
  if (refused) return refused
  if (!book.payments.belongsTo(deal, by.account, by.key_id))
    return refuse('not_allowed', `${by.account} belongs to another key of this name.`)
  const why = { by: by.account, reason: by.reason ?? null }
  if (decision === 'accept') return accept(book, deal, by, at)
  if (decision === 'refund') return done(book, book.endLicence(deal, 'refunded', why, at.now))
  return done(book, book.endOffer(deal, decision === 'reject' ? 'rejected' : 'cancelled', why, at.now))
}

/** The refusal by who decides and by what has happened, if there is one. */
function mayDecide(
  deal: DealRecord,
  decision: DealDecision,
  { account, lapsed }: { account: string; lapsed: boolean },
): DealRefused | null {
  const { deal_id, seller, buyer, status, kind, held, terms } = deal
  if (account !== seller && account !== buyer) return refuse('not_allowed', `${account} takes no part in the deal ${deal_id}.`)
  if (decision === 'refund') {
    if (status === 'offered') return refuse('not_open', `The deal ${deal_id} is only an offer: its buyer can cancel it.`)
    if (status !== 'accepted') return refuse('decided', `The deal ${deal_id} is ${status}.`)
    if (kind !== 'licence' || held === 0) return refuse('nothing_left', `The deal ${deal_id} is paid in full: nothing is unexpired.`)
    if (account === buyer && terms.per_decision === undefined && !lapsed)
      return refuse(
        'not_allowed',
        `Only ${seller} refunds this licence, until its certificate lapses in a scope of it. A buyer ends licences that are paid by decision.`,
      )
    return null
  }
  const side = decision === 'cancel' ? buyer : seller
  if (account !== side) return refuse('not_allowed', `Only ${side} can ${decision} the deal ${deal_id}.`)
  if (status === 'expired') return refuse('expired', `The offer ${deal_id} expired at ${new Date(deal.expires_at).toISOString()}.`)
  return status === 'offered' ? null : refuse('decided', `The deal ${deal_id} is ${status}.`)
}

/** Payment and delivery, in the open transaction. */
function accept(
  book: DealBook,
  deal: DealRecord,
  { account, reason, goods_state }: DecideBy,
  { now, copyName }: { now: number; copyName: string },
): DealDecided {
  const changed = goodsChange(book, deal, goods_state)
  if (changed !== null) {
    book.endOffer(deal, 'rejected', { by: LEDGER_ACTS, reason: changed }, now)
    return refuse('goods_changed', `The offer ${deal.deal_id} is rejected and its money has returned: ${changed}.`)
  }
  const { licences } = book.limits
  const full = deal.scopes?.find((scope) => book.deals.licencesFor(scope) >= licences)
  if (full !== undefined) return refuse('limit', `${full} has ${licences} licences, which is the limit.`)
  const taken = book.payments.take(deal, now)
  const held = { ...deal, held: deal.price, delivery: deliveryOf(deal, { now, copyName }) }
  // A licence is paid for as it is earned.
  const paid = deal.kind === 'licence' ? { deal: held, transfers: [] } : book.payments.pay(held, deal.price, now)
  const sold = withStep(paid.deal, 'accepted', { at: now, by: account, reason: reason ?? null, transfers: [...taken, ...paid.transfers] })
  deliver(book, sold, now)
  return done(book, book.enter(sold, now))
}

/** The reason that the goods are no longer as offered. */
function goodsChange(book: DealBook, deal: DealRecord, now: string | undefined): string | null {
  const { artifact, seller, goods_state: then } = deal
  const owner = book.deals.bought(artifactOf(artifact))
  if (owner && owner.account !== seller) return `${artifact} belongs to ${owner.account} now`
  if (book.payments.isClosed(deal)) return `the account ${seller} is closed`
  if (now === undefined || rank(now) >= Math.max(0, rank(then))) return null
  return rank(now) < 0 ? `${artifact} is ${now}` : `${artifact} was demoted from ${then} to ${now}`
}

const ranks: Record<string, number> = { draft: 0, candidate: 0, shadow: 1, active: 2 }
/** Versions that are retired, deprecated or missing are not sold. */
const rank = (state: string): number => ranks[state] ?? -1

function deliveryOf(
  { kind, artifact, terms, scopes }: DealRecord,
  { now, copyName }: { now: number; copyName: string },
): DealRecord['delivery'] {
  const name = artifactOf(artifact)
  const version = artifact.slice(name.length + 1)
  // The registry counts the versions of a reflex from 1.
  const copy = `${name.slice(0, LONGEST_ID - copyName.length - 1)}-${copyName}@${name.startsWith('reflex:') ? 1 : version}`
  const ends_at = kind === 'licence' ? endOf(terms, now) : null
  return { artifact: kind === 'copy' ? copy : artifact, scopes, from: now, ends_at, in_use: true }
}

/** `skill:` or `reflex:` and an id. */
const LONGEST_ID = 'skill:'.length + 64

function deliver(book: DealBook, { deal_id, kind, listing_id, seller, buyer, artifact, delivery }: DealRecord, now: number): void {
  if (kind === 'licence') return book.deals.openLicence(deal_id, delivery?.scopes ?? [])
  if (kind === 'copy') return book.deals.own(artifactOf(delivery?.artifact ?? artifact), buyer, deal_id)
  book.deals.own(artifactOf(artifact), buyer, deal_id)
  book.deals.sold(artifactOf(artifact), { seller, buyer })
  const why = { by: LEDGER_ACTS, reason: `${artifact} has been sold` }
  for (const listing of book.listings.openOf(seller, artifactOf(artifact))) {
    const state = listing.listing_id === listing_id ? 'sold' : 'closed'
    // The deal of this sale is no longer an offer once it is written, after this.
    for (const offer of book.deals.offersOn(listing.listing_id)) if (offer.deal_id !== deal_id) book.endOffer(offer, 'rejected', why, now)
    book.saveListing({ ...listing, state, state_reason: `sold to ${buyer} by the deal ${deal_id}` })
  }
}

const done = (book: DealBook, deal: DealRecord): DealDecided => ({ ok: true, deal: presentDeal(deal, book.deals.used(deal.deal_id)) })

const DUE_AT_ONCE = 500
const HOUR_MS = 3_600_000
/** Maximum number of items of each kind in the view of a scope. */
const MOST_VIEWED = 1000

const randomName = (): string => crypto.randomUUID().slice(0, 8)

/** Listings, offers, deals and licences. */
export class Deals implements Room {
  readonly #parts: MarketRoom
  readonly #book: DealBook
  /** Names copies. Nobody can register such a name before the copy is delivered. */
  readonly #copyName: () => string

  constructor(parts: MarketRoom, copyName: () => string = randomName) {
    this.#parts = parts
    this.#book = new DealBook(parts)
    this.#copyName = copyName
  }

  get due(): number | null {
    const times = [this.#book.listings.due, this.#book.deals.due].filter((time) => time !== null)
    return times.length === 0 ? null : Math.min(...times)
  }

  inUse(ids: readonly string[]): string[] {
    const named = ids.map((id) => ({ id, deal_id: dealOf(id) }))
    const open = this.#book.deals.open(named.flatMap(({ deal_id }) => deal_id ?? []))
    return named.flatMap(({ id, deal_id }) => (deal_id !== null && open.has(deal_id) ? [id] : []))
  }

  expire(at: number, timed_out: readonly TimedOut[]): void {
    for (const hold of timed_out) this.#expireOffer(hold)
    for (const listing of this.#book.listings.dueBy(at)) this.#book.saveListing({ ...listing, state: 'expired' })
    for (const deal of this.#book.deals.dueBy(at, DUE_AT_ONCE)) this.#advance(deal, at)
  }

  list(
    asked: NewListing & { listing_id: string },
    goods: SoldGoods,
    by: LedgerCaller,
    now: number,
  ): Result<{ listing: Listing }, ListingRefused> {
    return list(this.#book, asked, { goods, by }, now)
  }

  /** Closes a listing, once; its open offers are rejected and their money returns. */
  unlist(
    listing_id: string,
    { reason, key_id }: { reason: string; key_id?: string | undefined },
    now: number,
  ): Result<{ listing: Listing }, ListingRefused> {
    const listing = this.#book.listings.find(listing_id)
    if (!listing) return refuse('not_found', `There is no listing ${listing_id}.`)
    if (!this.#book.payments.belongsTo(listing, listing.seller, key_id))
      return refuse('not_allowed', `${listing.seller} belongs to another key of this name.`)
    if (listing.state !== 'open') return { ok: true, listing: presentListing(listing) }
    const why = { by: listing.seller, reason: 'the listing was closed' }
    return { ok: true, listing: presentListing(this.#book.closeListing(listing, reason, why, now)) }
  }

  listing(listing_id: string): Listing | null {
    const listing = this.#book.listings.find(listing_id)
    return listing && presentListing(listing)
  }

  offer(listing_id: string, asked: NewOffer, by: LedgerCaller, now: number): Result<{ deal: Deal; created: boolean }, DealRefused> {
    return offer(this.#book, listing_id, asked, by, now)
  }

  decide(deal_id: string, decision: DealDecision, by: DecideBy, now: number): Result<{ deal: Deal }, DealRefused> {
    return decide(this.#book, deal_id, decision, by, { now, copyName: this.#copyName() })
  }

  deal(deal_id: string): Deal | null {
    const deal = this.#book.deals.find(deal_id)
    return deal && this.#present(deal)
  }

  deals({ account, ...page }: { account: string } & PageAsked): LedgerPage<Deal> {
    const { items, next } = this.#book.deals.page(account, page)
    return { items: items.map((deal) => this.#present(deal)), next }
  }

  deliverAgain(deal_ids: readonly string[], now: number): void {
    for (const id of deal_ids) {
      const deal = this.#book.deals.find(id)
      if (deal) this.#book.save(deal, now)
    }
  }

  payTrial(
    listing_id: string,
    { buyer, id }: { buyer: string; id: string },
    now: number,
  ): Result<{ transfer: string | null }, DealRefused> {
    return payTrial(this.#book, this.#parts, { listing_id, buyer, id, now })
  }

  reportUse(uses: readonly LicenceUse[], now: number): void {
    reportUse(this.#book, uses, now)
  }

  revoke(revocation: Revocation, now: number): void {
    revoke(this.#book, revocation, now)
  }

  /** Deals that wait for the answer of this account as their seller. */
  pendingPurchases(account: string): PendingPurchase[] {
    return this.#book.deals
      .offersTo(account, MOST_VIEWED)
      .map(({ deal_id, artifact, price, buyer }) => ({ deal_id, artifact_id: artifactIn(artifact).id, price, buyer }))
  }

  /** The licences in use that cover a scope, oldest first. */
  licences(scope: string): Licence[] {
    const { deals, limits } = this.#book
    const patterns = [scope, ...deals.openPatterns.filter((pattern) => matchesScope(pattern, scope))]
    return deals.licencesIn(patterns, limits.licences).map(licenceOf)
  }

  /** `reflex:ID` and `skill:ID` that the account owns by purchase. */
  owned(account: string): string[] {
    return this.#book.deals.ownedBy(account, MOST_VIEWED)
  }

  /** The artifacts whose ownership the account sold, newest first. */
  sold(account: string): string[] {
    return this.#book.deals.soldBy(account, MOST_VIEWED)
  }

  /** Each request first ends what is due: a deal that throws must not stop them all. */
  #advance(deal: DealRecord, at: number): void {
    try {
      this.#parts.separately(() => advance(this.#book, deal, at))
    } catch (error) {
      logError({ message: 'a due deal threw; it is retried in an hour', deal_id: deal.deal_id, error })
      this.#book.deals.write(deal, at + HOUR_MS)
    }
  }

  #expireOffer({ id, at }: TimedOut): void {
    const [, deal_id] = /^deal:(.+):hold$/.exec(id) ?? []
    const deal = deal_id === undefined ? null : this.#book.deals.find(deal_id)
    if (deal?.status !== 'offered') return
    const step = { at, by: LEDGER_ACTS, reason: 'nobody answered in time', transfers: [] }
    this.#book.enter(withStep(deal, 'expired', step), at)
  }

  #present(deal: DealRecord): Deal {
    return presentDeal(deal, this.#book.deals.used(deal.deal_id))
  }
}

function licenceOf({ deal_id, artifact, hash, terms, delivery }: DealRecord): Licence {
  const { fires = null, per_decision } = terms
  const metered = per_decision !== undefined
  return { deal_id, ...artifactIn(artifact), hash, expires_at: delivery?.ends_at ?? null, fires, metered }
}
