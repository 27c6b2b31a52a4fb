import { generateText, isStepCount } from 'ai'
import { defineAgent, defineTool, eventType, typeFilter } from 'reflex-agents'
import { z } from 'zod'

const QUEUES = ['billing', 'shipping', 'technical', 'other'] as const

export const mailReceived = eventType('mail.received', { from: z.string(), subject: z.string().max(300), text: z.string().max(20_000) })

/** The stand-in goes by these words in place of a model, until REFLEX_MODEL names one. */
const WORDS: Partial<Record<(typeof QUEUES)[number], RegExp>> = {
  billing: /invoice|refund|pay/i,
  shipping: /parcel|delivery|order/i,
  technical: /error|crash/i,
}
const queueOf = (mail: string) => QUEUES.find((queue) => WORDS[queue]?.test(mail)) ?? 'other'

/** Sorts mails into queues. What it decides again and again is learned, and then needs no model. */
export const inbox = defineAgent({
  name: 'inbox',
  scopes: ['inbox/*'],
  events: [mailReceived],
  filters: [typeFilter('mail.received')],
  settings: { turn_limit: { events: 10, bytes: 100_000 } }, // the others wait
  tools: {
    assign: defineTool({
      description: 'Puts a mail into a queue',
      input: z.object({ mail: z.string(), queue: z.enum(QUEUES) }),
      idempotence_key: ({ mail }) => `assign:${mail}`,
      // None: a mail of this inbox goes into a queue of the list, wherever the two names come from.
      destinations: [],
      // Call your help desk here, with `fetch` of the second argument.
      execute: async ({ queue }) => ({ queue }),
    }),
  },
  offline: [
    {
      name: 'sort by words',
      answer({ text, messages }) {
        const sorted = messages.filter(({ role }) => role === 'tool').length
        const [, ...mails] = text.split(/^Mail /m)
        const mail = mails[sorted]
        if (mail === undefined) return { text: `Sorted ${sorted} of ${mails.length}.` }
        return { tool: { name: 'assign', input: { mail: mail.split(' ', 1)[0], queue: queueOf(mail) } } }
      },
    },
  ],
  async trigger(context, deps) {
    const mails = context.ofType('mail.received').map(({ id, from, subject, text }) => `Mail ${id} from ${from}: ${subject}\n${text}`)
    const { text } = await generateText({
      model: deps.model,
      instructions: `Put each mail into one of the queues ${QUEUES.join(', ')}, by the tool assign.`,
      prompt: mails.join('\n\n'),
      tools: deps.tools,
      stopWhen: isStepCount(mails.length + 2), // one for each mail, the last words, and a mistake
      abortSignal: deps.signal,
      maxRetries: 0, // a turn that fails is retried as a whole
    })
    return { text }
  },
})
