import { logError } from '../../base/warn.ts'
import { layTables } from './ledger/lay-tables.ts'
import { Ledger } from './ledger/ledger.ts'
import type { Env } from '../../env.ts'
import { Contracts } from './contracts/contracts.ts'
import { Deals } from './deals/deals.ts'
import { departures } from './departures.ts'
import { ledgerDays, limitsOf } from './limits.ts'
import { MarketOutbox } from './outbox.ts'
import type { Room } from './room.ts'
import { TABLES } from './tables.ts'
import { sourcesOf, topicsOf } from './topics.ts'
import { Views } from './views.ts'

type Rooms = { ledger: Ledger; deals: Deals; contracts: Contracts; views: Views; outbox: MarketOutbox }

/** Wires the rooms of the object, its transactions, its times and its outbox. */
export class Market {
  readonly #context: DurableObjectState
  readonly #env: Env
  readonly #rooms: Rooms
  /** In the order in which they follow a timeout. */
  readonly #timed: readonly Room[]
  readonly #outbox: MarketOutbox
  /** The time of the newest transaction: the history does not run backwards if the clock does. */
  #now = 0

  /** The time of the object's alarm. */
  #alarm: number | null = null

  constructor(context: DurableObjectState, env: Env) {
    this.#context = context
    this.#env = env
    const { storage } = context
    const { sql } = storage
    const limits = limitsOf(env)
    const ledger = new Ledger(sql, limits)
    this.#outbox = new MarketOutbox(
      sql,
      topicsOf(
        (scope) => this.act(({ views }) => views.view(scope)),
        () => this.#outbox,
      ),
      {
        ...sourcesOf(ledger, () => this.#outbox),
        departures: departures({
          ledger,
          days: ledgerDays(env),
          now: () => this.#now,
          act: (work) => this.act((_, now) => work(now)),
          rooms: () => this.#timed,
        }),
      },
    )
    const parts = {
      sql,
      ledger,
      outbox: this.#outbox,
      limits,
      separately: <Made>(work: () => Made) => storage.transactionSync(work),
    }
    context.storage.transactionSync(() => {
      for (const [name, steps] of Object.entries(TABLES)) layTables(sql, name, steps)
      const problems = ledger.check()
      if (problems.length > 0) logError({ message: 'the ledger does not add up: nothing is transferred', problems })
    })
    this.#now = ledger.newestAt
    const deals = new Deals(parts)
    const contracts = new Contracts(parts)
    this.#timed = [deals, contracts]
    this.#rooms = { ledger, deals, contracts, views: new Views({ ...parts, deals, contracts }), outbox: this.#outbox }
  }

  /** Runs a transaction, after all that has expired by now. Sets the alarm that it needs. */
  act<Made>(work: (rooms: Rooms, now: number) => Made): Made {
    const now = (this.#now = Math.max(this.#now, Date.now()))
    const made = this.#context.storage.transactionSync(() => {
      this.#expire(now)
      return work(this.#rooms, now)
    })
    this.#arm(now)
    return made
  }

  /** Ends what has expired, and sends what waits. A crash before its end repeats it. */
  async alarm(): Promise<void> {
    this.#alarm = null
    this.act(() => null)
    await this.#outbox.flush(this.#env, Date.now())
    this.act(() => null)
  }

  /** In the same turn as the transaction: both become durable together. */
  #arm(now: number): void {
    const times = [this.#outbox.dueAt(now), this.#rooms.ledger.due, ...this.#timed.map(({ due }) => due)]
    const next = Math.min(...times.map((time) => time ?? Infinity))
    if (next === Infinity || (this.#alarm !== null && this.#alarm <= next)) return
    this.#alarm = next
    void this.#context.storage.setAlarm(next)
  }

  #expire(now: number): void {
    const { ledger } = this.#rooms
    for (;;) {
      const times = [ledger, ...this.#timed].flatMap(({ due }) => due ?? [])
      const at = Math.min(...times)
      if (times.length === 0 || at > now) return
      const timed_out = ledger.expire(at)
      for (const room of this.#timed) room.expire(at, timed_out)
    }
  }
}
