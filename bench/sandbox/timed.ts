export const timed = <Result>(work: () => Result): { ms: number; result: Result } => {
  const start = performance.now()
  const result = work()
  return { ms: performance.now() - start, result }
}

/** ms a call, of so many blocks: the clock counts in milliseconds. */
export const blocks = (count: number, size: number, work: () => unknown): number[] =>
  Array.from({ length: count }, () => timed(() => Array.from({ length: size }, work)).ms / size)
