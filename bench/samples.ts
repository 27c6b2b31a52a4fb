/** What one figure measured: pairs of ours and bare, taken in turns, since the machine is never equally busy twice. */
export type Samples = { ours: number[]; bare: number[] }
type Pair = { runs: number; ours: () => Promise<number>; bare: () => Promise<number>; progress: (text: string) => void }

/** A B A B …, after one of each that does not count. */
export async function alternate({ runs, ours, bare, progress }: Pair): Promise<Samples> {
  const samples: Samples = { ours: [], bare: [] }
  for (let run = 0; run <= runs; run += 1) {
    progress(run === 0 ? 'warming up' : `run ${run} of ${runs}`)
    const pair = { ours: await ours(), bare: await bare() }
    if (run === 0) continue
    samples.ours.push(pair.ours)
    samples.bare.push(pair.bare)
  }
  return samples
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}
