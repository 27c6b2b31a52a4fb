import type { EventOf, webSocketMessage } from '../../src/core/event.ts'

type Message = EventOf<typeof webSocketMessage>

let built = 0

/** A valid event, a `ws.message` unless told otherwise, with an id of its own. */
export function buildEvent<const Overrides extends object = object>(overrides?: Overrides): Omit<Message, keyof Overrides> & Overrides {
  built += 1
  const message: Message = {
    id: `event-${built}`,
    type: 'ws.message',
    scope: 'default',
    source: 'ws:alice',
    timestamp: '2026-11-21T05:00:00.000Z',
    meta: { trace_id: '0123456789abcdef0123456789abcdef', correlation_id: null, causation_id: null },
    connection_id: 'alice',
    content: 'hello',
  }
  return Object.assign(message, overrides)
}
