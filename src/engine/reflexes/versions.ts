import { agentOwner, scopeOfOwner, type ReflexReference, type ReflexState, type ReflexVersion } from '../../contract/reflex.ts'
import { matchesScope } from '../../contract/principal.ts'
import type { ChainLink } from '../../reflexes/decide.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Database, Unit, UnitOfWork } from '../../kernel/unit.ts'

type VersionName = { id: string; version: number }
/** A change of state by this scope. `by_proof`: a promotion on a certificate. */
export type Move = { to: ReflexState; reason: string; by_proof: boolean }

const nameOf = ({ id, version }: VersionName): string => `${id}@${version}`

/**
 * The versions that the chain refers to, as ReflexSync last read them, so that reflexes act while
 * D1 is away. Stored: the names of those that this scope has suspended, and the key that set the
 * chain.
 */
export class ReflexVersions {
  readonly #scope: string
  readonly #settings: () => Settings
  #all: readonly ReflexVersion[] = []
  #suspended: Record<string, string>
  #links: ChainLink[] | null = null
  #set_by: string | null

  readonly #off_everywhere: readonly string[]

  /** `off`: the ids of reflexes that act nowhere in this deployment, separated by commas. */
  constructor(database: Pick<Database, 'read'>, scope: string, settings: () => Settings, off = '') {
    this.#off_everywhere = off.split(',').map((id) => id.trim())
    this.#scope = scope
    this.#settings = settings
    this.#suspended = database.read('suspended', {})
    this.#set_by = database.read('chain_set_by', null)
  }

  get links(): readonly ChainLink[] {
    return (this.#links ??= this.#settings().reflexes.map((reference) => this.#link(reference)))
  }

  get all(): readonly ReflexVersion[] {
    return this.#all
  }

  /** Clears the cached links after a change of settings. */
  forgetLinks(): void {
    this.#links = null
  }

  /** Stores the id of the key that set the chain; null if no key did. */
  setBy(unit: Unit, key_id: string | null): void {
    this.#set_by = key_id
    unit.write('chain_set_by', key_id)
  }

  /**
   * True if this scope may change the version's state for all scopes: its agent owns it, or the
   * key that owns it set the chain. Otherwise the scope can only suspend it for itself.
   */
  governs({ owner_id, provenance }: ReflexVersion): boolean {
    // A version that an agent wrote may have been sold since.
    if (provenance.scope !== null && scopeOfOwner(owner_id) !== null) return owner_id === agentOwner(this.#scope)
    return owner_id === this.#set_by
  }

  replace(versions: readonly ReflexVersion[]): void {
    // A licensed version acts in this scope as far as its certificate here allows.
    this.#all = versions.map((one) => (one.licences ? { ...one, by_proof: true } : one))
    this.#links = null
  }

  /** Undefined if the version is no longer in the chain. */
  find({ id, version }: VersionName): ReflexVersion | undefined {
    return this.#all.find((one) => one.id === id && one.version === version)
  }

  /** Applies a new state before D1 has it. */
  move(moved: VersionName, { to: state, reason: state_reason, by_proof }: Move): void {
    this.replace(this.#all.map((one) => (nameOf(one) === nameOf(moved) ? { ...one, state, state_reason, by_proof } : one)))
  }

  /** Stops a version in this scope, whatever its state elsewhere, until it or the chain changes. */
  suspend(unit: Unit, version: ReflexVersion, reason: string): void {
    this.#setSuspended(unit, { ...this.#suspended, [nameOf(version)]: reason })
  }

  /** Resumes these reflexes, or all. */
  resume(unit: Unit, ids?: readonly string[]): void {
    const kept = Object.entries(this.#suspended).filter(([name]) => ids !== undefined && !ids.some((id) => name.startsWith(`${id}@`)))
    this.#setSuspended(unit, Object.fromEntries(kept))
  }

  #setSuspended(unit: Unit, suspended: Record<string, string>): void {
    this.#suspended = suspended
    unit.write('suspended', suspended)
    this.#links = null
  }

  /** True if the version's owner may act on this scope. If not, the chain must name the version. */
  covers({ scopes }: ReflexVersion): boolean {
    return scopes.some((pattern) => matchesScope(pattern, this.#scope))
  }

  isSuspended(version: VersionName): boolean {
    return this.#suspended[nameOf(version)] !== undefined
  }

  /** Why the settings keep a reflex from acting. */
  #off(id: string): string | undefined {
    const { paused, reflexes_off = [] } = this.#settings()
    if (paused) return 'the scope is paused'
    const names = (one: string) => one === id || one === '*'
    if (this.#off_everywhere.some(names)) return 'REFLEX_REFLEXES_OFF of the deployment names it'
    return reflexes_off.some(names) ? 'the setting reflexes_off of this scope names it' : undefined
  }

  #link(reference: ReflexReference): ChainLink {
    const { id, version: pinned } = reference
    const known = this.#all.filter((one) => one.id === id && (pinned === undefined || one.version === pinned))
    const allowed = known
      .filter((one) => pinned !== undefined || one.licences || this.covers(one))
      .sort((left, right) => right.version - left.version)
    const active = allowed.find(({ state }) => state === 'active') ?? null
    const suspended = this.#off(id) ?? (active ? this.#suspended[nameOf(active)] : undefined)
    const watching = allowed
      .filter((one) => one.state === 'shadow' && one.version > (active?.version ?? 0) && !this.isSuspended(one))
      .slice(0, 1)
    // The version that a person activated last acts if proof is lacking.
    const earlier = active?.by_proof ? allowed.filter((one) => one.state === 'active' && !one.by_proof && !this.isSuspended(one)) : []
    if (active && suspended === undefined) return { reference, acting: active, earlier: earlier[0], watching, absent: null }
    if (suspended !== undefined) return { reference, acting: null, watching, absent: { reason: 'suspended', detail: suspended } }
    const shadowed = allowed.find((one) => this.isSuspended(one))
    if (shadowed && watching.length === 0)
      return { reference, acting: null, watching, absent: { reason: 'suspended', detail: this.#suspended[nameOf(shadowed)] ?? '' } }
    const absent = watching.length > 0 ? null : { reason: 'missing' as const, detail: missing(reference, known, allowed) }
    return { reference, acting: null, watching, absent }
  }
}

function missing({ id, version }: ReflexReference, known: readonly ReflexVersion[], allowed: readonly ReflexVersion[]): string {
  if (known.length === 0)
    return version === undefined ? `no version of reflex ${id} is active or in shadow` : `there is no reflex ${id}@${version}`
  if (allowed.length === 0) return `the owner of reflex ${id} may not act in this scope: name a version of it, or copy it`
  return `reflex ${id}@${allowed[0]?.version} is ${allowed[0]?.state}`
}

const KEY = 'owned_reflexes'

/** Ids of the reflexes that this scope's agent wrote, cached for the contexts. */
export class OwnedReflexes {
  readonly #database: Database
  readonly #unit: UnitOfWork
  #ids: readonly string[]

  constructor(database: Database, unit: UnitOfWork) {
    this.#database = database
    this.#unit = unit
    this.#ids = database.read<string[]>(KEY, [])
  }

  get ids(): readonly string[] {
    return this.#ids
  }

  add(id: string): void {
    if (!this.#ids.includes(id)) this.#set([...this.#ids, id])
  }

  remove(id: string): void {
    if (this.#ids.includes(id)) this.#set(this.#ids.filter((owned) => owned !== id))
  }

  #set(ids: readonly string[]): void {
    this.#unit(() => this.#database.write(KEY, ids))
    this.#ids = ids
  }
}

/** Ids of what the scope's agent wrote, then of others that it owns. */
export const ownedBy = (written: Pick<OwnedReflexes, 'ids'>, others: readonly string[]): readonly string[] =>
  others.length === 0 ? written.ids : Array.from(new Set([...written.ids, ...others]))
