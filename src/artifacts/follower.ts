import type { ArtifactChanges } from '../contract/artifact.ts'

/** A copy's subscription, and the revision it has reached. */
export type Position = { of: string; revision: number }

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
