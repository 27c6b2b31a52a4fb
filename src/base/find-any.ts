const BLOCK = 3
const SLOTS = 65_536

/**
 * Whether any of many texts stands in a text: Wu and Manber's search, which looks at three characters of each
 * `shortest - 2`, however many texts it looks for. A regular expression tries each of them at each place.
 */
export function findAny(patterns: readonly string[]): (text: string) => boolean {
  const shortest = Math.min(...patterns.map(({ length }) => length))
  if (patterns.length === 0) return () => false
  if (shortest < BLOCK + 1) return (text) => patterns.some((pattern) => text.includes(pattern))
  const { shifts, ending } = tablesOf(patterns, shortest)
  return (text) => {
    let at = shortest
    while (at <= text.length) {
      const slot = slotAt(text, at)
      const shift = shifts[slot] ?? 0
      if (shift === 0) {
        const start = at - shortest
        if (ending.get(slot)?.some((pattern) => text.startsWith(pattern, start)) === true) return true
        at += 1
      } else at += shift
    }
    return false
  }
}

/** How far to go on behind each block of characters, by the first `shortest` of each pattern; and which end with it there. */
function tablesOf(patterns: readonly string[], shortest: number) {
  const shifts = new Uint8Array(SLOTS).fill(Math.min(255, shortest - BLOCK + 1))
  const ending = new Map<number, string[]>()
  for (const pattern of patterns) {
    for (let end = BLOCK; end <= shortest; end++) {
      const slot = slotAt(pattern, end)
      shifts[slot] = Math.min(shifts[slot] ?? 0, shortest - end)
    }
    const last = slotAt(pattern, shortest)
    ending.set(last, [...(ending.get(last) ?? []), pattern])
  }
  return { shifts, ending }
}

/** Of the block that ends before `end`. */
const slotAt = (text: string, end: number): number =>
  (text.charCodeAt(end - 1) ^ (text.charCodeAt(end - 2) << 5) ^ (text.charCodeAt(end - 3) << 10)) & (SLOTS - 1)
