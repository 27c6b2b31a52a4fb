/** How a piece of work ended that was given so much time. */
export type Within<Value> =
  | { ended: 'done'; value: Value }
  | { ended: 'threw'; error: unknown }
  | { ended: 'timeout' }
  | { ended: 'aborted' }

type TimeLimit = { timeout_ms: number; wait: (ms: number, signal: AbortSignal) => Promise<void>; signal?: AbortSignal | undefined }

/**
 * A reason made once: the platform's own, made with its stack for each call, takes longer than all
 * else here.
 */
const OVER = new Error('the work is over')

/**
 * Runs `work` until it ends, its time is up or `signal` aborts; in the latter cases its own signal
 * aborts, and what it still does is nobody's concern.
 */
export async function withinTime<Value>(
  work: (signal: AbortSignal) => Promise<Value>,
  { timeout_ms, wait, signal }: TimeLimit,
): Promise<Within<Value>> {
  if (signal?.aborted) return { ended: 'aborted' }
  const working = new AbortController()
  const timing = new AbortController()
  const aborted = Promise.withResolvers<Within<Value>>()
  const abort = () => aborted.resolve({ ended: 'aborted' })
  signal?.addEventListener('abort', abort, { once: true })
  const late = wait(timeout_ms, timing.signal).then(
    (): Within<Value> => ({ ended: 'timeout' }),
    // Only the end of the work stops the clock, and then nobody listens.
    () => new Promise<Within<Value>>(() => {}),
  )
  try {
    const within = await Promise.race([settled(work, working.signal), late, aborted.promise])
    if (within.ended === 'timeout' || within.ended === 'aborted') working.abort(new Error(`the step was stopped: ${within.ended}`))
    return within
  } finally {
    timing.abort(OVER)
    signal?.removeEventListener('abort', abort)
  }
}

async function settled<Value>(work: (signal: AbortSignal) => Promise<Value>, signal: AbortSignal): Promise<Within<Value>> {
  try {
    return { ended: 'done', value: await work(signal) }
  } catch (error) {
    return { ended: 'threw', error }
  }
}
