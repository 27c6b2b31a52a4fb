const MOST_VALUES = 100
/** Half of a request's limit. */
const MOST_CHARS = 250_000

/** Groups values, in order, into requests that the API accepts. */
export async function* batches<Value>(values: Iterable<Value> | AsyncIterable<Value>, most = MOST_VALUES): AsyncGenerator<Value[]> {
  let batch: Value[] = []
  let chars = 0
  for await (const value of values) {
    const size = JSON.stringify(value).length
    if (batch.length >= Math.min(most, MOST_VALUES) || (batch.length > 0 && chars + size > MOST_CHARS)) {
      yield batch
      batch = []
      chars = 0
    }
    batch.push(value)
    chars += size
  }
  if (batch.length > 0) yield batch
}
