import { OpenAPIHono } from '@hono/zod-openapi'
import { authenticated, rateLimited, ticketed, type AuthEnv } from './auth/middleware.ts'
import { refuseInvalid } from './routes/refuse-invalid.ts'
import { eventRoutes } from './routes/events.ts'
import { keySource } from './routes/key-source.ts'
import { keyRoutes } from './routes/keys.ts'
import { handleError, handleNotFound } from './routes/problem.ts'
import { scopeEventRoutes } from './routes/scope-events.ts'
import { scopeRoutes } from './routes/scopes.ts'
import { redeemTicket, socketRoutes } from './routes/sockets.ts'

const base = new OpenAPIHono<AuthEnv>({ defaultHook: refuseInvalid })
base.get('/health', (c) => c.json({ status: 'ok' }))

// G7: what stands above this is open, all below is closed.
base.use('/v1/scopes/:scope/ws', ticketed(redeemTicket))
base.use('/v1/scopes/:scope/stream', ticketed(redeemTicket))
base.use('/v1/*', authenticated(keySource), rateLimited)

export const app = base
  .route('/', eventRoutes)
  .route('/', scopeEventRoutes)
  .route('/', scopeRoutes)
  .route('/', socketRoutes)
  .route('/', keyRoutes)
app.onError(handleError)
app.notFound(handleNotFound)

export type App = typeof app
