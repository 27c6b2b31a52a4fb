import { lookUpSkill } from '../../artifacts/look-up.ts'
import { TooLate, withDeadline } from '../../base/deadline.ts'
import { warn } from '../../base/warn.ts'
import { coversScope } from '../../contract/principal.ts'
import type { SkillEntryKind } from '../../contract/log-entry.ts'
import { SkillIndex } from '../../skills/bulletin/skill-index.ts'
import { isRefused, placeOf, isCompatible, type Place } from '../../skills/manifest/compat.ts'
import { pushRefusal } from '../../skills/gate/pushed.ts'
import { manifestSchema, type Manifest, type FoundSkill } from '../../skills/manifest/manifest.ts'
import { secretPathsOf } from '../../skills/session/context.ts'
import { readFeed } from '../../store/artifacts/feed.ts'
import { ArtifactCopy } from '../replication/artifact-copy.ts'
import { scopeHead } from '../log/spans.ts'
import { storeOf } from '../../store/store.ts'
import type { Lanes } from '../effects/wiring.ts'
import { CONTROL_PLANE } from '../../contract/policy.ts'
import type { Artifact, ArtifactChanges } from '../../contract/artifact.ts'
import { compareVersions } from '../../base/semantic-version.ts'

/**
 * `licences`: those under which the scope runs a version, if it needs one. `pushed`: it came from
 * the control plane.
 */
type CopyGoods = Pick<Artifact, 'sealed' | 'licences'> & { pushed?: boolean }

export class SkillCopy {
  readonly #held = new Map<string, Manifest>()
  readonly #goods = new Map<string, CopyGoods>()
  #unreadable: string[] = []

  /** Active versions whose manifest the current schema rejects: they are left out. */
  get unreadable(): readonly string[] {
    return this.#unreadable
  }

  get manifests(): Manifest[] {
    return [...this.#held.values()]
  }

  goodsOf({ id, version }: { id: string; version: string }): CopyGoods {
    return this.#goods.get(`${id}@${version}`) ?? { sealed: false }
  }

  newestFor(place: Place): Manifest[] {
    const fitting = this.manifests.filter(({ compat }) => isCompatible(compat, place))
    const newest = [...Map.groupBy(fitting, ({ id }) => id).values()].flatMap((versions) => newestOf(versions) ?? [])
    return newest.sort((left, right) => (left.id < right.id ? -1 : 1))
  }

  /**
   * The named version; else the newest compatible one; else the newest, so that the gate explains.
   */
  find(place: Place, id: string, version?: string): Manifest | null {
    if (version !== undefined) return this.#held.get(`${id}@${version}`) ?? null
    const versions = this.manifests.filter((manifest) => manifest.id === id)
    return newestOf(versions.filter(({ compat }) => isCompatible(compat, place))) ?? newestOf(versions)
  }

  apply({ changes, whole = false, restart = false }: ArtifactChanges): void {
    if (whole || restart) {
      this.#held.clear()
      this.#goods.clear()
      this.#unreadable = []
    }
    for (const { id, version, artifact } of changes) {
      const name = `${id}@${version}`
      this.#held.delete(name)
      this.#goods.delete(name)
      this.#unreadable = this.#unreadable.filter((other) => other !== name)
      if (artifact === null) continue
      const { sealed, licences } = artifact
      const pushed = artifact.owner_id === CONTROL_PLANE
      if (sealed || licences || pushed) this.#goods.set(name, { sealed, ...(licences && { licences }), ...(pushed && { pushed }) })
      const read = manifestSchema.safeParse(JSON.parse(artifact.content))
      if (read.success) this.#held.set(name, read.data)
      else this.#unreadable.push(name)
    }
  }
}

const newestOf = (versions: readonly Manifest[]): Manifest | null =>
  versions.toSorted((left, right) => compareVersions(right.version, left.version))[0] ?? null

/** The age in ms up to which a turn uses the cache without polling. */
const FRESH_MS = 2000
const TIMEOUT_MS = 5000
/** Pause after a timeout, so that actions and turns do not wait for D1 one after the other. */
const STALLED_MS = 10_000

type SkillCacheParts = Pick<Lanes, 'scope' | 'env' | 'database' | 'unit' | 'settings' | 'now' | 'features'>

/**
 * The active skills that this scope may use. The cache serves them while D1 is unavailable, also
 * after an eviction; the log records the start and the end of that.
 */
export class SkillCache {
  readonly #parts: SkillCacheParts
  readonly #copy: ArtifactCopy
  readonly #skills = new SkillCopy()
  #warned = ''
  #read_at = 0
  #away = false
  #asked_again_at = 0
  #index: { of: string; index: SkillIndex } | null = null

  constructor(parts: SkillCacheParts) {
    this.#parts = parts
    const { scope, env } = parts
    const subscription = () => ({ kind: 'skill' as const, scope })
    const apply = (page: Parameters<SkillCopy['apply']>[0]) => {
      this.#skills.apply(page)
      return page
    }
    this.#copy = new ArtifactCopy({ ...parts, kind: 'skill', subscription, read: (of, since) => readFeed(storeOf(env), of, since), apply })
  }

  /** Read from disk on first use: objects that wake for other work do not pay for it. */
  get #loaded(): SkillCopy {
    this.#copy.load()
    return this.#skills
  }

  /** Resolves once the cache is current, if D1 answers. */
  async catchUp({ at_once }: { at_once: boolean }): Promise<void> {
    const { scope, now } = this.#parts
    if (now() < this.#asked_again_at || (!at_once && now() - this.#read_at < FRESH_MS)) return
    try {
      await this.#copy.catchUp(TIMEOUT_MS)
      this.#read_at = now()
      this.#warnOfUnreadable()
      if (this.#away) this.#log({ kind: 'skills-restored' })
      this.#away = false
    } catch (error) {
      warn({ message: 'failed to read skills; using the cached ones', scope, error })
      const { revision } = this.#copy
      if (!this.#away) this.#log({ kind: 'skills-degraded', reason: 'the registry does not answer: the cached skills are used', revision })
      this.#away = true
      if (error instanceof TooLate) this.#asked_again_at = now() + STALLED_MS
    }
  }

  #warnOfUnreadable(): void {
    const skills = this.#skills.unreadable.join(', ')
    if (skills === this.#warned) return
    this.#warned = skills
    warn({ message: 'skipped manifests that the schema no longer accepts', scope: this.#parts.scope, skills })
  }

  /** Lists the newest active version of each skill that fits the agent's place, by id. */
  shown(): Manifest[] {
    return this.#shownOf(this.#loaded)
  }

  /** Leaves out what the deployment or the scope's operators refuse. */
  #shownOf(skills: SkillCopy): Manifest[] {
    const { settings, env, scope } = this.#parts
    return skills
      .newestFor(placeOf(settings()))
      .filter((one) => !isRefused(settings().refused_skills, one))
      .filter((one) => this.goodsOf(one).pushed !== true || pushRefusal(env, scope, one) === null)
  }

  index(): SkillIndex {
    const skills = this.#loaded
    const place = placeOf(this.#parts.settings())
    const of = JSON.stringify([this.#copy.revision, place, this.#parts.settings().refused_skills])
    if (this.#index?.of !== of) {
      const shown = this.#shownOf(skills).map((manifest) => ({ manifest, state: 'active' as const }))
      this.#index = { of, index: new SkillIndex(shown) }
    }
    return this.#index.index
  }

  /** Paths on the blackboard whose values are never logged. */
  secretPaths(): string[] {
    return this.#loaded.manifests.flatMap(secretPathsOf)
  }

  goodsOf(of: { id: string; version: string }): CopyGoods {
    return this.#loaded.goodsOf(of)
  }

  /**
   * Also returns inactive versions; the gate rejects them with a reason. Null if not found, or if
   * its licence has ended.
   */
  async find(id: string, version?: string): Promise<FoundSkill | null> {
    const cached = this.#loaded.find(placeOf(this.#parts.settings()), id, version)
    const { env, scope, features, now } = this.#parts
    if (cached) {
      const goods = this.goodsOf(cached)
      for (const feature of features) if ((feature.mayUse?.(goods, now()) ?? null) !== null) return null
      return { manifest: cached, state: 'active' }
    }
    const look = async () => lookUpSkill(storeOf(env), { id, version }, { agent: scope })
    const { version: stored } = (await withDeadline(look, { timeout_ms: TIMEOUT_MS, what: 'reading a skill' })) ?? {}
    // Skills of others run by a licence only, and those are in the copy.
    if (!stored || !coversScope(stored, scope)) return null
    const read = manifestSchema.safeParse(stored.manifest)
    return read.success ? { manifest: read.data, state: stored.state } : null
  }

  #log(entry: { kind: SkillEntryKind; [field: string]: unknown }): void {
    const { database, unit } = this.#parts
    // An empty scope has no log yet.
    if (database.laid) unit((work) => work.log({ ...scopeHead(), ...entry }))
  }
}
