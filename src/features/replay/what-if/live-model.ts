import { addedUsage } from '../../../traces/usage.ts'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4GenerateResult } from '@ai-sdk/provider'
import type { Usage } from '../../../contract/log-entry.ts'
import type { ReplayBudget, Spent } from '../contract/what-if.ts'
import { costOf, type OwnPrices, meter } from '../../../models/model-call.ts'

type LiveCall = Usage & { duration_ms: number }

const nothing = (): LiveCall => ({ input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0, duration_ms: 0 })

/** Asks a model for answers that are not recorded, within the budget of one request. */
export class LiveModel {
  readonly #model: LanguageModelV4
  readonly #budget: ReplayBudget
  readonly #is_priced: boolean
  #spent: Usage = nothing()
  #taken = nothing()

  /** `name` is what the model is priced by. */
  constructor(model: LanguageModelV4, { name, own_prices }: { name: string; own_prices: OwnPrices }, budget: ReplayBudget) {
    this.#budget = budget
    this.#is_priced = costOf(name, { input_tokens: 1, output_tokens: 1 }, own_prices) !== null
    this.#model = meter(model, {
      name,
      own_prices,
      allow: () => ({ ok: true }),
      record: (call) => this.#count({ ...call, model_calls: 1 }),
    })
  }

  get spent(): Spent {
    return { calls: this.#spent.model_calls, usd: this.#is_priced ? this.#spent.cost_usd : null }
  }

  /** Usage since this was called last. */
  taken(): LiveCall {
    const taken = this.#taken
    this.#taken = nothing()
    return taken
  }

  async ask(options: LanguageModelV4CallOptions): Promise<LanguageModelV4GenerateResult> {
    const { usd, calls } = this.#budget
    const { model_calls, cost_usd } = this.#spent
    if (calls !== undefined && model_calls >= calls) throw new Error(`the budget of ${calls} model call${calls === 1 ? '' : 's'} is spent`)
    if (usd !== undefined && !this.#is_priced && calls === undefined)
      throw new Error('the price of the model is unknown: give the budget in calls')
    if (usd !== undefined && (cost_usd ?? 0) >= usd) throw new Error(`the budget of ${usd} USD is spent`)
    return this.#model.doGenerate(options)
  }

  #count(call: LiveCall): void {
    this.#spent = addedUsage(this.#spent, call)
    this.#taken = { ...addedUsage(this.#taken, call), duration_ms: this.#taken.duration_ms + call.duration_ms }
  }
}
