import { reflex } from 'reflex-agents'
import { inbox } from './agents/inbox.ts'
import { page, script } from './page.ts'

// The first agent whose pattern matches serves a scope; the built-in `prompted` serves the rest.
const worker = reflex({ agents: [inbox] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker

/** A page to try it: wrangler.toml sends its addresses here. */
const pages: Readonly<Record<string, () => Response>> = {
  '/try': () =>
    page({
      title: 'Support inbox',
      scope: 'inbox/support',
      event: { type: 'mail.received' },
      fields: [
        { name: 'from', label: 'From', value: 'ada@example.com' },
        { name: 'subject', label: 'Subject', value: 'Wrong invoice' },
        { name: 'text', label: 'Text', value: 'My invoice has the wrong address.' },
      ],
    }),
  '/try.js': script,
}

export default {
  ...worker.handlers,
  fetch: (request, env, context) => pages[new URL(request.url).pathname]?.() ?? worker.handlers.fetch(request, env, context),
} satisfies typeof worker.handlers
