import type { Outcome, OutcomeStatus } from '../../contract/event-record.ts'
import type { Settings } from '../../contract/settings.ts'
import type { Alarm } from '../alarm.ts'
import type { Counters } from '../counters.ts'
import type { Failed, Failure, Inbox, Settled } from './inbox.ts'
import type { Log } from '../log.ts'
import type { WorkingMemory } from '../context/working-memory.ts'
import { endedEntries, failedEntries } from './outcome-entries.ts'
import type { Waiters } from './waiters.ts'

type Parts = {
  inbox: Inbox
  memory: WorkingMemory
  log: Log
  counters: Counters
  waiters: Waiters
  alarm: Alarm
  settings: () => Settings
  now: () => number
  random: () => number
  /** Nobody will decide on these any more. */
  undecided: (rows: readonly Settled[]) => void
}

/** How events end, or come back for another attempt: on disk, in the log, in the counters, and told to whoever waits (G1). */
export class Settlement {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  end(seqs: readonly number[], status: OutcomeStatus, outcome: Outcome, error: string | null = null): number {
    if (seqs.length === 0) return 0
    const { inbox, memory, log, counters, waiters, now, undecided } = this.#parts
    const rows = inbox.end(seqs, status, outcome, now(), error)
    if (status === 'cancelled' || status === 'dead_lettered') {
      memory.leave(seqs)
    }
    if (outcome.by !== 'turn' && outcome.by !== 'reflex') undecided(rows)
    log.append(endedEntries(rows, status, outcome, error))
    counters.add({ [status]: rows.length })
    waiters.settled(rows.map(({ id }) => id))
    return rows.length
  }

  /** What a failure of `error` needs beside the events: the attempts allowed, the time, and jitter. */
  failure(error: string, log_seq?: number): Failure {
    const { settings, now, random } = this.#parts
    const { max_attempts, backoff_ms, max_backoff_ms } = settings().retry
    return { error, max_attempts, backoff_ms, max_backoff_ms, now: now(), jitter: random(), ...(log_seq !== undefined && { log_seq }) }
  }

  /** Records events that the inbox has sent back to pending or to the dead letters. */
  failed(rows: readonly Failed[], { error, log_seq }: Pick<Failure, 'error' | 'log_seq'>): void {
    if (rows.length === 0) return
    const { memory, log, counters, waiters, alarm, undecided } = this.#parts
    const dead = rows.filter(({ status }) => status === 'dead_lettered')
    if (dead.length > 0) memory.leave(dead.map(({ seq }) => seq))
    undecided(dead)
    log.append(failedEntries(rows, { by: 'failure', reason: error, ...(log_seq !== undefined && { log_seq }) }))
    counters.add({ dead_lettered: dead.length, retried: rows.length - dead.length })
    waiters.settled(dead.map(({ id }) => id))
    for (const { status, due_at } of rows) if (status === 'pending') alarm.by(due_at)
  }
}
