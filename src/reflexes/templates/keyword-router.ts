import { z } from 'zod'
import { actionSchema } from '../../contract/action.ts'
import { defineTemplate, eventTypeName, fillPlaces, literal } from './define-template.ts'

const keyword = z
  .string()
  .max(128)
  .regex(/[\p{L}\p{N}]/u, 'a keyword has a letter or a digit')

export const keywordRouter = defineTemplate({
  name: 'keyword-router',
  description:
    'Takes the first route with a keyword that occurs in the text as a whole word, case-insensitive. ' +
    'In an action’s strings, {event.field} stands for a field of the event, {keyword} for the word found.',
  params: z.strictObject({
    event_type: eventTypeName.default('ws.message'),
    field: z.string().min(1).max(128).default('content'),
    routes: z
      .array(z.strictObject({ keywords: z.array(keyword).min(1).max(64), action: actionSchema }))
      .min(1)
      .max(64),
  }),
  code: (params) => `
const settings = ${literal(params)}

function reflex(context) {
  const { event } = context
  const text = event[settings.field]
  if (event.type !== settings.event_type || typeof text !== 'string') return null
  const words = inWords(text)
  for (const route of settings.routes) {
    const keyword = route.keywords.find((keyword) => words.includes(inWords(keyword)))
    if (keyword !== undefined) return fill(route.action, { ...context, keyword })
  }
  return null
}

/** Surrounds each word with spaces, so that parts of words do not match. */
function inWords(text) {
  return ' ' + text.toLowerCase().replace(/[^\\p{L}\\p{N}]+/gu, ' ').trim() + ' '
}

${fillPlaces}
`,
})
