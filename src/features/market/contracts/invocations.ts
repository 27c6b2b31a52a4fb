import { refuse, type Result } from '../../../base/result.ts'
import type { ContractRefused } from '../contract/ledger-api.ts'
import type { Contract } from '../contract/service.ts'
import type { TransferFailure } from '../contract/transfer.ts'
import { isLimit } from '../deals/payments.ts'
import { notifyAccounts } from '../news.ts'
import type { MarketRoom } from '../room.ts'
import type { ContractStore } from './contract-store.ts'

/** A call that nobody settles by then was not served: its money returns. */
const HOLD_S = 3600

type Kept = MarketRoom & { store: ContractStore }
type InvocationAnswer = Result<{ contract: Contract }, ContractRefused>

/** Reserves the price of a call, once per id. */
export function hold(
  parts: Kept,
  id: string,
  { caller, invocation_id }: { caller: string; invocation_id: string },
  now: number,
): InvocationAnswer {
  const { store, ledger, outbox } = parts
  const contract = store.find(id)
  if (!contract || contract.proposer !== caller) return refuse('not_found', `${caller} has no contract ${id}.`)
  const known = store.invocation(id, invocation_id)
  if (known)
    return known.state === 'failed' ? refuse('used_up', `The call ${invocation_id} has ended without an answer.`) : { ok: true, contract }
  if (contract.status !== 'accepted') return refuse('decided', `The contract ${id} is ${contract.status}.`)
  if (contract.invocations + store.held(id) >= contract.limit)
    return refuse('used_up', `The contract ${id} allows ${contract.limit} calls, which are used up.`)
  const { counterparty, price_per_invocation: amount, service } = contract
  const transfer = `invoke:${invocation_id}`
  const pending = { id: transfer, debit: caller, credit: counterparty, amount, code: 'invocation', memo: service, pending: true }
  const [result] = ledger.transfer([{ ...pending, timeout_s: HOLD_S }], { opens: [counterparty], caller, privileged: true }, now)
  if (result?.status === 'failed') return refusedBy(caller, result.reason)
  store.begin({ contract_id: id, invocation_id, transfer, at: now })
  const artifact = service.slice(service.indexOf(':') + 1)
  notifyAccounts(outbox, [counterparty], {
    id: `invocation:${invocation_id}`,
    type: 'invocation',
    caller,
    artifact,
    service,
    contract_id: id,
    amount,
  })
  return { ok: true, contract }
}

type Settled = { invocation_id: string; served: boolean; trace_id: string | null }

/** Posts the money of a served call; returns the money of a call that was not served. */
export function settle(parts: Kept, id: string, { invocation_id, served, trace_id }: Settled, now: number): InvocationAnswer {
  const { store, ledger } = parts
  const contract = store.find(id)
  const call = store.invocation(id, invocation_id)
  if (!contract || !call) return refuse('not_found', `There is no call ${invocation_id} under the contract ${id}.`)
  if (call.state === 'failed' && served) return refuse('used_up', `The call ${invocation_id} has ended: its money was returned.`)
  if (call.state !== 'held') return { ok: true, contract }
  const ends = served ? { post: true as const } : { void: true as const }
  const [result] = ledger.transfer(
    [{ id: `${call.transfer}:end`, pending_id: call.transfer, ...ends }],
    { opens: [], privileged: true },
    now,
  )
  if (result?.status === 'failed') return refuse('used_up', `The call ${invocation_id} was not settled: ${result.reason}.`)
  store.end(call, served ? 'served' : 'failed', trace_id)
  if (!served) return { ok: true, contract }
  const paid = { ...contract, invocations: contract.invocations + 1, paid: contract.paid + contract.price_per_invocation }
  store.write(paid)
  return { ok: true, contract: paid }
}

/** Follows the timeout of the money of a call. */
export function unserved(store: ContractStore, transfer: string): void {
  const call = store.invocationOf(transfer)
  if (call?.state === 'held') store.end(call, 'failed', null)
}

function refusedBy(caller: string, reason: TransferFailure | null): ContractRefused {
  return refuse(reason !== null && isLimit(reason) ? 'limit' : 'insufficient_funds', `The money of ${caller} is not reserved: ${reason}.`)
}
