import { setTimeout as wait } from 'node:timers/promises'
import type { ScopeState } from '../../src/contract/scope.ts'
import { connect, type Api } from '../lib/api.ts'
import { CliError } from '../lib/cli-error.ts'
import { followLog } from '../lib/follow-log.ts'
import type { LocalServer } from '../lib/local-server.ts'
import { waitingApprovals } from './approvals.ts'
import { deadLetters, FAILING_SCOPE, sendToFail } from './failing-scope.ts'
import type { DemoOptions } from './options.ts'
import type { Presenter } from './presenter.ts'
import type { AuthLog } from './read-log.ts'
import { reduce, sent } from './reduce.ts'
import { sendLines } from './send-lines.ts'
import { setReflex } from './set-reflex.ts'
import { setSkills } from './set-skills.ts'
import { tallyOf, type DemoState } from './state.ts'
import { summarise, type Summary, type Times } from './summary.ts'
import { waitSettled } from './wait-settled.ts'

type Demo = {
  server: LocalServer
  key: string
  log: AuthLog
  state: DemoState
  options: DemoOptions
  presenter: Presenter
  signal: AbortSignal
  started: number
}

const CATCH_UP_MS = 15_000
const NOTICE_MS = 500

/** Sends every line of the log to the server, follows its scopes and waits for the last outcome. */
export async function runDemo({ server, key, log, state, options, presenter, signal, started }: Demo): Promise<Summary> {
  const api = connect(server.url, key)
  const ready = performance.now()
  const fault = new AbortController()
  const work = AbortSignal.any([signal, fault.signal])
  const update = (next: DemoState) => presenter.state((state = next))
  const following = new AbortController()
  const followers = [...log.scopes, FAILING_SCOPE].map((scope) =>
    followLog(api, {
      scope,
      signal: AbortSignal.any([work, following.signal]),
      onEntry: (entry) => update(reduce(state, scope, entry)),
    }).catch((error: unknown) => fault.abort(error)),
  )
  void server.ended.then(() => fault.abort(serverEnded(server)))
  try {
    if (options.reflex) await setReflex(api, log.scopes, work)
    await setSkills(api, work)
    presenter.phase('sending')
    const [first, first_at] = [performance.now(), Date.now()]
    await sendLines(api, { events: log.events, speed: options.speed, signal: work, onSent: (lines) => update(sent(state, lines)) })
    const all_sent = performance.now()
    await sendToFail(api, work)
    presenter.phase('waiting')
    const scopes = await settled(api, { log, options, signal: work, state: () => state })
    const worked = Date.parse(state.last_ended_at ?? '') - first_at
    const finishing = performance.now()
    presenter.phase('finishing')
    const dead_letters = await deadLetters(api, work)
    const approvals = await waitingApprovals(api, work)
    const ended = performance.now()
    const spans = { start: ready - started, send: all_sent - first, work: worked, dead_letter: ended - finishing, all: ended - started }
    const times = rounded(spans)
    return summarise({ file: log.name, left_out: log.left_out, speed: options.speed, state, scopes, dead_letters, approvals, times })
  } catch (error) {
    // Often a request notices first that the server is gone; the error to report is the cause.
    await Promise.race([server.ended, wait(NOTICE_MS)])
    work.throwIfAborted()
    throw error
  } finally {
    following.abort()
    await Promise.all(followers)
  }
}

const rounded = ({ start, send, work, dead_letter, all }: Times): Times => ({
  start: Math.round(start),
  send: Math.round(send),
  work: Math.round(work),
  dead_letter: Math.round(dead_letter),
  all: Math.round(all),
})

type Settling = { log: AuthLog; options: DemoOptions; signal: AbortSignal; state: () => DemoState }

/** True if the scopes' counters and logs account for all outcomes. */
async function settled(api: Api, { log, options, signal, state }: Settling): Promise<ScopeState[]> {
  const expected = new Map(log.scopes.map((scope) => [scope, log.events.filter((event) => event.scope === scope).length]))
  const scopes = await waitSettled(api, { expected, timeout_s: options.timeout_s, signal })
  const until = performance.now() + CATCH_UP_MS
  const behind = () => scopes.filter(({ scope, last_seq }) => tallyOf(state(), scope).last_seq < last_seq)
  while (behind().length > 0) {
    if (performance.now() > until)
      throw new CliError(`The stream of ${behind()[0]?.scope} is behind its log after ${CATCH_UP_MS / 1000} s.`)
    await wait(20, undefined, { signal })
  }
  return scopes
}

function serverEnded(server: LocalServer): CliError {
  const last = server.log().trim().split('\n').slice(-15).join('\n')
  return new CliError(
    `The server ended by itself. Its last words:\n${last}`,
    'Try again; if it happens again, npm run dev shows all that the server says.',
  )
}
