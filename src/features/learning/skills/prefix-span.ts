/**
 * A contiguous pattern of symbols. `at`: where it starts in the concatenated sequences, in order.
 * `sequences`: how many contain it.
 */
export type FrequentSequence = { symbols: number[]; at: number[]; sequences: number }

type Limits = { least_sequences: number; shortest: number; longest: number }

/**
 * All sequences in one list, each followed by an end. `sequence` has the sequence of each place.
 */
export type Joined = { symbols: Int32Array; sequence: Int32Array; starts: number[] }

const END = -1

export function join(sequences: readonly (readonly number[])[]): Joined {
  const size = sequences.reduce((sum, { length }) => sum + length + 1, 0)
  const joined: Joined = { symbols: new Int32Array(size).fill(END), sequence: new Int32Array(size), starts: [] }
  let at = 0
  for (const [index, symbols] of sequences.entries()) {
    joined.starts.push(at)
    joined.symbols.set(symbols, at)
    joined.sequence.fill(index, at, at + symbols.length + 1)
    at += symbols.length + 1
  }
  return joined
}

/**
 * PrefixSpan over contiguous patterns: each frequent pattern grows by the symbol that follows its
 * occurrences. Only closed patterns are kept: no longer one occurs in as many sequences.
 */
export function closedPatterns(joined: Joined, { least_sequences, shortest, longest }: Limits): FrequentSequence[] {
  const closed: FrequentSequence[] = []
  const places = Array.from(joined.symbols.keys())
  const open = groupBySymbol(joined, places, 0).map(([symbol, at]): FrequentSequence => ({ symbols: [symbol], ...counted(joined, at) }))
  for (let found = open.pop(); found; found = open.pop()) {
    const { symbols, at, sequences } = found
    if (sequences < least_sequences) continue
    const following = symbols.length < longest ? groupBySymbol(joined, at, symbols.length) : []
    const longer = following
      .filter(([, next]) => next.length >= least_sequences)
      .map(([symbol, next]) => ({ symbols: [...symbols, symbol], ...counted(joined, next) }))
    open.push(...longer)
    if (symbols.length < shortest || longer.some((one) => one.sequences === sequences)) continue
    const before = groupBySymbol(joined, at, -1)
    if (!before.some(([, previous]) => previous.length >= sequences && counted(joined, previous).sequences === sequences))
      closed.push(found)
  }
  return closed
}

/** Places by the symbol at this offset from each; those at an end are left out. */
function groupBySymbol({ symbols }: Joined, at: readonly number[], offset: number): [number, number[]][] {
  const groups = new Map<number, number[]>()
  for (const place of at) {
    const symbol = symbols[place + offset] ?? END
    if (symbol === END) continue
    const group = groups.get(symbol)
    if (group) group.push(place)
    else groups.set(symbol, [place])
  }
  return [...groups]
}

function counted({ sequence }: Joined, at: number[]): { at: number[]; sequences: number } {
  let sequences = 0
  let last = -1
  for (const place of at) {
    const own = sequence[place] ?? -1
    if (own !== last) sequences += 1
    last = own
  }
  return { at, sequences }
}
