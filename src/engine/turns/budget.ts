import type { UsedLicence } from '../../contract/licence.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { FoldRecord } from '../../traces/entries/kind.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Database, Unit } from '../../kernel/unit.ts'

export type Allowance = { ok: true } | { ok: false; reason: 'budget'; until: number | null; detail: string }

const PERIOD_MS = { hour: 3_600_000, day: 86_400_000, total: Number.POSITIVE_INFINITY }

/** The model tokens left in the scope's budget period; periods are aligned to UTC. */
export class Budget {
  readonly #settings: () => Settings
  readonly #now: () => number
  #used: { period: number; tokens: number }

  constructor(database: Database, settings: () => Settings, now: () => number) {
    this.#settings = settings
    this.#now = now
    this.#used = database.read('budget', { period: 0, tokens: 0 })
  }

  /** The context's `llm_tokens_remaining`; null without a budget. */
  remaining(): number | null {
    const budget = this.#settings().token_budget
    if (budget === null) return null
    return Math.max(0, budget.tokens - (this.#used.period === this.#period() ? this.#used.tokens : 0))
  }

  allow(): Allowance {
    const budget = this.#settings().token_budget
    if (budget === null || (this.remaining() ?? 0) > 0) return { ok: true }
    const length = PERIOD_MS[budget.per]
    const until = Number.isFinite(length) ? (this.#period() + 1) * length : null
    const when = until === null ? 'raise token_budget in the settings to continue' : `it is renewed at ${new Date(until).toISOString()}`
    return { ok: false, reason: 'budget', until, detail: `the token budget of ${budget.tokens} per ${budget.per} is spent; ${when}` }
  }

  spend(unit: Unit, tokens: number): void {
    const period = this.#period()
    this.#used = { period, tokens: tokens + (this.#used.period === period ? this.#used.tokens : 0) }
    unit.write('budget', this.#used)
  }

  #period(): number {
    const budget = this.#settings().token_budget
    const length = PERIOD_MS[budget?.per ?? 'total']
    return Number.isFinite(length) ? Math.floor(this.#now() / length) : 0
  }
}

type Saving = { agent: () => Pick<Agent, 'trigger'>; features: readonly { readonly turns?: () => FoldRecord['sums'] }[] }
const NO_TURNS = { turns: 0, model_calls: 0, tokens: 0, cost_usd: 0 }

/** The average cost of the turns so far, which an action that spares one saves. */
export function savingsOf({ agent, features }: Saving): NonNullable<UsedLicence['saves']> {
  if (agent().trigger === null) return { model_calls: 0, tokens: 0, cost_usd: 0 }
  // The counters have the model calls of dry turns, too.
  const counting = features.find((feature) => feature.turns)
  const { turns, model_calls, tokens, cost_usd } = counting?.turns?.() ?? NO_TURNS
  const share = (sum: number) => (turns === 0 ? 0 : sum / turns)
  return { model_calls: turns === 0 ? 1 : share(model_calls), tokens: share(tokens), cost_usd: share(cost_usd) }
}
