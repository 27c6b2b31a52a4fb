import type { Env } from '../../env.ts'
import type { SkillEntryKind } from '../../contract/log-entry.ts'
import type { Settings } from '../../contract/settings.ts'
import { manifestSchema, type Manifest } from '../../skills/manifest/manifest.ts'
import { placeOf } from '../../skills/gate/compat.ts'
import { secretPathsOf } from '../../skills/session/context.ts'
import type { FoundSkill } from '../../skills/session/ports.ts'
import { SkillCopy } from '../../skills/bulletin/copy.ts'
import { SkillIndex } from '../../skills/bulletin/skill-index.ts'
import { skills as registry } from '../../artifacts/kinds.ts'
import { readFeed } from '../../store/artifact-feed.ts'
import { runnableIn } from '../../store/artifact-patterns.ts'
import type { SkillChanges } from '../../contract/skill.ts'
import type { Database } from '../database.ts'
import { TooLate, withDeadline } from '../../base/deadline.ts'
import type { Log } from '../log.ts'
import { scopeHead } from '../spans.ts'
import { HeldSkills } from './held-skills.ts'
import { warn } from '../../base/warn.ts'
import type { UnitOfWork } from '../unit.ts'

/** How old the copy may be when a turn's session begins, in ms: a model is told of skills at its leisure, a person is not. */
const FRESH_MS = 2000
const TIMEOUT_MS = 5000
/** How long D1 is left alone once it stalled: reflexes' actions and turns must not wait for it one after the other. */
const STALLED_MS = 10_000

type Parts = {
  scope: string
  env: Env
  database: Database
  log: Log
  unit: UnitOfWork
  settings: () => Settings
  now: () => number
}

/**
 * The skills that this scope may show and run, as D1 has them: a copy in memory and on disk, which goes on serving while D1, the control plane, is away,
 * also after an eviction. The log tells when that begins and ends. What the copy does not hold cannot be decided on meanwhile.
 */
export class Shelf {
  readonly #parts: Parts
  readonly #kept: HeldSkills
  #loaded: SkillCopy | null = null
  #warned = ''
  #read_at = 0
  #away = false
  #asked_again_at = 0
  #index: { of: string; index: SkillIndex } | null = null

  constructor(parts: Parts) {
    this.#parts = parts
    this.#kept = new HeldSkills(parts)
  }

  /** Read from disk when skills are first asked for: an object that wakes for something else does not pay for them. */
  get #copy(): SkillCopy {
    if (this.#loaded) return this.#loaded
    this.#loaded = new SkillCopy()
    this.#loaded.apply(this.#kept.load())
    return this.#loaded
  }

  /** The copy is fresh once this resolves, if D1 answers. */
  async catchUp({ at_once }: { at_once: boolean }): Promise<void> {
    const { scope, env, now } = this.#parts
    if (now() < this.#asked_again_at || (!at_once && now() - this.#read_at < FRESH_MS)) return
    const changes = async (since_revision: number): Promise<SkillChanges> => {
      const { changes, revision, more, restart } = await readFeed(env.DB, { scope, since_revision })
      const skills = changes.map(({ id, version, hash, content }) => ({
        id,
        version,
        hash,
        manifest: content === null ? null : JSON.parse(content),
      }))
      return { changes: skills, revision, more, ...(restart ? { restart } : {}) }
    }
    const read = () => this.#copy.catchUp(changes, (page) => this.#kept.keep(page))
    try {
      await withDeadline(read, { timeout_ms: TIMEOUT_MS, what: 'reading skills' })
      this.#read_at = now()
      this.#kept.settle(() => this.#copy.whole)
      this.#warnOfUnreadable()
      if (this.#away) this.#tell({ kind: 'skills-restored' })
      this.#away = false
    } catch (error) {
      warn({ message: 'skills could not be read, those at hand are used', scope, error })
      if (!this.#away)
        this.#tell({
          kind: 'skills-degraded',
          reason: 'the registry does not answer: the skills at hand are used',
          revision: this.#copy.revision,
        })
      this.#away = true
      if (error instanceof TooLate) this.#asked_again_at = now() + STALLED_MS
    }
  }

  #warnOfUnreadable(): void {
    const skills = this.#copy.unreadable.join(', ')
    if (skills === this.#warned) return
    this.#warned = skills
    const { scope } = this.#parts
    warn({ message: 'manifests that the schema no longer takes are left out', scope, skills })
  }

  /** Of each skill the newest active version that fits where the agent works, by id. */
  shown(): Manifest[] {
    return this.#copy.newestFor(placeOf(this.#parts.settings())).map(({ manifest }) => manifest)
  }

  /** Those of `shown`, to be looked through. */
  index(): SkillIndex {
    const place = placeOf(this.#parts.settings())
    const of = JSON.stringify([this.#copy.revision, place])
    if (this.#index?.of !== of) {
      const skills = this.shown().map((manifest) => ({ manifest, state: 'active' as const }))
      this.#index = { of, index: new SkillIndex(skills) }
    }
    return this.#index.index
  }

  /** Places on the blackboard whose values no log may have. */
  secretPaths(): string[] {
    return this.#copy.manifests.flatMap(secretPathsOf)
  }

  /** Also one that is no longer active, or not yet: the gate says so. Null where there is none, or it is not for this scope. */
  async find(id: string, version?: string): Promise<FoundSkill | null> {
    const held = this.#copy.find(placeOf(this.#parts.settings()), id, version)
    if (held) return { manifest: held.manifest, state: 'active' }
    const { env, scope } = this.#parts
    const look = async () => registry.find(env.DB, id, version, await runnableIn(env.DB, scope))
    const stored = await withDeadline(look, { timeout_ms: TIMEOUT_MS, what: 'reading a skill' })
    if (!stored) return null
    const read = manifestSchema.safeParse(stored.manifest)
    return read.success ? { manifest: read.data, state: stored.state } : null
  }

  #tell(told: { kind: SkillEntryKind; [field: string]: unknown }): void {
    const { database, log, unit } = this.#parts
    // The log of a scope that was never written to begins with what is done there.
    if (database.laid) unit(() => log.append([{ ...scopeHead(), ...told }]))
  }
}
