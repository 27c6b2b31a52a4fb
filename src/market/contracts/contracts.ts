import type { ContractRefused, LedgerApi, LedgerCaller } from '../../contract/market/ledger-api.ts'
import type { Result } from '../../base/result.ts'
import type { Contract, NewContract } from '../../contract/market/service.ts'
import type { TimedOut } from '../../ledger/ledger.ts'
import type { Parts, Room } from '../room.ts'

/** Contracts: a caller pays a provider for each call of a skill or reflex. */
export class Contracts implements Room {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get due(): number | null {
    return null
  }

  expire(_at: number, _timed_out: readonly TimedOut[]): void {}

  propose(_asked: NewContract, _by: LedgerCaller, _now: number): Result<{ contract: Contract; created: boolean }, ContractRefused> {
    throw notBuilt(this.#parts)
  }

  decide(
    _id: string,
    _decision: Parameters<LedgerApi['decideContract']>[1],
    _by: Parameters<LedgerApi['decideContract']>[2],
    _now: number,
  ): Result<{ contract: Contract }, ContractRefused> {
    throw notBuilt(this.#parts)
  }

  contract(_id: string): Contract | null {
    throw notBuilt(this.#parts)
  }

  payInvocation(
    _id: string,
    _of: { caller: string; invocation_id: string },
    _now: number,
  ): Result<{ contract: Contract }, ContractRefused> {
    throw notBuilt(this.#parts)
  }
}

const notBuilt = (_parts: Parts): Error => new Error('not built')
