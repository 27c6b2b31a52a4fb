import { constants } from 'node:os'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type Interruption = { signal: AbortSignal; exitCode: () => number; name: () => string | null }

/** Turns the first signal into an abort, so that everything can end in order; the second one ends the process at once. */
export function interruption(): Interruption {
  const controller = new AbortController()
  let received: (typeof SIGNALS)[number] | null = null
  const exitCode = () => 128 + (received ? constants.signals[received] : 0)
  for (const name of SIGNALS) {
    process.on(name, () => {
      // A terminal signals the whole group and npm may pass the same one on: only a later one is meant as a second.
      if (received && performance.now() - at > 500) process.exit(exitCode())
      if (received) return
      received = name
      at = performance.now()
      controller.abort(new Error(`stopped by ${name}`))
    })
  }
  let at = 0
  return { signal: controller.signal, exitCode, name: () => received }
}

/** Rejects when the signal aborts, even where what is waited for knows nothing of it. */
export function unlessAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', stop))
}
