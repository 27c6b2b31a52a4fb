import { reflex } from 'reflex-agents'
import { api } from './agents/api.ts'
import { page, script } from './page.ts'

// The first agent whose pattern matches serves a scope; the built-in `prompted` serves the rest.
const worker = reflex({ agents: [api] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker

/** A page to try it: wrangler.toml sends its addresses here. */
const pages: Readonly<Record<string, () => Response>> = {
  '/try': () =>
    page({
      title: 'Orders',
      scope: 'orders/eu',
      event: { type: 'order.placed' },
      fields: [
        { name: 'order', label: 'Order', value: 'A-1001' },
        { name: 'item', label: 'Item', value: 'chair' },
      ],
    }),
  '/try.js': script,
}

export default {
  ...worker.handlers,
  fetch: (request, env, context) => pages[new URL(request.url).pathname]?.() ?? worker.handlers.fetch(request, env, context),
} satisfies typeof worker.handlers
