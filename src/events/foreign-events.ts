import type { z } from 'zod'
import { type Event, eventType } from '../core/event.ts'
import { judgeEvent } from './parse-event.ts'

/** An event that no scope can take, and why. */
export type RefusedEvent = { event: Event; error: string }

/**
 * Events of another Worker's message, each with the fields that every event has. Those that cannot
 * be events are apart: a scope that they reach would fail to store them, and restart.
 */
export function completed(sent: readonly Event[], sent_at: number): { events: Event[]; refused: RefusedEvent[] } {
  const events: Event[] = []
  const refused: RefusedEvent[] = []
  for (const event of sent) {
    const { type } = event
    const union = eventType(type, {}).loose() as unknown as z.ZodType<Event>
    const judged = judgeEvent(event, { union, types: [type], defaults: { now: sent_at, source: 'queue' } })
    if (judged.ok) events.push({ ...judged.event, meta: { ...event.meta, ...judged.event.meta } })
    else refused.push({ event, error: `not an event: ${judged.errors.map(({ path, message }) => `${path}: ${message}`).join('; ')}` })
  }
  return { events, refused }
}
