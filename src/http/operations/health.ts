import { LEDGER } from '../../features/market/contract/ledger-api.ts'
import { z } from '@hono/zod-openapi'
import { modelCalls } from '../../contract/reports/health.ts'
import type { Env } from '../../env.ts'
import { ledgerDays } from '../../features/market/limits.ts'
import { decisionModelProblem } from '../../features/decisions/models/resolve.ts'
import { ownPricesProblem } from '../../models/own-prices.ts'
import { modelName, modelProblem } from '../../models/resolve-model.ts'
import { guard, json, open, problems, resource, routes } from '../describe/describe.ts'
import { controlPlane, controlPlaneReport } from '../../features/control-plane/http/control-plane.ts'
import { deployment, deploymentReport } from './deployment.ts'
import {
  deadLetterCounts,
  inboxDepths,
  modelCallReport,
  modelSilence,
  parkedCounts,
  retentionReport,
  skillCounts,
} from './health-report.ts'
import { storeOf } from '../../store/store.ts'
import { TooLate, withDeadline } from '../../base/deadline.ts'
import { messageOf } from '../../base/error-text.ts'

const route = routes('Health')
const part = z.object({ ok: z.boolean(), duration_ms: z.number(), error: z.string().nullable() })

const alive = route('get /health', 'getHealth', 'Check that the Worker responds', {
  ...open,
  responses: { 200: json(z.object({ status: z.literal('ok') }), 'It responds.') },
})

const configured = z.object({ ok: z.boolean(), error: z.string().nullable() })
const readiness = z.object({
  status: z.enum(['ready', 'unavailable']),
  database: part,
  queue: part,
  model: configured.meta({
    description:
      'Checks that REFLEX_MODEL names a model and that its configuration is complete, and that of REFLEX_DECISION_MODEL if it is set. ' +
      'No model is called: whether it answers is judged by what the calls of scopes did.',
  }),
})
const ready = route(
  'get /health/ready',
  'getReadiness',
  'Check that D1 and the queue are reachable, and that a model is configured and answers',
  {
    ...open,
    responses: { 200: json(readiness, 'Ready.'), 503: json(readiness, 'Not ready; the failing part has an `error`.') },
  },
)

const depth = z.object({ scope: z.string(), agent: z.string(), open: z.int() })
const detailed = route('get /health/detailed', 'getDetailedHealth', 'The state of each part', {
  description: 'Depths and dead letters cover the scopes of the key, as last replicated to D1.',
  ...guard({ roles: ['viewer'] }),
  responses: {
    200: json(
      z.object({
        status: z.enum(['ok', 'degraded']),
        database: part,
        queue: part,
        archive: part.nullable().meta({ description: 'Whether R2 responds; null without the binding ARCHIVE.' }),
        inboxes: z.object({ scopes: z.int(), open: z.int(), largest: z.array(depth) }).nullable(),
        parked: z
          .object({ scopes: z.int(), work: z.int() })
          .nullable()
          .meta({ description: 'Work that repeatedly crashed its scope; the state of each scope lists it.' }),
        ledger: z
          .object({
            bytes: z.int().meta({ description: 'The size of the Ledger object, which holds at most 10 GB.' }),
            retention_days: z
              .number()
              .nullable()
              .meta({ description: 'REFLEX_LEDGER_RETENTION_DAYS; null if it is invalid, in which case nothing leaves the Ledger.' }),
          })
          .nullable(),
        dead_letters: z.object({ total: z.int(), by_origin: z.object({ scope: z.int(), queue: z.int() }) }).nullable(),
        skills: z
          .object({
            active: z.int(),
            failed: z.int().meta({ description: 'Versions whose latest test failed.' }),
            warning: z.string().nullable(),
          })
          .nullable()
          .meta({ description: 'Versions of skills that the key may read. The warning is given when they are many.' }),
        retention: z
          .object({
            days: z
              .number()
              .nullable()
              .meta({ description: 'REFLEX_RETENTION_DAYS; null if it is invalid, in which case nothing is deleted from D1.' }),
            backlog: z.int().meta({
              description:
                'Events that D1 has kept for longer, counted up to 10,000. More than a few thousand while idle means that deletion cannot keep up.',
            }),
            oldest: z.string().nullable(),
          })
          .nullable(),
        control_plane: controlPlane
          .nullable()
          .meta({ description: 'The deployment whose skills and policy this one follows; null without one.' }),
        model: z.string(),
        model_error: z.string().nullable().meta({ description: 'Why the configured model cannot be used.' }),
        model_calls: modelCalls.nullable().meta({ description: 'What the calls of models did, in the scopes of the key.' }),
        agents: z.array(z.string()),
        event_types: z.array(z.string()),
        deployment: deployment.nullable(),
      }),
      'Values that could not be read from D1 are null.',
    ),
    ...problems(),
  },
})

export const healthRoutes = resource()
  .openapi(alive, (c) => c.json({ status: 'ok' as const }, 200))
  .openapi(ready, async (c) => {
    const found = await recentParts(c.env)
    return found.ok
      ? c.json({ status: 'ready' as const, ...found.parts }, 200)
      : c.json({ status: 'unavailable' as const, ...found.parts }, 503, { 'Retry-After': '5' })
  })

/** Separate from the open routes, since it needs a key. */
export const healthReportRoutes = resource().openapi(detailed, async (c) => {
  const { env } = c
  const { principal, agents: deployed } = c.var
  const { scopes } = principal
  const [{ ok, parts: found }, archive, ledger, inboxes, parked, dead_letters, skills, retention, control_plane, facts, model_calls] =
    await Promise.all([
      parts(env),
      env.ARCHIVE ? probe(async () => env.ARCHIVE?.list({ limit: 1 })) : null,
      ledgerReport(env).catch(() => null),
      inboxDepths(storeOf(env), scopes).catch(() => null),
      parkedCounts(storeOf(env), scopes).catch(() => null),
      deadLetterCounts(storeOf(env), scopes).catch(() => null),
      skillCounts(storeOf(env), scopes).catch(() => null),
      retentionReport(env, Date.now()).catch(() => null),
      controlPlaneReport(env).catch(() => null),
      deploymentReport(env, principal, Date.now()).catch(() => null),
      modelCallReport(storeOf(env), scopes).catch(() => null),
    ])
  const is_whole = ok && control_plane?.status !== 'degraded' && model_calls?.status !== 'silent' && !facts?.bindings.missing.length
  const status = is_whole ? ('ok' as const) : ('degraded' as const)
  const { database, queue } = found
  const model = modelName(env)
  const model_error = found.model.error
  return c.json(
    {
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
    },
    200,
  )
})

const ledgerReport = async (env: Env) => ({ bytes: await env.LEDGER.getByName(LEDGER).size(), retention_days: ledgerDays(env) })

/** The route is open, so each isolate queries D1 and the queue at most once per second. */
const FRESH_MS = 1000
const recent = new WeakMap<Env, { until: number; found: Awaited<ReturnType<typeof parts>> }>()

async function recentParts(env: Env) {
  const known = recent.get(env)
  if (known && Date.now() < known.until) return known.found
  const found = await readyParts(env)
  recent.set(env, { until: Date.now() + FRESH_MS, found })
  return found
}

/** A model that answers nobody is no model: events that need it wait. */
async function readyParts(env: Env) {
  const [found, silence] = await Promise.all([parts(env), modelSilence(storeOf(env)).catch(() => null)])
  if (silence === null || !found.parts.model.ok) return found
  return { ok: false, parts: { ...found.parts, model: { ok: false, error: silence } } }
}

async function parts(env: Env) {
  const { EVENTS } = env
  const db = storeOf(env)
  const queues: Pick<Queue, 'metrics'> = EVENTS
  const [database, queue] = await Promise.all([probe(() => db.prepare('SELECT 1').first()), probe(() => queues.metrics())])
  const error = modelProblem(modelName(env), env) ?? decisionModelProblem(env) ?? ownPricesProblem(env)
  const model = { ok: error === null, error }
  return { ok: database.ok && queue.ok && model.ok, parts: { database, queue, model } }
}

const PATIENCE_MS = 1000

type Probed = { ok: boolean; duration_ms: number; error: string | null }

/** Checks that a dependency responds, with a short time limit. */
async function probe(ask: () => Promise<unknown>): Promise<Probed> {
  const begun = performance.now()
  const error = await withDeadline(async () => ask(), { timeout_ms: PATIENCE_MS, what: 'the response' }).then(
    () => null,
    (failure: unknown) => (failure instanceof TooLate ? `no response within ${PATIENCE_MS} ms` : messageOf(failure)),
  )
  return { ok: error === null, duration_ms: Math.round(performance.now() - begun), error }
}
