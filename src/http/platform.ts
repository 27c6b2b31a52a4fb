import type { OpenAPIHono } from '@hono/zod-openapi'
import type { AuthEnv } from './auth/middleware.ts'
import type { Document } from './describe/docs/document.ts'
import { artifactListRoutes } from './artifacts/list.ts'
import { artifactRegisterRoutes } from './artifacts/register.ts'
import { artifactStateRoutes } from './artifacts/state.ts'
import { deadLetterRoutes } from './operations/dead-letters.ts'
import { docsRoutes } from './describe/docs/routes.ts'
import { eventRoutes } from './events/events.ts'
import { healthReportRoutes, healthRoutes } from './operations/health.ts'
import { keyRoutes } from './operations/keys.ts'
import { proposeSkillRoutes } from './skills/propose.ts'
import { pullRoutes } from './scopes/pull.ts'
import { reflexRoutes } from './reflexes/run.ts'
import { scopeEventRoutes } from './events/scope-events.ts'
import { scopeRoutes } from './scopes/scopes.ts'
import { skillTestRoutes } from './artifacts/skill-tests.ts'
import { socketRoutes } from './scopes/sockets.ts'
import { timerRoutes } from './scopes/timers.ts'
import { waitingWorkRoutes } from './operations/waiting-work.ts'

/** Adds the routes of the platform that need no key. */
export const openRoutes = (base: OpenAPIHono<AuthEnv>, document: () => Document) =>
  base.route('/', healthRoutes).route('/', docsRoutes(document))

/** Adds the routes of the platform that need one. */
export const platformRoutes = (open: ReturnType<typeof openRoutes>) =>
  open
    .route('/', healthReportRoutes)
    .route('/', eventRoutes)
    .route('/', scopeEventRoutes)
    .route('/', scopeRoutes)
    .route('/', socketRoutes)
    .route('/', pullRoutes)
    .route('/', timerRoutes)
    .route('/', artifactListRoutes)
    .route('/', artifactRegisterRoutes)
    .route('/', reflexRoutes)
    .route('/', artifactStateRoutes)
    .route('/', skillTestRoutes)
    .route('/', proposeSkillRoutes)
    .route('/', deadLetterRoutes)
    .route('/', waitingWorkRoutes)
    .route('/', keyRoutes)

/** Their types, for typed clients. `createApp` hides them: a declaration of them is 200 kB. */
export type PlatformApp = ReturnType<typeof platformRoutes>
