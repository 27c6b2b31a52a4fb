import { setTimeout as wait } from 'node:timers/promises'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { z } from 'zod'
import type { learnRun, StartedRun } from '../../src/features/learning/contract/runs.ts'
import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import type { Api } from '../lib/api.ts'
import { CliError } from '../lib/cli-error.ts'
import { wholeLog } from '../lib/follow-log.ts'
import type { Mark } from './curve.ts'

/** A scope that learns while it is served. `learn_after`: numbers of events. */
export type Lesson = {
  scope: string
  settings: SettingsPatch
  events: readonly { id: string }[]
  learn_after: readonly number[]
}
/** The sender of all events of a lesson, for `learning.trusted_sources`. */
export const LESSON_SENDER = 'key:admin'
export type LearnRun = z.infer<typeof learnRun>
export type Progress = { sent: number; of: number; doing: 'sending' | 'learning' }
/** `calls[i]`: model calls about event i, audits included. */
export type Taught = { calls: number[]; by_reflex: number; marks: Mark[]; runs: LearnRun[] }
type Teaching = { signal: AbortSignal; onProgress: (progress: Progress) => void }

const POLL_MS = 100
const MOST_QUIET_MS = 15_000

/** Sends each event, waits for its outcome, and starts a run of learning where one is due. */
export async function teach(api: Api, lesson: Lesson, { signal, onProgress }: Teaching): Promise<Taught> {
  const path = `/v1/scopes/${encodeURIComponent(lesson.scope)}`
  await api.json(path, { method: 'PATCH', body: lesson.settings, signal })
  const runs: LearnRun[] = []
  for (const [index, event] of lesson.events.entries()) {
    await api.json(`${path}/events?wait=outcome`, { method: 'POST', body: event, signal })
    const sent = index + 1
    onProgress({ sent, of: lesson.events.length, doing: 'sending' })
    if (!lesson.learn_after.includes(sent)) continue
    onProgress({ sent, of: lesson.events.length, doing: 'learning' })
    runs.push(await learn(api, lesson, signal))
  }
  await quiet(api, path, signal)
  // Not followed meanwhile: each entry would pass through the server's proxies by itself.
  return { ...counted(await wholeLog(api, lesson.scope, signal), lesson), runs }
}

export async function learn(api: Api, { scope }: Pick<Lesson, 'scope'>, signal: AbortSignal): Promise<LearnRun> {
  const { run_id } = await api.json<StartedRun>('/v1/learn', { method: 'POST', body: { scope }, signal })
  for (;;) {
    const run = await api.json<LearnRun>(`/v1/learn/runs/${run_id}`, { signal })
    if (run.status !== 'running') return run
    await wait(POLL_MS, undefined, { signal })
  }
}

/** Resolves when the log grows no more: no audit is under way. */
async function quiet(api: Api, path: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + MOST_QUIET_MS
  for (let [looks, last] = [0, -1]; looks < 3; looks += 1) {
    const { last_seq } = await api.json<{ last_seq: number }>(path, { signal })
    if (last_seq !== last) [looks, last] = [0, last_seq]
    if (performance.now() > until) throw new CliError(`The log of ${path} still grows after ${MOST_QUIET_MS / 1000} s.`)
    await wait(POLL_MS, undefined, { signal })
  }
}

/** Counts the entries of the log that are about a lesson. */
function counted(log: readonly LogEntry[], { events }: Lesson): Omit<Taught, 'runs'> {
  const places = new Map(events.map(({ id }, index) => [id, index]))
  const calls = events.map(() => 0)
  const marks: Mark[] = []
  let accepted = 0
  let by_reflex = 0
  for (const entry of log) {
    if (entry.kind === 'event-accepted') accepted += 1
    if (entry.kind === 'event-ended' && entry.outcome.by === 'reflex') by_reflex += 1
    if (entry.kind === 'reflex-moved') marks.push({ after: accepted, text: `${entry.reflex_id} is ${entry.to}: ${entry.reason}` })
    const place = entry.kind === 'model-called' ? places.get(entry.event_ids.at(-1) ?? '') : undefined
    if (place !== undefined) calls[place] = (calls[place] ?? 0) + 1
  }
  return { calls, by_reflex, marks }
}
