import { senderOf } from '../../contract/sender.ts'
import type { LeaseAnswer, LeaseAsked, LeaseReport } from '../../contract/scope-api.ts'
import type { Event } from '../../core/event.ts'
import { limitsMoney, type MoneyBudget, type SharedBudget } from '../../contract/settings/budget.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import { unpricedText } from '../../models/model-call.ts'
import type { ModelRefusal } from '../../models/model-errors.ts'
import { iso } from '../../base/time.ts'
import { withDeadline } from '../../base/deadline.ts'
import { messageOf } from '../../base/error-text.ts'
import { scopeHead } from '../log/spans.ts'
import {
  leftOf,
  moved,
  nearOf,
  NEAR,
  NOTHING_SPENT,
  paid,
  spentAt,
  type MostSpent,
  type MoneySpent,
  type OtherPeriods,
} from '../effects/shared-money.ts'

/** No call lasts as long. What a crash left open comes back then, without the prompt's price. */
const OPEN_MS = 900_000
/** The time that an event waits for open calls, which may cost less than is reserved for them. */
const SOON_MS = 5000
const AWAY_MS = 30_000
const ASK_MS = 15_000
/** A scope takes a part of a shared budget for this many calls, or this share of the limit. */
const CALLS = 4
const SHARE = 64
const MOST_EVENTS = 100
const MILLION = 1_000_000

/**
 * A part of a shared budget. `spent`: since `epoch`. `room`: what may be spent before the object is
 * asked again. `used_at`: a time in milliseconds.
 */
type TakenPart = { epoch: string; spent: number; room: number; n: number; used_at: number }
type Open = { amount: number; least: number; until: number; names: string[]; ids: string[] }
type Kept = {
  own: MoneySpent
  parts: Record<string, TakenPart>
  open: Record<string, Open>
  events: [string, number][]
  rows: Rows
}
type Rows = { day: number; count: number; days?: OtherPeriods }
const KEY = 'money'
const DAY_MS = 86_400_000
const ROWS_PER_NOTE = 100
const OWN = 'this scope'

type Claim = { event: Event }
/** Prices of a call in dollars: at most, and for its prompt alone. null: no price is known. */
type CallPrice = { most: number | null; prompt: number | null; model: string }
/** `name`: null for the scope's own. */
type NamedBudget = { budget: MoneyBudget; name: string | null }
type Reserved = { ok: true; id: string | null }

export type MoneyParts = {
  database: Pick<Database, 'read' | 'written'>
  scope: string
  budget: () => MoneyBudget | undefined
  shared: (senders: readonly string[]) => SharedBudget[]
  problem: () => string | null
  lease: (name: string, asked: LeaseAsked) => Promise<LeaseAnswer>
  now: () => number
}

const micro = (usd: number): number => Math.ceil(usd * MILLION - 1e-6)
const limitOf = (usd: number | undefined): number | null => (usd === undefined ? null : Math.floor(usd * MILLION + 1e-6))
const mostOf = ({ usd_per_day, usd_per_month }: MoneyBudget): MostSpent => ({ day: limitOf(usd_per_day), month: limitOf(usd_per_month) })
const dollars = (amount: number): string => `$${(amount / MILLION).toFixed(amount >= MILLION ? 2 : amount >= 1000 ? 4 : 6)}`
const idsOf = (claimed: readonly Claim[]): string[] => claimed.map(({ event }) => event.id)
/** The lowest limit. */
const lowest = ({ day, month }: MostSpent): number => Math.min(day ?? Number.POSITIVE_INFINITY, month ?? Number.POSITIVE_INFINITY)

/**
 * Budgets in money. A call is reserved in the scope's storage before it begins, so that what a
 * crash loses still counts, and settled with its entry in the log.
 */
export class Money {
  readonly #parts: MoneyParts
  #kept: Kept
  #last: Promise<unknown> = Promise.resolve()
  /** Rows that were written when they were last added. */
  #seen = 0
  /** Calls that came back early, of which the price of the prompt is counted. */
  readonly #early = new Map<string, Open>()

  constructor(parts: MoneyParts) {
    this.#parts = parts
    const rows = { day: 0, count: 0 }
    this.#kept = parts.database.read<Kept>(KEY, { own: NOTHING_SPENT, parts: {}, open: {}, events: [], rows })
  }

  /** True if a budget may concern calls for these events. */
  limits(claimed: readonly Claim[]): boolean {
    return this.#parts.problem() !== null || this.#limiting(claimed).length > 0
  }

  /** The most that one call may spend at this moment; one call at a time is judged. */
  reserve(write: (work: (unit: Unit) => void) => void, price: CallPrice, claimed: readonly Claim[]): Promise<Reserved | ModelRefusal> {
    const reserved = this.#last.then(() => this.#reserve(write, price, claimed))
    this.#last = reserved.catch(() => {})
    return reserved
  }

  async #reserve(
    write: (work: (unit: Unit) => void) => void,
    price: CallPrice,
    claimed: readonly Claim[],
  ): Promise<Reserved | ModelRefusal> {
    const problem = this.#parts.problem()
    if (problem !== null) return refusal('wait', this.#parts.now() + AWAY_MS, problem)
    const budgets = this.#limiting(claimed)
    if (budgets.length === 0) return { ok: true, id: null }
    if (price.most === null) return refusal('refuse', null, unpricedText(price.model))
    const amount = micro(price.most)
    this.#expire()
    const refused = this.#ownRefusal(budgets, amount, claimed)
    if (refused) return refused
    const names: string[] = []
    for (const { budget, name } of budgets) {
      if (name === null || lowest(mostOf(budget)) === Number.POSITIVE_INFINITY) continue
      const why = await this.#take(write, { budget, name, amount })
      if (why) return why
      names.push(name)
    }
    const id = crypto.randomUUID()
    const open = { amount, least: micro(price.prompt ?? 0), until: this.#parts.now() + OPEN_MS, names, ids: idsOf(claimed) }
    write((unit) => this.#keep(unit, { ...this.#kept, open: { ...this.#kept.open, [id]: open } }))
    return { ok: true, id }
  }

  /** Counts what a call has cost, in the unit of its entry. `usd` is null if that is unknown. */
  settle(unit: Unit, id: string | null, usd: number | null): void {
    if (id === null) return
    const { [id]: known, ...rest } = this.#kept.open
    const open = known ?? this.#early.get(id)
    if (open === undefined) return
    const counted = known ? 0 : open.least
    this.#pay(open, Math.max(0, (usd === null ? open.amount : micro(usd)) - counted))
    this.#early.delete(id)
    const { budget } = this.#parts
    const { near, spent } = nearOf(this.#kept.own, mostOf(budget() ?? {}))
    this.#keep(unit, { ...this.#kept, open: rest, own: spent })
    this.#tell(unit, near, OWN)
  }

  /** Counts a call of a decision model, which is not reserved. */
  paid(unit: Unit, usd: number, claimed: readonly Claim[]): void {
    const budgets = usd === 0 ? [] : this.#budgets(claimed)
    if (budgets.length === 0) return
    const names = budgets.flatMap(({ name }) => name ?? [])
    this.#pay({ names, ids: idsOf(claimed) }, micro(usd))
    this.#keep(unit, this.#kept)
  }

  /** The scope's own limits, for reports: a refusal if nothing more may be spent. */
  spentOut(): ModelRefusal | null {
    const budget = this.#parts.budget()
    return budget ? this.#ownRefusal([{ budget, name: null }], 1, []) : null
  }

  /** Gives back what is not used of a shared budget. */
  report(write: (work: (unit: Unit) => void) => void, name: string, n: number): LeaseReport {
    this.#expire()
    const part = this.#part(name)
    const held = this.#held(name)
    write((unit) => this.#keep(unit, this.#withPart(name, { ...part, room: held, n })))
    return { epoch: part.epoch, spent: part.spent, held }
  }

  /** The refusal of further events after too many rows; null without one. */
  rowsSpent(): { limit: number; until: number } | null {
    const limits = this.#rowLimits()
    if (limits.length === 0) return null
    const limit = Math.min(...limits)
    const { day, count } = this.#rows()
    return count >= limit ? { limit, until: (day + 1) * DAY_MS } : null
  }

  /** Notes rows now and then, where they are limited: a crash forgets fewer than a hundred. */
  noteRows(unit: Unit): void {
    if (this.#parts.database.written - this.#seen >= ROWS_PER_NOTE && this.#rowLimits().length > 0) this.#keep(unit, this.#kept)
  }

  #rowLimits(): number[] {
    return this.#budgets([]).flatMap(({ budget: { rows_per_day } }) => rows_per_day ?? [])
  }

  #rows(): Rows {
    const day = Math.floor(this.#parts.now() / DAY_MS)
    const { rows } = this.#kept
    const { sum, others } = moved(rows.days, [rows.day, rows.count], day)
    return { day, count: sum + this.#parts.database.written - this.#seen, days: others }
  }

  #budgets(claimed: readonly Claim[]): NamedBudget[] {
    const own = this.#parts.budget()
    const senders = Array.from(new Set(claimed.map(({ event }) => senderOf(event))))
    const shared = this.#parts.shared(senders).map((budget) => ({ budget, name: budget.name }))
    return own ? [{ budget: own, name: null }, ...shared] : shared
  }

  /** A budget of rows alone needs no price. */
  #limiting(claimed: readonly Claim[]): NamedBudget[] {
    return this.#budgets(claimed).filter(({ budget }) => limitsMoney(budget))
  }

  #ownRefusal(budgets: readonly NamedBudget[], amount: number, claimed: readonly Claim[]) {
    const at = this.#parts.now()
    const open = Object.values(this.#kept.open).reduce((sum, one) => sum + one.amount, 0)
    for (const { budget, name } of budgets) {
      const { over = 'wait', usd_per_event } = budget
      const per_event = limitOf(usd_per_event)
      const most =
        claimed.length === 0 ? 0 : Math.max(...idsOf(claimed).map((id) => this.#ofEvent(id))) + Math.ceil(amount / claimed.length)
      if (per_event !== null && most > per_event)
        return refusal(over, null, `the call may bring an event to ${dollars(most)}, and ${dollars(per_event)} per event is the limit`)
      if (name !== null) continue
      const own = spentAt(this.#kept.own, at)
      const { left, until } = leftOf(paid(own, open), mostOf(budget), at)
      if (left >= amount) continue
      const soon = leftOf(own, mostOf(budget), at).left >= amount
      return passed({ over, of: OWN, most: mostOf(budget), amount, until: soon ? at + SOON_MS : until })
    }
    return null
  }

  async #take(
    write: (work: (unit: Unit) => void) => void,
    { budget, name, amount }: { budget: MoneyBudget; name: string; amount: number },
  ): Promise<ModelRefusal | null> {
    if (this.#part(name).room - this.#held(name) >= amount) return null
    const most = mostOf(budget)
    const over = budget.over ?? 'wait'
    const held = this.#held(name)
    // Before the question: an answer that is lost leaves no room.
    write((unit) => this.#keep(unit, this.#withPart(name, { ...this.#part(name), room: held })))
    const { epoch, spent } = this.#part(name)
    const want = Math.max(CALLS * amount, Math.floor(lowest(most) / SHARE))
    const asked = { scope: this.#parts.scope, epoch, spent, held, need: amount, want, most }
    let answer: LeaseAnswer
    try {
      answer = await withDeadline(() => this.#parts.lease(name, asked), { timeout_ms: ASK_MS, what: 'the shared budget' })
    } catch (error) {
      return refusal('wait', this.#parts.now() + AWAY_MS, `the budget ${name} cannot be asked: ${messageOf(error)}`)
    }
    write((unit) => {
      const part = this.#part(name)
      if (answer.ok && answer.n > part.n) this.#keep(unit, this.#withPart(name, { ...part, room: part.room + answer.grant, n: answer.n }))
      this.#tell(unit, answer.near, name)
    })
    if (!answer.ok) return passed({ over, of: name, most, amount, until: answer.soon ? this.#parts.now() + SOON_MS : answer.until })
    const has_room = this.#part(name).room - this.#held(name) >= amount
    return has_room ? null : refusal('wait', this.#parts.now() + SOON_MS, `another scope needed the budget ${name}`)
  }

  #pay({ names, ids }: Pick<Open, 'names' | 'ids'>, amount: number): void {
    const own = paid(spentAt(this.#kept.own, this.#parts.now()), amount)
    const parts = { ...this.#kept.parts }
    for (const name of names) {
      const part = this.#part(name)
      parts[name] = { ...part, spent: part.spent + amount, room: part.room - amount, used_at: this.#parts.now() }
    }
    const each = Math.ceil(amount / Math.max(1, ids.length))
    const costs = ids.map((id): [string, number] => [id, this.#ofEvent(id) + each])
    const others = this.#kept.events.filter(([id]) => !ids.includes(id))
    this.#kept = { ...this.#kept, own, parts, events: [...others, ...costs].slice(-MOST_EVENTS) }
  }

  /** Ends calls that a crash left open, or that a clock which jumped makes seem so. */
  #expire(): void {
    const at = this.#parts.now()
    for (const [id, open] of Object.entries(this.#kept.open)) {
      if (open.until > at && open.until <= at + OPEN_MS) continue
      this.#pay(open, open.least)
      this.#early.set(id, open)
      const { [id]: _lost, ...rest } = this.#kept.open
      this.#kept = { ...this.#kept, open: rest }
    }
  }

  #tell(unit: Unit, near: readonly ('day' | 'month')[], of: string): void {
    for (const period of near) {
      const alert_id = `budget-near:${of}:${period}:${iso(unit.now).slice(0, period === 'day' ? 10 : 7)}`
      const summary = `${NEAR * 100} % of the budget per ${period} of ${of} is spent`
      unit.log({ ...scopeHead(), kind: 'alert-raised', alert_id, name: 'budget-near', summary, details: { of, period } })
    }
  }

  #ofEvent(id: string): number {
    return this.#kept.events.find(([one]) => one === id)?.[1] ?? 0
  }

  #part(name: string): TakenPart {
    return this.#kept.parts[name] ?? { epoch: crypto.randomUUID(), spent: 0, room: 0, n: 0, used_at: 0 }
  }

  #withPart(name: string, part: TakenPart): Kept {
    return { ...this.#kept, parts: { ...this.#kept.parts, [name]: { ...part, used_at: this.#parts.now() } } }
  }

  #held(name: string): number {
    return Object.values(this.#kept.open).reduce((sum, { amount, names }) => (names.includes(name) ? sum + amount : sum), 0)
  }

  /** Forgets parts of earlier months, whose money concerns no limit: each sender may have one. */
  #keep(unit: Unit, kept: Kept): void {
    const rows = this.#rows()
    this.#seen = this.#parts.database.written
    const month = iso(this.#parts.now()).slice(0, 7)
    const held = new Set(Object.values(kept.open).flatMap(({ names }) => names))
    const parts = Object.entries(kept.parts).filter(([name, { used_at }]) => held.has(name) || iso(used_at).slice(0, 7) === month)
    this.#kept = { ...kept, parts: Object.fromEntries(parts), rows }
    unit.write(KEY, this.#kept)
  }
}

function refusal(over: 'wait' | 'refuse', until: number | null, detail: string): ModelRefusal {
  return { ok: false, reason: 'budget', until, detail, ...(over === 'refuse' && { final: true as const }) }
}

type Passed = { over: 'wait' | 'refuse'; of: string; most: MostSpent; amount: number; until: number }

function passed({ over, of, most, amount, until }: Passed): ModelRefusal {
  const limits = [most.day !== null && `${dollars(most.day)} per day`, most.month !== null && `${dollars(most.month)} per month`]
  const limit = `the budget of ${of}, ${limits.filter(Boolean).join(' and ')},`
  if (amount > lowest(most)) return refusal(over, null, `${limit} is less than one call may cost: ${dollars(amount)}`)
  const raise = of === OWN ? 'raise the setting budget' : 'raise it in REFLEX_BUDGETS'
  return refusal(over, until, `${limit} does not allow a call of up to ${dollars(amount)}; it is asked again at ${iso(until)}, or ${raise}`)
}
