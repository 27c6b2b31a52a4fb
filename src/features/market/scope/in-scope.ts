import { agentOwner, type ReflexVersion } from '../../../contract/reflex.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import { inEachScope } from '../../../engine/installed.ts'
import { ownedBy } from '../../../engine/reflexes/versions.ts'
import { savingsOf } from '../../../engine/turns/budget.ts'
import type { Database, Unit } from '../../../engine/storage/unit.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { LEDGER, type LicenceUse, type Revocation } from '../contract/ledger-api.ts'
import type { MarketView } from '../contract/view.ts'
import { isMarketEvent } from '../../../reflexes/ledger-events.ts'
import { marketTools } from '../tools/tools.ts'
import type { TraderParts } from '../tools/trader.ts'
import { LicenceUses } from './licence-use.ts'
import { replicateMarket, type MarketSetting } from './market-setting.ts'

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

/** The copy of the scope's part of the market. */
export const marketOf = inEachScope(({ database }) => new MarketCopy(database))

/** The market on the way of an event: actions need a licence, and reflexes see the account. */
export function marketInScope(scope: Collaborators): ScopeFeature {
  const { env, owned, programs, outbox, skill_cache } = scope
  const market = marketOf(scope)
  const licence_use = new LicenceUses(scope)
  const trader = traderOf(scope)
  const ledger = () => env.LEDGER.getByName(LEDGER)
  return {
    name: 'market',
    mayUse: (goods, at) => licence_use.obstacle(goods, at),
    fired: (unit, fire) => (fire.version.licences ? licence_use.acted(unit, fire, () => savingsOf(scope)) : null),
    actionEnded: (unit, of, { ok, saves }) => {
      const version = ok && saves ? programs.find(of) : undefined
      if (version?.licences) licence_use.saved(unit, version)
    },
    lapsed: (unit, version) => licence_use.lapsed(unit, version),
    runBegan: (unit, { skill_id: id, version }) => licence_use.fired(unit, skill_cache.goodsOf({ id, version })),
    reaches: isMarketEvent,
    owns: () => market.bought_reflexes,
    context: () => {
      const { account, pending_purchases, pending_contracts } = market.view
      return { balance: account.balance, pending_purchases, pending_contracts, owned_artifacts: ownedBy(owned, market.owned) }
    },
    configured: (unit, patch, { settings, revision }) => {
      if (patch.market !== undefined)
        outbox.put(unit, 'market', 'setting', { market: settings.market ?? null, revision } satisfies MarketSetting)
    },
    moved: async (version) => {
      if (version.sealed && version.state !== 'active') await ledger().revoke(demoted(version))
    },
    topics: {
      'licence-use': (items) => ledger().reportUse(items.map(({ value }) => JSON.parse(value) as LicenceUse)),
      market: async (items) => {
        for (const { value } of items) await replicateMarket(ledger(), agentOwner(scope.scope), JSON.parse(value) as MarketSetting)
      },
    },
    tools: { ...marketTools(trader), 'genesis_store.read': scope.own_tools.read_reflex },
    approvedTools: marketTools({ ...trader, settings: () => approvedSettings(scope.settings()) }),
  }
}

function traderOf(scope: Collaborators): TraderParts {
  const ask: TraderParts['ask'] = async (payment, why, call) => {
    const asking = scope.features.find((feature) => feature.askCall)
    if (!asking?.askCall) throw new Error(`${why}, and this deployment asks nobody for an approval`)
    return asking.askCall({ payment }, why, call)
  }
  return { ...scope, view: () => marketOf(scope).view, ask }
}

/** The settings for a payment that a person approved: what asks a person asks nobody again. */
const approvedSettings = ({ market, ...rest }: Settings): Settings => {
  const anything = { without_approval: Number.MAX_SAFE_INTEGER, least_price: 0, services: ['*'] }
  return { ...rest, ...(market && { market: { ...market, ...anything } }) }
}

/** A version that a scope demotes has lost its certificate there: its licences are refunded. */
const demoted = ({ id, version, hash, state, state_reason }: ReflexVersion): Revocation => ({
  artifact: `reflex:${id}@${version}`,
  hash,
  reason: `${id}@${version} is ${state}: ${state_reason ?? 'demoted'}`.slice(0, 500),
})
