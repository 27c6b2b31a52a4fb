import { agreementOfAct, agreementOfAll, type Agreement } from '../contract/agreement.ts'

type Compared = { agreed: number; disagreed: number }

/** `poor` is to be ruled out. What agrees as often as `good` is to be proven. */
export type Bar = { poor: number; good: number; noise: number }

/** The e-value that keeps both error rates at 5 %, at all looks together. */
const EVIDENCE = 20
/** The part of the errors of something poor that something good may make. */
const GOOD = 1 / 5

/**
 * The bar of a bound. `noise` is the share of decisions in which the teacher contradicts itself,
 * measured apart (the same event asked twice): nothing can agree with it more often than it does
 * itself. A noisy decision may also agree by chance with a wrong act, which raises `poor`.
 */
export function barAt(bound: number, noise = 0): Bar {
  const good = 1 - (1 - bound) * GOOD
  return { poor: bound * (1 - noise) + (1 - bound) * noise, good: good * (1 - noise), noise }
}

/** An act by itself may err so many times as often as all acts together; its bound is no lower. */
const FLOOR = { times: 5, bound: 0.95 } as const

/** The bound of an act by itself where all acts together have this one. */
export const floorOf = (together: number): number => Math.max(FLOOR.bound, 1 - FLOOR.times * (1 - together))

/**
 * The bounds that an act has to prove. `alone`: by itself. `together`: with all such acts, unless
 * it proves that by itself, too; null if nothing is shared.
 */
export function boundsOf(agreement: Agreement, act: string): { alone: number; together: number | null } {
  const own = agreementOfAct(agreement, act)
  const all = agreementOfAll(agreement)
  const floor = floorOf(all)
  return own !== null || all <= floor ? { alone: own ?? all, together: null } : { alone: floor, together: all }
}

/** Shares of the errors that a bar allows, each with its weight in a mixture. */
const BETTER = [
  [1 / 16, 0.4],
  [1 / 5, 0.4],
  [1 / 2, 0.2],
] as const
const WORSE = [
  [1, 0.5],
  [3, 0.5],
] as const
/** No share of errors that is bet on is higher. */
const MOST_ERRORS = 0.95

/**
 * The logarithm of an e-value: how many times more likely the comparisons are under a mixture of
 * shares of errors than under the share `errors`. By Ville's inequality the value of what errs so,
 * or on the other side of it, reaches 20 with a chance of 5 % at most, however often one looks. It
 * also holds for the mean of shares that change in any order (AM-GM). The order of the comparisons
 * does not matter, so that counts are all that is kept.
 */
function evidence({ agreed, disagreed }: Compared, errors: number, mixture: readonly (readonly [share: number, weight: number])[]): number {
  const logs = mixture.map(([share, weight]) => {
    const bet = Math.min(share, MOST_ERRORS)
    return Math.log(weight) + disagreed * Math.log(bet / errors) + agreed * (Math.log1p(-bet) - Math.log1p(-errors))
  })
  const most = Math.max(...logs)
  return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0))
}

export type ProofVerdict = 'open' | 'proven' | 'refuted'

/** The verdict: more agreement than `poor` is proven, or `good` is refuted. */
export function verdictAt(bar: Bar, compared: Compared): ProofVerdict {
  const poor = 1 - bar.poor
  const better = BETTER.map(([part, weight]) => [bar.noise + (poor - bar.noise) * part, weight] as const)
  if (evidence(compared, poor, better) >= Math.log(EVIDENCE)) return 'proven'
  const worse = WORSE.map(([part, weight]) => [poor * part, weight] as const)
  return evidence(compared, 1 - bar.good, worse) >= Math.log(EVIDENCE) ? 'refuted' : 'open'
}

/** More agreements in a row than anything needs. */
const MOST_NEEDED = 2 ** 20

/** The agreements that are still needed for a proof if nothing more disagrees. */
export function neededAt(bar: Bar, { agreed, disagreed }: Compared): number {
  const proves = (more: number): boolean => verdictAt(bar, { agreed: agreed + more, disagreed }) === 'proven'
  let low = 0
  let high = 1
  if (proves(0)) return 0
  while (!proves(high) && high < MOST_NEEDED) [low, high] = [high, high * 2]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (proves(middle)) high = middle
    else low = middle
  }
  return high
}

/** Log likelihood ratio of `good` to `poor` for one comparison. */
export function weights({ poor, good }: Bar): { agreed: number; disagreed: number } {
  return { agreed: Math.log(good / poor), disagreed: Math.log((1 - good) / (1 - poor)) }
}
