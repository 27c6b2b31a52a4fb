import { CONTROL_PLANE } from '../../contract/policy.ts'
import type { Artifact, ArtifactChanges } from '../../contract/artifact.ts'
import { compareVersions } from '../../base/semantic-version.ts'
import { isCompatible } from '../manifest/compat.ts'
import type { Place } from '../manifest/compat.ts'
import { manifestSchema, type Manifest } from '../manifest/manifest.ts'

/**
 * `licences`: those under which the scope runs a version, if it needs one. `pushed`: it came from
 * the control plane.
 */
export type CopyGoods = Pick<Artifact, 'sealed' | 'licences'> & { pushed?: boolean }

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
