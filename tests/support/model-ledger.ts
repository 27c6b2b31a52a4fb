import type { NewTransfer } from '../../src/contract/market/transfer.ts'

type Pending = { debit: string; credit: string; amount: number; expires_at: number; end: string | null }
type Outcome = { asked: NewTransfer; reason: string | null }

const RESERVED = /^(?:deal|meter|royalty|grant|trial|invoke|timeout):/

/** The behaviour of a ledger in the plainest words: no database, no sums. */
export class ModelLedger {
  posted: { debit: string; credit: string; amount: number }[] = []
  pendings = new Map<string, Pending>()
  outcomes = new Map<string, Outcome>()
  accounts = new Set(['genesis', 'escrow'])
  readonly #opens: readonly string[]

  constructor(opens: readonly string[]) {
    this.#opens = opens
  }

  balance(id: string): number {
    return this.posted.reduce((sum, { debit, credit, amount }) => sum + (credit === id ? amount : 0) - (debit === id ? amount : 0), 0)
  }

  available(id: string): number {
    const reserved = [...this.pendings.values()].filter(({ debit, end }) => debit === id && end === null)
    return reserved.reduce((sum, { amount }) => sum - amount, this.balance(id))
  }

  mint(id: string, to: string, amount: number): string {
    const asked = { id, debit: 'genesis', credit: to, amount, code: 'mint' }
    const known = this.#known(asked)
    // An account that nobody knows yet: nothing is kept.
    if (known === null && !this.#open(to)) return 'credit_account_not_found'
    return known ?? this.#settle(asked, null, () => this.#post(asked))
  }

  expire(now: number): void {
    for (const pending of this.pendings.values()) if (pending.end === null && pending.expires_at <= now) pending.end = 'timed_out'
  }

  transfer(batch: readonly NewTransfer[], now: number): string[] {
    const results: string[] = []
    for (let from = 0; from < batch.length;) {
      let to = from
      while (batch[to]?.linked) to += 1
      results.push(...this.#chain(batch.slice(from, to + 1), now))
      from = to + 1
    }
    return results
  }

  #chain(chain: readonly NewTransfer[], now: number): string[] {
    if (chain.length === 1 && !chain[0]?.linked) return chain.map((asked) => this.#one(asked, now))
    const before = structuredClone({ posted: this.posted, pendings: this.pendings, outcomes: this.outcomes, accounts: this.accounts })
    const results = chain.map((asked) => this.#one(asked, now))
    const is_open = chain.at(-1)?.linked === true
    const failed = results.findIndex((result) => result !== 'created' && result !== 'exists')
    const had = chain.some(({ id }) => before.outcomes.get(id)?.reason === null)
    if (!is_open && failed === -1 && !(had && results.includes('created'))) return results
    Object.assign(this, before)
    return chain.map((asked, index) => {
      if (RESERVED.test(asked.id)) return 'reserved_id'
      const last = is_open && index === chain.length - 1 ? 'linked_chain_open' : 'linked_transfer_failed'
      return this.#known(asked) ?? this.#settle(asked, index === failed ? (results[index] ?? null) : last, () => {})
    })
  }

  #one(asked: NewTransfer, now: number): string {
    if (RESERVED.test(asked.id)) return 'reserved_id'
    const known = this.#known(asked)
    if (known !== null) return known
    const { id, debit = '', credit = '', amount = 0, pending_id } = asked
    if (pending_id !== undefined) {
      const pending = this.pendings.get(pending_id)
      return this.#settle(asked, this.#endFailure(asked, pending), () => {
        if (!pending) return
        pending.end = asked.void ? 'already_voided' : 'already_posted'
        if (!asked.void) this.#post({ ...pending, amount: typeof asked.post === 'number' ? asked.post : pending.amount })
      })
    }
    return this.#settle(asked, this.#failure(debit, credit, amount), () => {
      for (const side of [debit, credit]) this.accounts.add(side)
      if (asked.pending) this.pendings.set(id, { debit, credit, amount, expires_at: now + (asked.timeout_s ?? Infinity) * 1000, end: null })
      else this.#post({ debit, credit, amount })
    })
  }

  #failure(debit: string, credit: string, amount: number): string | null {
    if (debit === credit) return 'accounts_must_differ'
    if (debit === 'genesis') return 'genesis_only_mints'
    if (debit === 'escrow' || credit === 'escrow') return 'escrow_only_deals'
    if (!this.#exists(debit)) return 'debit_account_not_found'
    if (!this.#exists(credit)) return 'credit_account_not_found'
    return amount > this.available(debit) ? 'insufficient_funds' : null
  }

  #endFailure(asked: NewTransfer, pending: Pending | undefined): string | null {
    const target = this.outcomes.get(asked.pending_id ?? '')
    if (!pending) return target?.reason === null ? 'pending_transfer_not_pending' : 'pending_transfer_not_found'
    if (pending.end !== null) return `pending_transfer_${pending.end}`
    return typeof asked.post === 'number' && asked.post > pending.amount ? 'exceeds_pending_amount' : null
  }

  #known(asked: NewTransfer): string | null {
    const known = this.outcomes.get(asked.id)
    if (!known) return null
    const fields = ['debit', 'credit', 'amount', 'code', 'memo', 'pending', 'timeout_s', 'pending_id', 'post', 'void', 'linked'] as const
    const other = fields.find((field) => (known.asked[field] || undefined) !== (asked[field] || undefined))
    return other ? `exists_with_different_${other}` : (known.reason ?? 'exists')
  }

  #settle(asked: NewTransfer, reason: string | null, follow: () => void): string {
    this.outcomes.set(asked.id, { asked, reason })
    if (reason === null) follow()
    return reason ?? 'created'
  }

  #post({ debit, credit, amount }: { debit: string; credit: string; amount: number }): void {
    this.posted.push({ debit, credit, amount })
  }

  #exists = (id: string): boolean => this.accounts.has(id) || this.#opens.includes(id)

  #open(id: string): boolean {
    if (this.#exists(id)) this.accounts.add(id)
    return this.accounts.has(id)
  }
}
