/** The items, and null for each `beat_ms` in which none came. */
export async function* withBeats<Item>(items: AsyncGenerator<Item, void, undefined>, beat_ms: number): AsyncGenerator<Item | null, void> {
  let next = items.next()
  try {
    for (;;) {
      const found = await orBeat(next, beat_ms)
      if (found?.done === true) return
      yield found === null ? null : found.value
      if (found !== null) next = items.next()
    }
  } finally {
    // It ends once what it waits for has come.
    void items.return().catch(() => {})
  }
}

async function orBeat<Item>(next: Promise<Item>, beat_ms: number): Promise<Item | null> {
  const { promise, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), beat_ms)
  return Promise.race([next, promise]).finally(() => clearTimeout(timer))
}
