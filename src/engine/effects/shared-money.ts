import type { LeaseAnswer, LeaseAsked, LeaseReport } from '../../contract/scope-api.ts'

const DAY_MS = 86_400_000
/** A scope whose lease was called back is not asked again for this time. */
const PAUSE_MS = 10_000
const MOST_ASKED = 20
/** The share of a limit from which on an alert is raised. */
export const NEAR = 0.8

/** The money that was spent within a day and a month of UTC, in millionths of a dollar. */
export type MoneySpent = {
  day: number
  month: number
  today: number
  this_month: number
  told?: string[]
  days?: OtherPeriods
  months?: OtherPeriods
}
export const NOTHING_SPENT: MoneySpent = { day: 0, month: 0, today: 0, this_month: 0 }
/** The most per day and per month, in millionths of a dollar; null: no limit. */
export type MostSpent = { day: number | null; month: number | null }

/** Sums of other periods than the current one: a clock that was wrong comes back to them. */
export type OtherPeriods = readonly (readonly [period: number, sum: number])[]
const MOST_OTHERS = 8

/** The sum of a period when the clock moves to it from another one, and what is kept of others. */
export function moved(others: OtherPeriods = [], from: OtherPeriods[number], to: number): { sum: number; others: OtherPeriods } {
  const all = [...others.filter(([period]) => period !== from[0]), from]
  const sum = all.find(([period]) => period === to)?.[1] ?? 0
  return { sum, others: all.filter(([period, one]) => period !== to && one > 0).slice(-MOST_OTHERS) }
}

export function spentAt(spent: MoneySpent, at: number): MoneySpent {
  const day = Math.floor(at / DAY_MS)
  const date = new Date(at)
  const month = date.getUTCFullYear() * 12 + date.getUTCMonth()
  if (spent.day === day && spent.month === month) return spent
  const today = moved(spent.days, [spent.day, spent.today], day)
  const this_month = moved(spent.months, [spent.month, spent.this_month], month)
  const current = new Set([`day:${day}`, `month:${month}`])
  const told = spent.told?.filter((one, place, all) => current.has(one) || place >= all.length - MOST_OTHERS) ?? []
  return { day, month, today: today.sum, this_month: this_month.sum, told, days: today.others, months: this_month.others }
}

export const paid = (spent: MoneySpent, amount: number): MoneySpent => ({
  ...spent,
  today: spent.today + amount,
  this_month: spent.this_month + amount,
})

/** The rest of the limits, and when the nearest one is renewed. */
export function leftOf(spent: MoneySpent, most: MostSpent, at: number): { left: number; until: number } {
  const date = new Date(at)
  const day = { left: (most.day ?? Number.POSITIVE_INFINITY) - spent.today, until: (spent.day + 1) * DAY_MS }
  const month = {
    left: (most.month ?? Number.POSITIVE_INFINITY) - spent.this_month,
    until: Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1),
  }
  return day.left < month.left ? day : month
}

/** The periods of which most is spent, unless there was an alert, and the record of them. */
export function nearOf(spent: MoneySpent, most: MostSpent): { near: ('day' | 'month')[]; spent: MoneySpent } {
  const { told = [] } = spent
  const is_near = (period: 'day' | 'month', sum: number) => {
    const limit = most[period]
    return limit !== null && sum >= limit * NEAR && !told.includes(`${period}:${spent[period]}`)
  }
  const near = [...(is_near('day', spent.today) ? ['day' as const] : []), ...(is_near('month', spent.this_month) ? ['month' as const] : [])]
  return { near, spent: near.length === 0 ? spent : { ...spent, told: [...told, ...near.map((period) => `${period}:${spent[period]}`)] } }
}

/** `outstanding`: the sum of the leases. */
type Book = { spent: MoneySpent; outstanding: number }
/** `counted`: what its scope has reported as spent since `epoch`. `n` numbers its changes. */
type Lease = { epoch: string; counted: number; amount: number; n: number; asked_at: number }

/** The storage of the object, and a way to ask scopes. */
type SharedParts = {
  read: <Value>(key: string) => Value | undefined
  write: (key: string, value: unknown) => void
  /** The scopes with a lease. */
  scopes: () => Iterable<string>
  recall: (scope: string, n: number) => Promise<LeaseReport>
  now: () => number
}

/**
 * A budget that scopes share. A scope takes a part of it, and reports what it spent of that when
 * it takes the next part. All parts count as spent, so the limit holds whatever happens to a scope.
 * If no part is left, scopes that have one are asked to give back what they do not use. Nothing
 * happens while nobody asks.
 */
export class SharedMoney {
  readonly #parts: SharedParts
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: SharedParts) {
    this.#parts = parts
  }

  /** Answers one scope at a time. A scope that gives back something asks nothing meanwhile. */
  lease(asked: LeaseAsked): Promise<LeaseAnswer> {
    const answer = this.#last.then(() => this.#lease(asked))
    this.#last = answer.catch(() => {})
    return answer
  }

  async #lease(asked: LeaseAsked): Promise<LeaseAnswer> {
    const { scope, need, want, most } = asked
    this.#settle(scope, asked)
    let room = this.#room(most)
    if (room.left < need) await this.#callBack(asked)
    room = this.#room(most)
    const near = this.#near(most)
    const { spent } = this.#book
    const renewed = leftOf(spent, most, this.#parts.now())
    if (room.left < need) return { ok: false, until: room.until, soon: renewed.left >= need, near }
    // Others need a part, too.
    const grant = Math.floor(Math.max(need, Math.min(want, room.left / 4)))
    return { ok: true, grant, n: this.#change(scope, (lease) => ({ ...lease, amount: lease.amount + grant })).n, near }
  }

  async #callBack({ scope: own, need, most }: LeaseAsked): Promise<void> {
    const at = this.#parts.now()
    let asked = 0
    for (const scope of this.#parts.scopes()) {
      const lease = this.#of(scope)
      // A time that was read before the clock was set back says nothing.
      if (scope === own || lease.amount === 0 || Math.abs(at - lease.asked_at) < PAUSE_MS) continue
      if ((asked += 1) > MOST_ASKED || this.#room(most).left >= need) return
      const { n } = this.#change(scope, (one) => ({ ...one, asked_at: at }))
      const report = await this.#parts.recall(scope, n).catch(() => null)
      if (report) this.#settle(scope, report)
      else if (lease.asked_at > 0 && at - lease.asked_at > DAY_MS) this.#lost(scope)
    }
  }

  /** A scope that has not answered for a day has spent its part. */
  #lost(scope: string): void {
    const { amount } = this.#of(scope)
    this.#change(scope, (lease) => ({ ...lease, amount: 0 }))
    this.#parts.write('book', { ...this.#book, spent: paid(this.#book.spent, amount) })
  }

  /** Counts what the scope has spent. What it holds for open calls stays its part. */
  #settle(scope: string, { epoch, spent, held }: LeaseReport): void {
    const lease = this.#of(scope)
    const counted = lease.epoch === epoch ? lease.counted : 0
    const book = this.#book
    this.#parts.write('book', { ...book, spent: paid(book.spent, Math.max(0, spent - counted)) })
    this.#change(scope, (one) => ({ ...one, epoch, counted: Math.max(counted, spent), amount: held }))
  }

  #change(scope: string, change: (lease: Lease) => Lease): Lease {
    const before = this.#of(scope)
    const lease = { ...change(before), n: before.n + 1 }
    this.#parts.write(`lease:${scope}`, lease)
    if (lease.amount !== before.amount) {
      const book = this.#book
      this.#parts.write('book', { ...book, outstanding: book.outstanding + lease.amount - before.amount })
    }
    return lease
  }

  #room(most: MostSpent): { left: number; until: number } {
    const { spent, outstanding } = this.#book
    return leftOf(paid(spent, outstanding), most, this.#parts.now())
  }

  #near(most: MostSpent): ('day' | 'month')[] {
    const book = this.#book
    const { near, spent } = nearOf(book.spent, most)
    if (near.length > 0) this.#parts.write('book', { ...book, spent })
    return near
  }

  #of(scope: string): Lease {
    return this.#parts.read<Lease>(`lease:${scope}`) ?? { epoch: '', counted: 0, amount: 0, n: 0, asked_at: 0 }
  }

  get #book(): Book {
    const { spent, outstanding } = this.#parts.read<Book>('book') ?? { spent: NOTHING_SPENT, outstanding: 0 }
    return { spent: spentAt(spent, this.#parts.now()), outstanding }
  }
}
