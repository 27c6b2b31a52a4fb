import { env } from 'cloudflare:workers'
import type { Batch } from '../../src/features/learning/run/steps-of-run.ts'
import { call as act, history as historyOf } from '../unit/learning/histories.ts'
import { histories } from './histories.ts'
import { call } from './http.ts'
import { HOST } from './scope-with-remote-tools.ts'
import { runAlarm, until } from './scopes.ts'

export { act, histories }

const BEGUN = Date.now() - 3_600_000
/** Decisions of the last hour: a learner forgets those that its scope no longer keeps. */
export const history = (...of: Parameters<typeof historyOf>) => historyOf(...of).map((one) => ({ ...one, at: BEGUN + one.at }))

export const learnerOf = (scope: string) => env.LEARNER.getByName(scope)
const textOf = (index: number) => `${index % 3 === 0 ? 'disk full' : 'all fine'} on host ${index}`
/** Every third note is acted on, for as long as the scope is served. */
export const decided = (count: number, from = 0) =>
  history(from + count, (index) => [
    { type: 'test.note', text: textOf(index) },
    index % 3 === 0 ? act('act', { text: 'clean up' }) : [],
  ]).slice(from)

/** A tool of a scope's settings. */
export const readTicket = {
  name: 'http.tickets.read',
  description: 'Reads',
  method: 'GET',
  url: `https://${HOST}/{{ticket}}`,
  repeatable: true,
}

/** Every second turn reads a ticket and resolves it. */
export const resolved = (count: number, verb = 'resolve') =>
  history(count, (index) => {
    const said = `${index % 2 === 0 ? verb : 'show'} T-${index}`
    const [read, done] = [act('http.tickets.read', { ticket: `T-${index}` }), act('act_global', { text: `fix-${index}` })]
    const fixed = read.map((one) => ({ ...one, output: { fix: `fix-${index}` } }))
    return [{ type: 'test.note', text: said }, index % 2 === 0 ? [...fixed, ...done] : []]
  }).map((one) => ({ ...one, goal: { text: String(one.saw.event['text']), labels: [] }, usage: { ...one.usage, cost_usd: 0.125 } }))

export async function* batches(episodes: ReturnType<typeof decided>, after: number, size = 100): AsyncGenerator<Batch> {
  const rest = episodes.filter(({ log_seq }) => log_seq > (after || -1))
  for (let at = 0; at < rest.length; at += size) {
    const page = rest.slice(at, at + size)
    yield { episodes: page, skipped: [], watermark: page.at(-1)?.log_seq ?? 0 }
  }
}

export const learn = (scope: string, more: object = {}) => call('/v1/learn', { json: { scope, ...more } })
export const runOf = async (id: string) => (await call(`/v1/learn/runs/${id}`)).body

/** Runs the alarms of the learner until the run has ended. */
export async function ended(scope: string, id: string) {
  return until(async () => {
    await runAlarm(learnerOf(scope))
    const run = await runOf(id)
    return run.status === 'running' ? null : run
  }, 'the run has ended')
}
