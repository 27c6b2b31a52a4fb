import type { Event } from '../core/event.ts'
import type { SecretHider } from '../base/secrets.ts'

/**
 * The event without the secrets in its texts. What it is found by stays: events whose id, scope or trace id
 * holds a secret are refused when they are parsed.
 */
export function hideInEvent(event: Event, hider: SecretHider): Event {
  const { id, type, scope, meta } = event
  const hidden = hider.value(event)
  if (hidden === event) return event
  return { ...hidden, id, type, scope, meta: { ...hidden.meta, trace_id: meta.trace_id } }
}
