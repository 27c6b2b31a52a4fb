import { reflex } from 'reflex-agents'
import { orderPartition, region } from './agents/orders.ts'
import { page, script } from './page.ts'
import form from './try.json'

// The first agent whose pattern matches serves a scope; the built-in `prompted` serves the rest.
const worker = reflex({ agents: [orderPartition, region] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker

/** A page to try it, with the first event of try.json: wrangler.toml sends its addresses here. */
const pages: Readonly<Record<string, () => Response>> = { '/try': () => page(form), '/try.js': script }

export default {
  ...worker.handlers,
  fetch: (request, env, context) => pages[new URL(request.url).pathname]?.() ?? worker.handlers.fetch(request, env, context),
} satisfies typeof worker.handlers
