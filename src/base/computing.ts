import type { Steps } from './steps.ts'

/**
 * Work of one portion, after which others are served. Where the clock stands still while a request
 * computes, units and steps end it. A millisecond takes about 200,000 units of a reflex's fuel.
 */
const PORTION = { ms: 10, units: 2_000_000 } as const
/**
 * Steps of one portion. A rest takes about a millisecond even if nobody waits, so the number
 * follows the time that the portions before took.
 */
const STEPS = { first: 64, least: 16, most: 4096 } as const
const MINUTE_MS = 60_000
/** A request that does not rest for so long waits for something else, or has gone. */
const GONE_MS = 5000
/** The time between two looks for a free place, and for how long a request looks. */
const LOOK_MS = 20
const MOST_WAITED_MS = 10_000
/** A request that has not looked for so long has gone: nobody waits behind it. */
const UNSEEN_MS = 1000
/** Requests of one key that wait. */
const MOST_WAITING = 50
/** A request waits so long, and has its place so long, before the place is called back. */
const CALLED_MS = 3000

type ComputingLimits = {
  /** Units that one key may spend in a minute. */
  units_per_minute: number
  /**
   * Requests of one key, and of all keys, that compute at once. `most`: the bound for a key that
   * computes nothing yet, and has spent less in the minute than each key that computes.
   */
  at_once: { key: number; all: number; most: number }
}
type Clock = { now: () => number; wait: (ms: number) => Promise<unknown> }
type Account = { since: number; spent: number }
/** `nth`: in the order of arrival. */
type Waiting = { key: string; nth: number; since: number; looked_at: number }
type ComputingRefusal = { ok: false; reason: 'spent' | 'busy'; retry_s: number }
const BUSY: ComputingRefusal = { ok: false, reason: 'busy', retry_s: 1 }

/**
 * The computing that an isolate does for its keys, such as replays and evaluations: in portions,
 * between which all else is served, and within a budget. It is in memory: each isolate guards
 * itself.
 */
export class ComputingShares {
  readonly #limits: ComputingLimits
  readonly #clock: Clock
  readonly #accounts = new Map<string, Account>()
  readonly #open = new Map<Computing, string>()
  readonly #waiting = new Set<Waiting>()
  #arrived = 0

  constructor(limits: ComputingLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  /** Waits for a place. The caller must leave it. */
  async enter(key: string): Promise<{ ok: true; computing: Computing } | ComputingRefusal> {
    const { now, wait } = this.#clock
    const account = this.#accountOf(key)
    const left_ms = account.since + MINUTE_MS - now()
    if (account.spent >= this.#limits.units_per_minute) return { ok: false, reason: 'spent', retry_s: Math.ceil(left_ms / 1000) }
    const waiting: Waiting = { key, nth: (this.#arrived += 1), since: now(), looked_at: 0 }
    if ([...this.#waiting].filter((other) => other.key === key).length >= MOST_WAITING) return BUSY
    try {
      while (!this.#mayEnter(waiting)) {
        if (now() >= waiting.since + MOST_WAITED_MS) return BUSY
        if (now() >= waiting.since + CALLED_MS) this.#callBack(waiting)
        await wait(LOOK_MS)
      }
    } finally {
      this.#waiting.delete(waiting)
    }
    const parts = { clock: this.#clock, others: () => this.#open.size - 1, leave: () => this.#open.delete(computing) }
    const computing: Computing = new Computing({
      ...parts,
      left: () => this.#limits.units_per_minute - this.#accountOf(key).spent,
      spend: (units) => void (this.#accountOf(key).spent += units),
    })
    this.#open.set(computing, key)
    return { ok: true, computing }
  }

  /**
   * The next place is for the key with the fewest places, then for the one that has spent least. A
   * request that was cut off does not leave: its place lapses, and so does its turn.
   */
  #mayEnter(waiting: Waiting): boolean {
    const { key: of_key, all, most } = this.#limits.at_once
    const now = this.#clock.now()
    waiting.looked_at = now
    this.#waiting.add(waiting)
    for (const computing of this.#open.keys()) if (computing.rested_at < now - GONE_MS) this.#open.delete(computing)
    for (const other of this.#waiting) if (other.looked_at < now - UNSEEN_MS) this.#waiting.delete(other)
    const { key } = waiting
    const own = this.#placesOf(key)
    if (own >= of_key || [...this.#waiting].some((other) => this.#order(other, waiting) < 0)) return false
    const { spent } = this.#accountOf(key)
    const isLeast = own === 0 && [...this.#open.values()].every((other) => spent < this.#accountOf(other).spent)
    return this.#open.size < (isLeast ? most : all)
  }

  /** Has the key that spent most give up a place to one that computes nothing, and spent less. */
  #callBack({ key }: Waiting): void {
    if (this.#placesOf(key) > 0 || [...this.#open.keys()].some(({ called }) => called)) return
    const spent = (one: string) => this.#accountOf(one).spent
    const since = this.#clock.now() - CALLED_MS
    const held = [...this.#open].filter(([{ began_at }, other]) => began_at <= since && spent(other) > spent(key))
    const [most] = held.toSorted(([, one], [, other]) => spent(other) - spent(one))
    if (most) most[0].called = true
  }

  #placesOf(key: string): number {
    return [...this.#open.values()].filter((one) => one === key).length
  }

  /** A key that has all its places comes after one that may have another. */
  #order(one: Waiting, other: Waiting): number {
    const spent = ({ key }: Waiting) => this.#accountOf(key).spent
    return this.#placesOf(one.key) - this.#placesOf(other.key) || spent(one) - spent(other) || one.nth - other.nth
  }

  #accountOf(key: string): Account {
    const now = this.#clock.now()
    const known = this.#accounts.get(key)
    if (known && now < known.since + MINUTE_MS) return known
    for (const [name, { since }] of this.#accounts) if (since + MINUTE_MS <= now) this.#accounts.delete(name)
    const account = { since: now, spent: 0 }
    this.#accounts.set(key, account)
    return account
  }
}

type ComputingParts = { clock: Clock; left: () => number; spend: (units: number) => void; others: () => number; leave: () => void }

export class Computing {
  rested_at: number
  readonly began_at: number
  /** Another key needs the place: nothing is left to this one. */
  called = false
  readonly #parts: ComputingParts
  #units = 0
  #steps = 0
  #most_steps: number = STEPS.first

  constructor(parts: ComputingParts) {
    this.#parts = parts
    this.began_at = parts.clock.now()
    this.rested_at = this.began_at
  }

  /** Units that the key may still spend in this minute. */
  get left(): number {
    return this.called ? 0 : this.#parts.left()
  }

  spend(units: number): void {
    this.#units += units
    this.#parts.spend(units)
  }

  /** Counts a step, or one that is as long as several. Ends the portion where it is over. */
  async rest(steps = 1): Promise<void> {
    this.#steps += steps
    if (this.#isOver()) await this.#serveOthers()
  }

  async run<Result>(steps: Steps<Result>): Promise<Result> {
    for (;;) {
      const step = steps.next()
      if (step.done) return step.value
      await this.rest()
    }
  }

  leave(): void {
    this.#parts.leave()
  }

  #isOver(): boolean {
    const { now } = this.#parts.clock
    return this.#units >= PORTION.units || this.#steps >= this.#most_steps || now() - this.rested_at >= PORTION.ms
  }

  /** Computations at the same time take turns: a rest is as long as the portions of the others. */
  async #serveOthers(): Promise<void> {
    const { clock, others } = this.#parts
    const rest_ms = Math.max(0, others()) * PORTION.ms
    await clock.wait(rest_ms)
    const took_ms = clock.now() - this.rested_at - rest_ms
    if (took_ms > PORTION.ms) this.#most_steps = Math.max(STEPS.least, this.#most_steps / 2)
    else if (took_ms <= PORTION.ms / 2 && this.#steps >= this.#most_steps) this.#most_steps = Math.min(STEPS.most, this.#most_steps * 2)
    this.rested_at = clock.now()
    this.#units = 0
    this.#steps = 0
  }
}

/** Computing without a budget and without others, by default without rests, for tests and tools. */
export const unboundedComputing = (clock: Clock = { now: () => performance.now(), wait: async () => {} }): Computing =>
  new Computing({
    clock,
    left: () => Infinity,
    spend: () => {},
    others: () => 0,
    leave: () => {},
  })
