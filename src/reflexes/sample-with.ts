import { sampleContext, type ReflexContext } from './reflex-context.ts'

/** The sample context as it would be for an event with these fields: a reflex for a type of its own can be tried on that. */
export function sampleWith(fields: Record<string, unknown>): ReflexContext {
  const event = { ...sampleContext.event, ...fields }
  const counts = { total: 1, by_type: { [event.type]: 1 }, by_source: { [event.source]: 1 } }
  return { ...sampleContext, event, recent_events: [event], window: { '10s': counts, '1m': counts, '10m': counts } }
}
