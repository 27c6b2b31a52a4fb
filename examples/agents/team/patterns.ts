import { modelFaultOf } from '../../../src/base/faults.ts'
import { isModelRefused } from '../../../src/models/model-errors.ts'

/** Patterns in plain promises. They nest: a worker may be a team, a retry or a timeout. */
export type Worker<Input = string, Output = string> = (input: Input, signal: AbortSignal) => Promise<Output>

export const sequential =
  (...workers: Worker[]): Worker =>
  async (input, signal) => {
    let result = input
    for (const worker of workers) {
      signal.throwIfAborted()
      result = await worker(result, signal)
    }
    return result
  }

/** All workers receive the same input at once. If one fails, the rest is stopped. */
export const parallel =
  (...workers: Worker[]): Worker<string, string[]> =>
  (input, signal) =>
    stoppingOthers(signal, (shared) => Promise.all(workers.map((worker) => worker(input, shared))))

/** The first successful answer wins and the others are stopped. Throws only if all fail. */
export const firstToComplete =
  (...workers: Worker[]): Worker =>
  (input, signal) =>
    stoppingOthers(signal, (shared) => Promise.any(workers.map((worker) => worker(input, shared))).catch(noneCompleted))

type Supervision = { plan: Worker<string, string[]>; work: Worker; conclude: Worker<string[]> }

/** The supervisor divides the task, workers do the parts, and the supervisor concludes. */
export const supervised =
  ({ plan, work, conclude }: Supervision): Worker =>
  async (input, signal) => {
    const parts = await plan(input, signal)
    const done = await stoppingOthers(signal, (shared) => Promise.all(parts.map((part) => work(part, shared))))
    return conclude(done, signal)
  }

/** Throws a TimeoutError when the time is up, even if the worker ignores its signal. */
export const withTimeout =
  <Input, Output>(ms: number, worker: Worker<Input, Output>): Worker<Input, Output> =>
  (input, signal) => {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(ms)])
    return Promise.race([worker(input, bounded), aborted(bounded)])
  }

type Retry = { attempts: number; base_ms: number; sleep?: (ms: number, signal: AbortSignal) => Promise<void> }

/** Retries with exponential pauses, except after an abort or a refused model call. */
export const withRetry =
  <Input, Output>({ attempts, base_ms, sleep = rest }: Retry, worker: Worker<Input, Output>): Worker<Input, Output> =>
  async (input, signal) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await worker(input, signal)
      } catch (error) {
        if (attempt >= attempts || signal.aborted || isFinal(error)) throw error
        await sleep(base_ms * 2 ** (attempt - 1), signal)
      }
    }
  }

/** A retry cannot succeed: no model may be called, or the provider refuses the request. */
const isFinal = (error: unknown): boolean => isModelRefused(error) || modelFaultOf(error, { now: 0 })?.fault === 'refused'

/** If the first worker fails, the second receives the same input. */
export const withFallback =
  <Input, Output>(worker: Worker<Input, Output>, fallback: Worker<Input, Output>): Worker<Input, Output> =>
  async (input, signal) => {
    try {
      return await worker(input, signal)
    } catch (error) {
      if (signal.aborted || isModelRefused(error)) throw error
      return fallback(input, signal)
    }
  }

/** Ends with the first part that ends or fails, and stops the others. */
async function stoppingOthers<Output>(signal: AbortSignal, run: (shared: AbortSignal) => Promise<Output>): Promise<Output> {
  const done = new AbortController()
  try {
    return await run(AbortSignal.any([signal, done.signal]))
  } finally {
    done.abort(new DOMException('another worker has decided', 'AbortError'))
  }
}

/** A refused model call takes precedence, so that the scope waits for its budget. */
function noneCompleted(error: unknown): never {
  const errors: unknown[] = error instanceof AggregateError ? error.errors : [error]
  throw errors.find(isModelRefused) ?? new Error(`no worker completed: ${errors.map(String).join('; ')}`, { cause: error })
}

function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  return promise
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  const timer = Promise.withResolvers<void>()
  const handle = setTimeout(timer.resolve, ms)
  return Promise.race([timer.promise, aborted(signal)]).finally(() => clearTimeout(handle))
}
