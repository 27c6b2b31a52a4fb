import { eventSchema } from '../agents/registry.ts'
import { limits } from '../protocol/limits.ts'
import { described, plainSchema } from './plain-schema.ts'

/** What a sender may leave out. */
const filled = new Set(['id', 'scope', 'source', 'timestamp', 'meta'])

/** An event as it may be sent: only its type and the type's own required fields must be. */
export type EventInput = { type: string; id?: string; scope?: string; source?: string; timestamp?: string; meta?: Partial<Meta>; [field: string]: unknown }
type Meta = { trace_id: string; correlation_id: string | null; causation_id: string | null }

type Described = { type: 'object'; properties: Record<string, object>; required: string[] }

/** Each known type, as OpenAPI describes it. */
export function eventInputs(): Described[] {
  const { oneOf = [] } = plainSchema(eventSchema)
  return (oneOf as Described[]).map(({ properties, required }) => ({
    type: 'object',
    properties: { ...properties, meta: { ...properties['meta'], required: [] } },
    required: required.filter((name) => !filled.has(name)),
  }))
}

const example = { type: 'ws.message', connection_id: 'alice', content: 'hello' }
const cloudExample = { specversion: '1.0', id: 'a-1', source: '/chat', type: 'ws.message', subject: 'default', data: { connection_id: 'alice', content: 'hello' } }
const cloudEvent = {
  type: 'object',
  required: ['specversion', 'id', 'source', 'type'],
  description: '`subject` is the scope, `time` the timestamp; the fields of `data` become those of the type.',
}

/** The body of a route that takes events. It is described only: readEvents reads it, in all five forms, and names each bad event. */
export function eventBody() {
  const input = { oneOf: eventInputs() }
  const batch = (items: object) => ({ type: 'array', minItems: 1, maxItems: limits.events_per_request, items })
  return {
    required: true,
    description: `One event, or up to ${limits.events_per_request}; at most 1 MiB in all and 100 kB each. If one is bad, none is accepted.`,
    content: {
      'application/json': { schema: described<EventInput | EventInput[]>({ anyOf: [input, batch(input)] }), example },
      'application/x-ndjson': {
        schema: described<EventInput | EventInput[]>({ type: 'string', description: 'One event a line.' }),
        example: `${JSON.stringify(example)}\n${JSON.stringify(example)}\n`,
      },
      'application/cloudevents+json': { schema: described<EventInput | EventInput[]>(cloudEvent), example: cloudExample },
      'application/cloudevents-batch+json': { schema: described<EventInput | EventInput[]>(batch(cloudEvent)), example: [cloudExample] },
    },
  }
}
