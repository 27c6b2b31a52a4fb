export type LockOptions = { signal?: AbortSignal; timeout_ms?: number }

/** Runs one task at a time per scope, in order, within this process. Not reentrant. */
export class ScopedLocks {
  readonly #waiting = new Map<string, Set<() => void>>()

  get size(): number {
    return this.#waiting.size
  }

  /** `signal` and `timeout_ms` limit the wait, not the task, which then never starts. */
  async run<Result>(scope: string, task: () => Result | Promise<Result>, options: LockOptions = {}): Promise<Result> {
    options.signal?.throwIfAborted()
    const waiting = this.#waiting.get(scope)
    if (waiting) await turn(waiting, scope, options)
    else this.#waiting.set(scope, new Set())
    try {
      return await task()
    } finally {
      const queue = this.#waiting.get(scope)
      const [next] = queue ?? []
      if (next && queue?.delete(next)) next()
      else this.#waiting.delete(scope)
    }
  }
}

function turn(waiting: Set<() => void>, scope: string, { signal, timeout_ms }: LockOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  waiting.add(resolve)
  // Leaves at once, so that a lock released in this tick passes to a task that still waits.
  const leave = (reason: unknown) => waiting.delete(resolve) && reject(reason)
  const aborted = () => leave(signal?.reason)
  const late = () => leave(new DOMException(`the lock of scope ${scope} was not free within ${timeout_ms} ms`, 'TimeoutError'))
  const timer = timeout_ms === undefined ? undefined : setTimeout(late, timeout_ms)
  signal?.addEventListener('abort', aborted)
  return promise.finally(() => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', aborted)
  })
}
