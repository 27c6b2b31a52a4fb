import { ADMIN_KEY_ID } from '../../contract/key-deleted.ts'
import { withDeadline } from '../../base/deadline.ts'
import { warn } from '../../base/warn.ts'

const EVERY_MS = 60_000
const TIMEOUT_MS = 10_000

/** What stays open after the request that opened it, by the ids of its keys. */
type Connections = { readonly keys: readonly string[]; end: (keys: ReadonlySet<string>) => void }
type Parts = {
  scope: string
  /** Those of the keys that still exist. */
  existing: (keys: string[]) => Promise<Set<string>>
  connections: () => readonly Connections[]
  now: () => number
}

/**
 * A connection does not outlive its key for long. While connections are used, D1 is asked once a minute at most for all of their keys, in the background. No
 * alarm does that: nothing is told or taken while the object sleeps. Keys are created and deleted, never changed, so that to exist is all there is to check.
 */
export class KeyCheck {
  readonly #parts: Parts
  #next = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Called with every use of a connection. */
  used(): void {
    const now = this.#parts.now()
    if (now < this.#next) return
    this.#next = now + EVERY_MS
    void this.#check()
  }

  async #check(): Promise<void> {
    const { scope, existing, connections } = this.#parts
    // The bootstrap key stands in no table.
    const keys = new Set(connections().flatMap((some) => some.keys))
    keys.delete(ADMIN_KEY_ID)
    if (keys.size === 0) return
    try {
      const found = await withDeadline(() => existing([...keys]), { timeout_ms: TIMEOUT_MS, what: 'D1' })
      // A key that came meanwhile is not among those that were asked for.
      const deleted = new Set([...keys].filter((key) => !found.has(key)))
      for (const some of connections()) some.end(deleted)
    } catch (error) {
      warn({
        message: 'the keys of open connections could not be checked, the next check tries again',
        scope,
        error,
      })
    }
  }
}
