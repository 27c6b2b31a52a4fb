import type { Context } from 'hono'
import type { AuthEnv } from '../auth/middleware.ts'
import type { EventRules } from '../../events/parse-event.ts'
import { deploymentHider } from '../../base/secrets.ts'

/** How the events of a caller are read. `scope`: where the path decides it. */
export const eventRules = ({ env, var: { principal, agents } }: Pick<Context<AuthEnv>, 'env' | 'var'>, scope?: string): EventRules => ({
  union: agents.eventSchema,
  types: agents.eventTypes,
  defaults: { now: Date.now(), source: principal.name },
  secrets: deploymentHider(env),
  ...(scope === undefined ? {} : { scope }),
})
