import type { Deal } from '../contract/deal.ts'
import type { DealRefused, LedgerCaller } from '../contract/ledger-api.ts'
import type { NewOffer } from '../contract/listing.ts'
import { matchesScope } from '../../../contract/principal.ts'
import { scopeOfOwner } from '../../../contract/reflex.ts'
import { refuse, type Result } from '../../../base/result.ts'
import { canonicalJson } from '../../../base/json.ts'
import type { DealBook } from './deal-book.ts'
import { isLimit } from './payments.ts'
import { presentDeal, withStep, type DealRecord, type ListingRecord } from './records.ts'

const STANDARD_TIMEOUT_S = 86_400

type Offered = Result<{ deal: Deal; created: boolean }, DealRefused>

/** Makes an offer: its money is pending from now on, until an answer or the timeout. */
export function offer(book: DealBook, listing_id: string, asked: NewOffer, by: LedgerCaller, now: number): Offered {
  const known = book.deals.find(asked.id)
  if (known) return repeated(book, known, listing_id, asked)
  const listing = book.listings.find(listing_id)
  if (!listing) return refuse('not_found', `There is no listing ${listing_id}.`)
  const scopes = listing.kind === 'licence' ? (asked.scopes ?? ownScope(asked.buyer)) : null
  const refused = refusalOf(book, { listing, asked, scopes })
  if (refused) return refused
  const full = book.obstacle(by, now)
  if (full !== null) return refuse('limit', full)
  const timeout_s = asked.timeout_s ?? STANDARD_TIMEOUT_S
  const deal = newDeal({ listing, asked, scopes, timeout_s, now })
  const failure = book.payments.hold(deal, { timeout_s, by }, now)
  if (failure === 'insufficient_funds' || failure === 'debit_account_not_found')
    return refuse('insufficient_funds', `${asked.buyer} has less than ${deal.price} available.`)
  if (failure !== null) return refuse(isLimit(failure) ? 'limit' : 'insufficient_funds', `The money is not reserved: ${failure}.`)
  const made = withStep(deal, 'offered', { at: now, by: asked.buyer, reason: null, transfers: [`deal:${asked.id}:hold`] })
  return { ok: true, deal: presentDeal(book.enter(made, now), []), created: true }
}

function repeated(book: DealBook, known: DealRecord, listing_id: string, asked: NewOffer): Offered {
  const fields = new Set([...Object.keys(known.asked), ...Object.keys(asked)]) as Set<keyof NewOffer>
  const differs = [...fields].find((field) => canonicalJson(known.asked[field] ?? null) !== canonicalJson(asked[field] ?? null))
  // First: another buyer learns nothing of the deal.
  const is_own = known.asked.buyer === asked.buyer
  const field = !is_own ? 'buyer' : known.listing_id === listing_id ? differs : 'listing_id'
  if (field !== undefined) return refuse('other_content', `The deal ${asked.id} exists and differs in ${field}: use another id.`)
  return { ok: true, deal: presentDeal(known, book.deals.used(known.deal_id)), created: false }
}

type Wanted = { listing: ListingRecord; asked: NewOffer; scopes: string[] | null }

function refusalOf(book: DealBook, { listing, asked, scopes }: Wanted): DealRefused | null {
  const { listing_id, seller, state, kind, terms } = listing
  const { buyer } = asked
  if (state === 'expired') return refuse('expired', `The listing ${listing_id} has expired.`)
  if (state !== 'open') return refuse('not_open', `The listing ${listing_id} is ${state}.`)
  if (buyer === seller) return refuse('own', `${buyer} sells it: a buyer and a seller are two accounts.`)
  if (kind === 'licence' && scopes === null) return refuse('not_licensable', `A licence names \`scopes\`: ${buyer} is not a scope.`)
  if (kind !== 'licence' && asked.scopes) return refuse('not_licensable', `Only a licence names scopes; the listing sells: ${kind}.`)
  const most = terms.most_scopes ?? 1
  if (most !== 'any' && scopes && (scopes.length > most || scopes.some((scope) => scope.includes('*'))))
    return refuse('not_licensable', `A licence of this listing names at most ${most} scopes by their whole names.`)
  if (book.payments.isClosed(listing)) return refuse('not_open', `The account ${seller} is closed.`)
  if (scopes?.every((scope) => listing.owner_scopes.some((pattern) => matchesScope(pattern, scope))))
    return refuse('not_licensable', `${listing.artifact} runs in ${scopes.join(', ')} without a licence: its owner covers that.`)
  if (!book.payments.mayPay(buyer, seller)) return refuse('limit', `The settings of ${buyer} do not let it pay ${seller}.`)
  const { offers, offers_on_listing } = book.limits
  if (book.deals.offersBy(buyer) >= offers) return refuse('limit', `${buyer} has ${offers} open offers, which is the limit.`)
  if (book.deals.offersOn(listing_id).length >= offers_on_listing)
    return refuse('limit', `The listing ${listing_id} has ${offers_on_listing} open offers, which is the limit.`)
  return null
}

function newDeal({ listing, asked, scopes, timeout_s, now }: Wanted & { timeout_s: number; now: number }): DealRecord {
  const { listing_id, artifact, hash, kind, terms, seller, owner, line, goods_state } = listing
  const goods = { listing_id, artifact, hash, kind, terms, seller, owner, line, goods_state }
  const wanted = { deal_id: asked.id, price: asked.price ?? listing.price, buyer: asked.buyer, asked }
  const at = { offered_at: now, expires_at: now + timeout_s * 1000 }
  const named = scopes && [...new Set(scopes)]
  return { ...goods, ...wanted, ...at, scopes: named, status: 'offered', paid: 0, held: 0, history: [], delivery: null, revision: 0 }
}

function ownScope(account: string): string[] | null {
  const scope = scopeOfOwner(account)
  return scope === null ? null : [scope]
}
