import type { LicenceUse as Use } from '../contract/ledger-api.ts'
import type { LicensedGoods, ScopeLicence, UsedLicence } from '../../../contract/licence.ts'
import type { Fire } from '../../../reflexes/decide.ts'
import { iso } from '../../../base/time.ts'
import type { Unit } from '../../../engine/storage/unit.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'

type Counts = Pick<Use, 'fires' | 'certified' | 'lapses'>
const NOTHING: Counts = { fires: 0, certified: 0, lapses: 0 }

const keyOf = (deal_id: string): string => `licence_use ${deal_id}`

/**
 * Counts what this scope does under licences, and enforces their limits. The sums are written in
 * the unit of the action, and reported to the Ledger by the outbox: a repeated report is harmless.
 */
export class LicenceUses {
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
    outbox.put(unit, 'licence-use', deal_id, { deal_id, scope, ...counts } satisfies Use)
    return deal_id
  }
}
