import { pauses } from '../../base/backoff.ts'
import { logError } from '../../base/warn.ts'
import { Outbox, type OutboxPace } from '../../kernel/outbox.ts'
import { Database } from '../../kernel/unit.ts'
import { Alarm } from '../../kernel/alarm.ts'
import { layTables } from '../../kernel/lay-tables.ts'
import { Ledger } from './ledger/ledger.ts'
import type { Env } from '../../env.ts'
import { Contracts } from './contracts/contracts.ts'
import { Deals } from './deals/deals.ts'
import { departures } from './departures.ts'
import { ledgerDays, limitsOf } from './limits.ts'
import type { MarketOutbox, Room } from './room.ts'
import { TABLES } from './tables.ts'
import { sourcesOf, topicsOf } from './topics.ts'
import { Views } from './views.ts'

type Rooms = { ledger: Ledger; deals: Deals; contracts: Contracts; views: Views }

const PACE: OutboxPace = { gather_ms: 50, most_items: 100, pauses: pauses.topic, alone: true, failed: 'the ledger failed to send' }

/** Wires the rooms of the object, its transactions, its times and its outbox. */
export class Market {
  readonly #database: Database
  readonly #alarm: Alarm
  readonly #rooms: Rooms
  /** In the order in which they follow a timeout. */
  readonly #timed: readonly Room[]
  readonly #outbox: Outbox
  /** The time of the newest transaction: the history does not run backwards if the clock does. */
  #now = 0

  constructor({ storage }: DurableObjectState, env: Env) {
    const { sql } = storage
    const limits = limitsOf(env)
    const ledger = new Ledger(sql, limits)
    const database = (this.#database = new Database(storage))
    database.transaction(() => {
      for (const [name, steps] of Object.entries(TABLES)) layTables(sql, name, steps)
      const problems = ledger.check()
      if (problems.length > 0) logError({ message: 'the ledger does not add up: nothing is transferred', problems })
    })
    this.#now = ledger.newestAt
    this.#alarm = new Alarm(storage)
    this.#outbox = new Outbox({ database, alarm: this.#alarm, now: Date.now, pace: PACE })
    const outbox: MarketOutbox = { put: (...item) => this.#outbox.put(database, ...item) }
    const parts = { sql, ledger, outbox, limits, separately: <Made>(work: () => Made) => database.transaction(work) }
    const deals = new Deals(parts)
    const contracts = new Contracts(parts)
    this.#timed = [deals, contracts]
    this.#rooms = { ledger, deals, contracts, views: new Views({ ...parts, deals, contracts }) }
    this.#send(env, outbox)
    for (const room of [ledger, ...this.#timed]) this.#alarm.source(() => room.due)
  }

  /** Runs a transaction, after all that has expired by now. Sets the alarm that it needs. */
  act<Made>(work: (rooms: Rooms, now: number) => Made): Made {
    const now = (this.#now = Math.max(this.#now, Date.now()))
    const made = this.#database.transaction(() => {
      this.#expire(now)
      return work(this.#rooms, now)
    })
    this.#alarm.arm()
    return made
  }

  /** Ends what has expired, and sends what waits. A crash before its end repeats it. */
  alarm(): Promise<void> {
    return this.#alarm.fired(async () => {
      this.act(() => null)
      await this.#outbox.flush()
    })
  }

  #send(env: Env, outbox: MarketOutbox): void {
    const view = (scope: string) => this.act(({ views }) => views.view(scope))
    for (const [name, topic] of Object.entries(topicsOf({ env, view, outbox }))) this.#outbox.topic(name, topic)
    const { ledger } = this.#rooms
    const leaving = departures({
      ledger,
      days: ledgerDays(env),
      now: () => this.#now,
      act: (work) => this.act((_, now) => work(now)),
      rooms: () => this.#timed,
    })
    for (const [name, source] of Object.entries({ ...sourcesOf(ledger, outbox), departures: leaving }))
      this.#outbox.source(name, { send: () => source.send(env), due: () => (source.waiting ? Date.now() + PACE.gather_ms : null) })
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
