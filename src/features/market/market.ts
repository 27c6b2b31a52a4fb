import { pauses } from '../../base/backoff.ts'
import { logError } from '../../base/warn.ts'
import { Outbox, type OutboxPace, type GivenUp, type Topic } from '../../kernel/outbox.ts'
import { Database } from '../../kernel/unit.ts'
import { Alarm } from '../../kernel/alarm.ts'
import { layTables } from '../../kernel/lay-tables.ts'
import { Ledger } from './ledger/ledger.ts'
import type { Env } from '../../env.ts'
import { Contracts } from './contracts/contracts.ts'
import { Deals } from './deals/deals.ts'
import { departures } from './departures.ts'
import { ledgerDays, limitsOf, LIMITS } from './limits.ts'
import type { MarketOutbox, Room, MarketSource } from './room.ts'
import { TABLES } from './tables.ts'
import { Views } from './views.ts'
import { messageOf } from '../../base/error-text.ts'
import { addDeadLetters, type DeadLetterRow } from '../../store/dead-letters.ts'
import { copiedUpTo, copyTransfers } from './store/ledger.ts'
import { writeListings, type ListingCopy } from './store/listings.ts'
import { storeOf } from '../../store/store.ts'
import type { MarketView } from './contract/view.ts'
import { DEAL_TOPICS, type SentDeal } from './deals/notify.ts'
import { deliver } from './goods/deliver.ts'
import { SCOPE_NEWS, newsOfTransfers, sendNews } from './news.ts'

const PAGE = 500
const DEAD_LETTERS = 'dead-letters'

type Sending = { env: Env; view: (scope: string) => MarketView; outbox: MarketOutbox }

/** The functions that send the topics of the outbox. Each is idempotent. */
const topicsOf = ({ env, view, outbox }: Sending): Record<string, Topic> => ({
  [SCOPE_NEWS]: { send: (items) => sendNews(items, env, view), in_order: true, most_waiting: LIMITS.news },
  /** The newest state of each deal, with its consequences for artifacts. */
  [DEAL_TOPICS.deals]: {
    async send(items) {
      for (const { value } of items) await deliver(env, value as SentDeal, Date.now())
    },
    giveUp: (message) => outbox.put(DEAD_LETTERS, message.key, letterOf(message)),
  },
  [DEAL_TOPICS.listings]: {
    send: (items) =>
      writeListings(
        storeOf(env),
        items.map(({ value }) => value as ListingCopy),
      ),
  },
  [DEAD_LETTERS]: {
    send: (items) =>
      addDeadLetters(
        storeOf(env),
        items.map(({ value }) => value as DeadLetterRow),
      ),
  },
})

/** For a person, who retries it once its cause is removed. Keys that cover all scopes see it. */
const letterOf = ({ key, value, error, attempts }: GivenUp): DeadLetterRow => ({
  id: `deal:${key}`,
  origin: 'market',
  scope: null,
  event_id: null,
  type: 'deal',
  error: messageOf(error),
  stack: null,
  attempts,
  payload: JSON.stringify((value as SentDeal).deal),
  dead_lettered_at: Date.now(),
})

/** State that is sent from the tables of the ledger. */
const sourcesOf = (ledger: Ledger, outbox: MarketOutbox): Record<string, MarketSource> => ({
  /** Turns the history into messages for the scopes whose accounts took part. */
  news: {
    get waiting() {
      return ledger.mark('news') < ledger.newest
    },
    send: async () => newsOfTransfers(ledger, outbox),
  },
  transfers: {
    get waiting() {
      return ledger.mark('copied') < ledger.newest
    },
    /** From what D1 has, if it was restored to an earlier time: the copy has no gap. */
    async send(env) {
      const db = storeOf(env)
      for (let after = Math.min(ledger.mark('copied'), await copiedUpTo(db)); ;) {
        const { items } = ledger.history({ after: String(after), limit: PAGE })
        const last = items.at(-1)
        if (!last) return
        await copyTransfers(db, items)
        after = last.seq
        ledger.setMark('copied', after)
      }
    },
  },
})

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
