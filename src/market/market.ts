import { layTables } from '../ledger/lay-tables.ts'
import { Ledger } from '../ledger/ledger.ts'
import type { Env } from '../env.ts'
import { Contracts } from './contracts/contracts.ts'
import { Deals } from './deals/deals.ts'
import { Outbox } from './outbox.ts'
import type { Room } from './room.ts'
import { TABLES } from './tables.ts'
import { Views } from './views.ts'

type Rooms = { ledger: Ledger; deals: Deals; contracts: Contracts; views: Views }

/** Wires the rooms of the object, its transactions, its times and its outbox. */
export class Market {
  readonly #context: DurableObjectState
  readonly #env: Env
  readonly #rooms: Rooms
  /** In the order in which they follow a timeout. */
  readonly #timed: readonly Room[]
  readonly #outbox: Outbox
  /** The time of the newest transaction: the history does not run backwards if the clock does. */
  #now = 0

  constructor(context: DurableObjectState, env: Env) {
    this.#context = context
    this.#env = env
    const { sql } = context.storage
    context.storage.transactionSync(() => {
      for (const [name, steps] of Object.entries(TABLES)) layTables(sql, name, steps)
    })
    const parts = { sql, ledger: new Ledger(sql), outbox: (this.#outbox = new Outbox(sql)) }
    const deals = new Deals(parts)
    const contracts = new Contracts(parts)
    this.#timed = [deals, contracts]
    this.#rooms = { ledger: parts.ledger, deals, contracts, views: new Views({ ...parts, deals, contracts }) }
  }

  /** One transaction, after all that has expired by now. */
  act<Made>(work: (rooms: Rooms, now: number) => Made): Made {
    const now = (this.#now = Math.max(this.#now, Date.now()))
    const made = this.#context.storage.transactionSync(() => {
      this.#expire(now)
      return work(this.#rooms, now)
    })
    return made
  }

  async alarm(): Promise<void> {
    this.act(() => null)
    await Promise.resolve([this.#env, this.#outbox])
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
