/** `k` of `n` comparisons, for example agreements. */
type Share = { n: number; k: number }

/** P(X <= k) of a binomial variable, summed exactly in logarithms. */
export function binomialTail({ n, k }: Share, p: number): number {
  if (k >= n || p <= 0) return 1
  if (k < 0 || p >= 1) return 0
  const odds = Math.log(p) - Math.log1p(-p)
  let term = n * Math.log1p(-p)
  let highest = term
  let sum = 1
  for (let index = 1; index <= k; index += 1) {
    term += Math.log((n - index + 1) / index) + odds
    if (term > highest) {
      sum = sum * Math.exp(highest - term) + 1
      highest = term
    } else sum += Math.exp(term - highest)
  }
  return Math.min(1, sum * Math.exp(highest))
}

/** Halvings of the interval: more than a double resolves. */
const HALVINGS = 60

/** One-sided Clopper-Pearson: the share is at most this with confidence 1 - `delta`. */
export function clopperPearsonHigh({ n, k }: Share, delta = 0.05): number {
  if (k >= n) return 1
  let low = k / n
  let high = 1
  for (let step = 0; step < HALVINGS; step += 1) {
    const middle = (low + high) / 2
    if (binomialTail({ n, k }, middle) > delta) low = middle
    else high = middle
  }
  return high
}

/** One-sided Clopper-Pearson: the share is at least this with confidence 95 %. */
export const clopperPearsonLow = ({ n, k }: Share): number => 1 - clopperPearsonHigh({ n, k: n - k })

/** The normal quantile of a one-sided bound of 95 %. */
const Z_95 = 1.6448536269514722

/** One-sided Wilson bound: an approximation that needs fewer comparisons than Clopper-Pearson. */
export function wilsonLow({ n, k }: Share): number {
  if (n === 0) return 0
  const share = k / n
  const spread = Z_95 * Math.sqrt((share * (1 - share)) / n + (Z_95 / (2 * n)) ** 2)
  return Math.max(0, (share + Z_95 ** 2 / (2 * n) - spread) / (1 + Z_95 ** 2 / n))
}
