import type { ListingTerms } from '../contract/listing.ts'
import type { LicenceUse } from '../contract/ledger-api.ts'

export const DAY_MS = 86_400_000
/** A licence without an end is earned over this time: it is refunded in part if revoked early. */
const EARNED_OVER_DAYS = 30

export type UseCounts = Pick<LicenceUse, 'scope' | 'fires' | 'certified' | 'lapses'>
/** A licence since it was paid. Times in ms. */
export type RunningLicence = { price: number; terms: ListingTerms; scopes: readonly string[]; from: number }

export const endOf = (terms: ListingTerms, from: number): number | null => (terms.days === undefined ? null : from + terms.days * DAY_MS)

/** The part of the price that is earned by `at`, rounded down. It never shrinks. */
export function earnedBy({ price, terms, scopes, from }: RunningLicence, used: readonly UseCounts[], at: number): number {
  const { days, fires, per_decision } = terms
  // A product beyond 2^53 is inexact, and beyond every price.
  if (per_decision !== undefined) return Math.min(price, per_decision * sum(used.map(({ certified }) => certified)))
  const byTime = days === undefined && fires !== undefined ? 0 : shareOf(price, at - from, (days ?? EARNED_OVER_DAYS) * DAY_MS)
  if (fires === undefined) return byTime
  const taken = sum(used.map((one) => Math.min(one.fires, fires)))
  return Math.max(byTime, shareOf(price, taken, fires * Math.max(scopes.length, used.length)))
}

/** The reason that a licence has ended by `at`; null while it runs. */
export function endedBy(running: RunningLicence, used: readonly UseCounts[], at: number): string | null {
  const { terms, scopes, price, from } = running
  const end = endOf(terms, from)
  if (end !== null && at >= end) return 'its time is over'
  if (terms.per_decision !== undefined && earnedBy(running, used, at) === price) return 'its budget is used up'
  const { fires } = terms
  const isUsedUp = (scope: string): boolean => fires !== undefined && used.some((one) => one.scope === scope && one.fires >= fires)
  // A pattern may cover a scope that has not begun.
  return fires !== undefined && scopes.every((scope) => !scope.includes('*') && isUsedUp(scope)) ? 'all its actions are used' : null
}

/** When more of it is earned, or it ends, by time alone. */
export function nextTime(
  { terms, from }: Pick<RunningLicence, 'terms' | 'from'>,
  { held, at }: { held: number; at: number },
): number | null {
  const end = endOf(terms, from)
  const byTime = held > 0 && terms.per_decision === undefined && (terms.days !== undefined || terms.fires === undefined)
  const times = [end, byTime ? at + DAY_MS : null].filter((time) => time !== null)
  return times.length === 0 ? null : Math.min(...times)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

function shareOf(price: number, part: number, whole: number): number {
  if (part >= whole) return price
  return part <= 0 ? 0 : Number((BigInt(price) * BigInt(Math.floor(part))) / BigInt(whole))
}
