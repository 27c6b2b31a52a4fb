import type { AgentRegistry } from '../../agent/registry.ts'
import { limits } from '../../base/limits.ts'
import type { EventInput } from '../../contract/event-record.ts'
import { described, plainSchema } from './plain-schema.ts'

const filled = new Set(['id', 'scope', 'source', 'timestamp', 'meta'])

export function eventShapes({ eventSchema }: Pick<AgentRegistry, 'eventSchema'>): Record<'EventInput' | 'CloudEvent', object> {
  const { oneOf = [] } = plainSchema(eventSchema)
  const types = oneOf.map(({ properties = {}, required = [] }) => ({
    type: 'object',
    properties: { ...properties, meta: { ...properties['meta'], required: [] } },
    required: required.filter((name) => !filled.has(name)),
  }))
  return {
    EventInput: { description: 'An event as it is sent. Fields common to all events are optional.', oneOf: types },
    CloudEvent: cloudEvent,
  }
}

const text = { type: 'string' }
const cloudEvent = {
  type: 'object',
  description: 'CloudEvents 1.0, structured.',
  properties: {
    specversion: { const: '1.0' },
    id: text,
    source: text,
    type: text,
    subject: { ...text, description: 'The scope.' },
    time: { ...text, format: 'date-time', description: 'The timestamp.' },
    data: { type: 'object', description: 'Its fields become those of the type.' },
  },
  required: ['specversion', 'id', 'source', 'type'],
}

const example = { type: 'ws.message', connection_id: 'alice', content: 'hello' }
const cloudExample = {
  specversion: '1.0',
  id: 'a-1',
  source: '/chat',
  type: 'ws.message',
  subject: 'default',
  data: { connection_id: 'alice', content: 'hello' },
}

/** Documents the body of a route that accepts events; readEvents parses and validates it. */
export function eventBody() {
  const shape = (name: string) => ({ $ref: `#/components/schemas/${name}` })
  const batch = (name: string) => ({ type: 'array', minItems: 1, maxItems: limits.events_per_request, items: shape(name) })
  const schema = (plain: object) => described<EventInput | EventInput[]>(plain)
  return {
    required: true,
    description: `One event, or up to ${limits.events_per_request}; at most 1 MiB in total and 100 kB each. If one is invalid, none is accepted. With the header ce-specversion, the body is the data of one CloudEvent (binary mode).`,
    content: {
      'application/json': { schema: schema({ anyOf: [shape('EventInput'), batch('EventInput')] }), example },
      'application/x-ndjson': {
        schema: schema({ type: 'string', description: 'One event per line.' }),
        example: `${JSON.stringify(example)}\n${JSON.stringify(example)}\n`,
      },
      'application/cloudevents+json': { schema: schema(shape('CloudEvent')), example: cloudExample },
      'application/cloudevents-batch+json': { schema: schema(batch('CloudEvent')), example: [cloudExample] },
    },
  }
}
