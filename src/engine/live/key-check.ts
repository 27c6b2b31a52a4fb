import { ADMIN_KEY_ID } from '../../contract/principal.ts'
import { withDeadline } from '../../base/deadline.ts'
import { warn } from '../../base/warn.ts'

const EVERY_MS = 60_000
const TIMEOUT_MS = 10_000

/** Sockets or streams, by the ids of their keys. */
type Connections = { readonly keys: readonly string[]; end: (keys: ReadonlySet<string>) => void }
type KeyCheckParts = {
  scope: string
  /** Returns the keys that still exist. */
  existing: (keys: string[]) => Promise<Set<string>>
  now: () => number
}

/**
 * Closes connections soon after their key is deleted: while they are in use, checks at most once a
 * minute that their keys exist. Keys never change.
 */
export class KeyCheck {
  readonly #parts: KeyCheckParts
  readonly #connections: Connections[] = []
  #next = 0

  constructor(parts: KeyCheckParts) {
    this.#parts = parts
  }

  watch(connections: Connections): void {
    this.#connections.push(connections)
  }

  /** Call it on every use of a connection. */
  used(): void {
    const now = this.#parts.now()
    if (now < this.#next) return
    this.#next = now + EVERY_MS
    void this.#check()
  }

  async #check(): Promise<void> {
    const { scope, existing } = this.#parts
    // The bootstrap key is in no table.
    const keys = new Set(this.#connections.flatMap((some) => some.keys))
    keys.delete(ADMIN_KEY_ID)
    if (keys.size === 0) return
    try {
      const found = await withDeadline(() => existing([...keys]), { timeout_ms: TIMEOUT_MS, what: 'D1' })
      // Only keys that were queried: a connection may have opened meanwhile.
      const deleted = new Set([...keys].filter((key) => !found.has(key)))
      for (const some of this.#connections) some.end(deleted)
    } catch (error) {
      warn({
        message: 'could not check the keys of open connections; the next check retries',
        scope,
        error,
      })
    }
  }
}
