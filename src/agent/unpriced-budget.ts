import { budgetNames, limitsMoney, sharedBudgets, type MoneyBudget } from '../contract/settings/budget.ts'
import { costOf, ownPricesOf, unpricedText } from '../models/model-call.ts'
import { modelName } from '../models/resolve-model.ts'
import type { Agent } from './define-agent.ts'
import { servingAgents } from './registry.ts'

type PriceEnv = { REFLEX_MODEL?: string; REFLEX_MODEL_PRICES?: string; REFLEX_BUDGETS?: string }
type Spending = { model?: string | undefined; budget?: MoneyBudget | undefined }

/** Says why a budget in money refuses each call of these settings' model; null if none does. */
export function unpricedBudget(env: PriceEnv, settings: Spending, scope?: string): string | null {
  const shared = scope === undefined ? [] : sharedBudgets(env, scope, [])
  return [settings.budget, ...shared].some(limitsMoney) ? unpricedModel(env, settings) : null
}

const NO_TOKENS = { input_tokens: 0, output_tokens: 0 }

function unpricedModel(env: PriceEnv, settings: Spending = {}): string | null {
  const model = modelName(env, settings)
  return costOf(model, NO_TOKENS, ownPricesOf(env)) === null ? unpricedText(model) : null
}

/**
 * The budgets of the deployment and its agents that refuse each call. Those that scopes set are in
 * the state of each scope.
 */
export function unpricedBudgets(env: PriceEnv, agents: readonly Agent[]): { name: string; problem: string }[] {
  const shared = budgetNames(env).flatMap((name) => sharedProblems(env, name, agents))
  const own = agents.map(({ name, settings = {} }) => ({ name: `the agent ${name}`, problem: unpricedBudget(env, settings) }))
  return [...shared, ...own].flatMap(({ name, problem }) => (problem === null ? [] : [{ name, problem }]))
}

/** Names the agents, unless the budget refuses the calls of all that it meets for one reason. */
function sharedProblems(env: PriceEnv, budget: string, agents: readonly Agent[]): { name: string; problem: string | null }[] {
  // Events of any key and sender may come to any scope.
  const pattern = budget.startsWith(SCOPES) ? budget.slice(SCOPES.length) : '*'
  const name = `REFLEX_BUDGETS["${budget}"]`
  const found = servingAgents(agents, pattern).map((agent) => ({
    name: `${name} for the agent ${agent.name}`,
    problem: unpricedModel(env, agent.settings),
  }))
  const problems = new Set(found.map(({ problem }) => problem))
  return problems.size === 1 ? [...problems].map((problem) => ({ name, problem })) : found
}

const SCOPES = 'scope:'
