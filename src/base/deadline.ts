export class TooLate extends Error {
  override readonly name = 'TooLate'
}

/**
 * Runs `work` until it ends, `signal` (where there is one) aborts or the time is up, whichever is first; in the latter cases the signal that `work` was given aborts, and what
 * it still does is nobody's concern. Rejects with the signal's reason, or TooLate.
 */
export async function withDeadline<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  { signal, timeout_ms, what }: { signal?: AbortSignal; timeout_ms: number; what: string },
): Promise<Result> {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = (reason: unknown) => {
    controller.abort(reason)
    reject(reason)
  }
  const forward = () => stop(signal?.reason)
  signal?.addEventListener('abort', forward, { once: true })
  const timer = setTimeout(() => stop(new TooLate(`${what} took longer than ${timeout_ms} ms`)), timeout_ms)
  try {
    return await Promise.race([work(controller.signal), promise])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', forward)
  }
}
