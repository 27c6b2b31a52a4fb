import { withDeadline } from '../../base/deadline.ts'
import type { Artifact, ArtifactChanges, ArtifactKind, ArtifactSubscription } from '../../contract/artifact.ts'
import type { Database, Unit, UnitOfWork } from '../../kernel/unit.ts'

/** A copy's subscription, and the revision it has reached. */
type Position = { of: string; revision: number }

/** Keeps a copy of artifacts current with the feed. A new subscription `of` starts over. */
export class ArtifactFollower {
  readonly #apply: (page: ArtifactChanges, at: Position) => void
  #at: Position = { of: '', revision: 0 }

  constructor(apply: (page: ArtifactChanges, at: Position) => void) {
    this.#apply = apply
  }

  get revision(): number {
    return this.#at.revision
  }

  resume(at: Position): void {
    this.#at = at
  }

  /** Reads the changes since then, page by page. True if the copy changed. */
  async catchUp(of: () => string, read: (since_revision: number) => Promise<ArtifactChanges>): Promise<boolean> {
    const before = this.#at
    for (;;) {
      const asked = of()
      const page = await read(asked === this.#at.of ? this.#at.revision : 0)
      // Ignore responses to a subscription that has since changed.
      if (asked !== of()) return false
      this.#take(page, asked)
      if (!page.more) return this.#at.revision !== before.revision || this.#at.of !== before.of
    }
  }

  #take(page: ArtifactChanges, of: string): void {
    const { revision, restart = false } = page
    if (of === this.#at.of && revision < this.#at.revision && !restart) return
    this.#at = { of, revision }
    this.#apply(page, this.#at)
  }
}

/** Storage limits. Pages beyond them stay in memory, and waking reads them all again. */
const LIMITS = { versions: 5000, bytes: 32_000_000 }

type ArtifactCopyParts = {
  kind: ArtifactKind
  database: Database
  unit: UnitOfWork
  subscription: () => ArtifactSubscription
  read: (subscription: ArtifactSubscription, since_revision: number) => Promise<ArtifactChanges>
  /** Holds a page in memory and returns the part to store. The page from disk is `whole`. */
  apply: (page: ArtifactChanges) => ArtifactChanges
  limits?: typeof LIMITS
}
type Moved = { state: Artifact['state']; reason: string; by_proof: boolean }
/** `complete`: no version was omitted. */
type Mark = Position & { complete: boolean }

/**
 * The scope's copy of the artifacts of one kind that it may use. Stored with the registry's
 * revision, in one transaction per page, so that a restarted object has them while D1 is
 * unavailable.
 */
export class ArtifactCopy {
  readonly #parts: ArtifactCopyParts
  readonly #follower: ArtifactFollower
  readonly #key: string
  #loaded = false
  /** Pages that arrived before the scope stored anything: a read must not create it. */
  #unwritten: [ArtifactChanges, Position][] = []

  constructor(parts: ArtifactCopyParts) {
    this.#parts = parts
    this.#key = `${parts.kind}_copy`
    this.#follower = new ArtifactFollower((page, at) => {
      this.#unwritten.push([parts.apply(page), at])
      this.flush()
    })
  }

  get revision(): number {
    return this.#follower.revision
  }

  /** Reads the copy from disk, once. */
  load(): void {
    if (this.#loaded) return
    this.#loaded = true
    const { kind, database, apply } = this.#parts
    const { of, revision, complete } = this.#mark()
    const rows = database.all<{ artifact: string }>('SELECT artifact FROM artifacts WHERE kind = ? ORDER BY id, version', kind)
    const changes = rows.map(({ artifact }) => changeOf(JSON.parse(artifact) as Artifact))
    if (changes.length > 0) apply({ changes, revision, more: false, whole: true })
    this.#follower.resume({ of, revision: complete ? revision : 0 })
  }

  /** The copy is current once this resolves; rejects if D1 fails or takes too long. */
  async catchUp(timeout_ms: number): Promise<void> {
    this.load()
    const { kind, subscription, read } = this.#parts
    const of = () => JSON.stringify(subscription())
    const pages = () => this.#follower.catchUp(of, (since) => read(subscription(), since))
    await withDeadline(pages, { timeout_ms, what: `reading ${kind}s` })
    this.flush()
  }

  /** Writes pages that arrived before the scope stored anything. */
  flush(): void {
    const { database, unit } = this.#parts
    if (this.#unwritten.length === 0 || !database.laid) return
    const pages = this.#unwritten
    this.#unwritten = []
    unit((work) => {
      for (const [page, at] of pages) this.#write(work, page, at)
    })
  }

  /** When D1 had last changed the state of a version, in ms; null if the copy lacks it. */
  stateAt({ id, version }: { id: string; version: string }): number | null {
    const sql = `SELECT artifact ->> '$.state_at' AS at FROM artifacts WHERE kind = ? AND id = ? AND version = ?`
    return this.#parts.database.first<{ at: number }>(sql, this.#parts.kind, id, version)?.at ?? null
  }

  /** Applies a state that D1 does not have yet. */
  move(unit: Unit, { id, version }: { id: string; version: string }, { state, reason, by_proof }: Moved): void {
    const sql = `UPDATE artifacts SET artifact = json_set(artifact, '$.state', ?4, '$.state_reason', ?5, '$.by_proof', json(?6)) WHERE kind = ?1 AND id = ?2 AND version = ?3`
    unit.all(sql, this.#parts.kind, id, version, state, reason, String(by_proof))
  }

  /** Skips a page without changes: reading its revision again costs one row. */
  #write(unit: Unit, { changes, restart = false, whole = false }: ArtifactChanges, at: Position): void {
    if (changes.length === 0 && !restart && !whole) return
    const { kind, limits = LIMITS } = this.#parts
    const all = restart || whole
    if (all) unit.all('DELETE FROM artifacts WHERE kind = ?', kind)
    const remove = () => {
      for (const { id, version } of changes) unit.all('DELETE FROM artifacts WHERE kind = ? AND id = ? AND version = ?', kind, id, version)
    }
    remove()
    for (const { id, version, artifact } of changes) {
      const insert = 'INSERT INTO artifacts (kind, id, version, artifact) VALUES (?, ?, ?, ?)'
      if (artifact) unit.all(insert, kind, id, version, JSON.stringify(artifact))
    }
    const sizes = 'SELECT count(*) AS versions, coalesce(sum(octet_length(artifact)), 0) AS bytes FROM artifacts WHERE kind = ?'
    const { versions = 0, bytes = 0 } = unit.first<typeof LIMITS>(sizes, kind) ?? {}
    const fits = versions <= limits.versions && bytes <= limits.bytes
    if (!fits) remove()
    unit.write(this.#key, { ...at, complete: fits && (all || this.#mark().complete) } satisfies Mark)
  }

  #mark(): Mark {
    return this.#parts.database.read<Mark>(this.#key, { of: '', revision: 0, complete: true })
  }
}

const changeOf = (artifact: Artifact) => ({ id: artifact.id, version: artifact.version, artifact })
