import { generateText } from 'ai'
import { defineAgent, defineTool, eventType, typeFilter } from 'reflex-agents'
import { z } from 'zod'

declare module 'reflex-agents' {
  interface Env {
    EMAIL?: SendEmail
  }
}

const address = z.string().max(254)
const ids = z.string().max(8000)

/** `to`: our address. `references`: the ids of the conversation's mails, this one's the last. */
export const emailReceived = eventType('email.received', {
  from: address,
  to: address,
  subject: z.string().max(300),
  text: z.string().max(20_000),
  message_id: ids,
  references: ids,
})

/** Answers mails. Each conversation of a sender is a scope of its own. */
export const email = defineAgent({
  name: 'email',
  scopes: ['email/*', 'email-unverified/*'],
  events: [emailReceived],
  filters: [typeFilter('email.received')],
  tools: {
    email_reply: defineTool({
      description: 'Answers the sender of the conversation',
      input: z.object({ from: address, subject: z.string().max(310), text: z.string().max(20_000), in_reply_to: ids, references: ids }),
      // The scope says who gets it: no text of a mail can send it to somebody else.
      destinations: [],
      async execute({ from, subject, text, in_reply_to, references }, { env, scope }) {
        if (!env.EMAIL) throw new Error('The binding EMAIL is missing: wrangler.toml needs [[send_email]] with name = "EMAIL".')
        const [, to = ''] = scope.split('/')
        const headers = { ...(in_reply_to !== '' && { 'In-Reply-To': in_reply_to }), ...(references !== '' && { References: references }) }
        await env.EMAIL.send({ from, to: decodeURIComponent(to.replaceAll(':', '%')), subject, text, headers })
        return { sent: true }
      },
    }),
  },
  async trigger(context, deps) {
    const mails = context.ofType('email.received')
    const newest = mails.at(-1)
    // Nobody knows who wrote an unverified mail: it is kept for people, and gets no answer.
    if (!newest || !context.scope.startsWith('email/')) return null
    const prompt = mails.map(({ subject, text }) => `Subject: ${subject}\n\n${text}`).join('\n\n')
    const { text } = await generateText({ model: deps.model, prompt, abortSignal: deps.signal, maxRetries: 0 })
    if (text === '') return null
    const { to: from, message_id: in_reply_to, references } = newest
    const subject = /^re:/i.test(newest.subject) ? newest.subject : `Re: ${newest.subject}`
    await deps.call('email_reply', { from, subject, text, in_reply_to, references })
    return { text }
  },
})
