import { reflex } from 'reflex-agents'
import { hello } from './agents/hello.ts'
import { tryPage } from './page.ts'
import form from './try.json'

// The first agent whose pattern matches serves a scope; the built-in `prompted` serves the rest.
const worker = reflex({ agents: [hello] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker

// A page sends the first event of try.json: wrangler.toml leaves its addresses to the Worker.
export default {
  ...worker.handlers,
  fetch: (request, env, context) => tryPage(request, form) ?? worker.handlers.fetch(request, env, context),
} satisfies typeof worker.handlers
