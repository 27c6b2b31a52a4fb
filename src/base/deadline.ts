export class TooLate extends Error {
  override readonly name = 'TooLate'
}

/** The end of a piece of work with a time limit. */
export type Within<Value> =
  | { ended: 'done'; value: Value }
  | { ended: 'threw'; error: unknown }
  | { ended: 'timeout' }
  | { ended: 'aborted' }

type TimeLimit = {
  timeout_ms: number
  wait?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined
  signal?: AbortSignal | undefined
  /** The reason with which the work's own signal aborts. */
  stopped?: (ended: 'timeout' | 'aborted') => unknown
}

/** Created once: a stack per call costs more than the rest of this function. */
const OVER = new Error('the work is over')

/** Runs `work` until it ends, times out or `signal` aborts. Its own signal then aborts. */
export async function withinTime<Value>(
  work: (signal: AbortSignal) => Promise<Value>,
  { timeout_ms, wait, signal, stopped = (ended) => new Error(`the step was stopped: ${ended}`) }: TimeLimit,
): Promise<Within<Value>> {
  if (signal?.aborted) return { ended: 'aborted' }
  const working = new AbortController()
  const stop = Promise.withResolvers<Within<Value>>()
  const end = (ended: 'timeout' | 'aborted') => {
    stop.resolve({ ended })
    working.abort(stopped(ended))
  }
  const abort = () => end('aborted')
  signal?.addEventListener('abort', abort, { once: true })
  const stopClock = startClock(() => end('timeout'), { timeout_ms, wait })
  try {
    return await Promise.race([settled(work, working.signal), stop.promise])
  } finally {
    stopClock()
    signal?.removeEventListener('abort', abort)
  }
}

/** Calls `end` after the time, unless what it returns is called before. */
function startClock(end: () => void, { timeout_ms, wait }: Pick<TimeLimit, 'timeout_ms' | 'wait'>): () => void {
  // A signal and its listeners take Workers ten times as long as a timer.
  if (!wait) {
    const timer = setTimeout(end, timeout_ms)
    return () => clearTimeout(timer)
  }
  const timing = new AbortController()
  // Only the end of the work stops the clock, and then nobody listens.
  wait(timeout_ms, timing.signal).then(
    () => timing.signal.aborted || end(),
    () => {},
  )
  return () => timing.abort(OVER)
}

/** As `withinTime`, but rejects with the error of the work, the signal's reason, or TooLate. */
export async function withDeadline<Value>(
  work: (signal: AbortSignal) => Promise<Value>,
  { signal, timeout_ms, what }: { signal?: AbortSignal; timeout_ms: number; what: string },
): Promise<Value> {
  signal?.throwIfAborted()
  let reason: unknown
  const stopped = (ended: 'timeout' | 'aborted') =>
    (reason = ended === 'timeout' ? new TooLate(`${what} took longer than ${timeout_ms} ms`) : signal?.reason)
  const within = await withinTime(work, { timeout_ms, signal, stopped })
  if (within.ended === 'done') return within.value
  throw within.ended === 'threw' ? within.error : reason
}

/** Resolves to false if the signal cut the pause short. */
export async function pause(ms: number, limit: Pick<TimeLimit, 'wait' | 'signal'>): Promise<boolean> {
  if (ms === 0) return limit.signal?.aborted !== true
  const { promise: never } = Promise.withResolvers<never>()
  return (await withinTime(() => never, { ...limit, timeout_ms: ms })).ended === 'timeout'
}

async function settled<Value>(work: (signal: AbortSignal) => Promise<Value>, signal: AbortSignal): Promise<Within<Value>> {
  try {
    return { ended: 'done', value: await work(signal) }
  } catch (error) {
    return { ended: 'threw', error }
  }
}

export function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    const stop = () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal.addEventListener('abort', stop, { once: true })
  })
}
