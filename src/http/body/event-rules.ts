import { eventSchema, eventTypes } from '../../agents/registry.ts'
import type { Env } from '../../env.ts'
import type { Principal } from '../auth/principal.ts'
import type { EventRules } from '../../events/parse-event.ts'
import { deploymentHider } from '../../contract/secrets.ts'

/** How the events of a caller are read. `scope`: where the path decides it. */
export const eventRules = (env: Env, { name }: Principal, scope?: string): EventRules => ({
  union: eventSchema,
  types: eventTypes,
  defaults: { now: Date.now(), source: name },
  secrets: deploymentHider(env),
  ...(scope === undefined ? {} : { scope }),
})
