import { FAILING_SCOPE } from '../../../cli/demo/failing-scope.ts'
import { readAuthLog } from '../../../cli/demo/read-log.ts'
import { runDemo } from '../../../cli/demo/run-demo.ts'
import { initialState } from '../../../cli/demo/state.ts'
import type { Summary } from '../../../cli/demo/summary.ts'
import type { LocalServer } from '../../../cli/lib/local-server.ts'
import { ADMIN_KEY } from '../api.ts'

/**
 * The state that `npm run demo` leaves, without the scope that learns: two hosts under attack,
 * blocks by a reflex and by turns, an incident, a network block that waits for approval, and a dead
 * letter.
 */
export async function seedDemo(server: LocalServer): Promise<Summary> {
  const log = await readAuthLog({ file: null, limit: 100_000 }, Date.now())
  const state = initialState({ total: log.events.length, scopes: log.scopes, failing: FAILING_SCOPE, attempts: log.attempts })
  const presenter = { state: () => {}, phase: () => {}, close: () => {} }
  const options = {
    file: null,
    limit: 100_000,
    speed: null,
    timeout_s: 120,
    reflex: true,
    learning: false,
    keep: false,
    json: true,
    help: false,
  }
  const { signal } = new AbortController()
  return runDemo({ server, key: ADMIN_KEY, log, state, options, presenter, signal, started: performance.now() })
}
