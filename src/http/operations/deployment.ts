import type { z } from 'zod'
import { deploymentSecrets, SHORTEST_SECRET, TOOL_SECRET_HOSTS, TOOL_SECRET_PREFIX, WEBHOOK_SECRET_PREFIX } from '../../base/secrets.ts'
import { isAdminOfAll, sizeSeenBy, type Principal } from '../../contract/principal.ts'
import { deploymentMode } from '../../contract/origin.ts'
import type { deployment } from '../../contract/reports/health.ts'
import { unpricedBudgets } from '../../agent/unpriced-budget.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { Env } from '../../env.ts'
import type { DeploymentFeature } from '../../events/deployment.ts'
import { databaseBytes, schemaOf } from './schema-check.ts'
import { missingBindings, REQUIRED } from '../problems/required-bindings.ts'
import { unknownVariables } from './variables.ts'
import { MORE_NAMES, storeOf } from '../../store/store.ts'
import { SHORTEST_REDACTION_SECRET } from '../../traces/keyed-hash.ts'
import { assumedDestinations } from '../../tools/origins/destinations.ts'
import { secretHosts } from '../../tools/tool-secrets.ts'

const OPTIONAL = ['RATE_LIMIT', 'AI', 'ARCHIVE', 'OUTCOMES'] as const

/** The configuration of the deployment, without any value of it. */
export async function deploymentReport(
  env: Env,
  principal: Principal,
  { now, features, agents }: { now: number; features: readonly DeploymentFeature[]; agents: readonly Agent[] },
): Promise<z.infer<typeof deployment>> {
  const has = (name: keyof Env) => env[name] !== undefined && !(name === 'RATE_LIMIT' && env.REFLEX_RATE_LIMIT === 'off')
  const [found, bytes] = await Promise.all([schemaOf(storeOf(env), features), databaseBytes(storeOf(env))])
  return {
    time: new Date(now).toISOString(),
    bindings: {
      present: [...REQUIRED, ...OPTIONAL, ...MORE_NAMES].filter(has),
      missing: missingBindings(env),
      unused: OPTIONAL.filter((name) => !has(name)),
    },
    schema: found.schema,
    schema_error: found.error,
    database_bytes: bytes === null ? null : sizeSeenBy(principal.scopes, bytes),
    origins: deploymentMode(env),
    assumed_destinations: assumedIn(agents),
    unpriced_budgets: isAdminOfAll(principal) ? unpricedBudgets(env, agents) : null,
    secrets: isAdminOfAll(principal) ? secretsOf(env) : null,
    unknown_variables: isAdminOfAll(principal) ? unknownVariables(env) : null,
  }
}

/** Tools that a report names. */
const MOST_TOOLS = 100

function assumedIn(agents: readonly Agent[]): Record<string, string[]> {
  const tools = new Map(agents.flatMap((agent) => Object.entries(agent.tools)))
  const assumed = Array.from(tools, ([name, tool]) => [name, assumedDestinations(tool)] as const)
  return Object.fromEntries(assumed.filter(([, paths]) => paths.length > 0).slice(0, MOST_TOOLS))
}

function secretsOf(env: Env): NonNullable<z.infer<typeof deployment>['secrets']> {
  const set = deploymentSecrets(env).map(({ name, value }) => ({ name, problem: problemOf(env, name, value) }))
  if (env.REFLEX_REDACTION_SECRET) return set
  return [...set, { name: 'REFLEX_REDACTION_SECRET', problem: 'it is not set, so redacted values are not hashed and cannot be compared' }]
}

function problemOf(env: Env, name: string, value: string): string | null {
  if (value.length < SHORTEST_SECRET) return `it is shorter than ${SHORTEST_SECRET} characters, so it is not masked in logs`
  if (name === 'REFLEX_REDACTION_SECRET' && value.trim().length < SHORTEST_REDACTION_SECRET)
    return `it is shorter than ${SHORTEST_REDACTION_SECRET} characters, so redacted values are not hashed`
  const isUnsent = (name.startsWith(TOOL_SECRET_PREFIX) || name.startsWith(WEBHOOK_SECRET_PREFIX)) && secretHosts(env, name).length === 0
  return isUnsent ? `it is sent to no host: set ${name}${TOOL_SECRET_HOSTS}` : null
}
