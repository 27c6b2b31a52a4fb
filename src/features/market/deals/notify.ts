import type { Deal } from '../contract/deal.ts'
import { notifyOthers } from '../news.ts'
import type { MarketOutbox } from '../room.ts'
import { artifactOf, presentDeal, presentListing, type DealRecord, type ListingRecord } from './records.ts'
import type { UseCounts } from './earned.ts'

/** Topics of the outbox. Values are whole and have a `revision`, so that the newest one wins. */
export const DEAL_TOPICS = {
  /** D1's copy of a listing. */
  listings: 'listings',
  /** D1's copy of a deal, and its consequences for the artifact. */
  deals: 'deals',
} as const

export function publishListing(outbox: MarketOutbox, record: ListingRecord): void {
  outbox.put(DEAL_TOPICS.listings, record.listing_id, { listing: presentListing(record), revision: record.revision })
}

/** A deal as it is sent. `owners`: the ids of the keys that its `key:` accounts belong to. */
export type SentDeal = { deal: Deal; owners?: { seller: string | null; buyer: string | null }; revision: number }

export function publishDeal(
  outbox: MarketOutbox,
  record: DealRecord,
  { used, owners }: { used: readonly UseCounts[] } & Pick<SentDeal, 'owners'>,
): void {
  const sent = { deal: presentDeal(record, used), owners, revision: record.revision }
  outbox.put(DEAL_TOPICS.deals, record.deal_id, sent)
}

/** Tells both sides that are scopes of an offer, and of each state that follows. */
export function notifySides(outbox: MarketOutbox, deal: DealRecord): void {
  const { deal_id, artifact, price, buyer, seller, scopes, status, history, kind } = deal
  const type = status === 'offered' ? 'offer' : 'deal'
  const reason = history.at(-1)?.reason ?? null
  const event = {
    id: `${type}:${deal_id}:${status}`,
    type,
    deal_id,
    artifact_id: artifactOf(artifact),
    price,
    buyer,
    seller,
    scopes,
    kind,
    status,
    reason,
  } as const
  notifyOthers(outbox, [buyer, seller], { by: history.at(-1)?.by, event })
}
