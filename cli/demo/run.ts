import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { Page } from '../../src/contract/scope-api.ts'
import type { ScopeState } from '../../src/contract/scope.ts'
import { type Api, connect } from '../lib/api.ts'
import { batches } from '../lib/batches.ts'
import { CliError } from '../lib/cli-error.ts'
import { wholeLog } from '../lib/follow-log.ts'
import type { LocalServer } from '../lib/local-server.ts'
import { packageFolder } from '../lib/package.ts'
import { count, counted } from '../lib/text.ts'
import { ask, requestOf } from '../reflex/ask.ts'
import { configure, state } from '../../src/contract/operations/scopes.ts'
import { type AuthLog, readAuthLog } from './read-log.ts'
import { type DemoDeadLetter, summarise, type DemoSummary, type WaitingApproval } from './summary.ts'

const REFLEX = 'ssh-brute-force'
export const REFLEX_FILE = `examples/reflexes/${REFLEX}.js`
export const SKILL_FOLDER = 'examples/skills/'
const SKILL_FILES = ['incident-open.json', 'network-block.json']
export const FAILING_SCOPE = 'demo/failing'
/**
 * Divides by the number of requests, which is 0: each evaluation fails, as a user's mistake would.
 */
export const FAILING_CONDITION = '100 * by_type["ws.message"] / by_type["http.request"] > 50'
/** The default less one, which saves the demo a second. */
export const FAILING_ATTEMPTS = 2
const POLL_MS = 100
/** The outbox of a scope replicates to D1 within about a second. */
const MOST_REPLICATION_MS = 15_000

type Demo = {
  server: Pick<LocalServer, 'url'>
  key: string
  log: AuthLog
  speed: number | null
  timeout_s: number
  reflex: boolean
  say: (text: string) => void
  signal: AbortSignal
  started: number
}

/** Sends the log to the server, waits for every outcome, and reads what its scopes have logged. */
export async function runDemo({ server, key, log, speed, timeout_s, reflex, say, signal, started }: Demo): Promise<DemoSummary> {
  const api = connect(server.url, key)
  const ready = performance.now()
  if (reflex) await setReflex(api, log.scopes, signal)
  await setSkills(api, signal)
  const first = performance.now()
  const first_at = Date.now()
  // Its second attempt comes a second later, while the lines are sent.
  await sendToFail(api, signal)
  await sendLines(api, { log, speed, say, signal })
  const all_sent = performance.now()
  const scopes = await settled(api, { log, timeout_s, say, signal })
  const outcomes = performance.now()
  say('every line has its outcome; looking for the dead letter')
  const dead_letters = await deadLetters(api, signal)
  const { items: approvals } = await api.json<Page<WaitingApproval>>('/v1/approvals?status=pending', { signal })
  const logs = new Map<string, LogEntry[]>()
  for (const scope of log.scopes) logs.set(scope, await wholeLog(api, scope, signal))
  const ended = performance.now()
  const times = { start: ready - started, send: all_sent - first, dead_letter: ended - outcomes, all: ended - started }
  return summarise({ log, logs, speed, scopes, dead_letters, approvals, first_at, times })
}

/**
 * Leaves the state of `npm run demo` on a server, without the scope that learns and without output:
 * two hosts under attack, blocks by a reflex and by turns, an incident, a network block that waits
 * for approval, and a dead letter.
 */
export async function leaveDemo(server: Demo['server'], key: string): Promise<DemoSummary> {
  const log = await readAuthLog({ file: null, limit: 100_000 }, Date.now())
  const rest = { speed: null, timeout_s: 120, reflex: true, say: () => {}, signal: new AbortController().signal }
  return runDemo({ server, key, log, ...rest, started: performance.now() })
}

/** Registers the reflex, whose dry run needs a log line, and sets it as the chain of each scope. */
async function setReflex(api: Api, scopes: readonly string[], signal: AbortSignal): Promise<void> {
  const asking = { api: () => api, signal }
  const line = 'Mar  9 06:45:18 web-1 sshd[4711]: Failed password for root from 203.0.113.7 port 4242 ssh2'
  const sample = { type: 'log.line', host: 'web-1', line }
  const description = 'Blocks a public address that guesses passwords.'
  await api.json('/v1/reflexes', { method: 'POST', body: { id: REFLEX, code: await ours(REFLEX_FILE), description, sample }, signal })
  for (const scope of scopes) await ask(asking, configure, { path: [scope], fields: { reflexes: [{ id: REFLEX }] } })
}

/** Registers the skills and activates them: otherwise the gate would ask for their promotion. */
async function setSkills(api: Api, signal: AbortSignal): Promise<void> {
  for (const file of SKILL_FILES) {
    const manifest: unknown = JSON.parse(await ours(SKILL_FOLDER + file))
    const { id } = await api.json<{ id: string }>('/v1/skills', { method: 'POST', body: manifest, signal })
    await api.json(`/v1/skills/${id}/state`, { method: 'POST', body: { state: 'active' }, signal })
  }
}

const ours = (file: string): Promise<string> => readFile(join(packageFolder, file), 'utf8')

/** Creates a scope whose condition cannot be evaluated, and sends it one event. */
async function sendToFail(api: Api, signal: AbortSignal): Promise<void> {
  const asking = { api: () => api, signal }
  const instructions = 'Say whether messages arrive that nobody asked for.'
  const settings = { instructions, when: FAILING_CONDITION, max_attempts: FAILING_ATTEMPTS }
  await ask(asking, configure, { path: [FAILING_SCOPE], fields: settings })
  const event = { id: 'fails-on-purpose', type: 'ws.message', source: 'demo', connection_id: 'demo', content: 'hello' }
  await api.json('/v1/events', { method: 'POST', body: { ...event, scope: FAILING_SCOPE }, signal })
}

type Sending = Pick<Demo, 'log' | 'speed' | 'say' | 'signal'>

/** Each batch is sent after the previous one was accepted: scopes get lines in the log's order. */
async function sendLines(api: Api, { log: { events }, speed, say, signal }: Sending): Promise<void> {
  const began = performance.now()
  let sent = 0
  // About ten batches a second, so that a slow rate stays even.
  for await (const batch of batches(events, { most: speed === null ? undefined : Math.ceil(speed / 10) })) {
    if (speed !== null) await wait(Math.max(0, began + (sent / speed) * 1000 - performance.now()), undefined, { signal })
    await api.json('/v1/events', { method: 'POST', body: batch, signal })
    sent += batch.length
    say(`${count(sent)} of ${counted(events.length, 'line')} sent`)
  }
}

type Settling = Pick<Demo, 'log' | 'timeout_s' | 'say' | 'signal'>

/** Polls the scopes until every line has its one outcome. Throws if nothing moves for too long. */
async function settled(api: Api, { log, timeout_s, say, signal }: Settling): Promise<ScopeState[]> {
  const expected = (scope: string) => log.events.filter((event) => event.scope === scope).length
  for (let [moved_at, last] = [performance.now(), '']; ; await wait(POLL_MS, undefined, { signal })) {
    const states = await Promise.all(
      log.scopes.map((scope) => api.json<ScopeState>(requestOf(state, { path: [scope] }).address, { signal })),
    )
    const open = states.filter((one) => !isSettled(one, expected(one.scope)))
    if (open.length === 0) return states
    say(`waiting for the outcomes of ${counted(open.length, 'scope')}`)
    const now = states.map(({ last_seq }) => last_seq).join(' ')
    if (now !== last) [moved_at, last] = [performance.now(), now]
    if (performance.now() - moved_at < timeout_s * 1000) continue
    const lines = open.map(({ scope, counters, inbox }) => {
      const of = `${count(counters.accepted)} of ${count(expected(scope))} lines accepted`
      return `  ${scope}: ${of}; ${inbox.pending} pending, ${inbox.processing} processing, ${inbox.delayed} waiting for a retry`
    })
    throw new CliError(
      `Nothing has moved for ${timeout_s} s, and not every line has its outcome:\n${lines.slice(0, 5).join('\n')}`,
      'Events that wait for a retry may need minutes: --timeout S waits longer. npm run dev and /v1/scopes/SCOPE/log show why.',
    )
  }
}

export function isSettled({ counters, turn }: Pick<ScopeState, 'counters' | 'turn'>, expected: number): boolean {
  const { accepted, completed, ignored, dead_lettered, cancelled } = counters
  return accepted === expected && completed + ignored + dead_lettered + cancelled === accepted && turn === null
}

/** The dead letters of the scope that fails, once D1 has them. */
async function deadLetters(api: Api, signal: AbortSignal): Promise<DemoDeadLetter[]> {
  const asking = { api: () => api, signal }
  for (const until = performance.now() + MOST_REPLICATION_MS; ; await wait(POLL_MS, undefined, { signal })) {
    const { items } = await api.json<Page<DemoDeadLetter>>(`/v1/dlq?scope=${encodeURIComponent(FAILING_SCOPE)}`, { signal })
    if (items.length > 0) return items
    if (performance.now() < until) continue
    const { inbox } = await ask(asking, state, { path: [FAILING_SCOPE] })
    const waited = `after ${MOST_REPLICATION_MS / 1000} s: ${JSON.stringify(inbox)}`
    throw new CliError(`The event that fails on purpose is not among the dead letters ${waited}`)
  }
}
