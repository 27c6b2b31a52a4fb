import type { Deal } from '../../../src/features/market/contract/deal.ts'
import type { Listing } from '../../../src/features/market/contract/listing.ts'
import type { NewTransfer } from '../../../src/features/market/contract/transfer.ts'

export const SCOPES = ['kills/a', 'kills/b', 'kills/c', 'kills/d']
export const ACCOUNTS = [...SCOPES.map((scope) => `scope:${scope}`), 'key:maker']

export type Operation = {
  kind: 'transfers' | 'register' | 'list' | 'offer' | 'decide' | 'unlist'
  method: string
  path: string
  body?: unknown
  /** Unset: the admin's. */
  key?: string | undefined
}
export type Answered = Operation & { status: number; answer: unknown }

const post = (kind: Operation['kind'], path: string, body?: unknown): Operation => ({ kind, method: 'POST', path, body })

/** Random operations of clients, valid and invalid ones, on what earlier answers have told. */
export class Traffic {
  readonly #random: () => number
  /** The key of `key:maker`, which covers none of the scopes that buy. */
  readonly #maker: string
  /** Offers that expire take ten seconds at least. */
  readonly #with_expiry: boolean
  readonly #transfers: string[] = []
  readonly #pendings: string[] = []
  readonly #artifacts: { artifact: string; seller: string; resale: boolean }[] = []
  readonly #listings: Listing[] = []
  readonly #deals: string[] = []
  readonly #accepted: string[] = []
  #made = 0

  constructor(random: () => number, { maker, with_expiry }: { maker: string; with_expiry: boolean }) {
    this.#random = random
    this.#maker = maker
    this.#with_expiry = with_expiry
  }

  next(): Operation {
    this.#made += 1
    const id = `op-${this.#made}`
    if (this.#made <= ACCOUNTS.length * 2) return this.#mint(id, 500)
    if (this.#made % 40 === 11) return { ...post('register', '/v1/reflexes', { id, description: id, code: codeOf(id) }), key: this.#maker }
    const draw = this.#below(100)
    if (draw < 50) return this.#transfer(id, draw)
    if (draw < 55) return this.#mint(id, 1 + this.#below(200))
    if (draw < 62) return this.#list() ?? this.#mint(id, 20)
    if (draw < 78) return this.#offer(id) ?? this.#mint(id, 20)
    return this.#decide() ?? this.#mint(id, 20)
  }

  /** Learns from an answer what later operations name. */
  note({ kind, status, answer, body }: Answered): void {
    if (status >= 300) return
    if (kind === 'register')
      this.#artifacts.push({ artifact: `reflex:${(body as { id: string }).id}@1`, seller: 'key:maker', resale: true })
    if (kind === 'list') this.#listings.push(answer as Listing)
    if (kind === 'offer') this.#deals.push((answer as Deal).deal_id)
    if (kind !== 'decide') return
    const { status: state, deal_id, delivery, buyer, terms } = answer as Deal
    if (state !== 'accepted' || !delivery) return
    this.#accepted.push(deal_id)
    if (delivery.kind !== 'licence') this.#artifacts.push({ artifact: delivery.artifact, seller: buyer, resale: terms.resale ?? true })
  }

  #below = (limit: number): number => Math.floor(this.#random() * limit)
  #of = <Item>(items: readonly Item[]): Item | undefined => items[this.#below(items.length)]
  /** Mostly an event of the newest. */
  #recent = <Item>(items: readonly Item[]): Item | undefined => this.#of(items.slice(this.#below(4) === 0 ? 0 : -12))

  #mint(id: string, amount: number): Operation {
    return post('transfers', '/v1/ledger/mint', { id, to: this.#of(ACCOUNTS), amount })
  }

  #transfer(id: string, draw: number): Operation {
    const count = draw < 25 ? 1 : 2 + this.#below(8)
    const asked = Array.from({ length: count }, (_, index) => this.#one(count === 1 ? id : `${id}-${index}`, count > 1))
    return post('transfers', '/v1/ledger/transfers', count === 1 ? asked[0] : asked)
  }

  #one(id: string, in_batch: boolean): NewTransfer {
    const linked = in_batch && this.#below(3) === 0 ? { linked: true } : {}
    const draw = this.#below(20)
    const ends = this.#recent(this.#pendings)
    if (draw < 4 && ends !== undefined) return { id, pending_id: ends, ...this.#end(), ...linked }
    // An earlier id with other content, most often.
    if (draw === 4) id = this.#recent(this.#transfers) ?? id
    const [debit = '', credit = ''] = [this.#of(ACCOUNTS), this.#of(ACCOUNTS)]
    this.#transfers.push(id)
    if (draw === 5) return { id, debit, credit: 'scope:kills/nobody', amount: 1, ...linked }
    if (draw === 6) return { id, debit, credit, amount: Number.MAX_SAFE_INTEGER, ...linked }
    if (draw === 7) return { id, debit, credit: 'escrow', amount: 1, ...linked }
    if (draw === 8 && this.#below(4) === 0) return { id, debit, credit, amount: [0, -1, 0.5][this.#below(3)] ?? 0, ...linked }
    const amount = 1 + this.#below(60)
    if (draw > 12) return { id, debit, credit, amount, ...linked }
    this.#pendings.push(id)
    return { id, debit, credit, amount, pending: true, ...(draw > 9 && { timeout_s: 1 + this.#below(3) }), ...linked }
  }

  #end(): Pick<NewTransfer, 'post' | 'void'> {
    return [{ post: true as const }, { post: 1 + this.#below(60) }, { void: true as const }][this.#below(3)] ?? { void: true }
  }

  #list(): Operation | null {
    const goods = this.#recent(this.#artifacts)
    if (!goods) return null
    const kind = (['licence', 'copy', 'ownership'] as const)[Math.min(2, this.#below(5) >> 1)] ?? 'licence'
    const terms = kind === 'licence' ? [{ days: 30 }, { fires: 5 }, { per_decision: 1 }, { days: 1, most_scopes: 2 }][this.#below(4)] : {}
    const resale = kind === 'copy' ? { resale: this.#below(2) === 0, royalty_percent: 10 * this.#below(6) } : {}
    const { artifact, seller } = goods
    return post('list', '/v1/market/listings', { artifact, kind, price: 1 + this.#below(90), seller, terms: { ...terms, ...resale } })
  }

  #offer(id: string): Operation | null {
    const listing = this.#recent(this.#listings)
    if (!listing) return null
    if (this.#below(25) === 0) return { kind: 'unlist', method: 'DELETE', path: `/v1/market/listings/${listing.listing_id}` }
    const buyer = this.#of(ACCOUNTS)
    const timeout = this.#with_expiry && this.#below(4) === 0 ? { timeout_s: 10 } : {}
    const price = this.#below(3) === 0 ? { price: 1 + this.#below(90) } : {}
    return post('offer', `/v1/market/listings/${listing.listing_id}/offers`, { id, buyer, ...timeout, ...price })
  }

  #decide(): Operation | null {
    const decision = (['accept', 'accept', 'accept', 'accept', 'reject', 'cancel', 'refund', 'refund'] as const)[this.#below(8)] ?? 'accept'
    const deal_id = decision === 'refund' ? this.#recent(this.#accepted) : this.#recent(this.#deals)
    return deal_id === undefined ? null : post('decide', `/v1/market/deals/${deal_id}/${decision}`)
  }
}

const codeOf = (id: string): string =>
  `function reflex(context) { return context.event.content === "${id}" ? { action_type: "reply", content: "${id}" } : null }`
