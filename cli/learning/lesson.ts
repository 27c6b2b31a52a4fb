import { setTimeout as wait } from 'node:timers/promises'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { z } from 'zod'
import type { learnRun, StartedRun } from '../../src/contract/reports/learning/runs.ts'
import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import type { Api } from '../lib/api.ts'
import { CliError } from '../lib/cli-error.ts'
import { followLog } from '../lib/follow-log.ts'
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
const CATCH_UP_MS = 15_000

/** Sends each event, waits for its outcome, and starts a run of learning where one is due. */
export async function teach(api: Api, lesson: Lesson, { signal, onProgress }: Teaching): Promise<Taught> {
  const path = `/v1/scopes/${encodeURIComponent(lesson.scope)}`
  await api.json(path, { method: 'PATCH', body: lesson.settings, signal })
  const tally = new Tally(lesson.events.map(({ id }) => id))
  const following = new AbortController()
  const follower = followLog(api, {
    scope: lesson.scope,
    signal: AbortSignal.any([signal, following.signal]),
    onEntry: (entry) => tally.count(entry),
  })
  const runs: LearnRun[] = []
  try {
    for (const [index, event] of lesson.events.entries()) {
      await api.json(`${path}/events?wait=outcome`, { method: 'POST', body: event, signal })
      const sent = index + 1
      onProgress({ sent, of: lesson.events.length, doing: 'sending' })
      if (!lesson.learn_after.includes(sent)) continue
      onProgress({ sent, of: lesson.events.length, doing: 'learning' })
      runs.push(await learn(api, lesson, signal))
    }
    await caughtUp(api, path, { tally, signal })
  } finally {
    following.abort()
    await follower
  }
  return { ...tally.taught, runs }
}

async function learn(api: Api, { scope }: Lesson, signal: AbortSignal): Promise<LearnRun> {
  const { run_id } = await api.json<StartedRun>('/v1/learn', { method: 'POST', body: { scope }, signal })
  for (;;) {
    const run = await api.json<LearnRun>(`/v1/learn/runs/${run_id}`, { signal })
    if (run.status !== 'running') return run
    await wait(POLL_MS, undefined, { signal })
  }
}

/** The log is followed until its newest entry was seen and no audit is under way. */
async function caughtUp(api: Api, path: string, { tally, signal }: { tally: Tally; signal: AbortSignal }): Promise<void> {
  const until = performance.now() + CATCH_UP_MS
  for (let quiet = 0; quiet < 3;) {
    const { last_seq } = await api.json<{ last_seq: number }>(path, { signal })
    quiet = tally.last_seq >= last_seq ? quiet + 1 : 0
    if (performance.now() > until) throw new CliError(`The stream of ${path} is behind its log after ${CATCH_UP_MS / 1000} s.`)
    await wait(POLL_MS, undefined, { signal })
  }
}

/** Counts the entries of the log that are about a lesson. */
class Tally {
  readonly taught: Omit<Taught, 'runs'>
  last_seq = 0
  readonly #places: ReadonlyMap<string, number>
  #accepted = 0

  constructor(ids: readonly string[]) {
    this.#places = new Map(ids.map((id, index) => [id, index]))
    this.taught = { calls: ids.map(() => 0), by_reflex: 0, marks: [] }
  }

  count(entry: LogEntry): void {
    this.last_seq = entry.seq
    if (entry.kind === 'event-accepted') this.#accepted += 1
    if (entry.kind === 'model-called') {
      const place = this.#places.get(entry.event_ids.at(-1) ?? '')
      if (place !== undefined) this.taught.calls[place] = (this.taught.calls[place] ?? 0) + 1
    }
    if (entry.kind === 'event-ended' && entry.outcome.by === 'reflex') this.taught.by_reflex += 1
    if (entry.kind === 'reflex-moved')
      this.taught.marks.push({ after: this.#accepted, text: `${entry.reflex_id} is ${entry.to}: ${entry.reason}` })
  }
}
