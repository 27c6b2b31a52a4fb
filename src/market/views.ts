import type { MarketView } from '../contract/market/view.ts'
import type { Contracts } from './contracts/contracts.ts'
import type { Deals } from './deals/deals.ts'
import type { Parts } from './room.ts'

/** A scope's part of the market, as the scopes keep it. */
export class Views {
  readonly #parts: Parts & { deals: Deals; contracts: Contracts }

  constructor(parts: Parts & { deals: Deals; contracts: Contracts }) {
    this.#parts = parts
  }

  view(_scope: string): MarketView {
    throw new Error(`not built ${typeof this.#parts}`)
  }
}
