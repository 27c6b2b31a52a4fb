import { compareVersions } from '../../contract/semantic-version.ts'
import type { SkillChanges } from '../../contract/skill.ts'
import { isCompatible } from '../gate/compat.ts'
import type { Place } from '../gate/decision.ts'
import { manifestSchema, type Manifest } from '../manifest/manifest.ts'

type HeldSkill = { id: string; version: string; hash: string; manifest: Manifest }

/** The active skills of a scope, as they were at `revision`. */
export class SkillCopy {
  readonly #held = new Map<string, HeldSkill>()
  #revision = 0
  #unreadable: string[] = []

  get revision(): number {
    return this.#revision
  }

  /** Active versions that today's schema does not take: they are left out. */
  get unreadable(): readonly string[] {
    return this.#unreadable
  }

  get manifests(): Manifest[] {
    return Array.from(this.#held.values(), ({ manifest }) => manifest)
  }

  /** All of it, as one page of changes. */
  get whole(): SkillChanges {
    return { changes: [...this.#held.values()], revision: this.#revision, more: false }
  }

  /**
   * Asks for what changed since, page by page; `applied` is given each page that counted. Says
   * whether anything changed.
   */
  async catchUp(
    read: (since_revision: number) => Promise<SkillChanges>,
    applied: (page: SkillChanges) => void = () => {},
  ): Promise<boolean> {
    const before = this.#revision
    for (;;) {
      const page = await read(this.#revision)
      if (this.apply(page)) applied(page)
      if (!page.more) return this.#revision !== before
    }
  }

  /**
   * The newest active version of each skill that fits there, by id: an older one is used where a
   * newer one does not fit.
   */
  newestFor(place: Place): HeldSkill[] {
    const fitting = [...this.#held.values()].filter(({ manifest }) => isCompatible(manifest.compat, place))
    const newest = [...Map.groupBy(fitting, ({ id }) => id).values()].flatMap((versions) => newestOf(versions) ?? [])
    return newest.sort((left, right) => (left.id < right.id ? -1 : 1))
  }

  /**
   * The version that is named; else the newest that fits there, or the newest at all, for the gate
   * to say why it does not fit.
   */
  find(place: Place, id: string, version?: string): HeldSkill | null {
    if (version !== undefined) return this.#held.get(`${id}@${version}`) ?? null
    const versions = [...this.#held.values()].filter((held) => held.id === id)
    return newestOf(versions.filter(({ manifest }) => isCompatible(manifest.compat, place))) ?? newestOf(versions)
  }

  /** Returns false for a stale page: a later one was applied before it. */
  apply({ changes, revision, restart = false }: SkillChanges): boolean {
    if (restart) {
      this.#held.clear()
      this.#unreadable = []
    } else if (revision < this.#revision) return false
    for (const { id, version, hash, manifest } of changes) {
      const name = `${id}@${version}`
      this.#held.delete(name)
      this.#unreadable = this.#unreadable.filter((other) => other !== name)
      if (manifest === null) continue
      const read = manifestSchema.safeParse(manifest)
      if (read.success) this.#held.set(name, { id, version, hash, manifest: read.data })
      else this.#unreadable.push(name)
    }
    this.#revision = revision
    return true
  }
}

const newestOf = (versions: readonly HeldSkill[]): HeldSkill | null =>
  versions.toSorted((left, right) => compareVersions(right.version, left.version))[0] ?? null
