import { agentOwner, type ReflexVersion } from '../../../contract/reflex.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import { inEachScope } from '../../../engine/installed.ts'
import { ownedBy } from '../../../engine/reflexes/versions.ts'
import { savingsOf } from '../../../engine/turns/model-access.ts'
import type { Database, Unit } from '../../../kernel/unit.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { LEDGER, type LicenceUse, type Revocation, type LedgerApi } from '../contract/ledger-api.ts'
import type { MarketView } from '../contract/view.ts'
import { isMarketEvent, type Fire } from '../../../reflexes/decide.ts'
import { marketTools } from '../tools/tools.ts'
import type { TraderParts } from '../tools/trader.ts'
import type { LicensedGoods, ScopeLicence, UsedLicence } from '../../../contract/licence.ts'
import { iso } from '../../../base/time.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import { defaultMarket, type MarketSettings } from '../contract/setting.ts'

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
      'licence-use': (items) => ledger().reportUse(items.map(({ value }) => value as LicenceUse)),
      market: async (items) => {
        for (const { value } of items) await replicateMarket(ledger(), agentOwner(scope.scope), value as MarketSetting)
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

type Counts = Pick<LicenceUse, 'fires' | 'certified' | 'lapses'>
const NOTHING: Counts = { fires: 0, certified: 0, lapses: 0 }

const keyOf = (deal_id: string): string => `licence_use ${deal_id}`

/**
 * Counts what this scope does under licences, and enforces their limits. The sums are written in
 * the unit of the action, and reported to the Ledger by the outbox: a repeated report is harmless.
 */
class LicenceUses {
  readonly #parts: Pick<Ground, 'scope' | 'database' | 'outbox'>

  constructor(parts: Pick<Ground, 'scope' | 'database' | 'outbox'>) {
    this.#parts = parts
  }

  /** The licence that an action is counted on; null if none is needed, or none is left. */
  current({ licences = [] }: LicensedGoods, now: number): ScopeLicence | null {
    return licences.find((one) => this.#ended(one, now) === null) ?? null
  }

  /** The reason why no licence allows an action now; null if one does, or none is needed. */
  obstacle({ licences }: LicensedGoods, now: number): string | null {
    if (licences === undefined) return null
    const [first, ...others] = licences.map((one) => this.#ended(one, now))
    return first === undefined || others.includes(null) ? null : first
  }

  /** Counts an action of a reflex; null without a licence. */
  acted(unit: Unit, { version, action }: Fire, savings: () => UsedLicence['saves']): { licence: UsedLicence } | null {
    const deal_id = this.fired(unit, version)
    return deal_id === null ? null : { licence: { deal_id, saves: action.action_type === 'escalate' ? null : savings() } }
  }

  /** Counts an action, or the start of a run. Returns the id of the deal. */
  fired(unit: Unit, licensed: LicensedGoods): string | null {
    return this.#count(unit, this.current(licensed, unit.now), { fires: 1 })
  }

  /** Counts a certified decision that spared a turn: a metered licence pays for it. */
  saved(unit: Unit, licensed: LicensedGoods): void {
    const licence = this.current(licensed, unit.now) ?? licensed.licences?.at(-1) ?? null
    this.#count(unit, licence, { certified: 1 })
  }

  /** Reports that its proof ended here: the buyer may end the licences that it runs under. */
  lapsed(unit: Unit, { licences = [] }: LicensedGoods): void {
    for (const licence of licences) if (this.#ended(licence, unit.now) === null) this.#count(unit, licence, { lapses: 1 })
  }

  #ended({ deal_id, expires_at, fires }: ScopeLicence, now: number): string | null {
    if (expires_at !== null && now >= expires_at) return `the licence of the deal ${deal_id} expired at ${iso(expires_at)}`
    if (fires !== null && this.#used(deal_id).fires >= fires)
      return `the licence of the deal ${deal_id} is used up: it was for ${fires} actions`
    return null
  }

  #used(deal_id: string): Counts {
    return { ...NOTHING, ...this.#parts.database.read<Partial<Counts>>(keyOf(deal_id), {}) }
  }

  #count(unit: Unit, licence: ScopeLicence | null, more: Partial<Counts>): string | null {
    if (!licence) return null
    const { scope, outbox } = this.#parts
    const { deal_id } = licence
    const before = this.#used(deal_id)
    const { fires = 0, certified = 0, lapses = 0 } = more
    const counts = { fires: before.fires + fires, certified: before.certified + certified, lapses: before.lapses + lapses }
    unit.write(keyOf(deal_id), counts)
    outbox.put(unit, 'licence-use', deal_id, { deal_id, scope, ...counts } satisfies LicenceUse)
    return deal_id
  }
}

/** The setting `market`; a later one has a higher revision. */
type MarketSetting = { market: MarketSettings | null; revision: number }

/** Replicates the limits of the scope's account, and mints its opening grant, once. */
async function replicateMarket(ledger: LedgerApi, account: string, { market, revision }: MarketSetting): Promise<void> {
  if (market && market.opening_grant > 0) {
    const grant = { id: `grant:${account}`, to: account, amount: market.opening_grant }
    await ledger.mint(grant, { name: 'settings', opens: [account], privileged: true })
  }
  const { per_transaction, per_hour, per_day, counterparties } = market ?? defaultMarket
  await ledger.setLimits(account, market && { per_transaction, per_hour, per_day, counterparties }, revision)
}
