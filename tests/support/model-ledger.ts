import type { NewTransfer } from '../../src/features/market/contract/transfer.ts'

type Pending = {
  id: string
  debit: string
  credit: string
  amount: number
  expires_at: number
  end: string | null
  /** The id of the transfer that ended it. */
  ended_by?: string
}
type Outcome = { asked: NewTransfer; debit: string | null; reason: string | null }
/** A transfer with its id and its payer, or what it is instead. */
type Place = { key: string; debit: string | null } | 'reserved_id' | 'pending_transfer_ambiguous'

const RESERVED = /^(?:deal|meter|royalty|grant|trial|invoke|timeout):/

const keyOf = (id: string, payer: string): string => `${id} of ${payer}`
/** The end of a pending transfer names its payer only to say which one is meant. */
const withoutPayer = (asked: NewTransfer): NewTransfer => (asked.pending_id === undefined ? asked : { ...asked, debit: undefined })

/** The behaviour of a ledger in the plainest words: no database, no sums. */
export class ModelLedger {
  posted: { debit: string; credit: string; amount: number }[] = []
  pendings: Pending[] = []
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
    const reserved = this.pendings.filter(({ debit, end }) => debit === id && end === null)
    return reserved.reduce((sum, { amount }) => sum - amount, this.balance(id))
  }

  mint(id: string, to: string, amount: number): string {
    const asked = { id, debit: 'genesis', credit: to, amount, code: 'mint' }
    const place = { key: keyOf(id, 'genesis'), debit: 'genesis' }
    const known = this.#known(asked, place.key)
    // An account that nobody knows yet: nothing is kept.
    if (known === null && !this.#open(to)) return 'credit_account_not_found'
    return known ?? this.#settle(asked, place, null, () => this.#post(asked))
  }

  expire(now: number): void {
    for (const pending of this.pendings) if (pending.end === null && pending.expires_at <= now) pending.end = 'timed_out'
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
    const places: Place[] = []
    const results = chain.map((asked) => {
      places.push(this.#place(asked))
      return this.#one(asked, now)
    })
    const is_open = chain.at(-1)?.linked === true
    const failed = results.findIndex((result) => result !== 'created' && result !== 'exists')
    const had = places.some((place) => typeof place === 'object' && before.outcomes.get(place.key)?.reason === null)
    if (!is_open && failed === -1 && !(had && results.includes('created'))) return results
    Object.assign(this, before)
    return chain.map((asked, index) => {
      const place = places[index] ?? 'reserved_id'
      if (typeof place === 'string') return place
      const last = is_open && index === chain.length - 1 ? 'linked_chain_open' : 'linked_transfer_failed'
      return this.#known(asked, place.key) ?? this.#settle(asked, place, index === failed ? (results[index] ?? null) : last, () => {})
    })
  }

  #one(asked: NewTransfer, now: number): string {
    const place = this.#place(asked)
    if (typeof place === 'string') return place
    const known = this.#known(asked, place.key)
    if (known !== null) return known
    const { id, debit = '', credit = '', amount = 0 } = asked
    if (asked.pending_id !== undefined) {
      const pending = this.#meant(asked)
      if (pending === 'pending_transfer_ambiguous') return pending
      return this.#settle(asked, place, this.#endFailure(asked, pending), () => {
        if (!pending) return
        pending.end = asked.void ? 'already_voided' : 'already_posted'
        pending.ended_by = id
        if (!asked.void) this.#post({ ...pending, amount: typeof asked.post === 'number' ? asked.post : pending.amount })
      })
    }
    return this.#settle(asked, place, this.#failure(debit, credit, amount), () => {
      for (const side of [debit, credit]) this.accounts.add(side)
      if (asked.pending)
        this.pendings.push({ id, debit, credit, amount, expires_at: now + (asked.timeout_s ?? Infinity) * 1000, end: null })
      else this.#post({ debit, credit, amount })
    })
  }

  /** An id belongs to the account that pays; if it ends nothing, it is the caller's. */
  #place(asked: NewTransfer): Place {
    const { id, debit = '', pending_id } = asked
    if (RESERVED.test(id)) return 'reserved_id'
    if (pending_id === undefined) return { key: keyOf(id, debit), debit }
    const pending = this.#meant(asked)
    if (pending === 'pending_transfer_ambiguous') return pending
    const [of_payer, of_caller] = [keyOf(id, pending?.debit ?? ''), keyOf(id, '')]
    const is_callers = !this.outcomes.has(of_payer) && this.outcomes.has(of_caller)
    return { key: is_callers ? of_caller : of_payer, debit: pending?.debit ?? null }
  }

  #meant({ id, pending_id, debit }: NewTransfer): Pending | 'pending_transfer_ambiguous' | undefined {
    const found = this.pendings.filter((one) => one.id === pending_id && (debit === undefined || one.debit === debit))
    const ended = found.find(({ ended_by }) => ended_by === id)
    return ended ?? (found.length > 1 ? 'pending_transfer_ambiguous' : found[0])
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
    const { pending_id, debit: payer } = asked
    const isMade = (one: Outcome) => one.reason === null && one.asked.id === pending_id && (payer === undefined || one.debit === payer)
    if (!pending) return [...this.outcomes.values()].some(isMade) ? 'pending_transfer_not_pending' : 'pending_transfer_not_found'
    if (pending.end !== null) return `pending_transfer_${pending.end}`
    return typeof asked.post === 'number' && asked.post > pending.amount ? 'exceeds_pending_amount' : null
  }

  #known(asked: NewTransfer, key: string): string | null {
    const known = this.outcomes.get(key)
    if (!known) return null
    const fields = ['debit', 'credit', 'amount', 'code', 'memo', 'pending', 'timeout_s', 'pending_id', 'post', 'void', 'linked'] as const
    const [before, now] = [withoutPayer(known.asked), withoutPayer(asked)]
    const other = fields.find((field) => (before[field] || undefined) !== (now[field] || undefined))
    return other ? `exists_with_different_${other}` : (known.reason ?? 'exists')
  }

  #settle(asked: NewTransfer, { key, debit }: Exclude<Place, string>, reason: string | null, follow: () => void): string {
    this.outcomes.set(key, { asked, debit, reason })
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
