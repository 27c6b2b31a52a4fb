import { actionsIn, type Action } from '../contract/action.ts'
import type { Stratum } from '../contract/certificate.ts'
import { countAudit, type Cusum, doubt, emptyCusum, withoutDisagreement } from './drift.ts'
import { type Bar, weights } from './e-process.ts'
import { traitsOf } from './novelty.ts'
import { ALL_VALUES, valueKey, valuesIn, type ValueBounds } from './values.ts'

type Branch = NonNullable<Stratum['branch']>
type Signs = readonly string[]
type DecidedEvent = Parameters<typeof traitsOf>[0]
type SignCounts = Readonly<Record<string, number>>

const MOST_SIGNS = 48
/** Characters of a larger event, as JSON, are not searched for signs that stop an act. */
const MOST_SEARCHED = 32_000
type Cleaner = { clean: (value: unknown) => unknown }
const AS_IT_IS: Cleaner = { clean: (value) => value }
/** Signs of compared decisions that are counted. */
const MOST_COUNTED = 64
/** Numbers within a quarter of each other share a sign. */
const STEP = Math.log(1.25)
/** Agreements that clear a sign of suspicion while another one has none. */
const CLEARED_BY = 3
/** Parts of an act that are left to the slow path; with a further one all of it is proven again. */
const MOST_LEFT = 8

/**
 * The signs of an act on an event, as short hashes: the values of the event, its numbers by their
 * size, and the values of the act. A slow path that changes in one branch only differs where some
 * of them are. `log` masks what a scope redacts: a hash would tell it, and the Learner does not
 * see it.
 */
export const signsOf = (event: DecidedEvent, action: Action, log = AS_IT_IS): string[] =>
  signsIn(log.clean(event) as DecidedEvent, { action, log }).slice(0, MOST_SIGNS)

/**
 * All signs, for the decision whether an act is stopped: a publisher who puts more into an event
 * hides none. Null if the event is too large for that.
 */
export function allSignsOf(event: DecidedEvent, action: Action, log = AS_IT_IS): string[] | null {
  const shown = log.clean(event) as DecidedEvent
  return JSON.stringify(shown).length > MOST_SEARCHED ? null : signsIn(shown, { action, log, most: ALL_VALUES })
}

type Searched = { action: Action; log: Cleaner; most?: ValueBounds }

function signsIn(shown: DecidedEvent, { action, log, most }: Searched): string[] {
  const own = actionsIn(action).flatMap((act) => valuesIn({ did: log.clean(act) }, most))
  const numbers = traitsOf(shown).numbers.map(({ place, value }) => valueKey(place, sizeOf(value)))
  return Array.from(new Set([...own, ...numbers, ...valuesIn(shown, most)]))
}

const sizeOf = (value: number): string => (value === 0 ? '0' : `${value < 0 ? '-' : ''}${Math.floor(Math.log(Math.abs(value)) / STEP)}`)

/**
 * Counts of signs, each at least as high as it was seen: beyond the most that are kept, a new sign
 * takes the place of the rarest and its count.
 */
export function countSigns(before: SignCounts, signs: Signs): SignCounts {
  const after = new Map(Object.entries(before))
  for (const sign of signs) {
    const known = after.get(sign)
    if (known !== undefined || after.size < MOST_COUNTED) after.set(sign, (known ?? 0) + 1)
    else {
      const [rarest, count] = Array.from(after).reduce((one, other) => (other[1] < one[1] ? other : one))
      after.delete(rarest)
      after.set(sign, count + 1)
    }
  }
  return Object.fromEntries(after)
}

/** The most decisions that may have had a sign. */
function mostWith(counts: SignCounts, sign: string): number {
  const all = Object.values(counts)
  return counts[sign] ?? (all.length < MOST_COUNTED ? 0 : Math.min(...all))
}

const has = (signs: Signs, found: { has: (sign: string) => boolean }): boolean => signs.some((sign) => found.has(sign))

/** True if a proof no longer reaches such decisions: the slow path decides them otherwise. */
export const isLeft = ({ left = [] }: Pick<Stratum, 'left'>, signs: Signs): boolean => has(signs, new Set(left))

/** True if what disagreed may disagree on such decisions, too. */
export const isSuspect = ({ branch }: Pick<Stratum, 'branch'>, signs: Signs): boolean =>
  branch !== undefined && has(signs, new Map(Object.entries(branch.signs)))

/**
 * A proven stratum after one more audit. The first disagreement makes a branch of all decisions
 * that share a sign with it, and stops those alone: agreements clear their signs, and a further
 * disagreement in it leaves the signs that both have. It has a test of its own. A
 * decision is of one or of the other before it is compared, so that both tests hold; outside, a
 * disagreement stops the rest, too. `signs`: null if they are unknown.
 */
export function audited(before: Stratum, { agreed, signs }: { agreed: boolean; signs: Signs | null }, bar: Bar): Stratum {
  const { branch, audits } = before
  const counts = { ...audits, audits: audits.audits + 1, disagreed: audits.disagreed + (agreed ? 0 : 1) }
  if (branch && signs && isSuspect(before, signs))
    return closed({ ...withSigns(before, signs), audits: counts, branch: inBranch(branch, { agreed, signs }, bar) }, bar)
  const opens = !agreed && !branch && signs !== null && signs.length > 0 && doubt(audits, bar) === 0
  if (!opens) return withSigns({ ...before, audits: countAudit(audits, agreed, bar) }, signs)
  const opened = { signs: fresh(signs), audits: countAudit(emptyCusum(), false, bar), since: audits.audits }
  return { ...withSigns(before, signs), audits: counts, branch: opened }
}

/** With one more decision in the counts of signs, which end with one whose signs are unknown. */
function withSigns({ signs: known, ...stratum }: Stratum, signs: Signs | null): Stratum {
  return known && signs ? { ...stratum, signs: countSigns(known, signs) } : stratum
}

/** Audits since a branch opened that are of the rest. */
const outside = ({ audits }: Stratum, branch: Branch): number => audits.audits - branch.since - branch.audits.audits

/** The test of a branch with what agreed in the rest: by it, all of the act is in doubt or not. */
export const testWithRest = (stratum: Stratum, branch: Branch, bar: Bar): Stratum['audits'] => ({
  ...branch.audits,
  sum: branch.audits.sum - outside(stratum, branch) * weights(bar).agreed,
})

/** All acts together after an audit of one; where its branch closes, with the branch's audits. */
export const withAudit = (all: Stratum, { agreed, closes }: { agreed: boolean; closes: Branch | undefined }, bar: Bar): Stratum => ({
  ...all,
  audits: countAudit(closes ? withBranch(all.audits, closes.audits, bar) : all.audits, agreed, bar),
})

const fresh = (signs: Signs): Record<string, number> => Object.fromEntries(signs.map((sign) => [sign, 0]))

function inBranch(branch: Branch, { agreed, signs }: { agreed: boolean; signs: Signs }, bar: Bar): Branch {
  const audits = countAudit(branch.audits, agreed, bar)
  const own = Object.keys(branch.signs).filter((sign) => signs.includes(sign))
  if (!agreed) return { ...branch, audits, signs: fresh(own) }
  const counted = { ...branch.signs, ...Object.fromEntries(own.map((sign) => [sign, (branch.signs[sign] ?? 0) + 1])) }
  const kept = Object.entries(counted).filter(([, count]) => count < CLEARED_BY)
  return { ...branch, audits, signs: kept.length > 0 ? Object.fromEntries(kept) : counted }
}

/** Without a branch that agrees again: it was none, so that it counts in the test of all. */
function closed(stratum: Stratum, bar: Bar): Stratum {
  const { branch, ...rest } = stratum
  if (!branch || branch.audits.alarm || doubt(branch.audits, bar) > 0) return stratum
  const { audits, disagreed } = rest.audits
  return { ...rest, audits: { ...withBranch(rest.audits, branch.audits, bar), audits, disagreed } }
}

function withBranch(before: Cusum, { audits, disagreed }: Cusum, bar: Bar): Cusum {
  let counted = before
  for (let index = 0; index < audits; index += 1) counted = countAudit(counted, index >= disagreed, bar)
  return counted
}

/** Without one disagreement, which was in the branch if one has these signs. */
export function withoutOne(stratum: Stratum, signs: Signs | null, bar: Bar): Stratum {
  const { branch, audits, ...rest } = stratum
  if (!branch || !signs || !isSuspect(stratum, signs)) return { ...stratum, audits: withoutDisagreement(audits, bar) }
  const counts = { ...audits, disagreed: audits.disagreed - 1 }
  if (branch.audits.disagreed === 1) return { ...rest, audits: counts }
  return closed({ ...rest, audits: counts, branch: { ...branch, audits: withoutDisagreement(branch.audits, bar) } }, bar)
}

/**
 * A stratum whose branch drifted, without it: such decisions are left to the slow path, and all
 * that may have been compared or audited of them count no longer. All disagreements outside of it
 * are counted as of the rest, which stays in the doubt that it is in. Null if too little is known
 * of them, or too much was left before.
 */
export function withoutBranch({ branch, ...stratum }: Stratum): Stratum | null {
  const { signs: counts, left = [], audits } = stratum
  const suspects = Object.keys(branch?.signs ?? {})
  if (!branch || !counts || suspects.length === 0 || left.length >= MOST_LEFT) return null
  // Each of them was in all that disagreed; the most frequent one leaves most.
  const sign = suspects.reduce((one, other) => (mostWith(counts, other) > mostWith(counts, one) ? other : one))
  const others = mostWith(counts, sign) - leastInBranch(branch, sign)
  const n = stratum.n + audits.audits - branch.audits.audits - others
  const k = n - (stratum.n - stratum.k) - (audits.disagreed - branch.audits.disagreed)
  return k > 0 ? { ...stratum, n, k, left: [...left, sign], audits: { ...emptyCusum(), sum: audits.sum } } : null
}

/** Decisions of a branch that had one of its signs: all that disagreed, and what agreed since. */
const leastInBranch = ({ audits, signs }: Branch, sign: string): number => audits.disagreed + (signs[sign] ?? 0)
