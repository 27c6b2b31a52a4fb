import { reflex } from 'reflex-agents'
import { hello } from './agents/hello.ts'
import { page, script } from './page.ts'

// The first agent whose pattern matches serves a scope; the built-in `prompted` serves the rest.
const worker = reflex({ agents: [hello] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker

/** A page to try it: wrangler.toml sends its addresses here. */
const pages: Readonly<Record<string, () => Response>> = {
  '/try': () =>
    page({
      title: 'Chat',
      scope: 'chat/me',
      event: { type: 'ws.message', connection_id: 'me' },
      fields: [{ name: 'content', label: 'Message', value: 'I am Ada' }],
    }),
  '/try.js': script,
}

export default {
  ...worker.handlers,
  fetch: (request, env, context) => pages[new URL(request.url).pathname]?.() ?? worker.handlers.fetch(request, env, context),
} satisfies typeof worker.handlers
