import { deploymentHider } from '../base/secrets.ts'
import { hideInOutput } from '../base/warn.ts'
import type { AgentRegistry } from '../agent/registry.ts'
import { OpenAPIHono } from '@hono/zod-openapi'
import { cors } from 'hono/cors'
import { artifactListRoutes } from './artifacts/list.ts'
import { artifactRegisterRoutes } from './artifacts/register.ts'
import { skillTestRoutes } from './artifacts/skill-tests.ts'
import { artifactStateRoutes } from './artifacts/state.ts'
import { addressLimited, authenticated, rateLimited, ticketed, type AuthEnv } from './auth/middleware.ts'
import { handleError, notFoundIn } from './problems/problem.ts'
import { approvalRoutes } from '../features/approvals/http/approvals.ts'
import { waitingWorkRoutes } from './operations/waiting-work.ts'
import { bearer, completed, documentInfo, type Document } from './describe/docs/document.ts'
import { docsRoutes } from './describe/docs/routes.ts'
import { eventShapes } from './body/event-body.ts'
import { eventRoutes } from './events/events.ts'
import { hookDeliveryRoutes, hookRoutes } from '../features/hooks/http/hooks.ts'
import { healthReportRoutes, healthRoutes } from './operations/health.ts'
import { keySource } from './auth/key-source.ts'
import { keyRoutes } from './operations/keys.ts'
import { learnRoutes } from '../features/learning/http/runs.ts'
import { marketRoutes } from '../features/market/http/routes.ts'
import { protocolRoutes } from '../features/protocols/http/routes.ts'
import { prometheusRoutes } from '../features/statistics/http/prometheus.ts'
import { controlPlaneRoutes } from '../features/control-plane/http/routes.ts'
import { proposeSkillRoutes } from './skills/propose.ts'
import { costRoutes } from '../features/statistics/http/cost.ts'
import { pullRoutes } from './scopes/pull.ts'
import { reflexMetricsRoutes } from '../features/proof/http/metrics.ts'
import { reflexRunRoutes } from './reflexes/run.ts'
import { refuseInvalid } from './problems/refusals.ts'
import { decisionRoutes } from '../features/decisions/http/decisions.ts'
import { scopeEventRoutes } from './events/scope-events.ts'
import { agUiRoutes } from '../features/protocols/http/ag-ui/ag-ui.ts'
import { chainRoutes } from './scopes/chain.ts'
import { scopeRoutes } from './scopes/scopes.ts'
import { redeemTicket, socketRoutes } from './scopes/sockets.ts'
import { statisticsRoutes } from '../features/statistics/http/statistics.ts'
import { timerRoutes } from './scopes/timers.ts'
import { replayRoutes } from '../features/replay/http/routes.ts'
import { traceRoutes } from '../features/traces/http/traces.ts'

export type App = ReturnType<typeof createApp>

/** The API of a deployment: the framework's routes, then those that its agents bring. */
export function createApp(agents: AgentRegistry) {
  const base = new OpenAPIHono<AuthEnv>({ defaultHook: (judged) => void refuseInvalid(judged) })
  base.use('*', (c, next) => {
    hideInOutput(deploymentHider(c.env))
    c.set('agents', agents)
    return next()
  })
  // These need no key and cost more than a fixed answer.
  for (const path of ['/health/ready', '/v1/openapi.json', '/v1/docs']) base.use(path, addressLimited)

  const document = (): Document => completed(app.getOpenAPI31Document(documentInfo))
  const open = base.route('/', healthRoutes).route('/', docsRoutes(document))

  // Any page may call the API: browsers add no credentials, so a page needs a key.
  open.use('/v1/*', cors({ origin: '*', exposeHeaders: ['Retry-After'], maxAge: 600 }))
  open.route('/', hookDeliveryRoutes)

  // G7: the routes above are open; every route below needs a key.
  open.use('/v1/scopes/:scope/ws', ticketed(redeemTicket))
  open.use('/v1/scopes/:scope/stream', ticketed(redeemTicket))
  for (const path of ['/v1/*', '/health/*', '/metrics']) open.use(path, authenticated(keySource), rateLimited)

  const protocols = protocolRoutes((): Pick<typeof base, 'fetch'> => app)
  const app = open
    .route('/', healthReportRoutes)
    .route('/', eventRoutes)
    .route('/', scopeEventRoutes)
    .route('/', decisionRoutes)
    .route('/', scopeRoutes)
    .route('/', costRoutes)
    .route('/', chainRoutes)
    .route('/', socketRoutes)
    .route('/', agUiRoutes)
    .route('/', pullRoutes)
    .route('/', timerRoutes)
    // Before the routes with an id in this place.
    .route('/', controlPlaneRoutes)
    .route('/', artifactListRoutes)
    .route('/', artifactRegisterRoutes)
    .route('/', reflexRunRoutes)
    .route('/', artifactStateRoutes)
    .route('/', skillTestRoutes)
    .route('/', reflexMetricsRoutes)
    .route('/', proposeSkillRoutes)
    .route('/', protocols)
    .route('/', approvalRoutes)
    .route('/', learnRoutes)
    .route('/', waitingWorkRoutes)
    .route('/', keyRoutes)
    .route('/', hookRoutes)
    .route('/', statisticsRoutes)
    .route('/', prometheusRoutes)
    .route('/', marketRoutes)
    .route('/', replayRoutes)
    .route('/', traceRoutes)
  addAgents(app, agents)
  app.onError(handleError)
  app.notFound(notFoundIn(app))
  return app
}

/** Adds the routes of the agents and what the descriptions of routes refer to. */
function addAgents(app: OpenAPIHono<AuthEnv>, agents: AgentRegistry): void {
  const { openAPIRegistry: registry } = app
  for (const { routes } of agents.agents) if (routes) app.route('/', routes)
  registry.registerComponent('securitySchemes', 'bearer', bearer)
  for (const [name, schema] of Object.entries(eventShapes(agents))) registry.registerComponent('schemas', name, schema)
}
