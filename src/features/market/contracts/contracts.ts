import type { ContractRefused, LedgerApi, LedgerCaller, LedgerPage, PageAsked } from '../contract/ledger-api.ts'
import { refuse, type Result } from '../../../base/result.ts'
import { canonicalJson } from '../../../base/json.ts'
import { newContract, type Contract, type NewContract } from '../contract/service.ts'
import type { PendingContract } from '../../../contract/licence.ts'
import type { MarketView } from '../contract/view.ts'
import type { TimedOut } from '../ledger/ledger.ts'
import { RECORD_BYTES } from '../limits.ts'
import { notifyOthers } from '../news.ts'
import type { MarketRoom, Room } from '../room.ts'
import { ContractStore } from './contract-store.ts'
import { hold, settle, unserved } from './invocations.ts'

const MOST_DISPUTES = 20
const MOST_TRACES = 20

type ContractAnswer = Result<{ contract: Contract }, ContractRefused>
type ContractDecision = Parameters<LedgerApi['decideContract']>[1]
type By = Parameters<LedgerApi['decideContract']>[2]

/** Contracts: a proposer pays the counterparty for each call of its skill or reflex. */
export class Contracts implements Room {
  readonly #parts: MarketRoom
  readonly #store: ContractStore

  constructor(parts: MarketRoom) {
    this.#parts = parts
    this.#store = new ContractStore(parts.sql)
  }

  /** The money of a call has the timeout; nothing else of a contract expires. */
  get due(): number | null {
    return null
  }

  expire(_at: number, timed_out: readonly TimedOut[]): void {
    for (const { id } of timed_out) unserved(this.#store, id)
  }

  /** The opening of a call's payment, with which its end stays. */
  inUse(ids: readonly string[]): string[] {
    return this.#store.inUse(ids.filter((id) => id.startsWith('invoke:')))
  }

  propose(asked: NewContract, by: LedgerCaller, now: number): Result<{ contract: Contract; created: boolean }, ContractRefused> {
    const known = this.#store.find(asked.id)
    if (known) return repeated(known, asked)
    const { id, proposer, counterparty } = asked
    if (proposer === counterparty) return refuse('own', `${proposer} proposes it: a contract is between two accounts.`)
    if (!by.opens.includes(counterparty) && !this.#parts.ledger.account(counterparty))
      return refuse('not_found', `There is no scope of the account ${counterparty}.`)
    const { contracts: most } = this.#parts.limits
    if (this.#store.openOf(proposer) >= most) return refuse('limit', `${proposer} has ${most} open contracts, which is the limit.`)
    if (!this.#parts.ledger.mayGrow(RECORD_BYTES, by.counted ?? by.name, now))
      return refuse('limit', `${by.name} has added as much as one may add to the market in a day.`)
    const made = { status: 'proposed', invocations: 0, paid: 0, reason: null, ended_at: null, disputes: [] } as const
    const contract: Contract = { ...asked, ...made, contract_id: id, created_at: new Date(now).toISOString(), disputes: [] }
    return { ok: true, contract: this.#enter(contract, proposer), created: true }
  }

  decide(id: string, decision: ContractDecision, by: By, now: number): ContractAnswer {
    const contract = this.#store.find(id)
    const is_side = contract?.proposer === by.account || contract?.counterparty === by.account
    if (!contract || !is_side) return refuse('not_found', `${by.account} has no contract ${id}.`)
    const refused = refusalOf(contract, decision, by.account)
    if (refused) return refused
    const reason = by.reason ?? contract.reason
    if (decision === 'dispute') return this.#dispute(contract, by, now)
    if (contract.status === AFTER[decision]) return { ok: true, contract }
    const ended_at = decision === 'accept' ? null : new Date(now).toISOString()
    return { ok: true, contract: this.#enter({ ...contract, status: AFTER[decision], reason, ended_at }, by.account) }
  }

  contract(id: string): Contract | null {
    return this.#store.find(id)
  }

  page({ account, ...page }: { account: string } & PageAsked): LedgerPage<Contract> {
    return this.#store.page(account, page)
  }

  /** Reserves the price of a call, and notifies the provider of it. */
  payInvocation(id: string, of: { caller: string; invocation_id: string }, now: number): ContractAnswer {
    return hold({ ...this.#parts, store: this.#store }, id, of, now)
  }

  /** Pays for a call that was served, or returns the money. */
  settleInvocation(id: string, of: { invocation_id: string; served: boolean; trace_id: string | null }, now: number): ContractAnswer {
    return settle({ ...this.#parts, store: this.#store }, id, of, now)
  }

  pendingFor(account: string, limit: number): PendingContract[] {
    return this.#store.waitingFor(account, limit).map(({ contract_id, proposer, service, price_per_invocation, limit: most }) => ({
      contract_id,
      proposer,
      terms: { service, price_per_invocation, limit: most },
    }))
  }

  inForce(account: string, limit: number): MarketView['contracts'] {
    return this.#store.inForce(account, limit).map(({ contract_id, proposer, counterparty, service }) => {
      const calls = proposer === account
      return { contract_id, role: calls ? 'caller' : 'provider', service, other: calls ? counterparty : proposer } as const
    })
  }

  /** A dispute ends the calls, and keeps what a person needs to judge it. */
  #dispute(contract: Contract, { account, reason = '', traces = [] }: By, now: number): ContractAnswer {
    const { disputes } = contract
    const last = disputes.at(-1)
    if (last?.by === account && last.reason === reason && traces.every((trace) => last.traces.includes(trace)))
      return { ok: true, contract }
    if (disputes.length >= MOST_DISPUTES)
      return refuse('limit', `The contract ${contract.contract_id} has ${MOST_DISPUTES} disputes, which is the limit.`)
    const calls = this.#store.traces(contract.contract_id, MOST_TRACES)
    const dispute = { by: account, reason, traces: Array.from(new Set([...traces, ...calls])), at: new Date(now).toISOString() }
    const disputed: Contract = { ...contract, status: 'disputed', reason, disputes: [...disputes, dispute] }
    return { ok: true, contract: this.#enter(disputed, account) }
  }

  #enter(contract: Contract, by: string): Contract {
    this.#store.write(contract)
    const { contract_id, status, proposer, counterparty, service, price_per_invocation, limit, reason, disputes } = contract
    const event = { contract_id, status, proposer, counterparty, service, price_per_invocation, limit, reason }
    const id = `contract:${contract_id}:${status}${disputes.length > 0 ? `:${disputes.length}` : ''}`
    notifyOthers(this.#parts.outbox, [proposer, counterparty], { by, event: { id, type: 'contract', ...event } })
    return contract
  }
}

const AFTER = { accept: 'accepted', reject: 'rejected', end: 'ended', dispute: 'disputed' } as const

function refusalOf({ status, counterparty, contract_id }: Contract, decision: ContractDecision, account: string): ContractRefused | null {
  if (status === AFTER[decision] && decision !== 'dispute') return null
  const answers = decision === 'accept' || decision === 'reject'
  if (answers && account !== counterparty) return refuse('own', `The contract ${contract_id} is answered by ${counterparty}.`)
  const open = answers ? ['proposed'] : decision === 'end' ? ['proposed', 'accepted', 'disputed'] : ['accepted', 'ended', 'disputed']
  return open.includes(status) ? null : refuse('decided', `The contract ${contract_id} is ${status}.`)
}

function repeated(known: Contract, asked: NewContract): Result<{ contract: Contract; created: boolean }, ContractRefused> {
  const fields = Object.keys(newContract.shape) as (keyof NewContract)[]
  const differs = fields.find((field) => canonicalJson(known[field]) !== canonicalJson(asked[field]))
  if (differs) return refuse('other_content', `The contract ${asked.id} exists and differs in ${differs}: use another id.`)
  return { ok: true, contract: known, created: false }
}
