import { z } from 'zod'
import { defineTemplate, eventTypeName, literal, windowName } from './define-template.ts'

export const rateLimiter = defineTemplate({
  name: 'rate-limiter',
  description:
    'Keeps a source that sends too much from reaching the model: what exceeds its limit is taken out of the context. The first event too many is ' +
    'answered, the others only counted in scratch.limited.',
  params: z.strictObject({
    event_type: eventTypeName.optional(),
    window: windowName.default('10s'),
    limit: z.int().min(1),
    reply: z.string().min(1).max(1000).default('You are sending too fast; the rest is ignored for now.'),
  }),
  code: (params) => `
const settings = ${literal(params)}

function reflex(context) {
  const { event, window, scratch } = context
  if (settings.event_type && event.type !== settings.event_type) return null
  const count = window[settings.window].by_source[event.source] || 0
  if (count <= settings.limit) return null
  if (count === settings.limit + 1) return { action_type: 'reply', content: settings.reply, consume: true }
  const limited = typeof scratch.limited === 'number' ? scratch.limited : 0
  return { action_type: 'set_scratch', key: 'limited', value: limited + 1, consume: true }
}
`,
})
