import type { Deal } from '../../contract/market/deal.ts'
import type {
  DealRefused,
  Goods,
  LedgerApi,
  LedgerCaller,
  LedgerPage,
  LicenceUse,
  ListingRefused,
  PageAsked,
  Revocation,
} from '../../contract/market/ledger-api.ts'
import type { Result } from '../../base/result.ts'
import type { Listing, NewListing, NewOffer } from '../../contract/market/listing.ts'
import type { TimedOut } from '../../ledger/ledger.ts'
import type { Parts, Room } from '../room.ts'

export type DecideBy = Parameters<LedgerApi['decide']>[2]

/** Listings, offers, deals and licences. */
export class Deals implements Room {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get due(): number | null {
    return null
  }

  expire(_at: number, _timed_out: readonly TimedOut[]): void {}

  list(
    _asked: NewListing & { listing_id: string },
    _goods: Goods,
    _by: LedgerCaller,
    _now: number,
  ): Result<{ listing: Listing }, ListingRefused> {
    throw notBuilt(this.#parts)
  }

  unlist(_listing_id: string, _reason: string, _now: number): Result<{ listing: Listing }, ListingRefused> {
    throw notBuilt(this.#parts)
  }

  listing(_listing_id: string): Listing | null {
    throw notBuilt(this.#parts)
  }

  offer(_listing_id: string, _asked: NewOffer, _by: LedgerCaller, _now: number): Result<{ deal: Deal; created: boolean }, DealRefused> {
    throw notBuilt(this.#parts)
  }

  decide(
    _deal_id: string,
    _decision: Parameters<LedgerApi['decide']>[1],
    _by: DecideBy,
    _now: number,
  ): Result<{ deal: Deal }, DealRefused> {
    throw notBuilt(this.#parts)
  }

  deal(_deal_id: string): Deal | null {
    throw notBuilt(this.#parts)
  }

  deals(_of: { account: string } & PageAsked): LedgerPage<Deal> {
    throw notBuilt(this.#parts)
  }

  payTrial(_listing_id: string, _of: { buyer: string; id: string }, _now: number): Result<{ transfer: string | null }, DealRefused> {
    throw notBuilt(this.#parts)
  }

  reportUse(_uses: readonly LicenceUse[], _now: number): void {
    throw notBuilt(this.#parts)
  }

  revoke(_revocation: Revocation, _now: number): void {
    throw notBuilt(this.#parts)
  }
}

const notBuilt = (_parts: Parts): Error => new Error('not built')
