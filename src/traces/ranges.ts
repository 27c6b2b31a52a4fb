/** Encodes sorted numbers as ranges: `[1, 2, 3, 7]` becomes `[[1, 3], [7, 7]]`. */
export function toRanges(seqs: readonly number[]): [number, number][] {
  const ranges: [number, number][] = []
  for (const seq of seqs) {
    const last = ranges.at(-1)
    if (last && last[1] === seq - 1) last[1] = seq
    else ranges.push([seq, seq])
  }
  return ranges
}

/** The same numbers as ranges that do not overlap, in their order. */
export function joined(ranges: readonly [number, number][]): [number, number][] {
  const apart: [number, number][] = []
  for (const [first, last] of ranges.toSorted(([one], [other]) => one - other)) {
    const before = apart.at(-1)
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last)
    else apart.push([first, last])
  }
  return apart
}

export const placesIn = (ranges: readonly [number, number][]): number[] =>
  ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, index) => first + index))
