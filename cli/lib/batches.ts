import { setTimeout as wait } from 'node:timers/promises'

const MOST_VALUES = 100
/** Half of a request's limit. */
const MOST_CHARS = 250_000

/** `linger_ms`: how long a value waits for others, where they come from a live source. */
type BatchOptions = { most?: number | undefined; linger_ms?: number }

/** Groups values, in order, into requests that the API accepts. */
export async function* batches<Value>(
  values: Iterable<Value> | AsyncIterable<Value>,
  { most = MOST_VALUES, linger_ms }: BatchOptions = {},
): AsyncGenerator<Value[]> {
  let batch: Value[] = []
  let chars = 0
  for await (const value of linger_ms === undefined ? values : withPauses(values, linger_ms)) {
    const size = value === PAUSE ? 0 : JSON.stringify(value).length
    const isFull = batch.length >= Math.min(most, MOST_VALUES) || chars + size > MOST_CHARS
    if (batch.length > 0 && (isFull || value === PAUSE)) {
      yield batch
      batch = []
      chars = 0
    }
    if (value === PAUSE) continue
    batch.push(value)
    chars += size
  }
  if (batch.length > 0) yield batch
}

const PAUSE = Symbol('pause')

/** Inserts a pause wherever the next value does not come in time. */
async function* withPauses<Value>(values: Iterable<Value> | AsyncIterable<Value>, pause_ms: number): AsyncGenerator<Value | typeof PAUSE> {
  const iterator = (async function* () {
    yield* values
  })()
  for (;;) {
    const next = iterator.next()
    const timer = new AbortController()
    const pause = wait(pause_ms, PAUSE, { signal: timer.signal }).catch(() => PAUSE)
    const first = await Promise.race([next, pause])
    timer.abort()
    if (first === PAUSE) yield PAUSE
    const { done, value } = await next
    if (done) return
    yield value
  }
}
