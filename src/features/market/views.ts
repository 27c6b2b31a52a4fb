import { agentOwner } from '../../contract/reflex.ts'
import type { MarketView } from './contract/view.ts'
import type { Contracts } from './contracts/contracts.ts'
import type { Deals } from './deals/deals.ts'
import type { MarketRoom } from './room.ts'

/** Maximum number of items of each kind that wait for an answer, which a reflex sees. */
const MOST_WAITING = 50
const MOST_CONTRACTS = 500
/** Maximum number of bought artifacts in a view. */
const MOST_OWNED = 500

/** A scope's part of the market, as the scopes keep it. A later view has a higher revision. */
export class Views {
  readonly #parts: MarketRoom & { deals: Deals; contracts: Contracts }

  constructor(parts: MarketRoom & { deals: Deals; contracts: Contracts }) {
    this.#parts = parts
  }

  view(scope: string): MarketView {
    const { sql, ledger, deals, contracts } = this.#parts
    const account = agentOwner(scope)
    const { balance = 0, available = 0 } = ledger.account(account) ?? {}
    const { revision } = sql.exec<{ revision: number }>('UPDATE view_revision SET revision = revision + 1 RETURNING revision').one()
    return {
      revision,
      account: { balance, available },
      pending_purchases: deals.pendingPurchases(account).slice(0, MOST_WAITING),
      pending_contracts: contracts.pendingFor(account, MOST_WAITING),
      owned: deals.owned(account).slice(0, MOST_OWNED),
      sold: deals.sold(account).slice(0, MOST_OWNED),
      licences: deals.licences(scope),
      contracts: contracts.inForce(account, MOST_CONTRACTS),
    }
  }
}

export const VIEW_TABLES = ['CREATE TABLE view_revision (revision INTEGER NOT NULL)', 'INSERT INTO view_revision VALUES (0)'] as const
