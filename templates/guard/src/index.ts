import { reflex } from 'reflex-agents'
import { guard } from './agents/guard.ts'
import { page, script } from './page.ts'

// The first agent whose pattern matches serves a scope; the built-in `prompted` serves the rest.
const worker = reflex({ agents: [guard] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker

/** A page to try it: wrangler.toml sends its addresses here. */
const pages: Readonly<Record<string, () => Response>> = {
  '/try': () =>
    page({
      title: 'Guard of a log',
      scope: 'guard/web-1',
      event: { type: 'log.line' },
      fields: [{ name: 'line', label: 'Line', value: 'Failed password for root from 203.0.113.9 port 4242 ssh2' }],
    }),
  '/try.js': script,
}

export default {
  ...worker.handlers,
  fetch: (request, env, context) => pages[new URL(request.url).pathname]?.() ?? worker.handlers.fetch(request, env, context),
} satisfies typeof worker.handlers
