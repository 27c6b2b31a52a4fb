import { constants } from 'node:os'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
type SignalName = (typeof SIGNALS)[number]
export type Interruption = { signal: AbortSignal; exitCode: () => number; name: () => SignalName | null }

/**
 * A terminal signals the whole group, and npm may forward the same signal: only a later one counts
 * as the second.
 */
const SAME_MS = 500
const ORPHAN_POLL_MS = 500

/**
 * Turns the first signal into an abort, so that everything ends in order; the second one ends the
 * process at once.
 */
export function interruption(): Interruption {
  const controller = new AbortController()
  let received: { name: SignalName; at: number } | null = null
  const exitCode = () => 128 + (received ? constants.signals[received.name] : 0)
  const receive = (name: SignalName) => {
    if (received && performance.now() - received.at > SAME_MS) process.exit(exitCode())
    if (received) return
    received = { name, at: performance.now() }
    controller.abort(new Error(`stopped by ${name}`))
  }
  for (const name of SIGNALS) process.on(name, () => receive(name))
  hangUpWhenOrphaned()
  return { signal: controller.signal, exitCode, name: () => received?.name ?? null }
}

/** If only npm is killed, its shell dies too and this process receives no signal. */
function hangUpWhenOrphaned(): void {
  if (process.env['npm_lifecycle_event'] === undefined) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    // A real signal, so that the other listeners end what they started.
    process.kill(process.pid, 'SIGHUP')
  }, ORPHAN_POLL_MS)
  timer.unref()
}

/** Rejects when the signal aborts, even if the awaited work ignores the signal. */
export function unlessAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', stop))
}
