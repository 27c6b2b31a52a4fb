import { withinTime } from './deadline.ts'

/** The items, and null for each `beat_ms` in which none came. */
export async function* withBeats<Item>(items: AsyncGenerator<Item, void, undefined>, beat_ms: number): AsyncGenerator<Item | null, void> {
  let next = items.next()
  try {
    for (;;) {
      const within = await withinTime(() => next, { timeout_ms: beat_ms })
      if (within.ended === 'threw') throw within.error
      if (within.ended !== 'done') {
        yield null
        continue
      }
      if (within.value.done === true) return
      yield within.value.value
      next = items.next()
    }
  } finally {
    // It ends once what it waits for has come.
    void items.return().catch(() => {})
  }
}
