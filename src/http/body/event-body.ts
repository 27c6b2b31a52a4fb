import type { AgentRegistry } from '../../agent/registry.ts'
import { plainSchema } from '../../contract/plain-schema.ts'

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
