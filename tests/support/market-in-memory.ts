import type { SoldGoods } from '../../src/features/market/contract/ledger-api.ts'
import type { NewListing, NewOffer } from '../../src/features/market/contract/listing.ts'
import { layTables } from '../../src/kernel/lay-tables.ts'
import { Ledger } from '../../src/features/market/ledger/ledger.ts'
import { Contracts } from '../../src/features/market/contracts/contracts.ts'
import { Deals } from '../../src/features/market/deals/deals.ts'
import { LIMITS, type Limits } from '../../src/features/market/limits.ts'
import { TABLES } from '../../src/features/market/tables.ts'
import { ObjectSql } from './object-sql.ts'

export const START = Date.parse('2026-11-23T00:00:00Z')
type Rooms = { ledger: Ledger; deals: Deals; contracts: Contracts }

/** The Ledger's rooms over SQLite in memory, with a clock that tests move. */
export class TestMarket {
  readonly sql = new ObjectSql()
  readonly sent = new Map<string, unknown>()
  now = START
  limits: Limits = LIMITS
  #copies = 0

  constructor() {
    this.sql.transaction(() => {
      for (const [name, steps] of Object.entries(TABLES)) layTables(this.sql.storage, name, steps)
    })
  }

  /** Runs a transaction, after what has expired. A new object each time: the state is on disk. */
  act<Made>(work: (rooms: Rooms, now: number) => Made): Made {
    return this.sql.transaction(() => {
      const rooms = this.#rooms()
      this.#expire(rooms)
      return work(rooms, this.now)
    })
  }

  mint(to: string, amount: number): void {
    const id = `mint-${to}-${amount}-${this.now}`
    this.act(({ ledger }, now) => ledger.mint({ id, to, amount }, { opens: [to] }, now))
  }

  balance(account: string): { balance: number; available: number } {
    const { balance, available } = this.act(({ ledger }) => ledger.account(account)) ?? { balance: 0, available: 0 }
    return { balance, available }
  }

  list(asked: Partial<NewListing> & { listing_id?: string } = {}, goods: Partial<SoldGoods> = {}) {
    const whole = {
      listing_id: 'listing',
      artifact: 'reflex:greet@1',
      kind: 'licence' as const,
      price: 30,
      seller: 'scope:alice',
      ...asked,
    }
    return this.act(({ deals }, now) => deals.list(whole, { ...goodsOf(whole.artifact), ...goods }, { name: 'test', opens: [] }, now))
  }

  offer(asked: Partial<NewOffer> = {}, listing_id = 'listing') {
    const whole = { id: 'deal', buyer: 'scope:bob', ...asked }
    return this.act(({ deals }, now) => deals.offer(listing_id, whole, { name: 'test', opens: [whole.buyer] }, now))
  }

  accept(deal_id = 'deal', account = 'scope:alice', goods_state = 'active') {
    return this.decide('accept', deal_id, account, goods_state)
  }

  decide(decision: 'accept' | 'reject' | 'cancel' | 'refund', deal_id: string, account: string, goods_state?: string) {
    return this.act(({ deals }, now) => deals.decide(deal_id, decision, { account, goods_state }, now))
  }

  deal(id = 'deal') {
    const found = this.act(({ deals }) => deals.deal(id))
    if (!found) throw new Error(`no deal ${id}`)
    return found
  }

  use(scope: string, fires: number, certified = 0, deal_id = 'deal'): void {
    this.act(({ deals }, now) => deals.reportUse([{ deal_id, scope, fires, certified, lapses: 0 }], now))
  }

  #rooms(): Rooms {
    const sql = this.sql.storage
    const ledger = new Ledger(sql, this.limits)
    const separately = <Made>(work: () => Made): Made => this.sql.savepoint(work)
    const outbox = { put: (topic: string, key: string, value: unknown) => void this.sent.set(`${topic} ${key}`, value) }
    const room = { sql, ledger, outbox, limits: this.limits, separately }
    return { ledger, deals: new Deals(room, () => `c${(this.#copies += 1)}`), contracts: new Contracts(room) }
  }

  #expire({ ledger, deals, contracts }: Rooms): void {
    for (;;) {
      const at = Math.min(ledger.due ?? Infinity, deals.due ?? Infinity)
      if (at > this.now) return
      const timed_out = ledger.expire(at)
      for (const room of [deals, contracts]) room.expire(at, timed_out)
    }
  }
}

export const goodsOf = (artifact: string): SoldGoods => ({
  hash: `hash of ${artifact}`,
  state: 'active',
  original: null,
  description: 'greets',
  event_types: [],
  tools: [],
  owner_scopes: [],
  origins: [],
})
