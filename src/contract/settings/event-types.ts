import { z } from 'zod'
import { objectSchema } from './json-schema.ts'
import { setting } from '../setting.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Fields that every event has. */
export const envelope = ['id', 'type', 'scope', 'source', 'timestamp', 'meta'] as const

const schemaOfType = objectSchema.superRefine((schema, context) => {
  const properties = Object.keys((schema['properties'] ?? {}) as object)
  const taken = envelope.find((field) => properties.includes(field))
  if (taken === undefined) return
  context.addIssue({ code: 'custom', message: `properties.${taken}: every event has this field; name only the fields of the type` })
})

export const eventTypes = setting(
  z
    .record(z.string(), schemaOfType)
    .refine(
      (types) => Object.keys(types).every((type) => NAME.test(type)),
      'a type is named by 1 to 128 characters of A-Z a-z 0-9 . _ -, of which the first is a letter or digit',
    )
    .refine((types) => Object.keys(types).length <= 50, 'must be at most 50 types'),
  "Event types of this scope beside those of the deployment: each type's name, with a JSON Schema of its own fields. An event that does not fit is refused, with " +
    'the path of each field. The first ten flaws are named. An event that takes more than 50,000 comparisons, such as a long list of many alternatives, is refused. Not supported: references (`$ref`) and patterns.',
  {
    'order.placed': {
      type: 'object',
      properties: { order: { type: 'string' }, total: { type: 'number', minimum: 0 } },
      required: ['order', 'total'],
    },
  },
)
