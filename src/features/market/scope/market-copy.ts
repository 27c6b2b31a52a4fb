import type { MarketView, UsedLicence } from '../contract/view.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import { ownedBy, type OwnedReflexes } from '../../../engine/reflexes/versions.ts'
import type { LicenceUses } from './licence-use.ts'
import type { Database, Unit } from '../../../engine/storage/unit.ts'

const KEY = 'market'
/** Before the Ledger has pushed anything. */
export const emptyView: MarketView = {
  revision: 0,
  account: { balance: 0, available: 0 },
  pending_purchases: [],
  pending_contracts: [],
  owned: [],
  sold: [],
  licences: [],
  contracts: [],
}

/** The scope's part of the market, as the Ledger last pushed it. Reflexes wait for no call. */
export class MarketCopy {
  #view: MarketView

  constructor(database: Database) {
    this.#view = database.read(KEY, emptyView)
  }

  get view(): MarketView {
    return this.#view
  }

  /** False if it is not newer than the copy. */
  replace(unit: Unit, view: MarketView): boolean {
    if (view.revision <= this.#view.revision) return false
    unit.write(KEY, view)
    this.#view = view
    return true
  }

  /** Ids of reflexes and skills that the scope bought, without their kinds. */
  get owned(): string[] {
    return this.#view.owned.map((reference) => reference.slice(reference.indexOf(':') + 1))
  }

  get bought_reflexes(): string[] {
    return reflexesIn(this.#view.owned)
  }

  get sold_reflexes(): string[] {
    return reflexesIn(this.#view.sold)
  }
}

const reflexesIn = (references: readonly string[]): string[] =>
  references.flatMap((reference) => (reference.startsWith('reflex:') ? [reference.slice('reflex:'.length)] : []))

type FeatureParts = {
  licence_use: LicenceUses
  market: Pick<MarketCopy, 'view' | 'owned'>
  owned: Pick<OwnedReflexes, 'ids'>
  savings: () => UsedLicence['saves']
}

/** The market on the way of an event: actions need a licence, and reflexes see the account. */
export const marketFeature = ({ licence_use, market, owned, savings }: FeatureParts): ScopeFeature => ({
  name: 'market',
  mayAct: (version, at) => licence_use.obstacle(version, at),
  fired: (unit, fire) => (fire.version.licences ? licence_use.acted(unit, fire, savings) : null),
  context: () => {
    const { account, pending_purchases, pending_contracts } = market.view
    return { balance: account.balance, pending_purchases, pending_contracts, owned_artifacts: ownedBy(owned, market) }
  },
})
