import { eventSchema, eventTypes } from '../agents/registry.ts'
import type { Principal } from '../auth/principal.ts'
import type { EventRules } from '../protocol/parse-event.ts'

/** How the events of a caller are read. `scope`: where the path decides it. */
export const eventRules = ({ name }: Principal, scope?: string): EventRules => ({
  union: eventSchema,
  types: eventTypes,
  defaults: { now: Date.now(), source: name },
  ...(scope === undefined ? {} : { scope }),
})
