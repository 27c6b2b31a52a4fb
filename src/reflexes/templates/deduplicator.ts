import { z } from 'zod'
import { defineTemplate, eventTypeName, literal } from './define-template.ts'

export const deduplicator = defineTemplate({
  name: 'deduplicator',
  description:
    'Takes an event out of the context that says what one of the last 10 said already: the same type and source, and the same in the fields named. ' +
    'It counts them in scratch.duplicates.',
  params: z.strictObject({
    event_type: eventTypeName,
    fields: z.array(z.string().min(1).max(128)).min(1).max(16),
    any_source: z.boolean().default(false),
  }),
  code: (params) => `
const settings = ${literal(params)}

function reflex(context) {
  const { event, recent_events, scratch } = context
  if (event.type !== settings.event_type) return null
  const earlier = recent_events.find((other) => other.id !== event.id && saysTheSame(other, event))
  if (!earlier) return null
  const duplicates = typeof scratch.duplicates === 'number' ? scratch.duplicates : 0
  return { action_type: 'set_scratch', key: 'duplicates', value: duplicates + 1, consume: true }
}

function saysTheSame(one, other) {
  if (one.type !== other.type || (!settings.any_source && one.source !== other.source)) return false
  return settings.fields.every((field) => JSON.stringify(one[field]) === JSON.stringify(other[field]))
}
`,
})
