/**
 * Callers that wait for outcomes (`?wait=outcome`), in memory only: after a crash they ask again.
 */
export class Waiters {
  readonly #waiting = new Set<{ ids: Set<string>; done: () => void }>()

  settled(ids: readonly string[]): void {
    for (const waiter of this.#waiting) {
      for (const id of ids) waiter.ids.delete(id)
      if (waiter.ids.size === 0) waiter.done()
    }
  }

  /** Resolves to true once all `ids` have settled, or false at the timeout. */
  async wait(ids: ReadonlySet<string>, timeout_ms: number): Promise<boolean> {
    if (ids.size === 0) return true
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiter = { ids: new Set(ids), done: () => resolve(true) }
    this.#waiting.add(waiter)
    const timer = setTimeout(() => resolve(false), timeout_ms)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(waiter)
    }
  }
}
