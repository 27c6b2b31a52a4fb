import { eventSchema, eventTypes } from '../agents/registry.ts'
import type { Env } from '../bindings.ts'
import type { Principal } from '../auth/principal.ts'
import type { EventRules } from '../protocol/parse-event.ts'
import { deploymentHider } from '../protocol/secrets.ts'

/** How the events of a caller are read. `scope`: where the path decides it. */
export const eventRules = (env: Env, { name }: Principal, scope?: string): EventRules => ({
  union: eventSchema,
  types: eventTypes,
  defaults: { now: Date.now(), source: name },
  secrets: deploymentHider(env),
  ...(scope === undefined ? {} : { scope }),
})
