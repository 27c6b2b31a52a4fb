import { z } from 'zod'
import { actionSchema } from '../../contract/action.ts'
import { defineTemplate, eventTypeName, fillPlaces, literal, windowName } from './define-template.ts'

export const thresholdInWindow = defineTemplate({
  name: 'threshold-in-window',
  description:
    'Acts when events of a type, or of the current event’s source, reach a number within 10 s, 1 min or 10 min, then pauses for a while. ' +
    'In the action’s strings, {event.field} stands for a field of the event, {count} for the number.',
  params: z.strictObject({
    event_type: eventTypeName,
    count_by: z.enum(['type', 'source']).default('type'),
    window: windowName.default('1m'),
    at_least: z.int().min(1),
    cooldown_s: z.number().min(0).default(60),
    action: actionSchema,
  }),
  code: (params) => `
const settings = ${literal(params)}

function reflex(context) {
  const { event, window, recent_actions } = context
  if (event.type !== settings.event_type) return null
  const counts = window[settings.window]
  const count = (settings.count_by === 'type' ? counts.by_type[event.type] : counts.by_source[event.source]) || 0
  if (count < settings.at_least) return null
  const last = recent_actions.at(-1)
  if (last && last.seconds_ago < settings.cooldown_s) return null
  return fill(settings.action, { ...context, count })
}

${fillPlaces}
`,
})
