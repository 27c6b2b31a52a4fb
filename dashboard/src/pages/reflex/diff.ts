/** A line of two texts side by side; null where a side has none. */
export type Pair = { left: Line | null; right: Line | null }
type Line = { number: number; text: string }

/** Beyond so many pairs of lines, all between the common begin and end counts as changed. */
const MOST_CELLS = 4_000_000

/** The lines of two texts, aligned by the longest common subsequence. */
export function sideBySide(left: string, right: string): Pair[] {
  const one = left.split('\n')
  const other = right.split('\n')
  let head = 0
  while (head < Math.min(one.length, other.length) && one[head] === other[head]) head += 1
  let tail = 0
  while (tail < Math.min(one.length, other.length) - head && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1
  const olds = one.slice(head, one.length - tail)
  const news = other.slice(head, other.length - tail)
  const same = (from: number, length: number, shift: number): Pair[] =>
    Array.from({ length }, (_, index) => {
      const text = one[from + index] ?? ''
      return { left: { number: from + index + 1, text }, right: { number: from + shift + index + 1, text } }
    })
  return [...same(0, head, 0), ...aligned(olds, news, head), ...same(one.length - tail, tail, other.length - one.length)]
}

function aligned(olds: readonly string[], news: readonly string[], head: number): Pair[] {
  const width = news.length + 1
  const isTooLong = olds.length * news.length > MOST_CELLS
  const lengths = new Uint16Array(isTooLong ? 0 : (olds.length + 1) * width)
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0
  if (!isTooLong)
    for (let row = olds.length - 1; row >= 0; row -= 1)
      for (let column = news.length - 1; column >= 0; column -= 1)
        lengths[row * width + column] =
          olds[row] === news[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
  const pairs: Pair[] = []
  const gone: Line[] = []
  const come: Line[] = []
  const flush = () => {
    for (let index = 0; index < Math.max(gone.length, come.length); index += 1)
      pairs.push({ left: gone[index] ?? null, right: come[index] ?? null })
    gone.length = come.length = 0
  }
  let row = 0
  let column = 0
  while (row < olds.length || column < news.length) {
    const old = olds[row]
    const fresh = news[column]
    if (old !== undefined && old === fresh) {
      flush()
      pairs.push({ left: { number: head + row + 1, text: old }, right: { number: head + column + 1, text: fresh } })
      row += 1
      column += 1
    } else if (fresh === undefined || (old !== undefined && at(row + 1, column) >= at(row, column + 1))) {
      gone.push({ number: head + row + 1, text: old ?? '' })
      row += 1
    } else {
      come.push({ number: head + column + 1, text: fresh })
      column += 1
    }
  }
  flush()
  return pairs
}
