import type { Context } from 'hono'
import { alive, detailed, ready } from '../../contract/operations/health.ts'
import type { Env } from '../../env.ts'
import type { DeploymentFeature } from '../../events/deployment.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { budgetsProblem } from '../../contract/settings/budget.ts'
import { ownPricesProblem } from '../../models/model-call.ts'
import { modelName, modelProblem } from '../../models/resolve-model.ts'
import { resource, serve } from '../describe/operation.ts'
import { APPLY, lackOf } from '../problems/required-bindings.ts'
import { deploymentReport } from './deployment.ts'
import { schemaOf } from './schema-check.ts'
import { deadLetterCounts, inboxDepths, modelCallReport, modelSilence, parkedCounts, retentionReport } from './health-report.ts'
import { storeOf } from '../../store/store.ts'
import { TooLate, withDeadline } from '../../base/deadline.ts'
import { messageOf } from '../../base/error-text.ts'

export const healthRoutes = resource().openapiRoutes([
  serve(alive, () => ({ status: 'ok' as const })),
  serve(ready, async (c) => {
    const found = await recentParts(c.env, c.var.features)
    if (found.ok) return [200, { status: 'ready', ...found.parts }] as const
    c.header('Retry-After', '5')
    return [503, { status: 'unavailable', ...found.parts }] as const
  }),
])

/** Separate from the open routes, since it needs a key. */
export const healthReportRoutes = resource().openapiRoutes([serve(detailed, report)])

async function report(c: Context<AuthEnv>) {
  const { env } = c
  const { principal, features, agents: deployed } = c.var
  const { scopes } = principal
  const [{ ok, parts: found }, archive, inboxes, parked, dead_letters, retention, facts, model_calls, told] = await Promise.all([
    parts(env, features),
    env.ARCHIVE ? probe(env, async () => env.ARCHIVE?.list({ limit: 1 })) : null,
    inboxDepths(storeOf(env), scopes).catch(() => null),
    parkedCounts(storeOf(env), scopes).catch(() => null),
    deadLetterCounts(storeOf(env), scopes).catch(() => null),
    retentionReport(env, Date.now(), scopes).catch(() => null),
    deploymentReport(env, principal, { now: Date.now(), features, agents: deployed.agents }).catch(() => null),
    modelCallReport(storeOf(env), scopes).catch(() => null),
    Promise.all(features.map(async (feature) => feature.health?.(env, scopes).catch(() => null))),
  ])
  const { ledger = null, skills = null, control_plane = null } = Object.assign({}, ...told) as Awaited<ReturnType<Told>>
  const has_all = retention?.databases.every(({ error }) => error === null) !== false
  const is_whole =
    ok && has_all && control_plane?.status !== 'degraded' && model_calls?.status !== 'silent' && !facts?.bindings.missing.length
  const status = is_whole ? ('ok' as const) : ('degraded' as const)
  const { database, queue } = found
  const model = modelName(env)
  const model_error = found.model.error
  return {
    status,
    database,
    queue,
    archive,
    ledger,
    inboxes,
    parked,
    dead_letters,
    skills,
    retention,
    control_plane,
    model,
    model_error,
    model_calls,
    agents: deployed.agents.map(({ name }) => name),
    event_types: [...deployed.eventTypes],
    deployment: facts,
  }
}

type Told = NonNullable<DeploymentFeature['health']>

/** The route is open, so each isolate queries D1 and the queue at most once per second. */
const FRESH_MS = 1000
const recent = new WeakMap<Env, { at: number; found: Awaited<ReturnType<typeof parts>> }>()

async function recentParts(env: Env, features: readonly DeploymentFeature[]) {
  const known = recent.get(env)
  if (known && Math.abs(Date.now() - known.at) < FRESH_MS) return known.found
  const found = await readyParts(env, features)
  recent.set(env, { at: Date.now(), found })
  return found
}

/**
 * A database without its tables takes nothing. A model that answers nobody is no model: events that
 * need it wait. The route is open, so it does not say how many.
 */
async function readyParts(env: Env, features: readonly DeploymentFeature[]) {
  const db = storeOf(env)
  const fitting = withDeadline(async () => schemaOf(db, features), { timeout_ms: PATIENCE_MS, what: 'the response' })
  const [found, silence, schema] = await Promise.all([parts(env, features), modelSilence(db).catch(() => null), fitting.catch(() => null)])
  const { database } = found.parts
  if (schema?.schema === 'outdated' && database.ok)
    return { ok: false, parts: { ...found.parts, database: { ...database, ok: false, error: `${schema.error}; ${APPLY}` } } }
  if (silence === null || !found.parts.model.ok) return found
  return { ok: false, parts: { ...found.parts, model: { ok: false, error: `the model does not answer since ${silence.since}` } } }
}

async function parts(env: Env, features: readonly DeploymentFeature[]) {
  const { EVENTS } = env
  const db = storeOf(env)
  const queues: Pick<Queue, 'metrics'> = EVENTS
  const [database, queue] = await Promise.all([probe(env, () => db.prepare('SELECT 1').first()), probe(env, () => queues.metrics())])
  const problem = features.map((feature) => feature.problem?.(env)).find((found) => typeof found === 'string')
  const error = modelProblem(modelName(env), env) ?? problem ?? ownPricesProblem(env) ?? budgetsProblem(env)
  const model = { ok: error === null, error }
  return { ok: database.ok && queue.ok && model.ok, parts: { database, queue, model } }
}

const PATIENCE_MS = 1000

type Probed = { ok: boolean; duration_ms: number; error: string | null }

/** Checks that a dependency responds, with a short time limit. */
async function probe(env: Env, ask: () => Promise<unknown>): Promise<Probed> {
  const begun = performance.now()
  const error = await withDeadline(async () => ask(), { timeout_ms: PATIENCE_MS, what: 'the response' }).then(
    () => null,
    (failure: unknown) =>
      failure instanceof TooLate ? `no response within ${PATIENCE_MS} ms` : (lackOf(failure, env) ?? messageOf(failure)),
  )
  return { ok: error === null, duration_ms: Math.round(performance.now() - begun), error }
}
