type InTurns<Item> = {
  /** Names the owner. Owners take turns, however many items one of them has. */
  ownerOf: (item: Item) => string
  /** Items of one portion. */
  at_once: number
  /** The time after which a portion waits no longer for its slowest, which continues. */
  most_ms: number
  /** Lets others be served, between two portions. */
  rest: () => Promise<unknown>
}

/**
 * Runs the work of all items in portions, each owner's in its order. Rejects as the work. The
 * values are in the order in which their work began, not in the order of the items.
 */
export async function inTurns<Item, Value>(
  items: readonly Item[],
  work: (item: Item) => Promise<Value>,
  { ownerOf, at_once, most_ms, rest }: InTurns<Item>,
): Promise<Value[]> {
  const due = alternated(items, ownerOf)
  const begun: Promise<Value>[] = []
  while (begun.length < due.length) {
    if (begun.length > 0) await rest()
    const portion = due.slice(begun.length, begun.length + at_once).map(work)
    begun.push(...portion)
    await atMost(Promise.all(portion), most_ms)
  }
  return Promise.all(begun)
}

/** The first item of each owner, then the second of each, and so on. */
function alternated<Item>(items: readonly Item[], ownerOf: (item: Item) => string): Item[] {
  const own = Map.groupBy(items, ownerOf)
  const places = Array.from(own.values()).flatMap((some) => some.map((item, nth) => ({ item, nth })))
  return places.toSorted((a, b) => a.nth - b.nth).map(({ item }) => item)
}

async function atMost(done: Promise<unknown>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([done, late]).finally(() => clearTimeout(timer))
}
