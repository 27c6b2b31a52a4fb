import type { SoldGoods, LedgerCaller, ListingRefused } from '../contract/ledger-api.ts'
import type { Listing, NewListing } from '../contract/listing.ts'
import { refuse, type Result } from '../../../base/result.ts'
import type { DealBook } from './deal-book.ts'
import { artifactOf, presentListing, type DealRecord, type ListingRecord } from './records.ts'
import { LONGEST_LINE, type RoyaltyLine } from './royalties.ts'

type ListingRequest = NewListing & { listing_id: string }

/** Lists a version for sale. Copies of what was bought carry the line of its sellers. */
export function list(
  book: DealBook,
  asked: ListingRequest,
  { goods, by }: { goods: SoldGoods; by: LedgerCaller },
  now: number,
): Result<{ listing: Listing }, ListingRefused> {
  const known = book.listings.find(asked.listing_id)
  if (known) return { ok: true, listing: presentListing(known) }
  const expires_at = asked.expires_at === undefined ? null : Date.parse(asked.expires_at)
  const source = sourceOf(book, asked, goods)
  const refused = refusalOf(book, asked, { goods, source, expires_at, now })
  if (refused) return refused
  const full = book.obstacle(by, now)
  if (full !== null) return refuse('too_many', full)
  const { listing_id, artifact, kind, price, seller, terms = {} } = asked
  const { hash, description, event_types, tools, state: goods_state } = goods
  const line = source ? lineAfter(source) : []
  const facts = { listing_id, artifact, hash, kind, price, seller, terms, description, event_types, tools }
  const listing: ListingRecord = {
    ...facts,
    goods_state,
    owner: by.owners?.[seller] ?? null,
    owner_scopes: goods.owner_scopes,
    line,
    state: 'open',
    state_reason: null,
    created_at: now,
    expires_at,
    revision: 0,
  }
  return { ok: true, listing: presentListing(book.saveListing(listing)) }
}

type Facts = { goods: SoldGoods; source: DealRecord | null; expires_at: number | null; now: number }

function refusalOf(
  book: DealBook,
  { seller, artifact, kind }: ListingRequest,
  { goods, source, expires_at, now }: Facts,
): ListingRefused | null {
  if (expires_at !== null && expires_at <= now) return refuse('expired', 'The listing would have expired already.')
  const artifact_id = artifactOf(artifact)
  const owner = book.deals.bought(artifact_id)
  if (owner && owner.account !== seller) return refuse('not_resalable', `${artifact_id} belongs to ${owner.account}, which bought it.`)
  if (source?.kind === 'copy' && source.terms.resale !== true)
    return refuse(
      'not_resalable',
      `${artifact_id} is a copy that was bought by the deal ${source.deal_id}, which does not allow its resale.`,
    )
  const first = book.listings.first(goods.hash)
  const original =
    goods.original ?? (first && first.seller === seller && artifactOf(first.artifact) !== artifact_id ? first.artifact : null)
  if (original !== null && source === null)
    return refuse('sold_as_new', `${artifact} does the same as ${original}: a copy is not sold as new.`)
  if (book.listings.openOf(seller, artifact_id).some((open) => open.artifact === artifact && open.kind === kind))
    return refuse('listed_already', `${artifact} has an open listing as ${kind}. Close that first.`)
  const { listings: most } = book.limits
  if (book.listings.openBy(seller) >= most) return refuse('too_many', `${seller} has ${most} open listings, which is the limit.`)
  return null
}

/**
 * The deal by which the seller bought the artifact, or else the one by which someone bought what it
 * was copied from for free: such a copy has the terms of its original.
 */
function sourceOf(book: DealBook, { artifact, seller }: ListingRequest, { origins }: SoldGoods): DealRecord | null {
  const own = book.deals.bought(artifactOf(artifact))
  if (own) return own.account === seller ? book.deals.find(own.deal_id) : null
  const [bought] = origins.flatMap((origin) => book.deals.bought(origin) ?? [])
  return bought ? book.deals.find(bought.deal_id) : null
}

const lineAfter = ({ seller, terms, line }: DealRecord): RoyaltyLine =>
  [{ account: seller, percent: terms.royalty_percent ?? 0 }, ...line].slice(0, LONGEST_LINE)
