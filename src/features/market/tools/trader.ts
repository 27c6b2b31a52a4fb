import { createHash } from 'node:crypto'
import { LEDGER, type LedgerApi, type LedgerCaller } from '../contract/ledger-api.ts'
import type { Payment } from '../../../contract/held-call.ts'
import type { MarketView } from '../contract/view.ts'
import { matchesScope } from '../../../contract/principal.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import { agentOwner, scopeOfOwner } from '../../../contract/reflex.ts'
import type { Env } from '../../../env.ts'
import { scopeExists } from '../../../store/scopes.ts'
import { findAccounts } from '../accounts.ts'
import { storeOf } from '../../../store/store.ts'
import type { ToolCall } from '../../../tools/define-tool.ts'

export type TraderParts = { scope: string; env: Env; settings: () => Settings; view: () => MarketView; ask: Ask }
/** Asks a person. Returns the id of the approval; null if an equal question waits already. */
type Ask = (payment: Payment, why: string, call: ToolCall['trace']) => Promise<string | null>

/** The scope's side of the market: its account, and the Ledger. */
export class Trader {
  readonly account: string
  readonly env: Env
  readonly #parts: TraderParts

  constructor(parts: TraderParts) {
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

  /** The account that a payment names, with the caller that pays it. */
  async payee(asked: string): Promise<{ account: string; by: LedgerCaller }> {
    const found = await findAccounts(this.env, [asked], { own: null, opens: true })
    if (!found.ok) throw new Error(`nothing was paid: ${found.detail}`)
    const { named, opens, owners } = found
    return { account: named.get(asked) ?? asked, by: { ...(await this.caller()), opens: [this.account, ...opens], owners } }
  }

  /** An id for a call: a repeated attempt of the call has the same. */
  idOf({ idempotence_key }: Pick<ToolCall, 'idempotence_key'>): string {
    const key = idempotence_key ?? crypto.randomUUID()
    return `agent:${createHash('sha256')
      .update(JSON.stringify([this.#parts.scope, key]))
      .digest('hex')}`
  }

  /** Throws if a person must allow the payment, who is then asked for it. */
  async demandAllowance(payment: Payment, { trace }: Pick<ToolCall, 'trace'>): Promise<void> {
    const most = this.#parts.settings().market?.without_approval ?? 0
    if (payment.amount <= most) return
    const why = `${payment.amount} is more than this agent may spend without a person, which is ${most}`
    await this.#ask(payment, why, trace)
  }

  /**
   * Throws if a person must allow that the account gives something away: to sell a version and to
   * serve others. `of`: the artifact, as `reflex:ID` or `skill:ID`.
   */
  async demandConsent(sale: Payment & { gives: string }, of: string, { trace }: Pick<ToolCall, 'trace'>): Promise<void> {
    const { least_price = null, services = [] } = this.#parts.settings().market ?? {}
    const is_named = services.some((pattern) => matchesScope(pattern, of))
    if (is_named && least_price !== null && sale.amount >= least_price) return
    const why =
      is_named && least_price !== null
        ? `${sale.amount} is less than ${least_price}, the least price at which this agent may give ${of} away without a person`
        : `this agent may not give ${of} away without a person`
    await this.#ask(sale, why, trace)
  }

  async #ask(payment: Payment, why: string, trace: ToolCall['trace']): Promise<never> {
    const approval_id = await this.#parts.ask(payment, why, trace)
    throw new Error(`${why}: ${approval_id === null ? 'it waits for an approval already' : `it waits for the approval ${approval_id}`}`)
  }
}

/** Returns what was made; throws if it was refused. */
export function made<Made extends object>(result: ({ ok: true } & Made) | { ok: false; detail: string }): Made {
  if (!result.ok) throw new Error(result.detail)
  return result
}
