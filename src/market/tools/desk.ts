import { createHash } from 'node:crypto'
import { LEDGER, type LedgerApi, type LedgerCaller } from '../../contract/market/ledger-api.ts'
import type { MarketView } from '../../contract/market/view.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { agentOwner, scopeOfOwner } from '../../contract/reflex.ts'
import type { Env } from '../../env.ts'
import { scopeExists } from '../../store/scopes.ts'
import { storeOf } from '../../store/store.ts'
import type { ToolCall } from '../../tools/define-tool.ts'

export type DeskParts = { scope: string; env: Env; settings: () => Settings; view: () => MarketView }

/** The scope's side of the market: its account, and the Ledger. */
export class Desk {
  readonly account: string
  readonly env: Env
  readonly #parts: DeskParts

  constructor(parts: DeskParts) {
    this.#parts = parts
    this.env = parts.env
    this.account = agentOwner(parts.scope)
  }

  get ledger(): LedgerApi {
    return this.env.LEDGER.getByName(LEDGER)
  }

  get view(): MarketView {
    return this.#parts.view()
  }

  /** Acts for the scope. `with_account`: another side, which may be opened if D1 has its scope. */
  async caller(with_account?: string): Promise<LedgerCaller> {
    const { scope } = this.#parts
    const other = with_account === undefined ? null : scopeOfOwner(with_account)
    const known = other !== null && (await scopeExists(storeOf(this.env), other)) ? [agentOwner(other)] : []
    return { name: `agent:${scope}`, opens: [this.account, ...known], owners: {} }
  }

  /** An id for a call: a repeated attempt of the call has the same. */
  idOf({ idempotence_key }: Pick<ToolCall, 'idempotence_key'>): string {
    const key = idempotence_key ?? crypto.randomUUID()
    return `agent:${createHash('sha256')
      .update(JSON.stringify([this.#parts.scope, key]))
      .digest('hex')}`
  }

  /** Throws if a person must pay so much. */
  demandAllowance(amount: number): void {
    const most = this.#parts.settings().market?.without_approval ?? 0
    if (amount > most)
      throw new Error(`${amount} is more than this agent may spend without a person, which is ${most}: ask an operator to pay it`)
  }
}

/** Returns what was made; throws if it was refused. */
export function made<Made extends object>(result: ({ ok: true } & Made) | { ok: false; detail: string }): Made {
  if (!result.ok) throw new Error(result.detail)
  return result
}
