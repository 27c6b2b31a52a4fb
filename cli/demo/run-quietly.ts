import type { LocalServer } from '../lib/local-server.ts'
import { FAILING_SCOPE } from './failing-scope.ts'
import { readAuthLog } from './read-log.ts'
import { runDemo } from './run-demo.ts'
import { initialState } from './state.ts'
import type { Summary } from './summary.ts'

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

/**
 * Leaves the state of `npm run demo` on a server, without the scope that learns and without output:
 * two hosts under attack, blocks by a reflex and by turns, an incident, a network block that waits
 * for approval, and a dead letter.
 */
export async function runQuietly(server: LocalServer, key: string): Promise<Summary> {
  const log = await readAuthLog(options, Date.now())
  const state = initialState({ total: log.events.length, scopes: log.scopes, failing: FAILING_SCOPE, attempts: log.attempts })
  const presenter = { state: () => {}, phase: () => {}, close: () => {} }
  const { signal } = new AbortController()
  return runDemo({ server, key, log, state, options, presenter, signal, started: performance.now() })
}
