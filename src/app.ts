import { OpenAPIHono } from '@hono/zod-openapi'
import { cors } from 'hono/cors'
import { addressLimited, authenticated, rateLimited, ticketed, type AuthEnv } from './auth/middleware.ts'
import { notFoundIn } from './routes/allowed-methods.ts'
import { approvalRoutes } from './routes/approvals.ts'
import { blockRoutes } from './routes/blocks.ts'
import { bulletinRoutes } from './routes/bulletin.ts'
import { deadLetterRoutes } from './routes/dead-letters.ts'
import { decideApprovalRoutes } from './routes/decide-approvals.ts'
import { bearer, completed, documentInfo, type Document } from './routes/docs/document.ts'
import { docsRoutes } from './routes/docs/routes.ts'
import { eventShapes } from './routes/event-body.ts'
import { eventRoutes } from './routes/events.ts'
import { healthReportRoutes, healthRoutes } from './routes/health.ts'
import { incidentRoutes } from './routes/incidents.ts'
import { keySource } from './routes/key-source.ts'
import { keyRoutes } from './routes/keys.ts'
import { mcpRoutes } from './routes/mcp/routes.ts'
import { handleError } from './routes/problem.ts'
import { proposeSkillRoutes } from './routes/propose-skill.ts'
import { pullRoutes } from './routes/pull.ts'
import { reflexEvaluateRoutes } from './routes/reflex-evaluate.ts'
import { reflexMetricsRoutes } from './routes/reflex-metrics.ts'
import { reflexRegisterRoutes } from './routes/reflex-register.ts'
import { reflexRunRoutes } from './routes/reflex-run.ts'
import { reflexStateRoutes } from './routes/reflex-state.ts'
import { reflexRoutes } from './routes/reflexes.ts'
import { refuseInvalid } from './routes/refuse-invalid.ts'
import { scopeEventRoutes } from './routes/scope-events.ts'
import { scopeRoutes } from './routes/scopes.ts'
import { skillRegisterRoutes } from './routes/skill-register.ts'
import { skillStateRoutes } from './routes/skill-state.ts'
import { skillRoutes } from './routes/skills.ts'
import { redeemTicket, socketRoutes } from './routes/sockets.ts'
import { timerRoutes } from './routes/timers.ts'

const base = new OpenAPIHono<AuthEnv>({ defaultHook: (judged) => void refuseInvalid(judged) })
// What needs no key and costs more than a fixed answer.
for (const path of ['/health/ready', '/v1/openapi.json', '/v1/docs']) base.use(path, addressLimited)

const open = base.route('/', healthRoutes).route(
  '/',
  docsRoutes((): Document => completed(app.getOpenAPI31Document(documentInfo))),
)

// Any page may ask: nothing is sent along by itself, so that a page has only what the key it was given allows.
open.use('/v1/*', cors({ origin: '*', exposeHeaders: ['Retry-After'], maxAge: 600 }))

// G7: what stands above is open, all below is closed.
open.use('/v1/scopes/:scope/ws', ticketed(redeemTicket))
open.use('/v1/scopes/:scope/stream', ticketed(redeemTicket))
for (const path of ['/v1/*', '/health/*']) open.use(path, authenticated(keySource), rateLimited)

export const app = open
  .route('/', healthReportRoutes)
  .route('/', eventRoutes)
  .route('/', scopeEventRoutes)
  .route('/', scopeRoutes)
  .route('/', socketRoutes)
  .route('/', pullRoutes)
  .route('/', timerRoutes)
  .route('/', reflexRoutes)
  .route('/', reflexRegisterRoutes)
  .route('/', reflexRunRoutes)
  .route('/', reflexStateRoutes)
  .route('/', reflexMetricsRoutes)
  .route('/', reflexEvaluateRoutes)
  .route('/', skillRoutes)
  .route('/', skillRegisterRoutes)
  .route('/', skillStateRoutes)
  .route('/', bulletinRoutes)
  .route('/', proposeSkillRoutes)
  .route('/', mcpRoutes)
  .route('/', approvalRoutes)
  .route('/', decideApprovalRoutes)
  .route('/', incidentRoutes)
  .route('/', blockRoutes)
  .route('/', deadLetterRoutes)
  .route('/', keyRoutes)
app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', bearer)
for (const [name, schema] of Object.entries(eventShapes())) app.openAPIRegistry.registerComponent('schemas', name, schema)
app.onError(handleError)
app.notFound(notFoundIn(app))

export type App = typeof app
