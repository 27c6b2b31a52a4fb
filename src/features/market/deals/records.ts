import type { Deal, DealState } from '../contract/deal.ts'
import type { Listing, NewOffer } from '../contract/listing.ts'
import { iso, withIso, type InMs } from '../../../base/time.ts'
import type { RunningLicence, UseCounts } from './earned.ts'
import type { RoyaltyLine } from './royalties.ts'

/**
 * A listing as stored. `goods_state`: the state of the version when it was listed. `owner`: the id
 * of the key that the seller's account belongs to. `owner_scopes`: the scopes of the version's
 * owner.
 */
export type ListingRecord = InMs<Listing, 'created_at' | 'expires_at'> & {
  goods_state: string
  owner: string | null
  owner_scopes: readonly string[]
  line: RoyaltyLine
  revision: number
}

type DealStep = InMs<Deal['history'][number], 'at'>
/** The goods as delivered. `from`: when it was paid. Times in ms. */
type Delivered = { artifact: string; scopes: string[] | null; from: number; ends_at: number | null; in_use: boolean }

/** A deal as stored. `asked`: the offer, by which a repeated one is known. Times in ms. */
export type DealRecord = Omit<InMs<Deal, 'offered_at' | 'expires_at'>, 'history' | 'delivery'> & {
  asked: NewOffer
  scopes: string[] | null
  line: RoyaltyLine
  goods_state: string
  owner: string | null
  history: DealStep[]
  delivery: Delivered | null
  revision: number
}

export function presentListing({
  goods_state: _state,
  owner: _owner,
  owner_scopes: _scopes,
  line: _line,
  revision: _revision,
  ...listing
}: ListingRecord): Listing {
  return withIso(listing, ['created_at', 'expires_at'])
}

export function presentDeal(record: DealRecord, used: readonly UseCounts[]): Deal {
  const { asked: _asked, line: _line, goods_state: _state, owner: _owner, revision: _revision, history, delivery, ...deal } = record
  return {
    ...withIso(deal, ['offered_at', 'expires_at']),
    history: history.map((step) => withIso(step, ['at'])),
    delivery: delivery && {
      kind: deal.kind,
      artifact: delivery.artifact,
      scopes: delivery.scopes,
      expires_at: delivery.ends_at === null ? null : iso(delivery.ends_at),
      fires: deal.terms.fires ?? null,
      used: Object.fromEntries(used.map(({ scope, fires }) => [scope, fires])),
      lapsed: used.flatMap(({ scope, lapses }) => (lapses > 0 ? [scope] : [])),
      in_use: delivery.in_use,
    },
  }
}

/** The licence that a deal paid for. */
export function runningOf({ price, terms, delivery }: DealRecord): RunningLicence {
  if (!delivery) throw new Error('the deal has not been delivered')
  return { price, terms, scopes: delivery.scopes ?? [], from: delivery.from }
}

export const withStep = (record: DealRecord, status: DealState, step: Omit<DealStep, 'state'>): DealRecord => ({
  ...record,
  status,
  history: [...record.history, { ...step, state: status }],
})

/** `reflex:ID` of `reflex:ID@VERSION`. */
export const artifactOf = (reference: string): string => reference.slice(0, reference.lastIndexOf('@'))
