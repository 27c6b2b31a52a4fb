import type { ReflexReference, ReflexVersion } from '../../contract/reflex.ts'
import { matchesScope } from '../../contract/scope-pattern.ts'
import type { Link } from '../../reflexes/decide.ts'
import type { Settings } from '../../contract/settings.ts'
import type { Database } from '../database.ts'
import type { Unit } from '../unit.ts'

const nameOf = ({ id, version }: { id: string; version: number }): string => `${id}@${version}`

/**
 * The chain's programs, as D1 had them when the scope last looked: kept here, so that reflexes act while D1 is away. Kept state: a row for each version,
 * and the names of those that this scope has suspended. If the process dies between D1 and here, the next look brings the same again.
 */
export class Programs {
  readonly #scope: string
  readonly #settings: () => Settings
  #versions: ReflexVersion[]
  #suspended: Record<string, string>
  #links: Link[] | null = null
  #set_by: string | null

  constructor(database: Database, scope: string, settings: () => Settings) {
    this.#scope = scope
    this.#settings = settings
    this.#versions = database
      .all<{ program: string }>('SELECT program FROM programs')
      .map(({ program }) => JSON.parse(program) as ReflexVersion)
    this.#suspended = database.read('suspended', {})
    this.#set_by = database.read('chain_set_by', null)
  }

  get links(): readonly Link[] {
    return (this.#links ??= this.#settings().reflexes.map((reference) => this.#link(reference)))
  }

  get versions(): readonly ReflexVersion[] {
    return this.#versions
  }

  /** The settings changed. */
  forgetLinks(): void {
    this.#links = null
  }

  /** The id of the key that set the chain; null where no key did. */
  setBy(unit: Unit, key_id: string | null): void {
    this.#set_by = key_id
    unit.write('chain_set_by', key_id)
  }

  /**
   * True where this scope may change the version's state for all: its agent wrote it, or the key
   * that owns it set the chain. What happens to it in other scopes concerns those scopes alone.
   */
  governs({ owner_id, provenance }: ReflexVersion): boolean {
    if (provenance.scope !== null) return provenance.scope === this.#scope
    return owner_id === this.#set_by
  }

  /** What D1 has of the chain's references now. */
  replace(unit: Unit, versions: readonly ReflexVersion[]): void {
    const before = JSON.stringify(this.#versions.map(summary).sort())
    this.#versions = [...versions]
    this.#links = null
    if (before === JSON.stringify(versions.map(summary).sort())) return
    unit.all('DELETE FROM programs')
    for (const version of versions)
      unit.all('INSERT INTO programs (id, version, program) VALUES (?, ?, ?)', version.id, version.version, JSON.stringify(version))
  }

  /** The version as the scope has it; undefined where it is no longer in the chain. */
  find({ id, version }: { id: string; version: number }): ReflexVersion | undefined {
    return this.#versions.find((one) => one.id === id && one.version === version)
  }

  /** Takes over a new state before D1 knows of it. */
  move(unit: Unit, { id, version }: { id: string; version: number }, state: ReflexVersion['state'], state_reason: string): void {
    const known = this.find({ id, version })
    if (!known) return
    const moved = { ...known, state, state_reason }
    this.#versions = this.#versions.map((one) => (one === known ? moved : one))
    this.#links = null
    unit.all('UPDATE programs SET program = ?3 WHERE id = ?1 AND version = ?2', id, version, JSON.stringify(moved))
  }

  /** It acts no longer in this scope, whatever its state elsewhere, until it changes or the chain is set anew. */
  suspend(unit: Unit, version: ReflexVersion, reason: string): void {
    this.#suspended = { ...this.#suspended, [nameOf(version)]: reason }
    unit.write('suspended', this.#suspended)
    this.#links = null
  }

  /** Of these reflexes, or of all. */
  resume(unit: Unit, ids?: readonly string[]): void {
    const kept = Object.entries(this.#suspended).filter(([name]) => ids !== undefined && !ids.some((id) => name.startsWith(`${id}@`)))
    this.#suspended = Object.fromEntries(kept)
    unit.write('suspended', this.#suspended)
    this.#links = null
  }

  /** Whether the version's owner may touch this scope. Elsewhere only a version that the chain names runs, for its operator has looked at it. */
  covers({ scopes }: ReflexVersion): boolean {
    return scopes.some((pattern) => matchesScope(pattern, this.#scope))
  }

  #link(reference: ReflexReference): Link {
    const { id, version: pinned } = reference
    const known = this.#versions.filter((one) => one.id === id && (pinned === undefined || one.version === pinned))
    const allowed = known.filter((one) => pinned !== undefined || this.covers(one)).sort((left, right) => right.version - left.version)
    const active = allowed.find(({ state }) => state === 'active') ?? null
    const suspended = active ? this.#suspended[nameOf(active)] : undefined
    const watching = allowed
      .filter((one) => one.state === 'shadow' && one.version > (active?.version ?? 0) && this.#suspended[nameOf(one)] === undefined)
      .slice(0, 1)
    if (active && suspended === undefined) return { reference, acting: active, watching, absent: null }
    if (suspended !== undefined) return { reference, acting: null, watching, absent: { reason: 'suspended', detail: suspended } }
    const shadowed = allowed.find((one) => this.#suspended[nameOf(one)] !== undefined)
    if (shadowed && watching.length === 0)
      return { reference, acting: null, watching, absent: { reason: 'suspended', detail: this.#suspended[nameOf(shadowed)] ?? '' } }
    const absent = watching.length > 0 ? null : { reason: 'missing' as const, detail: missing(reference, known, allowed) }
    return { reference, acting: null, watching, absent }
  }
}

const summary = ({ id, version, state, state_reason }: ReflexVersion): string => JSON.stringify([id, version, state, state_reason])

function missing({ id, version }: ReflexReference, known: readonly ReflexVersion[], allowed: readonly ReflexVersion[]): string {
  if (known.length === 0)
    return version === undefined ? `no version of reflex ${id} is active or in shadow` : `there is no reflex ${id}@${version}`
  if (allowed.length === 0) return `the owner of reflex ${id} may not touch this scope: name a version of it, or copy it`
  return `reflex ${id}@${allowed[0]?.version} is ${allowed[0]?.state}`
}
