import { byteLength } from '../../base/byte-length.ts'
import type { SkillChange, SkillChanges, StoredManifest } from '../../contract/skill.ts'
import type { Database } from '../database.ts'
import type { UnitOfWork } from '../unit.ts'

/** What a scope keeps of manifests; those beyond are in memory alone, and read again on waking. */
export const MOST_HELD_BYTES = 32_000_000
const KEY = 'held_skills'

type Row = { id: string; version: string; hash: string; manifest: string }
/** The revision that the rows are at; `whole` where none was left out. */
type Mark = { revision: number; whole: boolean }

/**
 * The scope's copy of its active skills on disk, so that an object which starts anew has them while D1 is
 * away. Written by page of changes, in one transaction with the revision that it brings the rows to: after a
 * death the changes behind that revision are read again.
 */
export class HeldSkills {
  readonly #database: Database
  readonly #unit: UnitOfWork
  readonly #most_bytes: number
  /** Something was not kept, for the object keeps nothing yet. */
  #missed = false

  constructor({ database, unit, most_bytes = MOST_HELD_BYTES }: { database: Database; unit: UnitOfWork; most_bytes?: number }) {
    this.#database = database
    this.#unit = unit
    this.#most_bytes = most_bytes
  }

  /** As one page of changes; revision 0 where some were left out, so that all are read again. */
  load(): SkillChanges {
    const { revision, whole } = this.#mark()
    const rows = this.#database.all<Row>('SELECT id, version, hash, manifest FROM held_skills ORDER BY id, version')
    const changes = rows.map((row) => ({ ...row, manifest: JSON.parse(row.manifest) as StoredManifest }))
    return { changes, revision: whole ? revision : 0, more: false }
  }

  /** A page without a change writes nothing: what it says of the revision is learnt again for one row read. */
  keep({ changes, revision, restart = false }: SkillChanges): void {
    if (changes.length === 0 && !restart) return
    // Looking at the skills of a scope that was never written to must not make it one that is kept.
    if (!this.#database.laid) {
      this.#missed = true
      return
    }
    this.#unit(() => {
      if (restart) this.#database.all('DELETE FROM held_skills')
      const before: Mark = restart ? { revision: 0, whole: true } : this.#mark()
      let bytes = this.#database.first<{ bytes: number | null }>('SELECT sum(octet_length(manifest)) AS bytes FROM held_skills')?.bytes ?? 0
      let { whole } = before
      for (const change of changes) {
        bytes -= this.#remove(change)
        if (change.manifest === null) continue
        const text = JSON.stringify(change.manifest)
        const size = byteLength(text)
        if (bytes + size > this.#most_bytes) whole = false
        else bytes += this.#insert(change, text, size)
      }
      this.#database.write(KEY, { revision, whole } satisfies Mark)
    })
  }

  /** An object that was only asked keeps nothing; once it keeps something, it keeps these, too. */
  settle(all: () => SkillChanges): void {
    if (!this.#missed || !this.#database.laid) return
    this.#missed = false
    this.keep({ ...all(), restart: true })
  }

  #mark(): Mark {
    return this.#database.read<Mark>(KEY, { revision: 0, whole: true })
  }

  #remove({ id, version }: SkillChange): number {
    const [gone] = this.#database.all<{ bytes: number }>(
      'DELETE FROM held_skills WHERE id = ? AND version = ? RETURNING octet_length(manifest) AS bytes',
      id,
      version,
    )
    return gone?.bytes ?? 0
  }

  #insert({ id, version, hash }: SkillChange, text: string, size: number): number {
    this.#database.all('INSERT INTO held_skills (id, version, hash, manifest) VALUES (?, ?, ?, ?)', id, version, hash, text)
    return size
  }
}
